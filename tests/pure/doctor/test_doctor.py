"""`ferry doctor` and `ferry support-bundle` over scripted clusters."""

from __future__ import annotations

import errno
import json
import os
import tarfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ferry.commands.support_bundle import without
from ferry.errors import Refused, Retryable
from ferry.features.doctor.acts import machine
from ferry.features.doctor.cli.doctor import doctor_json
from ferry.features.doctor.rules.clusters import BrokerFacts, ClusterFacts
from ferry.features.doctor.rules.findings import of_cluster
from ferry.messages.catalogue import sentence
from ferry.model import code_of
from ferry.model.finding import Grade, failed, unknown
from ferry.program import main
from tests.golden import Golden
from tests.pure.answers.stories import begun
from tests.pure.answers.world import Answer, World, world
from tests.said import facts_in

PLANTED = "planted-9c1f0a"


@pytest.fixture
def made(tmp_path: Path) -> Iterator[World]:
    with world(tmp_path) as one:
        yield one


def grades(answer: Answer, about: str) -> dict[str, str]:
    return {one["check"]: one["grade"] for one in answer.body["findings"] if one["about"] == about}


@pytest.mark.slow
def test_a_flow_that_runs_well_passes(made: World) -> None:
    begun(made, topics={"users": 1})
    assert made.ask("run", "a->b").code == 0
    asked = made.ask("doctor")
    found = grades(asked, "a->b")
    assert asked.code == 0
    assert {name for name, grade in found.items() if grade != "pass"} == {"source ACLs", "target ACLs"}  # PLAINTEXT
    assert found.keys() >= {"source", "target", "replication", "refusals", "clock", "ledger", "writers"}
    assert sum(asked.body["counts"].values()) == len(asked.body["findings"])


def test_before_the_first_run_it_says_what_that_would_refuse(made: World) -> None:
    begun(made, "topics = nothing", topics={"users": 1})
    asked = made.ask("doctor")
    assert asked.code == 1
    assert {name: grades(asked, "a->b")[name] for name in ("ledger", "refusals")} == {
        "ledger": "pass",
        "refusals": "fail",
    }
    (found,) = (one for one in asked.body["findings"] if one["check"] == "refusals")
    error = made.ask("lag", "a->b").body["error"]
    assert found["code"] == error["code"] == "topics.none.name"
    assert found["facts"] == error["facts"]


def test_a_cluster_that_does_not_answer_fails_and_the_other_is_still_looked_at(made: World) -> None:
    begun(made, "a.bootstrap.servers = 127.0.0.1:1", topics={"users": 1})
    asked = made.ask("doctor", "--patience", "1")
    assert asked.code == 1
    assert grades(asked, "a->b") == {
        "source": "fail",
        "target": "pass",
        "target ACLs": "unknown",
        "runs": "unknown",
    }


def test_when_neither_answers_both_are_named(made: World) -> None:
    begun(made, "a.bootstrap.servers = 127.0.0.1:1", "b.bootstrap.servers = 127.0.0.1:2", topics={"users": 1})
    asked = made.ask("doctor", "--patience", "1")
    assert grades(asked, "a->b") == {"source": "fail", "target": "fail"}


def test_every_error_of_the_file_is_a_line_and_no_cluster_is_asked(made: World) -> None:
    begun(made, "replication.factor = many", "tasks.max = none", topics={"users": 1})
    asked = made.ask("doctor")
    lines = [one["grade"] for one in asked.body["findings"] if one["about"] == "file"]
    assert (asked.code, lines.count("fail")) == (1, 2)
    assert grades(asked, "a->b") == {}


@pytest.mark.parametrize(
    "lines",
    [
        ("topics = nothing",),
        ("auto.offset.reset = latest", "producer.compression.type = zstd", "refresh.topics.interval = 5"),
        ("sync.group.offsets.enabled = true",),
        ("replication.factor = many", "a->b.producer.compression.type = zstd"),
    ],
)
def test_the_lines_about_the_file_are_the_problems_of_config_check(made: World, lines: tuple[str, ...]) -> None:
    begun(made, *lines, topics={"users": 1})
    problems = made.ask("config", "check").body["problems"]
    found = [one for one in made.ask("doctor").body["findings"] if one["about"] == "file"]
    assert [one["grade"] for one in found if one["grade"] != "pass"] == [
        {"warning": "warn", "error": "fail"}[one["severity"]] for one in problems
    ]
    for line, problem in zip(found, problems, strict=bool(problems)):
        assert line["message"].endswith(problem["message"])


