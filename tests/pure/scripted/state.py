"""What scripted brokers share: the logs, who leads them, and who coordinates what.

A cluster's topics are partitions' logs in `target`, the modelled cluster of the protocol's random machine.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

from ferry.kafka.connect import codes
from ferry.model import TopicPartition
from tests.pure.protocol.broker import (
    LEDGER,
    BrokerError,
    Busy,
    Fenced,
    Log,
    NotAdded,
    OutOfOrder,
    Target,
    Unknown,
)
from tests.pure.scripted.batches import identity, parts
from tests.pure.scripted.faults import Asked

HOST = "scripted"
TRANSACTION_ABORTABLE = 120


@dataclass(kw_only=True)
class State:
    """A cluster. Its topics are partitions' logs in `target`; `settings` are of all topics."""

    STATE: ClassVar[tuple[str, ...]] = ("target", "_producers", "begins")
    """What requests change."""

    alias: str
    nodes: tuple[int, ...] = (1,)
    """A broker that is taken out has died: it accepts no connection, and answers nothing."""
    version: int = 2
    """Of transactions."""
    features: dict[str, int] = field(default_factory=dict)
    """Finalized features other than that of transactions. With `metadata.version` the cluster is one of KRaft."""
    quorum_leader: int = 1
    lost: tuple[int, ...] = ()
    """Brokers that have replicas, and that the metadata does not list: they have died."""
    host: str = HOST
    port: int = 0
    settings: dict[str, str] = field(default_factory=dict)
    leaders: dict[TopicPartition, int] = field(default_factory=dict)
    epochs: dict[TopicPartition, int] = field(default_factory=dict)
    ended: dict[tuple[TopicPartition, int], int] = field(default_factory=dict)
    """Where leader epochs of before ended."""
    coordinators: dict[str, int] = field(default_factory=dict)
    begins: dict[TopicPartition, int] = field(default_factory=dict)
    """Where logs begin whose oldest records were deleted."""
    stamps: bool = True
    """Whether the ledger's records get the broker's time (LogAppendTime)."""
    behind: dict[TopicPartition, int] = field(default_factory=dict)
    """How many of the leader's newest entries the other replicas in sync do not have yet: they are not listed."""

    aged_ms: int = 0
    """How old the last timestamps of producer states are."""

    def __post_init__(self) -> None:
        self.target = Target((), self.version)
        self.ids: dict[str, uuid.UUID] = {}
        self.ledger = ""
        self._producers = 5000

    def topic(self, name: str, partitions: int = 1, *, ledger: bool = False) -> None:
        """Create a topic."""
        self.ids[name] = uuid.uuid4()
        if ledger:
            self.ledger = name
        for number in range(partitions):
            place = TopicPartition(topic=name, partition=number)
            self.leaders[place] = self.nodes[0]
            self.epochs[place] = 0
            self.target.logs.setdefault(self.name(place), Log(self.name(place)))

    def name(self, place: TopicPartition) -> str:
        """A partition's name in `target`."""
        return LEDGER if place.topic == self.ledger else str(place)

    def log(self, topic: str, partition: int = 0) -> Log:
        """A partition's log."""
        return self.target.logs[self.name(TopicPartition(topic=topic, partition=partition))]

    def append(self, topic: str, batch: bytes, partition: int = 0) -> int:
        """Write a batch, outside any transaction; the offset of its first record."""
        log = self.log(topic, partition)
        base = log.end
        log.append(parts(batch))
        return base

    def write_in(self, transactional_id: str, place: TopicPartition, batch: bytes) -> None:
        """Write a batch in a transaction of `target`."""
        self.target.add(transactional_id, identity(batch)[1], self.name(place))
        self.target.write(transactional_id, identity(batch)[1], self.name(place), identity(batch)[2], parts(batch))

    def deliver_markers(self) -> None:
        """All markers on their way arrive."""
        while self.target.markers():
            self.target.deliver_marker(*self.target.markers()[0])

    def move_leader(self, place: TopicPartition, node: int) -> None:
        """Another broker leads a partition from now on, in a new leader epoch."""
        self.ended[place, self.epochs[place]] = self.target.logs[self.name(place)].end
        self.leaders[place], self.epochs[place] = node, self.epochs[place] + 1

    def lose(self, place: TopicPartition, end: int, node: int) -> None:
        """A broker that lacks what lies from `end` on leads a partition from now on."""
        del self.target.logs[self.name(place)].entries[end:]
        self.move_leader(place, node)

    def expire(self) -> None:
        """Forget the state of all producers without open transactions, as after `producer.id.expiration.ms`."""
        for log in self.target.logs.values():
            log.producers = {number: state for number, state in log.producers.items() if state.open}

    def not_led(self, node: int, place: TopicPartition) -> int:
        """The error code of a broker that does not lead a partition."""
        if place not in self.leaders:
            return codes.UNKNOWN_TOPIC_OR_PARTITION
        return 0 if self.leaders[place] == node else codes.NOT_LEADER_OR_FOLLOWER

    def not_here(self, asked: Asked, key: str) -> bool:
        """Whether another broker coordinates a group or transactional id."""
        return self.coordinators.get(key, self.nodes[0]) != asked.node

    def unmapped(self, name: str, number: int) -> int:
        """The error code of a producer id that a transactional id does not have."""
        txn = self.target.txns.get(name)
        return 0 if txn is not None and txn.producer == number else codes.INVALID_PRODUCER_ID_MAPPING


def code_of(error: BrokerError, fenced: int = codes.PRODUCER_FENCED) -> int:
    """What the brokers answer. `fenced`: coordinators and partitions have each a code of their own for it."""
    found = {
        Fenced: fenced,
        Busy: codes.CONCURRENT_TRANSACTIONS,
        OutOfOrder: codes.OUT_OF_ORDER_SEQUENCE_NUMBER,
        NotAdded: TRANSACTION_ABORTABLE,
        Unknown: codes.INVALID_PRODUCER_ID_MAPPING,
    }
    return found.get(type(error), codes.INVALID_TXN_STATE)


def outcome_of(act: Callable[[], object], fenced: int = codes.PRODUCER_FENCED) -> int:
    """The error code of an act on the modelled cluster; 0: none."""
    try:
        act()
    except BrokerError as error:
        return code_of(error, fenced)
    return 0
