"""Brokers that die while a run is opened, planned or ended, and in each step of a switch; those of a copy: test_faults.

A broker dies at a call of the phase. Of three the one dies that the phase needs, and the others go on; a single one
stays dead until the run has ended, or is back when the call goes on.
"""

from __future__ import annotations

import logging
import re
import signal
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from kafka import KafkaAdminClient

from ferry.dev import RunningCluster
from ferry.dev.broker import Broker
from ferry.errors import FerryError
from ferry.features.switch.acts.journal import Journal
from ferry.kafka.connect.cluster import GROUP, TRANSACTION, Cluster
from ferry.kafka.produce import writer
from ferry.model.switch import Step, SwitchOutcome, SwitchState, Verb, next_step
from ferry.protocol.names import ledger_topic, transactional_id
from tests.harness import Lab, create_topic, on_cluster, wait_until
from tests.kafka.run.faulted import assert_honest, assert_whole, begins, ferry_here, group_of, grouped_lab
from tests.kafka.run.switching import CHANGES, OPTIONS, PARTITIONS, Clients, Pair, begin_group
from tests.tiers import ANSWER_S, PATIENCE

PATIENCE_S = 2 * PATIENCE
"""Of what cannot come to its end, because the only broker is dead."""

LONG_S = 60 * PATIENCE
"""Of what can."""

PHASES = {
    "fence": "ferry.kafka.driver_port:KafkaDriver.fence",
    "plan": "ferry.plan.gather_all.gather_facts",
    "topics": "ferry.plan.plan_run.change_topics",
    "groups": "ferry.features.groups.acts.checkpoint:GroupSync.look",
    "group-offsets": "ferry.features.groups.acts.checkpoint.commit_offsets",
    "end": "ferry.run.micro_run:MicroRuns.report",
}

RUNS = {
    ("topics", "target", "of-three"),
    ("groups", "source", "only"),
}
"""What `make test` has of the table of runs."""

RUN_TABLE = [
    pytest.param(*case, id="-".join(case), marks=() if case in RUNS else pytest.mark.extra)
    for case in (
        (phase, side, which)
        for phase in PHASES
        for side in ("source", "target")
        for which in ("of-three", "only", "back")
    )
]