def test_a_warning_of_the_file_is_not_on_standard_error_too(made: World, capsys: pytest.CaptureFixture[str]) -> None:
    begun(made, "refresh.topics.intervall = 5", topics={"users": 1})
    with pytest.raises(SystemExit):
        main(["doctor"])
    out, err = capsys.readouterr()
    assert ("refresh.topics.intervall" in out, "refresh.topics.intervall" in err) == (True, False)


def test_people_see_what_failed_in_the_end(made: World, capsys: pytest.CaptureFixture[str]) -> None:
    begun(made, "topics = nothing", topics={"users": 1})
    with pytest.raises(SystemExit):
        main(["doctor"])
    *_, failure, _, counts = capsys.readouterr().out.splitlines()
    assert failure.startswith("FAIL: a->b: refusals: ")
    assert "1 FAIL" in counts


@pytest.mark.parametrize(
    ("side", "version", "grade"),
    [
        ("source", (1, 1), Grade.PASS),
        ("source", (1, 0), Grade.FAIL),
        ("target", (2, 8), Grade.PASS),
        ("target", (2, 7), Grade.FAIL),
        ("target", None, Grade.UNKNOWN),
    ],
)
def test_a_cluster_that_is_too_old_fails(side: str, version: tuple[int, ...] | None, grade: Grade) -> None:
    brokers = (
        BrokerFacts(id=1, address="h:9092", version=version),
        BrokerFacts(id=2, address="i:9092", version=(9, 9)),
    )
    facts = ClusterFacts(alias="a", cluster_id="x", brokers=brokers if version else brokers[:1])
    assert of_cluster("a->b", side, facts).grade is grade


def test_a_broker_that_is_listed_and_does_not_answer_is_a_warning() -> None:
    brokers = (BrokerFacts(id=1, address="h:1", version=(4, 1)), BrokerFacts(id=2, address="i:1", why="no answer"))
    found = of_cluster("a->b", "source", ClusterFacts(alias="a", cluster_id="x", brokers=brokers))
    assert found.grade is Grade.WARN
    assert "broker 2 at i:1" in found.message
    assert (
        of_cluster("a->b", "target", ClusterFacts(alias="a", cluster_id="x", brokers=brokers[:1])).grade is Grade.PASS
    )


def test_brokers_of_which_none_answers_are_named_though_the_version_is_not_known() -> None:
    brokers = tuple(BrokerFacts(id=one, address=f"h:{one}", why="no answer") for one in (1, 2))
    found = of_cluster("a->b", "source", ClusterFacts(alias="a", cluster_id="x", brokers=brokers))
    assert found.grade is Grade.UNKNOWN
    assert "broker 1 at h:1" in found.message
    assert "broker 2 at h:2" in found.message


def test_one_cluster_under_two_aliases_fails_with_its_code(made: World) -> None:
    begun(made, topics={"users": 1})
    assert "clusters" not in grades(made.ask("doctor"), "a->b")
    made.b.alias = made.a.alias  # the id that it answers
    asked = made.ask("doctor")
    (found,) = (one for one in asked.body["findings"] if one["check"] == "clusters")
    assert (asked.code, found["grade"], found["code"]) == (1, "fail", "clusters.same")
    assert {name: found["facts"][name] for name in ("source", "target", "cluster")} == {
        "source": "a",
        "target": "b",
        "cluster": "a",
    }


def test_findings_have_the_code_and_facts_of_what_they_were_made_of(made: World) -> None:
    why = sentence("acls.unread", cluster="a", why="grant DESCRIBE")
    for found in (failed("a->b", "runs", Refused(why)), unknown("a->b", "source ACLs", why)):
        assert (found.message, code_of(found.message), facts_in(found.message)) == (why, why.code, facts_in(why))
    begun(made, "replication.factor = many", topics={"users": 1})
    (line,) = (one for one in made.ask("doctor").body["findings"] if (one["about"], one["grade"]) == ("file", "fail"))
    (problem,) = (one for one in made.ask("config", "check").body["problems"] if one["severity"] == "error")
    assert (line["code"], line["facts"]) == (problem["code"], problem["facts"])
    assert line["message"].endswith(f"replication.factor: {problem['message']}")
    plain = failed("a->b", "runs", Retryable("a text"))
    assert doctor_json([plain])["findings"] == [
        {"about": "a->b", "check": "runs", "grade": "fail", "message": "a text"},
    ]


