"""`ferry migrate import-mm1`, run as a user runs it."""

from __future__ import annotations

import csv
import os
import pty
import subprocess
from pathlib import Path

import pytest

from ferry.config.settings import load
from tests.golden import Golden, brief
from tests.program import PROGRAM, Answer, environment
from tests.program import warm_ferry as ferry

CONSUMER = "bootstrap.servers=west-1:9092\nfetch.size=1048576\nauto.offset.reset=smallest\n"
PRODUCER = "bootstrap.servers=east-1:9092\nacks=-1\nssl.key.password=geheim\n"


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """MirrorMaker 1's options with its two files."""
    (tmp_path / "c.properties").write_text(CONSUMER)
    (tmp_path / "p.properties").write_text(PRODUCER)
    return ["--consumer.config", str(tmp_path / "c.properties"), "--producer.config", str(tmp_path / "p.properties")]


def imported(*words: str | Path) -> Answer:
    return ferry("migrate", "import-mm1", *words)


def test_the_file_goes_to_standard_output_and_the_account_beside_it(files: list[str], tmp_path: Path) -> None:
    answer = imported(*files, "--whitelist", "orders.*")
    assert answer.code == 0
    (tmp_path / "new.properties").write_text(answer.out)
    read = load(tmp_path / "new.properties")
    assert read.problems == ()
    assert [str(flow.flow) for flow in read.flows] == ["source->target"]
    assert f"{files[1]}:2: fetch.size = 1048576: " in answer.err
    assert ": source.consumer.max.partition.fetch.bytes = 1048576" in answer.err
    assert "ssl.key.password = [hidden]: kept: " in answer.err
    assert "geheim" not in answer.out + answer.err


def test_a_pasted_command_line_and_an_output_file(files: list[str], tmp_path: Path, golden: Golden) -> None:
    output = tmp_path / "new.properties"
    words = ["bin/kafka-mirror-maker.sh", *files, "--white-list=a, b", "--abort.on.send.fail", "--num.streams", "2"]
    answer = imported(*words, "--output", output, "--source.alias", "west", "--target.alias", "east")
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.splitlines()[0].startswith("command line: --consumer.config = ")
    golden(answer.out.splitlines()[-1])
    checked = ferry("config", "check", output, "--json")
    problems = checked.json("config-check")["problems"]
    assert (checked.code, [one["key"] for one in problems]) == (0, ["west.consumer.auto.offset.reset"])
    flow = load(output).flow("west->east")
    assert (flow.topics.filter.include.items, flow.copy.tasks_max) == (("a", "b"), 2)
    # A password is referred to, and found where it always was.
    assert flow.client("target", "producer")["ssl.key.password"] == "geheim"
    assert output.stat().st_mode & 0o077 == 0


def test_json(files: list[str], tmp_path: Path, golden: Golden) -> None:
    body = imported(*files, "--whitelist", "a", "--json").json("import-mm1")
    assert body["file"] is None
    assert body["properties"].startswith("# Written by")
    assert body["flows"] == [{"source": "source", "target": "target", "topics": ["a"], "topics_exclude": ["__.*"]}]
    fates = {row["option"]: row["fate"] for row in body["options"]}
    assert (fates["acks"], fates["auto.offset.reset"], fates["fetch.size"]) == ("always", "kept", "kept")
    dry = imported(*files, "--whitelist", "a", "--json", "--dry-run", "--output", tmp_path / "n")
    assert not (tmp_path / "n").exists()
    assert (dry.json("import-mm1")["dry_run"], body["dry_run"]) == (True, False)
    said = imported(*files, "--whitelist", "a", "--dry-run", "--output", tmp_path / "n").out.splitlines()
    golden(said[-1])
    assert not (tmp_path / "n").exists()
    written = imported(*files, "--whitelist", "a", "--json", "--output", tmp_path / "n").json("import-mm1")
    assert (written["file"], written["properties"]) == (str(tmp_path / "n"), None)