@pytest.fixture(autouse=True)
def hasty(impatient: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer that gives up does not wait long for a broker that is dead."""
    monkeypatch.setattr(writer, "LEAVE_SECONDS", 1.0)


@pytest.mark.timeout(300)
@pytest.mark.parametrize(("phase", "side", "which"), RUN_TABLE)
def test_a_broker_dies_before_or_after_the_copy(
    source_cluster: RunningCluster,
    target_cluster: RunningCluster,
    three_brokers: RunningCluster,
    topic: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    phase: str,
    side: str,
    which: str,
) -> None:
    sides = {"source": source_cluster, "target": target_cluster}
    if which == "of-three":
        sides[side] = three_brokers
    source, target, mortal = sides["source"], sides["target"], sides[side]
    lab = grouped_lab(source, target, topic)
    config = lab.write(tmp_path)

    def die() -> None:
        victim = mortal.broker(needed(lab, phase, side)) if which == "of-three" else mortal.brokers[0]
        victim.kill(signal.SIGKILL)
        if which == "back":
            mortal.start()

    with pytest.MonkeyPatch.context() as patch:
        died = begins(patch, PHASES[phase], die)
        patience = PATIENCE_S if which == "only" else LONG_S
        answer = ferry_here(capsys, "run", "--patience", f"{patience:g}", "--json", "--config", config)
    assert died.is_set(), answer
    assert answer.code == 0 or which == "only", answer
    mortal.start()
    assert_honest(lab, answer, lab.alias if side == "source" else f"t{lab.alias}")
    assert not [record for record in caplog.records if record.exc_info and record.levelno >= logging.ERROR]

    again = ferry_here(capsys, "run", "--json", "--config", config)
    assert again.code == 0, again
    assert_whole(lab)


def needed(lab: Lab, phase: str, side: str) -> int:
    """The broker of three that a phase needs."""
    cluster = lab.source if side == "source" else lab.target
    if phase == "topics" and side == "target":
        return controller(cluster)
    if phase == "fence" and side == "target":
        return coordinator(cluster, TRANSACTION, transactional_id(lab.flow.flow, lab.flow.lane, 0))
    if phase.startswith("group"):
        return coordinator(cluster, GROUP, group_of(lab.alias))
    return leader(cluster, ledger_topic(lab.alias) if side == "target" else lab.topics[0])


def controller(cluster: RunningCluster) -> int:
    """The node that leads the controllers; metadata names any broker."""
    with closing(KafkaAdminClient(bootstrap_servers=cluster.bootstrap)) as admin:
        (topic,) = admin.describe_metadata_quorum()["topics"]
    return int(topic["partitions"][0]["leader_id"])


def coordinator(cluster: RunningCluster, kind: int, key: str) -> int:
    """The coordinator of a group or a writer."""

    async def ask(client: Cluster) -> int:
        return await client.coordinator(kind, key)

    return int(on_cluster(cluster, ask))


def leader(cluster: RunningCluster, topic: str) -> int:
    """The leader of a topic's first partition; of a topic that is not there, any broker."""
    found = AdminClient({"bootstrap.servers": cluster.bootstrap}).list_topics(timeout=ANSWER_S).topics.get(topic)
    return int(found.partitions[0].leader) if found is not None else cluster.brokers[0].node_id


@dataclass(kw_only=True)
class Deadly:
    """A broker that dies in a step of a switch: once it is begun, or before the first change that it then makes."""

    moment: str
    kill: Callable[[], None]
    begun: bool = False
    died: bool = False

    def watch(self, patch: pytest.MonkeyPatch) -> None:
        """Steps begin, and requests are sent, as before."""
        begin, submit = Journal.begin, Cluster.submit

        def begun(journal: Journal, switch: str, step: Step) -> Any:
            found = begin(journal, switch, step)
            self.begun = True
            if self.moment == "begun":
                self._die()
            return found

        async def submitted(cluster: Cluster, request: Any, node: int | None = None, **named: Any) -> Any:
            if self.begun and type(request).__name__ in CHANGES:
                self._die()
            return await submit(cluster, request, node, **named)

        patch.setattr(Journal, "begin", begun)
        patch.setattr(Cluster, "submit", submitted)

    def _die(self) -> None:
        if not self.died:
            self.died = True
            self.kill()


@dataclass(frozen=True, kw_only=True)
class Walk:
    """A switch in whose steps (None: each one) a broker dies: on the cluster that is left, or the one gone to."""

    verb: Verb
    side: str
    which: str
    moment: str
    steps: frozenset[Step] | None = field(default=None)

    @property
    def name(self) -> str:
        """Of the test."""
        steps = "each" if self.steps is None else "-".join(sorted(self.steps))
        return f"{self.verb}-{self.side}-{self.which}-{self.moment}-{steps}"

    def go(self, pair: Pair, switch: str, export: Path) -> SwitchState:
        """All steps, each again until it is done."""
        way = pair.turned if self.verb is Verb.FAILBACK else pair
        mortal = way.here if self.side == "old" else way.there
        options = replace(OPTIONS, export=str(export)) if self.verb is Verb.FAILBACK else OPTIONS
        states = []

        def does(step: Step, patience_s: float) -> None:
            with pair.switcher(self.verb, patience_s) as switcher:
                states.append(switcher.step(switch, step))

        def goes_on(step: Step) -> bool:
            try:
                does(step, ANSWER_S)
            except FerryError as error:
                logging.getLogger(__name__).warning("%s goes on later: %s", step, error)
                return False
            return True

        with pair.switcher(self.verb) as switcher:
            states.append(switcher.open(switch, options, "bob"))
        while (due := next_step(states[-1])) is not None:
            if self.steps is None or due in self.steps:
                self._deadly(due, way, mortal, does)
                mortal.start()
            wait_until(partial(goes_on, due), f"an end of step {due}", 120)
        with pair.switcher(self.verb) as switcher:
            return switcher.finish(switch)

    def _deadly(self, step: Step, way: Pair, mortal: RunningCluster, does: Callable[[Step, float], None]) -> None:
        deadly = Deadly(moment=self.moment, kill=lambda: self._victim(step, way, mortal).kill(signal.SIGKILL))
        said = ""
        with pytest.MonkeyPatch.context() as patch:
            deadly.watch(patch)
            try:
                does(step, PATIENCE_S if self.which == "only" else ANSWER_S)
            except FerryError as error:
                said = str(error)
        assert deadly.died, step
        assert not said or re.search("|".join(way.aliases), said), said

    def _victim(self, step: Step, way: Pair, mortal: RunningCluster) -> Broker:
        if self.which == "only":
            return mortal.brokers[0]
        if self.side == "new" and step is Step.GROUPS:
            return mortal.broker(coordinator(mortal, GROUP, way.group))
        return mortal.broker(leader(mortal, ledger_topic(way.aliases[0]) if self.side == "new" else way.topic))


CHOSEN_WALKS = [
    Walk(
        verb=Verb.SWITCHOVER,
        side="new",
        which="of-three",
        moment="change",
        steps=frozenset({Step.PROMOTE}),
    ),
    Walk(verb=Verb.SWITCHOVER, side="old", which="only", moment="begun", steps=frozenset({Step.DRAIN})),
    Walk(verb=Verb.FAILOVER, side="new", which="only", moment="change", steps=frozenset({Step.GROUPS})),
    Walk(verb=Verb.FAILBACK, side="old", which="only", moment="begun", steps=frozenset({Step.GROUPS})),
]
"""What `make test` has of the table of switches, but for those that tests/extra.toml lists."""

ALL_WALKS = [
    Walk(verb=verb, side=side, which=which, moment=moment)
    for verb in Verb
    for side, moment in (("old", "begun"), ("new", "change"))  # changes are made on the new one
    for which in ("of-three", "only")
    if (verb, side) != (Verb.FAILOVER, "old")  # it is gone
]


@pytest.mark.parametrize(
    "walk",
    [
        *(pytest.param(walk, id=walk.name, marks=pytest.mark.timeout(240)) for walk in CHOSEN_WALKS),
        *(pytest.param(walk, id=walk.name, marks=(pytest.mark.extra, pytest.mark.timeout(900))) for walk in ALL_WALKS),
    ],
)
def test_brokers_die_in_the_steps_of_a_switch(
    source_cluster: RunningCluster,
    target_cluster: RunningCluster,
    three_brokers: RunningCluster,
    clients: Clients,
    tmp_path: Path,
    walk: Walk,
) -> None:
    here, there = source_cluster, target_cluster
    if walk.which == "of-three" and (walk.verb is Verb.FAILBACK) == (walk.side == "new"):
        here = three_brokers
    elif walk.which == "of-three":
        there = three_brokers
    pair = Pair(here=here, there=there, topic=clients.topic, group=clients.group)
    factors = {pair.flow: len(there.brokers), pair.back: len(here.brokers)}
    pair = replace(
        pair,
        more={
            f"{pair.back}.ferry.start": "latest",
            **{f"{flow}.replication.factor": str(factor) for flow, factor in factors.items()},
        },
    )
    create_topic(here, clients.topic, PARTITIONS, replicas=len(here.brokers))
    begin_group(here, clients.group, clients.topic)
    clients.produce(here, 20)
    clients.consume(here, [clients.topic], 7)
    pair.run(pair.flow)
    alias_here, alias_there = pair.aliases
    over_there = [f"{alias_here}.{clients.topic}", clients.topic]

    if walk.verb is Verb.FAILOVER:
        state = walk.go(pair.lost, "s-1", tmp_path / "stranded.jsonl")
    elif walk.verb is Verb.SWITCHOVER:
        clients.produce(here, 10)
        state = walk.go(pair, "s-1", tmp_path / "stranded.jsonl")
    else:
        with pair.switcher(Verb.SWITCHOVER) as switcher:
            switcher.open("s-0", OPTIONS, "bob")
            switcher.run("s-0")
        clients.produce(there, 12)
        clients.consume(there, over_there, 25)
        state = walk.go(pair, "s-1", tmp_path / "stranded.jsonl")
    assert state.end is not None
    assert state.end.outcome is SwitchOutcome.FINISHED

    if walk.verb is Verb.FAILBACK:
        assert state.fact(Step.STRANDED, "records") == 0
        clients.produce(here, 5)
        clients.consume(here, [clients.topic, f"{alias_there}.{clients.topic}"])
    else:
        clients.produce(there, 5)
        clients.consume(there, over_there)
    assert sorted(clients.read) == sorted(clients.produced), "each record is read once"
