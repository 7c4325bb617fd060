"""A network that fails in every phase of a run, on either side: the run ends and is honest, and the next one completes.

A fault begins where a function of the phase is called. It stays until the run has ended, or concerns only connections
that were open when it began. Ferry reaches each broker through a proxy (tests/proxy.py); the tests look past it.
"""

from __future__ import annotations

import importlib
import json
import logging
import re
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ferry.cli.app import main
from ferry.decide.ledger import summary
from ferry.dev import RunningCluster
from ferry.net.write import transaction
from tests.cli.program import Answer
from tests.harness import (
    Lab,
    commit_offsets,
    committed_offsets,
    create_topic,
    new_alias,
    numbered,
    producer,
    read_topics,
    send,
)
from tests.proxy import Proxied, proxied
from tests.tiers import PATIENCE

PATIENCE_S = 2 * PATIENCE
"""Of a run whose network stays broken: that long it tries."""

LONG_S = 60 * PATIENCE
"""Of a run whose network works again over new connections."""

DELAY_S = 0.05
RECORDS = 400
GROUP_AT = {0: 37, 1: 150}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """What the proxies of one side do; `later`: to connections that are made meanwhile, too."""

    mode: str
    later: bool

    @property
    def passes(self) -> bool:
        """Whether a run gets through that tries again."""
        return not self.later or self.mode in ("cut", "delay")