def test_folders_that_may_not_be_written_fail(made: World, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    begun(
        made, f"ferry.report.dir = {tmp_path}/new/reports", f"ferry.metrics.folder = {tmp_path}/file", topics={"u": 1}
    )
    found = grades(made.ask("doctor"), "machine")
    assert (found["ferry.report.dir"], found["ferry.metrics.folder"]) == ("pass", "fail")


@pytest.mark.parametrize(
    ("lines", "left"),
    [
        ((), ["ferry__a__gone.prom", "ferry__b__a.prom"]),
        (("b->a.enabled = true",), ["ferry__a__gone.prom"]),
        (("ferry.lane = second",), ["ferry__a__b.prom", "ferry__a__gone.prom", "ferry__b__a.prom"]),
    ],
    ids=["a flow that is not enabled", "all flows of the file count", "another lane"],
)
def test_metrics_of_a_flow_that_is_gone_are_a_warning(
    lines: tuple[str, ...], left: list[str], made: World, tmp_path: Path, golden: Golden
) -> None:
    folder = tmp_path / "metrics"
    begun(made, f"a->b.ferry.metrics.folder = {folder}", *lines, topics={"u": 1})
    assert "metrics files" not in grades(made.ask("doctor", "a->b"), "machine")
    folder.mkdir()
    assert grades(made.ask("doctor", "a->b"), "machine")["metrics files"] == "pass"
    for name in ("ferry__a__b", "ferry__b__a", "ferry__a__b__backfill-x", "ferry__a__gone", "ours"):
        (folder / f"{name}.prom").touch()
    asked = made.ask("doctor", "a->b")
    (found,) = (one for one in asked.body["findings"] if one["check"] == "metrics files")
    assert (asked.code, found["grade"]) == (0, "warn")
    assert [name for name in sorted(path.name for path in folder.iterdir()) if name in found["message"]] == left
    golden(found["message"])


@pytest.mark.parametrize("errno", [errno.EACCES, errno.ENAMETOOLONG])
def test_a_folder_that_cannot_be_looked_at_fails_alone(
    errno: int, made: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = tmp_path / "closed"
    begun(made, f"ferry.metrics.folder = {closed}/metrics", f"ferry.report.dir = {tmp_path}/new", topics={"u": 1})

    def refused(path: Any, *given: Any, real: Any, **more: Any) -> Any:
        if str(path).startswith(f"{closed}/"):
            raise OSError(errno, os.strerror(errno), str(path))
        return real(path, *given, **more)

    for name in ("stat", "listdir"):
        monkeypatch.setattr(os, name, partial(refused, real=getattr(os, name)))
    asked = made.ask("doctor")
    found = grades(asked, "machine")
    assert (asked.code, found["ferry.report.dir"], found["ferry.metrics.folder"]) == (1, "pass", "fail")
    assert found["metrics files"] == "unknown"
    assert "source" in grades(asked, "a->b")
    assert made.ask("support-bundle", "--output", "x.tar.gz").code == 0
    assert "doctor.json" in bundled(tmp_path / "x.tar.gz")


@pytest.mark.slow
def test_what_this_machine_refuses_is_named_in_the_archive(
    made: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: Any) -> Any:
        raise PermissionError(errno.EACCES, "Permission denied", "/closed/metrics")

    monkeypatch.setattr("ferry.features.doctor.cli.doctor.look_at_machine", refused)
    begun(made, topics={"users": 1})
    assert made.ask("run", "a->b").code == 0
    asked = made.ask("support-bundle", "--output", "x.tar.gz")
    assert (asked.code, [one["file"] for one in asked.body["missing"]]) == (0, ["doctor.json"])
    assert "/closed/metrics" in asked.body["missing"][0]["why"]
    assert "config.json" in bundled(tmp_path / "x.tar.gz")


def test_other_packages_say_what_they_know(made: World, monkeypatch: pytest.MonkeyPatch) -> None:
    class Entry:
        @staticmethod
        def load() -> Any:
            return lambda flows: [("airflow", False, f"{len(flows)} pools are missing"), ("more", None, "not set")]

    monkeypatch.setattr(machine, "entry_points", lambda group: [Entry] if group == machine.CHECKS else [])
    begun(made, topics={"users": 1})
    found = grades(made.ask("doctor"), "machine")
    assert (found["airflow"], found["more"]) == ("fail", "unknown")


def bundled(path: Path) -> dict[str, str]:
    with tarfile.open(path) as archive:
        members = [member for member in archive.getmembers() if member.isfile()]
        return {name.name.partition("/")[2]: archive.extractfile(name).read().decode() for name in members}  # type: ignore[union-attr]


def test_an_archive_has_what_the_commands_say_and_none_of_the_secrets(
    made: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FERRY_TEST_TOKEN", f"{PLANTED}-8")
    login = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    begun(
        made,
        f'a.consumer.sasl.jaas.config = {login} username="me" password="{PLANTED}-1";',
        f"b.ssl.key.password = {PLANTED}-2",
        f"ferry.report.private.key.password = {PLANTED}-3",
        f"ferry.switch.stop.command = curl -H 'Authorization: Bearer {PLANTED}-4' https://gateway/stop",
        f"ferry.switch.redirect.url = https://me:{PLANTED}-5@gateway/hooks/{PLANTED}-6?key={PLANTED}-7",
        "ferry.switch.stop.url = https://gateway/hooks/${env:FERRY_TEST_TOKEN}",
        "b.ssl.keystore.password = ${env:FERRY_TEST_TOKEN}",
        f"ferry.report.dir = s3://key:{PLANTED}-9@bucket/reports",
        "topics = nothing",
        topics={"users": 1},
    )
    assert made.ask("run", "a->b", "--run", "r1").code == 1
    asked = made.ask("support-bundle", "--output", "x.tar.gz")
    files = bundled(tmp_path / "x.tar.gz")
    assert (asked.code, set(asked.body["files"])) == (0, set(files))
    assert files.keys() >= {"doctor.json", "config.json", "a-to-b/plan.json", "a-to-b/runs.json", "a-to-b/run-r1.json"}
    assert [one["run"] for one in json.loads(files["a-to-b/runs.json"])["runs"]] == ["r1"]
    assert PLANTED not in "".join(files.values())
    assert (tmp_path / "x.tar.gz").stat().st_mode & 0o077 == 0


@pytest.mark.slow
def test_the_name_of_a_run_is_no_path_in_the_archive(made: World, tmp_path: Path) -> None:
    begun(made, "topics = nothing", topics={"users": 1})
    assert made.ask("run", "a->b", "--id", "../../up").code == 1
    assert made.ask("support-bundle", "--output", "x.tar.gz").code == 0
    names = [name for name in bundled(tmp_path / "x.tar.gz") if "run-" in name]
    assert names == ["a-to-b/run-..%2F..%2Fup.json"]


def test_what_cannot_be_got_is_named_and_the_rest_is_there(made: World, tmp_path: Path) -> None:
    begun(made, "a.bootstrap.servers = 127.0.0.1:1", topics={"users": 1})
    asked = made.ask("support-bundle", "--output", "x.tar.gz", "--patience", "1")
    missing = {one["file"] for one in asked.body["missing"]}
    assert (asked.code, missing >= {"a-to-b/plan.json", "a-to-b/lag.json"}) == (0, True)
    assert "doctor.json" in bundled(tmp_path / "x.tar.gz")


def test_a_wrong_file_is_bundled_too(made: World, tmp_path: Path) -> None:
    begun(made, "replication.factor = many", topics={"users": 1})
    asked = made.ask("support-bundle", "--output", "x.tar.gz")
    assert [one["file"] for one in asked.body["missing"]] == ["flows"]
    assert bundled(tmp_path / "x.tar.gz").keys() >= {"config.json", "doctor.json"}


def test_a_file_that_is_there_stays(made: World, tmp_path: Path) -> None:
    begun(made, topics={"users": 1})
    (tmp_path / "x.tar.gz").write_text("mine")
    assert made.ask("support-bundle", "--output", "x.tar.gz").code == 2
    assert (tmp_path / "x.tar.gz").read_text() == "mine"


def test_secrets_are_hidden_in_json_too_and_short_ones_are_left() -> None:
    text = json.dumps({"said": 'login with pass"word', "short": "abc"})
    assert without(text, ['pass"word', "abc"]) == json.dumps({"said": "login with [hidden]", "short": "abc"})
