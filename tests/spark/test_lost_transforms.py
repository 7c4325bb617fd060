"""A transform that does not check, at the command line: it refuses its own topics, and all else is copied."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from ferry.dev import RunningCluster
from ferry.model import RefusalKind
from tests.harness import Message, create_topic, delete_topic, new_alias, producer, read_topic, send
from tests.program import ferry
from tests.tiers import ANSWER_S

NAMES = ("masked", "dealt", "fine", "bytes")
GOOD = {"masked": "where = TRUE", "dealt": "where = TRUE", "fine": "sql = SELECT * FROM records"}
BAD = {**GOOD, "masked": "where = nosuch(1)", "dealt": "where = value:x = 1"}
SAID = {
    "masked": "ferry.transform.masked.where: the transform's SQL is not understood, line 1, column 1: ",
    "dealt": "ferry.transform.dealt.where: the transform's SQL makes Spark itself break off: [INTERNAL_ERROR] ",
}


@dataclass(frozen=True, kw_only=True)
class Files:
    """A flow each way between two clusters; the one there has transforms, of which a file may have others."""

    here: RunningCluster
    there: RunningCluster
    topic: str
    folder: Path
    aliases: tuple[str, str]

    @property
    def flow(self) -> str:
        """The flow there."""
        return "->".join(self.aliases)

    def write(self, transforms: Mapping[str, str], names: tuple[str, ...] = NAMES) -> Path:
        """The file with these transforms, of topics of these names."""
        here, there = self.aliases
        lines = {
            "clusters": f"{here}, {there}",
            f"{here}.bootstrap.servers": self.here.bootstrap,
            f"{there}.bootstrap.servers": self.there.bootstrap,
            f"{self.flow}.enabled": "true",
            f"{there}->{here}.enabled": "true",
            "topics": ", ".join(self.named(name) for name in names),
            "groups": f"none-{secrets.token_hex(4)}",
            "heartbeats.replication.enabled": "false",
            "emit.heartbeats.enabled": "false",
            "replication.factor": "1",
            "tasks.max": "2",
            "ferry.rpo.records": "100",
            "ferry.deployment": "here",  # its name is the file's digest else
            "ferry.switch.redirect.command": "true",
            f"{self.flow}.ferry.transforms": ", ".join(name for name in transforms if name in names),
            "ferry.transform.dealt.partitions": "2",
        }
        for name, line in ((name, line) for name, line in transforms.items() if name in names):
            key, _, text = line.partition(" = ")
            lines |= {f"ferry.transform.{name}.topics": self.named(name), f"ferry.transform.{name}.{key}": text}
        path = self.folder / "flows.properties"
        path.write_text("".join(f"{key} = {value}\n" for key, value in lines.items()))
        return path

    def named(self, name: str) -> str:
        """A topic."""
        return f"{self.topic}-{name}"

    def send(self, *values: bytes) -> None:
        """The same to each topic."""
        for name in NAMES:
            send(producer(self.here), self.named(name), [Message(value=value) for value in values])

    def copied(self, name: str, ending: str = "") -> list[bytes | None]:
        """What is in a topic's copy."""
        found = read_topic(self.there.bootstrap, f"{self.aliases[0]}.{self.named(name)}{ending}")
        return [row[2] for rows in found.values() for row in rows]


@pytest.fixture
def files(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path
) -> Iterator[Files]:
    """Topics with a record each."""
    found = Files(
        here=source_cluster, there=target_cluster, topic=topic, folder=tmp_path, aliases=(new_alias(), new_alias())
    )
    for name in NAMES:
        create_topic(source_cluster, found.named(name))
    found.send(b"1")
    yield found
    for name in NAMES:  # tests of all topics of these clusters would copy them, and their copies
        for cluster in (source_cluster, target_cluster):
            admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
            for there in [one for one in admin.list_topics(timeout=ANSWER_S).topics if one.endswith(found.named(name))]:
                delete_topic(cluster, there)