@pytest.mark.parametrize("dry", [True, False], ids=["dry run", "file written"])
def test_csv_has_one_row_for_each_option(files: list[str], tmp_path: Path, dry: bool) -> None:
    new = tmp_path / "n"
    answer = imported(*files, "--whitelist", "a", "-o", "csv", *(["--dry-run"] if dry else ["--output", new]))
    assert (answer.code, new.exists()) == (0, not dry)
    rows = list(csv.DictReader(answer.out.splitlines()))
    body = imported(*files, "--whitelist", "a", "--json", "--dry-run").json("import-mm1")
    # A cell that begins with - has an apostrophe before it, so that no spreadsheet takes it for a formula.
    said = [(row["option"].removeprefix("'"), row["fate"]) for row in rows]
    assert said == [(one["option"], one["fate"]) for one in body["options"]]


def test_csv_without_a_place_for_the_new_file_is_refused(files: list[str], golden: Golden) -> None:
    answer = imported(*files, "--whitelist", "a", "-o", "csv")
    assert (answer.code, answer.out) == (2, "")
    golden(answer.err)


def test_something_left_to_decide_is_reported_and_fails_with_strict(files: list[str], tmp_path: Path) -> None:
    answer = imported(*files, "--whitelist", "a", "--message.handler", "x.Y", "--output", tmp_path / "new")
    assert answer.code == 0
    *account, last = answer.out.splitlines()
    given = [line for line in account if "--message.handler = x.Y: look: " in line]
    assert given[1:] == account[-1:] == [f"  {given[0]}"], "it is there twice: in order, and at the end"
    assert last.startswith("1 flow")
    assert load(tmp_path / "new").flows
    strict = imported(*files, "--whitelist", "a", "--message.handler", "x.Y", "--output", tmp_path / "n", "--strict")
    assert (strict.code, load(tmp_path / "n").flows != ()) == (1, True)


@pytest.mark.parametrize(("reset", "begins"), [("largest", "latest"), ("smallest", "earliest")])
def test_positions_left_behind_are_for_you_to_decide(
    reset: str, begins: str, files: list[str], tmp_path: Path, golden: Golden
) -> None:
    (tmp_path / "c.properties").write_text(f"{CONSUMER.replace('smallest', reset)}group.id=mirror\n")
    answer = imported(*files, "--whitelist", "a", "--output", tmp_path / "new", "--strict")
    assert answer.code == 1
    lines = answer.out.splitlines()
    assert begins in next(line for line in lines if "group.id" in line)
    golden("\n".join(lines[-3:]))
    quiet = imported(*files, "--whitelist", "a", "--dry-run", "--output", tmp_path / "new2", "--quiet")
    assert (quiet.code, quiet.out) == (0, "")
    assert "group.id" in quiet.err
    assert begins in quiet.err
    checked = ferry("config", "check", tmp_path / "new", "--strict", "--quiet")
    assert (checked.code, "auto.offset.reset" in checked.out) == (2, True)
    (tmp_path / "o.csv").write_text("a,0,17\n")
    assert imported(*files, "--whitelist", "a", "--offsets", tmp_path / "o.csv").code == 0


def test_quiet_writes_the_file_alone(files: list[str]) -> None:
    answer = imported(*files, "--whitelist", "a", "--quiet")
    assert (answer.code, answer.err) == (0, "")
    assert "source->target.topics = a\n" in answer.out


def test_an_existing_file_is_never_replaced(files: list[str], tmp_path: Path, golden: Golden) -> None:
    output = tmp_path / "new.properties"
    output.write_text("precious")
    refused = imported(*files, "--whitelist", "a", "--output", output)
    assert (refused.code, output.read_text()) == (2, "precious")
    golden(refused.err)
    output.unlink()
    assert imported(*files, "--whitelist", "a", "--output", output).code == 0
    assert load(output).flows
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c.properties", "new.properties", "p.properties"]


