"""A network that fails in every phase of a run, on either side: the run ends and is honest, and the next one completes.

A fault begins where a function of the phase is called. It stays until the run has ended, or concerns only connections
that were open when it began. Ferry reaches each broker through a proxy (tests/proxy.py), which counts the connections
that met the fault; the tests look past it.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from ferry.dev import RunningCluster
from ferry.kafka.produce import writer
from ferry.ledger import summary
from tests.harness import Lab
from tests.kafka.run.faulted import assert_honest, assert_whole, begins, ferry_here, grouped_lab
from tests.proxy import Proxied, proxied
from tests.tiers import PATIENCE

PATIENCE_S = 2 * PATIENCE
"""Of a run whose network stays broken: that long it tries."""

LONG_S = 60 * PATIENCE
"""Of a run whose network works again over new connections."""

DELAYS_S = (0.01, 0.1)
"""Of each piece of bytes on its way: the least and the most that is drawn."""


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
    "connect": Phase(place="ferry.kafka.connect.cluster:Cluster.open"),
    "ledger": Phase(place="ferry.kafka.produce.ledger_topic:LedgerTopic.open"),
    "fence": Phase(place="ferry.kafka.driver_port:KafkaDriver.fence"),
    "plan": Phase(place="ferry.plan.gather_all.gather_facts"),
    "topics": Phase(place="ferry.plan.plan_run.change_topics"),
    "seal": Phase(place="ferry.kafka.driver_port:KafkaDriver.commit", call=2),
    "summary": Phase(place="ferry.lane.ledger_cache:LedgerCache.summarise"),
    "copy": Phase(place="ferry.copy.kafka_slot:KafkaSlot.copy_chunk", call=2),
    "commit": Phase(place="ferry.copy.kafka_slot:KafkaSlot.commit", call=2),
    "groups": Phase(place="ferry.features.groups.acts.checkpoint:GroupSync.look"),
    "group-offsets": Phase(place="ferry.features.groups.acts.checkpoint.commit_offsets"),
    "end": Phase(place="ferry.run.micro_run:MicroRuns.report"),
}

CHOSEN = {
    ("connect", "refused", "source"),
    ("ledger", "hang", "target"),
    ("fence", "lost-requests-once", "target"),
    ("plan", "half-open", "source"),
    ("topics", "lost-answers", "target"),
    ("seal", "cut", "target"),
    ("copy", "lost-requests", "source"),
    ("commit", "lost-answers-once", "target"),
    ("groups", "delay", "source"),
}
"""What `make test` runs: each fault once."""


def can_meet(phase: str, fault: str, side: str) -> bool:
    """Whether a connection can meet a fault: none is open before the first, and a report asks the source nothing."""
    kind = FAULTS[fault]
    if phase == "connect":
        return kind.later and kind.mode != "cut"
    return (phase, side) != ("end", "source") or kind.mode in ("cut", "refuse")


TABLE = [
    pytest.param(*case, id="-".join(case), marks=() if case in CHOSEN else pytest.mark.extra)
    for case in ((phase, fault, side) for phase in PHASES for fault in FAULTS for side in ("source", "target"))
    if can_meet(*case)
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
    """A flow through the proxies, which does not wait long for an answer."""
    plain = grouped_lab(source_cluster, target_cluster, topic)
    request_ms = str(int(1000 * PATIENCE))
    more = {}
    for name, side, role in ((plain.alias, "source", "consumer"), (f"t{plain.alias}", "target", "producer")):
        more[f"{name}.bootstrap.servers"] = ways[side].bootstrap
        more[f"{name}.{role}.request.timeout.ms"] = request_ms
        more[f"{name}.{role}.socket.connection.setup.timeout.ms"] = request_ms
    yield replace(plain, settings={**plain.settings, **more})
    for way in ways.values():
        way.proxies.heal()


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What does not heed the command's patience is short, too; and a summary of the ledger is due."""
    monkeypatch.setattr(writer, "LEAVE_SECONDS", 1.0)
    monkeypatch.setattr(summary, "SUMMARISED_FROM", 0)


@pytest.mark.timeout(240)
@pytest.mark.parametrize(("phase", "fault", "side"), TABLE)
def test_a_fault_of_the_network_loses_doubles_and_claims_nothing(
    lab: Lab,
    ways: dict[str, Proxied],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    rng: random.Random,
    phase: str,
    fault: str,
    side: str,
) -> None:
    config = lab.write(tmp_path)
    alias = lab.alias if side == "source" else f"t{lab.alias}"
    kind, delay_s = FAULTS[fault], rng.uniform(*DELAYS_S)

    with pytest.MonkeyPatch.context() as patch:
        place, call = PHASES[phase].place, PHASES[phase].call
        begun = begins(patch, place, lambda: ways[side].change(kind.mode, delay_s, later=kind.later), call)
        patience = LONG_S if kind.passes else PATIENCE_S
        answer = ferry_here(capsys, "run", "--patience", f"{patience:g}", "--json", "--config", config)
    assert begun.is_set(), answer
    assert answer.code == 0 or not kind.passes, answer
    assert_honest(lab, answer, alias)
    assert not [record for record in caplog.records if record.exc_info and record.levelno >= logging.ERROR]

    assert ways[side].proxies.heal() > 0, "no connection met the fault"
    again = ferry_here(capsys, "run", "--json", "--config", config)
    assert again.code == 0, again
    assert_whole(lab)