def test_a_run_and_a_backfill_refuse_the_topics_of_what_does_not_check_alone(files: Files) -> None:
    file = files.write(BAD)
    run = ferry("run", files.flow, "--spark", "--json", config=file)
    assert run.code == 1, run.err
    report = run.json("run")
    assert report["state"] == "partial"
    told = {(one["topic"], one["kind"]): one["message"] for one in report["refusals"]}
    assert told.keys() == {(files.named(name), RefusalKind.TRANSFORM) for name in SAID}
    for name, said in SAID.items():
        message = told[files.named(name), RefusalKind.TRANSFORM]
        assert message.startswith(said)
        assert f"ferry: {message}; " in run.err
        assert f"ferry: refused: {message}\n" in run.err
        assert files.copied(name) == []
    assert re.search(r"(?m)^\s+at |Traceback|Exception", run.err) is None, run.err
    assert files.copied("fine") == files.copied("bytes") == [b"1"]

    # Of one topic, nobody is told of the others.
    alone = ferry("run", files.flow, "--spark", "--topic", files.named("bytes"), config=file)
    assert (alone.code, "refuses its topics" in alone.err) == (0, False), alone.err

    ends = [part for name in ("masked", "fine", "bytes") for part in ("--to-offset", f"{files.named(name)}:0:1")]
    starts = [part.replace(":0:1", ":0:0").replace("--to", "--from") for part in ends]
    filled = ferry(
        "backfill", files.flow, "--lane", "backfill-past", *starts, *ends, "--json", config=file, seconds=400
    )
    assert filled.code == 1, filled.err
    body = filled.json("backfill")
    assert (body["state"], body["left"]) == ("partial", 1)
    (refusal,) = body["refusals"]
    assert (refusal["topic"], refusal["message"].startswith(SAID["masked"])) == (files.named("masked"), True)
    for name in ("fine", "bytes"):
        assert files.copied(name, ".backfill.backfill-past") == [b"1"]

    mended = ferry("run", files.flow, "--spark", "--json", config=files.write(GOOD))
    assert (mended.code, mended.json("run")["refusals"]) == (0, []), mended.err
    assert files.copied("masked") == files.copied("dealt") == [b"1"]


def test_where_nothing_else_is_to_be_copied_one_sentence_says_so_and_no_run_is_opened(files: Files) -> None:
    two = files.write(BAD, ("masked", "dealt"))
    told = ferry("run", files.flow, "--spark", config=two)
    assert (told.code, told.out) == (2, "")
    line = told.err.splitlines()[-1]
    assert line.startswith(f"ferry: {SAID['dealt']}")
    assert " (and 1 more " in line
    one = ferry("run", files.flow, "--spark", "--topic", files.named("masked"), config=files.write(BAD))
    assert one.code == 2
    assert one.err.splitlines()[-1].startswith(f"ferry: {SAID['masked']}")
    shown = ferry("ledger", files.flow, "--runs", "--json", config=two)
    assert "cli-" not in shown.out, "a run was opened"


def test_a_switchover_stops_at_what_it_cannot_drain_and_goes_on_when_that_is_mended(files: Files) -> None:
    first = ferry("run", files.flow, "--spark", "--quiet", config=files.write(GOOD))
    assert first.code == 0, first.err
    files.send(b"2")
    switch = ("switchover", files.flow, "--id", "s-1", "--approve-by", "bob", "--quiet-seconds", "1")
    stopped = ferry(*switch, config=files.write(BAD), seconds=400)
    assert stopped.code == 4, stopped.err
    last = stopped.err.splitlines()[-1]
    assert last.startswith("ferry: not all can ")
    assert f"continue with ferry switchover '{files.flow}' --id s-1," in last
    for said in SAID.values():
        assert said in last
    for name in ("fine", "bytes"):
        assert files.copied(name) == [b"1", b"2"]
    for name in ("masked", "dealt"):
        assert files.copied(name) == [b"1"]
    state = ferry("switches", "show", files.flow, "s-1", "--json", config=files.write(BAD)).json("switch")
    assert (state["next_step"], state["end"]) == ("drain", None)

    done = ferry(*switch, "--json", config=files.write(GOOD), seconds=400)
    assert done.code == 0, done.err
    assert done.json("switch")["end"]["outcome"] == "finished"
    assert sorted(files.copied("dealt"), key=repr) == files.copied("masked") == [b"1", b"2"]
