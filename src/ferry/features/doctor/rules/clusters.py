"""What a cluster shows of its brokers, its versions and the copies of its partitions. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from heapq import nsmallest
from typing import Protocol

from ferry.model import TopicPartition

MOST_SHOWN = 6
"""Partitions with too few replicas that are named; the others are counted."""
Version = tuple[int, ...]

_FIRST_LEVELS: Mapping[int, Version] = {
    1: (3, 0),
    2: (3, 1),
    3: (3, 2),
    4: (3, 3),
    8: (3, 4),
    9: (3, 5),
    12: (3, 6),
    15: (3, 7),
    20: (3, 8),
    21: (3, 9),
    22: (4, 0),
    26: (4, 1),
    28: (4, 2),
    30: (4, 3),
}
"""The first level of `metadata.version` of each release of Kafka (`MetadataVersion`)."""
_LAST_LEVEL = 30
"""The newest level that is known; a later one is of a release that is not known here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerFacts:
    """A broker, and what it answered. `address` is empty if the metadata does not list it: it is down."""

    id: int
    address: str = ""
    rack: str = ""
    version: Version | None = None
    """The newest Kafka, major and minor, whose requests it supports; None: not known."""
    why: str = ""
    """Why it did not answer; empty: it answered."""

    @property
    def answers(self) -> bool:
        """Whether it answered."""
        return not self.why


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """What the brokers of a cluster answered, by id."""

    alias: str
    cluster_id: str
    brokers: tuple[BrokerFacts, ...]
    features: Mapping[str, int] = field(default_factory=dict)
    """The levels of the finalized features."""

    @property
    def answering(self) -> int:
        """How many brokers answered."""
        return sum(one.answers for one in self.brokers)

    @property
    def versions(self) -> tuple[Version, ...]:
        """The versions of the brokers that showed one, each once, oldest first."""
        return tuple(sorted({one.version for one in self.brokers if one.version is not None}))

    @property
    def span_of_versions(self) -> str:
        """The oldest and the newest version of its brokers, in words; empty: not known."""
        return " to ".join(dict.fromkeys(map(written_version, (*self.versions[:1], *self.versions[-1:]))))

    @property
    def transaction_version(self) -> int:
        """The finalized version of transactions; 0: there is none."""
        return self.features.get("transaction.version", 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Steering:
    """Which node controls a cluster, and the version that all its brokers agreed on."""

    controller: int | None = None
    """The id of the active controller; None: not known, see `not_known`."""
    protocol: str = ""
    """`metadata.version` or `inter.broker.protocol.version` with its value; empty: not known, see `not_known`."""
    not_known: tuple[str, ...] = ()
    """What could not be asked, and why: sentences."""


class PartitionCopies(Protocol):
    """A partition as the metadata describes it."""

    @property
    def leader(self) -> int:
        """The leader's id; below 0: it has none."""

    @property
    def replicas(self) -> tuple[int, ...]:
        """The ids of all replicas."""

    @property
    def in_sync(self) -> tuple[int, ...]:
        """The ids of those in sync."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShortPartition:
    """A partition with fewer replicas in sync than it has, or without a leader (`offline`)."""

    place: TopicPartition
    offline: bool
    in_sync: int
    replicas: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """How many partitions of the flow's topics a broker leads, and of how many it has a replica."""

    broker: int
    leads: int = 0
    replicas: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionHealth:
    """The copies of the flow's partitions in a cluster; `short` are the first of those that are not well."""

    partitions: int
    offline: int
    under_replicated: int
    """Those that have a leader, and fewer replicas in sync than replicas."""
    short: tuple[ShortPartition, ...] = ()
    loads: tuple[Load, ...] = ()
    """Of the brokers that have a replica, by id."""


def health_of(partitions: Iterable[tuple[TopicPartition, PartitionCopies]]) -> PartitionHealth:
    """Return the health of partitions; those without a leader are the first that are named."""
    count, offline = 0, 0
    short: list[tuple[bool, TopicPartition, PartitionCopies]] = []
    leads: Counter[int] = Counter()
    replicas: Counter[int] = Counter()
    for place, one in partitions:
        count += 1
        replicas.update(one.replicas)
        if one.leader >= 0:
            leads[one.leader] += 1
        else:
            offline += 1
        if one.leader < 0 or len(one.in_sync) < len(one.replicas):
            short.append((one.leader >= 0, place, one))
    return PartitionHealth(
        partitions=count,
        offline=offline,
        under_replicated=len(short) - offline,
        short=tuple(
            ShortPartition(place=place, offline=not led, in_sync=len(one.in_sync), replicas=len(one.replicas))
            for led, place, one in nsmallest(MOST_SHOWN, short, key=lambda row: row[:2])
        ),
        loads=tuple(
            Load(broker=node, leads=leads[node], replicas=replicas[node])
            for node in sorted(leads.keys() | replicas.keys())
        ),
    )


def with_absent(brokers: Iterable[BrokerFacts], loads: Iterable[Load]) -> tuple[BrokerFacts, ...]:
    """Return brokers by id, with those that have a replica and that the metadata does not list: they are down."""
    absent = {
        one.broker: BrokerFacts(id=one.broker, why="it has replicas, and the cluster does not list it: it is down")
        for one in loads
    }
    found = absent | {one.id: one for one in brokers}
    return tuple(found[node] for node in sorted(found))


def release_of(level: int) -> Version | None:
    """Return the release of Kafka whose `metadata.version` has this level; None: not known here."""
    if not 0 < level <= _LAST_LEVEL:
        return None
    first = sorted(_FIRST_LEVELS)
    return _FIRST_LEVELS[first[bisect_right(first, level) - 1]]


def written_version(version: Version) -> str:
    """Return a version as Kafka writes it: `4.1`."""
    return ".".join(map(str, version))


def written_level(level: int) -> str:
    """Return a level of `metadata.version` with the release that it is of: `4.3 (level 30)`."""
    release = release_of(level)
    return f"level {level}" if release is None else f"{written_version(release)} (level {level})"