def test_zookeeper_only_asks_a_person_for_the_servers(files: list[str], tmp_path: Path) -> None:
    (tmp_path / "c.properties").write_text("zk.connect=zoo:2181/kafka\ngroupid=g\nmirror.topics.whitelist=a\n")
    refused = imported(*files)
    assert refused.code == 2
    assert "give --source.bootstrap.servers host:port" in refused.err
    given = imported(*files, "--source.bootstrap.servers", "west-9:9092")
    assert "source.bootstrap.servers = west-9:9092\n" in given.out
    keyboard, terminal = pty.openpty()
    try:
        os.write(keyboard, b"west-7:9092\n")
        asked = subprocess.run(
            [PROGRAM, "migrate", "import-mm1", *files],
            stdin=terminal, capture_output=True, text=True, env=environment(), check=False,
        )  # fmt: skip
    finally:
        os.close(keyboard)
        os.close(terminal)
    assert asked.returncode == 0, asked.stderr
    assert "names ZooKeeper only (zoo:2181/kafka)" in asked.stderr
    assert "source.bootstrap.servers = west-7:9092\n" in asked.stdout


def test_positions_come_from_kafka_s_own_export(files: list[str], tmp_path: Path) -> None:
    (tmp_path / "o.csv").write_text("a,0,17\na,1,4\n")
    answer = imported(*files, "--whitelist", "a", "--offsets", tmp_path / "o.csv")
    assert answer.code == 0
    assert "source->target.ferry.start = a:0:17, a:1:4\n" in answer.out


@pytest.mark.parametrize(
    "words",
    [
        ["-Djava.security.auth.login.config=/dev/null", "--whitelist", "a"],
        [],
        ["--whitelist", "(a"],
        ["--whitelist", "a", "--bogus"],
        ["--whitelist", "a", "b"],
        ["--whitelist", "a", "--source.alias", "x y"],
        ["--whitelist", "a", "--source.alias", "target"],
        ["--whitelist", "a", "--source.alias", "x", "--source.alias", "y"],
        ["--consumer.config", "{c}", "--source.alias", "x", "--whitelist", "a"],
        ["--whitelist", "a", "--source.bootstrap.servers", "x"],
        ["--whitelist", "a", "--target.bootstrap.servers", ","],
        ["--whitelist", "a", "--offsets", "none.csv"],
        ["--whitelist", "a", "--copy-secrets"],
        ["--whitelist", "a", "--output", "--yes"],
        ["--whitelist", "a", "--output", "/proc/none/x"],
        ["--consumer.config", "{c}", "--whitelist", "a"],
        ["-Djava.security.auth.login.config=none.conf", "--whitelist", "a"],
    ],
    ids=brief,
)
def test_bad_input_is_one_sentence_and_exit_code_2(files: list[str], words: list[str], golden: Golden) -> None:
    answer = imported(*files, *(word.replace("{c}", files[1]) for word in words))
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.startswith("ferry: ")
    assert answer.err.count("\n") == 1
    golden(answer.err.removeprefix("ferry: "))


@pytest.mark.parametrize(
    "content",
    [
        None,
        b"a=\xff\n",
        b"a=\\u12\n",
        b"bootstrap.servers=west-1:9092,west-2-6667\n",
    ],
    ids=["no file", "no UTF-8", "a malformed escape", "no port"],
)
def test_a_bad_file_is_named_with_its_line(
    files: list[str], tmp_path: Path, content: bytes | None, golden: Golden
) -> None:
    path = tmp_path / "c.properties"
    path.unlink() if content is None else path.write_bytes(content)
    answer = imported(*files, "--whitelist", "a")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err.count("\n") == 1
    golden(answer.err)


def test_the_old_files_are_never_overwritten(files: list[str], tmp_path: Path) -> None:
    answer = imported(*files, "--whitelist", "a", "--output", tmp_path / "c.properties")
    assert answer.code == 2
    assert (tmp_path / "c.properties").read_text() == CONSUMER
