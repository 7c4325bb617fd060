"""`ferry config check` as a user sees it."""

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from ferry.config.explain import explain
from ferry.program import main
from tests.golden import Golden

SCHEMA = Path(__file__).parents[3] / "docs" / "schemas" / "config-check.json"
FILE = """\
clusters = west, east
west.bootstrap.servers = broker-1:9092, broker-2:9092
east.bootstrap.servers = broker-3:9092
west->east.enabled = true
west->east.topics = orders.*
sync.group.offsets.enabled = true
west->east.emit.heartbeats.interval.seconds = 5
east.offset.storage.topic = mine
west.ssl.key.password = geheim
east->west.topics = back
"""


class Run:
    """One run of the program in this process."""

    def __init__(self, *arguments: str | Path, capsys: pytest.CaptureFixture[str]) -> None:
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        self.code = ended.value.code
        self.out, self.err = capsys.readouterr()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mm2.properties"
    path.write_text(FILE)
    return path


def test_every_value_has_its_origin(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = Run("config", "check", file, "--all", capsys=capsys)
    assert (run.code, run.err) == (0, "")
    rows = {" ".join(line.split()) for line in run.out.splitlines()}
    assert "line 5 topics orders.*" in rows
    assert "line 6 sync.group.offsets.enabled true" in rows
    assert "default tasks.max 1" in rows
    assert any(row.startswith("not set: ") and "ferry.run.max.records" in row for row in rows)
    assert "line 7 emit.heartbeats.interval.seconds 5" in rows
    assert "line 9 source.*.ssl.key.password [hidden]" in rows
    assert "line 2 west broker-1:9092,broker-2:9092" in rows
    assert "flow east->west: not enabled" in rows
    assert any(row.startswith("8 east.offset.storage.topic Ferry keeps no state") for row in rows)
    assert "0 errors, 0 warnings" in rows
    assert "geheim" not in run.out


def test_what_counts_nowhere_is_said_and_every_line_is_in_the_answer(
    file: Path, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    more = "topics = all\nexactly.once.source.support = enabled\nwest.consumer.auto.offset.reset = latest\n"
    file.write_text(FILE + more)
    out = Run("config", "check", file, capsys=capsys).out
    rows = {" ".join(line.split()) for line in out.splitlines()}
    assert "flow west->east (enabled on line 4)" in rows
    assert "line 13 ferry.start (by west.consumer.auto.offset.reset) latest" in rows
    assert "10 east->west.topics flow east->west is not enabled" in rows
    assert "11 topics overridden by line 5" in rows
    (elsewhere,) = [row for row in rows if row.startswith("12 exactly.once.source.support ")]
    golden(elsewhere)
    body = json.loads(Run("config", "check", file, "--json", capsys=capsys).out)
    Draft202012Validator(json.loads(SCHEMA.read_text())).validate(body)
    assert body["flows"][0]["enabled_line"] == 4
    assert {one["line"]: one["fate"] for one in body["lines"]} == {
        **dict.fromkeys((1, 2, 3, 4, 5, 6, 7, 9, 13), "used"),
        8: "not needed",
        10: "without effect",
        11: "overridden",
        12: "without effect",
    }


def test_defaults_are_counted_unless_all_are_asked_for(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = Run("config", "check", file, capsys=capsys).out
    assert "\ndefault " not in out
    assert "--all" in out


def test_problems_are_first_and_last(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(f"{FILE}tasks.mx = 3\n")
    first, *_, last, counts = Run("config", "check", file, capsys=capsys).out.splitlines()
    assert first == last
    assert first.startswith("warning: ")
    assert counts == "0 errors, 1 warning"


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("west.consumer.auto.offset.reset = latest", True),
        ("west->east.ferry.start = latest", True),
        ("west->east.ferry.start = earliest", False),
        ("west.consumer.auto.offset.reset = earliest", False),
        ("east.producer.compression.type = zstd", True),
        ("east.compression.type = zstd", False),  # nothing reads it there, which is a warning
        ("west.producer.compression.type = zstd", False),
    ],
)
def test_lines_that_skip_history_or_change_batches_are_noted(
    line: str, found: bool, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(f"{FILE}{line}\n")
    (there, _) = json.loads(Run("config", "check", file, "--json", capsys=capsys).out)["flows"]
    assert [note.partition(":")[0] for note in there["surprises"]] == (["line 11"] if found else [])


IDENTITY = "west->east.replication.policy.class = IdentityReplicationPolicy"


def test_who_writes_where_the_first_run_begins_is_not_warned_of_copies_under_the_same_name(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    decided = f"west.consumer.auto.offset.reset = earliest\n{IDENTITY}\nwest->east.ferry.start = earliest\n"
    file.write_text(f"{FILE}{decided}")
    body = json.loads(Run("config", "check", file, "--json", capsys=capsys).out)
    assert [one["key"] for one in body["problems"]] == []


@pytest.mark.parametrize("quiet", [(), ("--quiet",)])
@pytest.mark.parametrize(
    ("line", "key"),
    [
        ("west.consumer.auto.offset.reset = latest", "west.consumer.auto.offset.reset"),
        ("east.producer.compression.type = zstd", "east.producer.compression.type"),
        ("west.consumer.auto.offset.reset = earliest\n" + IDENTITY, "west.consumer.auto.offset.reset"),
    ],
)
def test_lines_that_skip_history_or_change_batches_are_warnings(
    line: str, key: str, quiet: tuple[str, ...], file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(f"{FILE}{line}\n")
    run = Run("config", "check", file, "--strict", *quiet, capsys=capsys)
    assert run.code == 2
    assert f"warning: {file}:11: {key}: " in run.out
    assert run.out.endswith("0 errors, 1 warning\n")
    body = json.loads(Run("config", "check", file, "--json", capsys=capsys).out)
    assert [(one["line"], one["key"], one["severity"]) for one in body["problems"]] == [(11, key, "warning")]
    assert {one["fate"] for one in body["lines"] if one["line"] == 11} == {"used"}


@pytest.mark.parametrize(
    ("lines", "keys"),
    [
        ("", ["sync.group.offsets.enabled"]),
        ("sync.group.offsets.enabled = true", []),
        ("sync.group.offsets.enabled = false", []),
        ("east->west.enabled = true\nwest->east.sync.group.offsets.enabled = true",
         ["east->west.sync.group.offsets.enabled"]),
        ("east->west.enabled = true", ["sync.group.offsets.enabled"]),
    ],
)  # fmt: skip
def test_group_offsets_that_no_line_asks_for_are_a_warning(
    lines: str, keys: list[str], file: Path, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    file.write_text(f"{FILE.replace('sync.group.offsets.enabled = true', '')}{lines}\n")
    body = json.loads(Run("config", "check", file, "--json", capsys=capsys).out)
    assert [(one["line"], one["key"], one["severity"]) for one in body["problems"]] == [
        (None, key, "warning") for key in keys
    ]
    run = Run("config", "check", file, "--strict", "--quiet", capsys=capsys)
    assert run.code == (2 if keys else 0)
    golden(run.out.replace(str(file), "mm2.properties"))


def test_defaults_that_all_flows_have_are_shown_once(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(f"{FILE}east->west.enabled = true\nwest->east.tasks.max = 4\n")
    out = Run("config", "check", file, "--all", capsys=capsys).out
    rows = [" ".join(line.split()) for line in out.splitlines()]
    assert sum("ferry.run.max.records" in row for row in rows) == 1
    assert (rows.count("default tasks.max 1"), rows.count("line 12 tasks.max 4")) == (1, 1)
    assert (
        rows.index("default tasks.max 1") < rows.index("defaults of all flows") < rows.index("default ferry.retries 3")
    )
    assert sum(row.startswith("note: exactly.once") for row in rows) == 1


@pytest.mark.parametrize("name", ["consumer.isolation.level", "offset-syncs.topic", "exactly.once"])
def test_departures_from_mirror_maker_are_said(name: str, file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = Run("config", "check", file, capsys=capsys).out
    assert f"note: {name}" in out


def test_a_value_in_the_file_wins_over_a_departure(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(f"{FILE}sync.group.offsets.enabled = false\nwest.consumer.isolation.level = read_uncommitted\n")
    out = Run("config", "check", file, capsys=capsys).out
    assert "note: sync.group" not in out
    assert "note: consumer.isolation" not in out


def test_an_option_is_no_file_to_write(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    monkeypatch.chdir(file.parent)
    run = Run("config", "check", "--fix", "--strict", file, capsys=capsys)
    assert (run.code, run.out) == (2, "")
    golden(run.err)
    assert not Path("--strict").exists()


def test_an_address_is_shown_without_its_login(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = "sasl.oauthbearer.token.endpoint.url = https://u:geheim@h:8443/token?secret=geheim"
    file.write_text(f"{FILE}west.{url}\n")
    for words in ((), ("--json",)):
        out = Run("config", "check", file, *words, capsys=capsys).out
        assert "https://h:8443/token" in out
        assert "geheim" not in out


def test_what_no_run_acts_on_is_not_shown_as_in_force(
    file: Path, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    file.write_text(f"{FILE}west->east.refresh.topics.enabled = true\nsync.topic.configs.enabled = false\n")
    body = json.loads(Run("config", "check", file, "--json", capsys=capsys).out)
    Draft202012Validator(json.loads(SCHEMA.read_text())).validate(body)
    (there, _) = body["flows"]
    idle = {one["name"] for one in there["settings"] if not one["acted_on"]}
    assert idle == {"refresh.topics.enabled", "refresh.topics.interval.seconds"}
    assert not idle & {
        "topics",
        "groups",
        "sync.group.offsets.enabled",
        "sync.topic.configs.enabled",
        "sync.topic.acls.enabled",
        "ferry.start",
        "tasks.max",
    }
    assert any("offset syncs" in departure for departure in there["departures"])
    rows = [" ".join(line.split()) for line in Run("config", "check", file, "--all", capsys=capsys).out.splitlines()]
    (named,) = [row for row in rows if row.startswith("line 11 refresh.topics.enabled ")]
    golden(named, "a line of the file")
    assert "line 12 sync.topic.configs.enabled false" in rows
    shown = {row.split()[1] for row in rows if row.startswith("default ")}
    assert not shown & idle
    left = {"refresh.topics.enabled"}
    (line,) = [row for row in rows if {name.rstrip(",") for name in row.partition(": ")[2].split()} == idle - left]
    golden(line.partition(": ")[0], "what is not implemented")
    for name in idle:
        assert [one.fate for one in explain(name)] == ["not acted on"]


def test_what_java_refuses_is_a_problem_among_the_others(
    file: Path, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    file.write_text(f"{FILE}replication.factor = 0\nwest.ssl.keystore.password = geheim\\u12\n")
    run = Run("config", "check", file, "--json", capsys=capsys)
    body = json.loads(run.out)
    Draft202012Validator(json.loads(SCHEMA.read_text())).validate(body)
    assert run.code == 2
    assert [(one["line"], one["key"]) for one in body["problems"]] == [
        (11, "replication.factor"),
        (12, "west.ssl.keystore.password"),
    ]
    golden("\n".join(one["message"] for one in body["problems"]))
    assert [one["fate"] for one in body["lines"][-2:]] == ["problem", "problem"]
    assert "geheim" not in run.out
    plan = Run("plan", "west->east", "--config", file, capsys=capsys)
    assert (plan.code, plan.err.count("\n")) == (2, 1)


def test_json_is_as_its_schema_says(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(f"{FILE}taks.max = 1\nreplication.factor = 0\n")
    run = Run("config", "check", file, "--json", capsys=capsys)
    assert run.code == 2
    body = json.loads(run.out)
    Draft202012Validator(json.loads(SCHEMA.read_text())).validate(body)
    assert [cluster["alias"] for cluster in body["clusters"]] == ["west", "east"]
    there, back = body["flows"]
    assert (there["source"], there["target"], there["enabled"], there["topics"]) == ("west", "east", True, ["orders.*"])
    assert back == {"source": "east", "target": "west", "enabled": False}
    assert [(problem["line"], problem["key"], problem["severity"]) for problem in body["problems"]] == [
        (11, "taks.max", "warning"),
        (12, "replication.factor", "error"),
    ]
    assert "geheim" not in run.out


@pytest.mark.parametrize(("strict", "code"), [((), 0), (("--strict",), 2)])
def test_unknown_keys_fail_only_with_strict(
    strict: tuple[str, ...], code: int, file: Path, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    file.write_text(f"{FILE}taks.max = 1\n")
    run = Run("config", "check", file, *strict, capsys=capsys)
    assert run.code == code
    said = [line for line in run.out.splitlines() if f"{file}:11: taks.max: " in line]
    golden("\n".join(said))


SLIPS = f"""\
# our flows
{FILE}west->east.emit.heartbeats = false
topics = a.* # only some
West.consumer.bootstrap.servers = h:1
"""


def test_the_file_that_works_is_written_with_the_rights_of_the_old_one(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(SLIPS)
    file.chmod(0o640)
    out = file.with_name("new.properties")
    run = Run("config", "check", file, "--fix", out, capsys=capsys)
    assert run.code == 0
    assert f"corrected: {file}:14: west.consumer.bootstrap.servers = h:1\n" in run.out
    assert run.out.endswith(f"written: {out}\n")
    assert out.read_text() == (
        f"# our flows\n{FILE}west->east.emit.heartbeats.enabled = false\n"
        "# only some\ntopics = a.*\nwest.consumer.bootstrap.servers = h:1\n"
    )
    assert out.stat().st_mode & 0o777 == 0o640
    assert Run("config", "check", out, "--strict", capsys=capsys).code == 0


def test_what_is_corrected_is_in_the_answer_as_well(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(SLIPS + "West.ssl.truststore.password = planted # ed\n")
    run = Run("config", "check", file, "--fix", file.with_name("new"), "--json", capsys=capsys)
    body = json.loads(run.out)
    Draft202012Validator(json.loads(SCHEMA.read_text())).validate(body)
    assert [problem["line"] for problem in body["corrected"]] == [12, 13, 14, 15]
    assert body["corrected"][1]["correction"] == ["# only some", "topics = a.*"]
    assert body["corrected"][3]["correction"] is None, "a secret is not shown, and what is shown would destroy it"
    assert body["written"] == str(file.with_name("new"))
    assert "planted" not in run.out
    assert "planted" in file.with_name("new").read_text()


def test_a_dry_run_tells_what_would_be_written(file: Path, capsys: pytest.CaptureFixture[str], golden: Golden) -> None:
    file.write_text(SLIPS)
    out = file.with_name("new.properties")
    run = Run("config", "check", file, "--fix", out, "--dry-run", capsys=capsys)
    assert run.code == 0
    assert f"corrected: {file}:14: west.consumer.bootstrap.servers = h:1\n" in run.out
    assert run.out.endswith(f"would be written: {out}\n")
    body = json.loads(Run("config", "check", file, "--fix", out, "--dry-run", "--json", capsys=capsys).out)
    assert (len(body["corrected"]), body["written"]) == (3, None)
    assert not out.exists()
    out.write_text("mine")
    again = Run("config", "check", file, "--fix", out, "--dry-run", capsys=capsys)
    assert (again.code, out.read_text()) == (2, "mine")
    golden(again.err)


def test_nothing_is_written_while_an_error_is_left(
    file: Path, capsys: pytest.CaptureFixture[str], golden: Golden
) -> None:
    file.write_text(f"{SLIPS}groups = [\n")
    out = file.with_name("new.properties")
    run = Run("config", "check", file, "--fix", out, capsys=capsys)
    assert run.code == 2
    golden(run.out.splitlines()[-1])
    assert f"error: {file}:15: groups: " in run.out, "by the lines of the file that has to be corrected"
    assert not out.exists()
    body = json.loads(Run("config", "check", file, "--fix", out, "--json", capsys=capsys).out)
    assert body["written"] is None
    Draft202012Validator(json.loads(SCHEMA.read_text())).validate(body)


def test_what_is_wrong_with_a_client_is_not_written_either(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(f"{SLIPS}west.security.protocol = TLS\n")
    out = file.with_name("new.properties")
    run = Run("config", "check", file, "--fix", out, capsys=capsys)
    assert run.code == 2
    assert f"error: {file}:15: west.security.protocol: " in run.out
    assert not out.exists()


@pytest.mark.parametrize(
    ("line", "correction"),
    [
        ("east -> west.enable = true", ["east->west.enabled = true"]),
        ("east->west.enable = true", ["east->west.enabled = true"]),
        ("east -> west.emit.heartbeats = true", ["east->west.emit.heartbeats.enabled = true"]),
        ("West.topics.blacklist = x", ["west.topics.blacklist = x"]),
        ("West.ssl.key.password = planted", None),
        ("West.my.own = planted", None),
        ("west -> east.ssl.truststore.password = planted", None),
    ],
)
def test_a_correction_is_the_line_to_write_or_null(
    line: str, correction: list[str] | None, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(f"{FILE}{line}\n")
    run = Run("config", "check", file, "--json", capsys=capsys)
    (problem,) = [one for one in json.loads(run.out)["problems"] if one["line"] == 11]
    assert problem["correction"] == correction
    assert "planted" not in run.out


TANGLED = """\
clusters = us-west, us-east # both
us-west.bootstrap.servers = broker3-west:9092
us-east.bootstrap.servers = broker5-east:9092 # the target
topics.exclude = x, \\
    y
us-west->us-east.enable = true # on
topics = a
topics = a
Us-west.consumer.fetch.max.bytes = 1 # small
us-west -> us-east.emit.heartbeats = false
taks.max = 3
"""


def test_corrections_speak_of_the_old_file_and_what_is_left_of_the_new(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(TANGLED)
    out = file.with_name("new.properties")
    body = json.loads(Run("config", "check", file, "--fix", out, "--json", capsys=capsys).out)
    assert [(one["file"], one["line"], one["correction"]) for one in body["corrected"]] == [
        (str(file), 1, ["# both", "clusters = us-west, us-east"]),
        (str(file), 3, ["# the target", "us-east.bootstrap.servers = broker5-east:9092"]),
        (str(file), 6, ["# on", "us-west->us-east.enabled = true"]),
        (str(file), 8, []),
        (str(file), 9, ["# small", "us-west.consumer.fetch.max.bytes = 1"]),
        (str(file), 10, ["us-west->us-east.emit.heartbeats.enabled = false"]),
    ]
    lines = out.read_text().splitlines()
    left = [one for one in body["problems"] if one["line"] is not None]
    assert [(one["file"], lines[one["line"] - 1]) for one in left] == [(str(out), "taks.max = 3")]


def test_a_line_that_is_added_shifts_no_other(file: Path, capsys: pytest.CaptureFixture[str], golden: Golden) -> None:
    file.write_text(TANGLED.partition("\n")[2])
    out = file.with_name("new.properties")
    run = Run("config", "check", file, "--fix", out, capsys=capsys)
    corrections = [line for line in run.out.splitlines() if line.startswith("corrected: ")]
    golden(corrections[0])
    assert [line.removeprefix(f"corrected: {file}:").partition(":")[0] for line in corrections[1:]] == list("25789")
    assert out.read_text().startswith("clusters = us-west, us-east\n")


def test_an_existing_file_is_not_replaced(file: Path, capsys: pytest.CaptureFixture[str], golden: Golden) -> None:
    run = Run("config", "check", file, "--fix", file, capsys=capsys)
    assert run.code == 2
    golden(run.err)
    assert file.read_text() == FILE


@pytest.mark.parametrize(
    ("lines", "severity", "line"),
    [
        ("west.consumer.fetch.max.bytes = many", "error", 11),
        ("east.producer.max.request.size = 0", "error", 11),
        ("west.consumer.request.timeout.ms = soon", "error", 11),
        ("west.security.protocol = TLS", "error", 11),
        ("west.security.protocol = SASL_PLAINTEXT\nwest.sasl.mechanism = DIGEST-MD5", "error", 12),
        ("west.security.protocol = SASL_SSL\nwest.sasl.mechanism = PLAIN", "error", 12),
        ("west.security.protocol = SSL\nwest.ssl.truststore.location = /no/such.jks", "warning", 12),
        ("west.ssl.keystore.password = ${env:FERRY_NOT_SET_ANYWHERE}", "warning", 11),
    ],
)
def test_clients_are_tried_out_without_a_network(
    lines: str, severity: str, line: int | None, golden: Golden, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(f"{FILE}{lines}\n")
    run = Run("config", "check", file, "--json", capsys=capsys)
    assert run.code == (2 if severity == "error" else 0)
    found = json.loads(run.out)["problems"]
    assert [(problem["severity"], problem["line"]) for problem in found] == [(severity, line)]
    golden(found[0]["message"])


@pytest.mark.parametrize(
    ("line", "severity"),
    [
        ("west->east.tasks.max = 3 # few", "error"),
        ("west->east.groups = a # b", "warning"),
        ("refresh.groups.interval.seconds = often", "error"),
        ("west.consumer.request.timeout.ms = 9223372036854775808", "error"),
        ("west.consumer.request.timeout.ms = 0", "error"),
        ("rename.topics = a", "warning"),
        ("emit.heartbeat.enabled = true", "warning"),
        ("sync.topicacls.enabled = true", "warning"),
        ("replication.factor = 40000", "error"),
    ],
)
def test_one_line_has_one_sentence(
    line: str, severity: str, golden: Golden, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(f"{FILE}{line}\n")
    (problem,) = json.loads(Run("config", "check", file, "--json", capsys=capsys).out)["problems"]
    assert (problem["line"], problem["severity"]) == (11, severity)
    golden(problem["message"])


def test_an_airflow_connection_is_looked_up_in_the_environment_only(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    own = [line for line in FILE.splitlines() if not line.startswith(("west.bootstrap", "west.ssl"))]
    file.write_text("\n".join([*own, "west.ferry.airflow.conn.id = kafka_west"]))
    monkeypatch.delenv("AIRFLOW_CONN_KAFKA_WEST", raising=False)
    body = json.loads(Run("config", "check", file, "--json", capsys=capsys).out)
    (problem,) = body["problems"]
    assert (problem["line"], problem["key"], problem["severity"]) == (9, "west.ferry.airflow.conn.id", "warning")
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_WEST", '{"conn_type": "kafka_cluster", "host": "h", "port": 9092}')
    assert json.loads(Run("config", "check", file, "--json", capsys=capsys).out)["problems"] == []
