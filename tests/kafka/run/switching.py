"""Two clusters with a flow each way, clients that move between them, and switches whose processes die."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition

from ferry.config.settings import Settings, parse_settings
from ferry.dev import RunningCluster
from ferry.errors import Refused
from ferry.features.groups.acts.of_run import checkpoint
from ferry.features.switch.acts.switcher import Switcher
from ferry.kafka.connect.cluster import Cluster
from ferry.model import Fact, Pause
from ferry.model.switch import Step, SwitchOptions, SwitchState, Verb, next_step
from ferry.run.ledger.access import LedgerAccess
from ferry.run.ledger.pausing import write_pause
from ferry.run.local import copy_all
from ferry.run.micro_run import MicroRuns, local_origin
from tests.harness import Message, create_topic, new_alias, producer, send, wait_until
from tests.said import data_of
from tests.tiers import ANSWER_S, IN_PART, PATIENCE

PARTITIONS = 2
OPTIONS = SwitchOptions(quiet_seconds=0.6, quiet_timeout_seconds=20 * PATIENCE, drain_timeout_seconds=60 * PATIENCE)
IDENTITY = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
APART = 5 if IN_PART else 1
"""Every so many changes of a switch its process dies."""


class Killed(Exception):
    """Stands for the end of a process."""


@dataclass(frozen=True, kw_only=True)
class Pair:
    """Two clusters with a flow each way over one topic, under aliases of their own."""

    here: RunningCluster
    there: RunningCluster
    topic: str
    group: str
    aliases: tuple[str, str] = field(default_factory=lambda: (new_alias(), new_alias()))
    more: Mapping[str, str] = field(default_factory=dict)

    @property
    def flow(self) -> str:
        """The flow there."""
        return "->".join(self.aliases)

    @property
    def back(self) -> str:
        """The flow back."""
        return "->".join(reversed(self.aliases))

    @property
    def text(self) -> str:
        """A MirrorMaker 2 file."""
        here, there = self.aliases
        lines = {
            "clusters": f"{here}, {there}",
            f"{here}.bootstrap.servers": self.here.bootstrap,
            f"{there}.bootstrap.servers": self.there.bootstrap,
            f"{self.flow}.enabled": "true",
            f"{self.back}.enabled": "true",
            "topics": self.topic,
            "groups": f"{self.group}.*",
            "heartbeats.replication.enabled": "false",
            "emit.heartbeats.enabled": "false",
            "replication.factor": "1",
            "tasks.max": "1",
            **self.more,
        }
        return "".join(f"{key} = {value}\n" for key, value in lines.items())

    @property
    def settings(self) -> Settings:
        """The file, read."""
        return parse_settings(self.text, "pair.properties")

    @property
    def turned(self) -> Pair:
        """The same, looked at from the other side."""
        return replace(self, here=self.there, there=self.here, aliases=(self.aliases[1], self.aliases[0]))

    @property
    def lost(self) -> Pair:
        """The same when nothing answers at the address of the cluster here."""
        address = f"{self.aliases[0]}.bootstrap.servers"
        return replace(self, more={**self.more, address: "127.0.0.1:1"})

    def run(self, flow: str) -> None:
        """One micro-run with its checkpoint."""
        with MicroRuns(self.settings.flow(flow), patience_s=ANSWER_S) as runs:
            plan = runs.open_new(f"run-{secrets.token_hex(4)}", local_origin())
            assert plan.refusals == ()
            attempt = runs.begin(plan, local_origin())
            runs.record_outcome(plan, attempt, copy_all(runs, plan, attempt))
            checkpoint(runs, plan.run)

    def switcher(self, verb: Verb, patience_s: float = ANSWER_S) -> Switcher:
        """Of the flow there."""
        settings = self.settings
        return Switcher(settings, settings.flow(self.flow), verb, who="ann@desk-7", patience_s=patience_s)


@dataclass(kw_only=True)
class Clients:
    """Producers and consumers of one topic that move along; what was produced, and what the group was given."""

    topic: str
    group: str
    protocol: str = "classic"
    produced: list[bytes] = field(default_factory=list)
    read: list[bytes] = field(default_factory=list)

    def produce(self, cluster: RunningCluster, count: int) -> list[bytes]:
        """So many records more, dealt to all partitions in turn."""
        begin = len(self.produced)
        values = [f"{number}".encode() for number in range(begin, begin + count)]
        send(
            producer(cluster),
            self.topic,
            [Message(value=value, partition=number % PARTITIONS) for number, value in enumerate(values)],
        )
        self.produced += values
        return values

    def consume(self, cluster: RunningCluster, topics: list[str], count: int | None = None) -> list[bytes]:
        """The group reads just so many records of these topics (None: all there are), commits each, and leaves."""
        found: list[bytes] = []
        ended: set[tuple[str, int]] = set()
        everywhere = {(topic, number) for topic in topics for number in range(PARTITIONS)}

        def enough() -> bool:
            return ended == everywhere if count is None else len(found) >= count

        with member(cluster, self.group, topics, self.protocol) as client:

            def read() -> bool:
                while not enough() and (message := client.poll(0.2)) is not None:
                    error = message.error()
                    if error is not None:
                        assert error.code() == KafkaError._PARTITION_EOF, error
                        ended.add((str(message.topic()), int(message.partition() or 0)))
                        continue
                    found.append(message.value() or b"")
                    client.commit(message=message, asynchronous=False)
                return enough()

            wait_until(read, "the records that the group is to read")
        self.read += found
        return found


@contextmanager
def member(cluster: RunningCluster, group: str, topics: list[str], protocol: str = "classic") -> Iterator[Consumer]:
    """A consumer that begins nowhere but where its group stands."""
    client = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": group,
            "group.protocol": protocol,
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
        }
    )
    try:
        client.subscribe(topics)
        yield client
    finally:
        client.close()


def begin_group(cluster: RunningCluster, group: str, topic: str) -> None:
    """Put a group at the beginning of a topic."""
    client = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": group})
    try:
        client.commit(offsets=[TopicPartition(topic, number, 0) for number in range(PARTITIONS)], asynchronous=False)
    finally:
        client.close()


CHANGES = frozenset(
    {
        "AddOffsetsToTxnRequest",
        "AddPartitionsToTxnRequest",
        "CreatePartitionsRequest",
        "CreateTopicsRequest",
        "DeleteTopicsRequest",
        "EndTxnRequest",
        "IncrementalAlterConfigsRequest",
        "InitProducerIdRequest",
        "OffsetCommitRequest",
        "ProduceRequest",
        "TxnOffsetCommitRequest",
    }
)
"""Requests that change something on a cluster."""


@dataclass(kw_only=True)
class Mortal:
    """A process that dies before the change that `dies_at` counts: what came before has happened."""

    dies_at: int
    changes: int = 0
    died_before: str = ""

    def watch(self, patch: pytest.MonkeyPatch) -> None:
        """Whatever it asks of any cluster passes here; once it is dead it asks nothing any more, in no `finally`."""
        submit = Cluster.submit

        async def watched(cluster: Cluster, request: Any, node: int | None = None, **named: Any) -> Any:
            kind = type(request).__name__
            if kind in CHANGES and not self.died_before:
                self.changes += 1
                if self.changes == self.dies_at:
                    self.died_before = kind
            if self.died_before:
                raise Killed(kind)
            return await submit(cluster, request, node, **named)

        patch.setattr(Cluster, "submit", watched)


def switch_killed_at_every_change(pair: Pair, verb: Verb, switch: str, options: SwitchOptions) -> SwitchState:
    """Go through a switch in processes that die inside each step: after each of its changes, and at last after all.

    The first change of a step is the record that it is begun, the last one that it is done. Where tables run in part,
    they die after the first change, and after every fifth one from there on.
    """
    with pair.switcher(verb) as switcher:
        state = switcher.open(switch, options, "bob")
    deaths: dict[Step, list[str]] = {}
    while (due := next_step(state)) is not None:
        died = deaths.setdefault(due, [])
        # A drain is ordinary micro-runs: that they survive a death anywhere is seen elsewhere.
        mortal = Mortal(dies_at=2 + len(died) * (6 if due is Step.DRAIN else APART))
        with pytest.MonkeyPatch.context() as patch:
            mortal.watch(patch)
            try:
                with pair.switcher(verb) as switcher:
                    state = switcher.step(switch, due)
            except Killed:
                died.append(mortal.died_before)
            else:
                assert not mortal.died_before, f"nobody outlives a death, step {due}"
    assert all(deaths.values()), deaths
    with pair.switcher(verb) as switcher:
        return switcher.finish(switch)


def rest(pair: Pair) -> None:
    """Let the flow back rest: of two flows that keep names one may copy."""
    with LedgerAccess(pair.settings.flow(pair.back), patience_s=ANSWER_S) as ledger:
        write_pause(ledger, Pause(topic="", who="ann@desk-7", why="standby", since_ms=1))


def pair_of(here: RunningCluster, there: RunningCluster, clients: Clients, policy: str) -> Pair:
    """Two clusters, of which the first one has the topic, and the group at its beginning."""
    more = {"replication.policy.class": IDENTITY} if policy == "Identity" else {}
    pair = Pair(here=here, there=there, topic=clients.topic, group=clients.group, more=more)
    create_topic(here, clients.topic, PARTITIONS)
    begin_group(here, clients.group, clients.topic)
    if policy == "Identity":
        rest(pair)
    return pair


def read_there(pair: Pair) -> list[str]:
    """What the group reads on the cluster there."""
    return [pair.topic] if IDENTITY in pair.more.values() else [pair.topic, f"{pair.aliases[0]}.{pair.topic}"]


def refuses(pair: Pair, verb: Verb, code: str, *, match: str | None = None, **facts: Fact) -> None:
    """No such switch is opened: its refusal has this code and these facts, and in its text what `match` finds."""
    with pair.switcher(verb) as switcher, pytest.raises(Refused, match=match) as refused:
        switcher.open("s-1", OPTIONS, "bob")
    found, of = data_of(refused.value)
    assert (found, {name: of.get(name) for name in facts}) == (code, facts)