FAULTS = {
    "delay": Fault(mode="delay", later=True),
    "cut": Fault(mode="cut", later=True),
    "refused": Fault(mode="refuse", later=True),
    "hang": Fault(mode="hang", later=True),
    "half-open": Fault(mode="hang", later=False),
    "lost-requests": Fault(mode="lost-requests", later=True),
    "lost-requests-once": Fault(mode="lost-requests", later=False),
    "lost-answers": Fault(mode="lost-answers", later=True),
    "lost-answers-once": Fault(mode="lost-answers", later=False),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """The call that the fault precedes: a function as `module:Class.name` or `module.name`, and which call of it."""

    place: str
    call: int = 1


PHASES = {
    "connect": Phase(place="ferry.net.connect.cluster:Cluster.open"),
    "ledger": Phase(place="ferry.net.write.ledger:LedgerTopic.open"),
    "fence": Phase(place="ferry.run.copy.kafka_port:KafkaLane.fence"),
    "plan": Phase(place="ferry.run.plan.planner.gather_facts"),
    "topics": Phase(place="ferry.run.plan.planner.change_topics"),
    "seal": Phase(place="ferry.run.copy.kafka_port:KafkaLane.commit", call=2),
    "summary": Phase(place="ferry.run.flow.known_ledger:KnownLedger.summarise"),
    "copy": Phase(place="ferry.run.copy.kafka_port:KafkaSlot.copy_chunk", call=2),
    "commit": Phase(place="ferry.run.copy.kafka_port:KafkaSlot.commit", call=2),
    "groups": Phase(place="ferry.run.groups.checkpoint:GroupSync.look"),
    "group-offsets": Phase(place="ferry.run.groups.checkpoint.commit_offsets"),
    "end": Phase(place="ferry.run.micro_run:MicroRuns.report"),
}

CHOSEN = {
    ("connect", "refused", "source"),
    ("ledger", "hang", "target"),
    ("fence", "lost-answers-once", "target"),
    ("plan", "half-open", "source"),
    ("topics", "lost-answers", "target"),
    ("seal", "cut", "target"),
    ("summary", "lost-requests-once", "target"),
    ("copy", "lost-requests", "source"),
    ("copy", "half-open", "target"),
    ("commit", "lost-answers-once", "target"),
    ("groups", "delay", "source"),
    ("group-offsets", "lost-answers-once", "target"),
    ("end", "lost-requests", "target"),
}
"""What `make test` runs: each phase and each fault at least once."""

TABLE = [
    pytest.param(*case, id="-".join(case), marks=() if case in CHOSEN else pytest.mark.extra)
    for case in ((phase, fault, side) for phase in PHASES for fault in FAULTS for side in ("source", "target"))
]


@pytest.fixture(scope="module")
def ways(_pair: tuple[RunningCluster, ...]) -> Iterator[dict[str, Proxied]]:
    """Source and target through proxies."""
    with proxied(_pair) as (source, target):
        yield {"source": source, "target": target}


@pytest.fixture
def lab(
    source_cluster: RunningCluster, target_cluster: RunningCluster, ways: dict[str, Proxied], topic: str
) -> Iterator[Lab]:
    """A flow through the proxies, which has one slot, several chunks and a group."""
    create_topic(source_cluster, topic, 2)
    send(producer(source_cluster, batch_num_messages=20), topic, numbered(RECORDS, partitions=2, size=300))
    alias = new_alias()
    commit_offsets(source_cluster, group_of(alias), {(topic, number): at for number, at in GROUP_AT.items()})
    request_ms = str(int(1000 * PATIENCE))
    settings = {
        "tasks.max": "1",
        "groups": group_of(alias),
        "sync.group.offsets.enabled": "true",
        "ferry.chunk.bytes": "30000",
    }
    for name, side, role in ((alias, "source", "consumer"), (f"t{alias}", "target", "producer")):
        settings[f"{name}.bootstrap.servers"] = ways[side].bootstrap
        settings[f"{name}.{role}.request.timeout.ms"] = request_ms
        settings[f"{name}.{role}.socket.connection.setup.timeout.ms"] = request_ms
    yield Lab(source=source_cluster, target=target_cluster, alias=alias, topics=(topic,), settings=settings)
    for way in ways.values():
        way.proxies.heal()


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What does not heed the command's patience is short, too; and a summary of the ledger is due."""
    monkeypatch.setattr(transaction, "LEAVE_SECONDS", 1.0)
    monkeypatch.setattr(summary, "SUMMARISED_FROM", 0)


def group_of(alias: str) -> str:
    """The group of a lab."""
    return f"g-{alias}"


def begins(patch: pytest.MonkeyPatch, phase: Phase, action: Callable[[], None]) -> threading.Event:
    """Have something happen just before a call; whether it has."""
    path, name = phase.place.rsplit(".", 1)
    module, _, owner = path.partition(":")
    where: Any = importlib.import_module(module)
    for part in owner.split(".") if owner else ():
        where = getattr(where, part)
    before = getattr(where, name)
    calls = 0
    done = threading.Event()

    def called(*arguments: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == phase.call:
            action()
            done.set()
        return before(*arguments, **options)

    patch.setattr(where, name, called)
    return done


def ferry(capsys: pytest.CaptureFixture[str], *arguments: str | Path) -> Answer:
    """Run a command in this process, with all that it does to it undone."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    capsys.readouterr()
    try:
        with pytest.raises(SystemExit) as ended:
            main([str(one) for one in arguments])
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    out, err = capsys.readouterr()
    assert isinstance(ended.value.code, int)
    return Answer(code=ended.value.code, out=out, err=err)


@pytest.mark.timeout(240)
@pytest.mark.parametrize(("phase", "fault", "side"), TABLE)
def test_a_fault_of_the_network_loses_doubles_and_claims_nothing(
    lab: Lab,
    ways: dict[str, Proxied],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    phase: str,
    fault: str,
    side: str,
) -> None:
    config = lab.write(tmp_path)
    alias = lab.alias if side == "source" else f"t{lab.alias}"
    kind = FAULTS[fault]

    with pytest.MonkeyPatch.context() as patch:
        begun = begins(patch, PHASES[phase], lambda: ways[side].change(kind.mode, DELAY_S, later=kind.later))
        patience = LONG_S if kind.passes else PATIENCE_S
        answer = ferry(capsys, "run", "--patience", f"{patience:g}", "--json", "--config", config)
    assert begun.is_set(), answer
    assert answer.code == 0 or not kind.passes, answer
    assert_honest(lab, answer, alias)
    assert not [record for record in caplog.records if record.exc_info and record.levelno >= logging.ERROR]

    ways[side].proxies.heal()
    again = ferry(capsys, "run", "--json", "--config", config)
    assert again.code == 0, again
    assert lab.assert_equal() == RECORDS
    assert exact_groups(lab) == sorted(GROUP_AT)


def assert_honest(lab: Lab, answer: Answer, alias: str) -> None:
    """A run that did not succeed names the cluster; what its report claims is on the target."""
    assert "Traceback" not in answer.err
    assert "a bug" not in answer.out + answer.err
    if answer.code:
        assert re.search(rf"\bcluster {alias}\b", answer.out), answer
    body = json.loads(answer.out)
    if "error" in body:
        assert body["error"]["kind"] in ("unreachable", "retryable", "outcome-unknown"), answer
        return
    body = answer.json("run")
    assert answer.code or body["state"] == "success"
    (topic,) = lab.topics
    copy = lab.target_topic(topic)
    if body["receipts"]:
        here, there = rows_of(lab.source, topic), rows_of(lab.target, copy)
        claimed = [
            (there[receipt["target_partition"]][target + at], here[receipt["partition"]][begin + at])
            for receipt in body["receipts"]
            for begin, target, count in receipt["segments"]
            for at in range(count)
        ]
        assert all(found == wanted for found, wanted in claimed)
        assert len(claimed) == body["records"]
    if body["groups"] and body["groups"]["offsets"]:
        assert len(exact_groups(lab)) >= body["groups"]["offsets"]


def rows_of(cluster: RunningCluster, topic: str) -> dict[int, dict[int, tuple[object, ...]]]:
    """Records by partition and offset."""
    found = read_topics(cluster.bootstrap, [topic])[topic]
    return {number: {row[0]: row[1:] for row in rows} for number, rows in found.items()}


def exact_groups(lab: Lab) -> list[int]:
    """The partitions where the group stands on the target: at the very record that it stands at on the source."""
    (topic,) = lab.topics
    copy = lab.target_topic(topic)
    here, there = rows_of(lab.source, topic), rows_of(lab.target, copy)
    stands = committed_offsets(lab.target, group_of(lab.alias), copy, 2)
    for number, at in stands.items():
        assert there[number][at] == here[number][GROUP_AT[number]]
    return sorted(stands)
