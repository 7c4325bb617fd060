"""What a plan is decided from: facts of both clusters and of the ledger, gathered before, judged nowhere else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from ferry.ledger.other_flows import Neighbour
from ferry.model import Era, Gap, Pause, Position, Range, Receipt, TopicPartition
from ferry.model.observed import BrokerSpace, OpenTransaction, Unavailable
from ferry.model.topic_settings import TopicSettings

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcePartition:
    """One source partition; `end` is the last stable offset (or the high watermark when reading uncommitted).

    `size_bytes` is what its log takes on disk, -1 when unknown. `start` is where a first run begins.
    """

    log_start: int
    end: int
    size_bytes: int
    start: int
    diverged: int | None = None
    """Where the log now differs from what was copied of it (KIP-101); None: nowhere, as far as leader epochs tell."""
    high_watermark: int | None = None
    """Where the log ends with what open transactions hold back; None: not asked, or not told."""
    leader_epoch: int = -1
    """Of the leader that told the ends, or of a later one; -1: its brokers tell none."""

    @property
    def log_end(self) -> int:
        """The end with what open transactions hold back, as far as it is known."""
        return self.end if self.high_watermark is None else max(self.end, self.high_watermark)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What the ledger knows of one compacted source partition (`ferry.plan.rules.tombstones`). Times are ms."""

    whole_ms: int
    """All that was there then, the lane has copied."""
    asked_ms: int
    asked_end: int
    """Where the partition ended at `asked_ms`; when the lane stands there, `asked_ms` becomes the new `whole_ms`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTopic:
    """A source topic that the filters took; `leaderless` are partitions that no leader serves at the moment.

    `settings` is None when this login may not see them.
    """

    name: str
    topic_id: str
    partitions: Mapping[int, SourcePartition]
    leaderless: tuple[int, ...]
    replication_factor: int
    settings: TopicSettings | None
    unserved: Mapping[int, Unavailable] = field(default_factory=dict)
    """What is known of leaderless partitions whose leader failed to answer, or answered with an error."""

    @property
    def compacted(self) -> bool:
        """Whether it shows `compact` in its cleanup.policy."""
        return self.settings is not None and "compact" in (self.settings.in_force("cleanup.policy") or "")

    @property
    def delete_retention_ms(self) -> int | None:
        """`delete.retention.ms` where the topic is compacted; None where it is not, or does not show its settings."""
        if self.settings is None or not self.compacted:
            return None
        value = self.settings.in_force("delete.retention.ms")
        return None if value is None else int(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetTopic:
    """A topic of the target: its number of partitions and where each ends (high watermark; none without a leader)."""

    name: str
    topic_id: str
    partitions: int
    ends: Mapping[int, int]
    replicas: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    """Replicas in sync and replicas at all, by partition."""
    brokers: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """The brokers that have the replicas, by partition."""
    settings: TopicSettings | None = None
    """None when this login may not see them."""
    unserved: Mapping[int, Unavailable] = field(default_factory=dict)
    """What is known of partitions without an end."""

    @property
    def min_in_sync(self) -> int:
        """`min.insync.replicas`; 1 when it may not be seen."""
        found = None if self.settings is None else self.settings.in_force("min.insync.replicas")
        return 1 if found is None else int(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfound:
    """What a flow's topic filter, which takes no topic that the source lists, was held against."""

    patterns: tuple[str, ...]
    """Items of `topics` that are no plain names."""
    empty: bool
    """Whether `topics` has no items at all."""
    shown: int
    """How many topics the source lists that do not serve Kafka, MirrorMaker or Ferry."""
    excluded: tuple[str, ...]
    """Those that `topics` takes and `topics.exclude` leaves out."""
    idle: str = ""
    """Why that may be as it should: half a sentence, empty when nothing says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Everything that a plan depends on; the same facts give the same plan. Times are ms."""

    now_ms: int
    source_cluster_id: str
    target_cluster_id: str
    target_brokers: int
    sources: Mapping[str, SourceTopic]
    targets: Mapping[str, TargetTopic]
    receipts: Mapping[TopicPartition, Receipt]
    """Last receipt per target partition in this lane."""
    positions: Mapping[TopicPartition, Position | None]
    """The position group's word per target partition with a receipt, or with records; None where it has none.

    A partition that is not a key was not asked for, or its position is pending: nothing is said about it.
    """
    starts: Mapping[TopicPartition, int]
    """Where the lane's first run began, per source partition that existed by then.

    In the first run itself: the given offsets of partitions that could not be asked.
    """
    first_run: bool
    claims: Mapping[str, str]
    pauses: Mapping[str, Pause]
    begins: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Where a window begins, by source partition: the lane goes on there, or behind it."""
    pending: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Source partitions that existed at the first run but could not be asked yet: the time that they begin at."""
    absent: frozenset[str] = frozenset()
    """Source topics that the lane has receipts of and the filters take, but that the source does not list."""
    hidden: frozenset[str] = frozenset()
    """Names in the flow's `topics` that this login may not see at the source, be they there or not."""
    unmatched: tuple[str, ...] = ()
    """Names in the flow's `topics` that match no topic of the source."""
    unfound: Unfound | None = None
    """Of a flow whose filter takes no topic that the source lists."""
    skips: Mapping[TopicPartition, tuple[Gap, ...]] = field(default_factory=dict)
    """What somebody passed by hand, by source partition, ascending."""
    seen: Mapping[TopicPartition, Seen] = field(default_factory=dict)
    """What is known of compacted source partitions."""
    kept: Mapping[TopicPartition, int] = field(default_factory=dict)
    """By target partition that lost records: up to which source offset it still has what was copied."""
    cut: Mapping[TopicPartition, int] = field(default_factory=dict)
    """By target partition whose log was cut since the lane wrote to it: from where on it has other records, or none."""
    neighbours: tuple[Neighbour, ...] = ()
    """Other flows into the target, as far as their topics concern this one."""
    returned: Mapping[TopicPartition, tuple[Range, ...]] = field(default_factory=dict)
    """By source partition the offsets that came from the target cluster."""
    shared: frozenset[str] = frozenset()
    """Target topics that the own flow has agreed to share in its ledger."""
    accounted: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Up to where target partitions were looked through for records of others."""
    target_defaults: Mapping[str, str] = field(default_factory=dict)
    """What a new topic of the target has where nothing is set; empty when nobody knows."""
    space: Mapping[int, BrokerSpace] | None = None
    """Of the target's brokers that tell; None: not asked."""
    deleted: frozenset[str] = frozenset()
    """Those of the absent topics of which the source's brokers say that no topic has their id any more."""
    foreign: Mapping[TopicPartition, int] = field(default_factory=dict)
    """By target partition the first offset behind our last record that somebody else wrote."""
    undecided: Mapping[TopicPartition, OpenTransaction] = field(default_factory=dict)
    """By target partition a transaction of somebody else that is open there."""
    back_rests: bool = False
    """Whether the flow straight back is paused in its own ledger, until somebody resumes it."""
    strangers: Mapping[TopicPartition, int] = field(default_factory=dict)
    """By merged target partition the first offset that none of the flows' ledgers accounts for."""
    units: Mapping[TopicPartition, Receipt] = field(default_factory=dict)
    """Last receipt per target partition of topics that get other partitions, in this lane."""
    eras: Mapping[str, Era] = field(default_factory=dict)
    """By target topic the rule by which the lane deals records to its partitions."""
    lost_rules: Mapping[str, str] = field(default_factory=dict)
    """Why some of these rules cannot be carried out any more, by target topic, as half a sentence with the remedy."""
    dealt: Mapping[TopicPartition, int] = field(default_factory=dict)
    """By source partition of such topics up to where all of their target partitions have come."""
    held: Mapping[TopicPartition, OpenTransaction] = field(default_factory=dict)
    """Source partitions with an open transaction, where that bounds what is read (read_committed)."""
    on_ledger: Mapping[TopicPartition, OpenTransaction] = field(default_factory=dict)
    """The oldest transaction that is open on the flow's ledger, by its partition."""


def by_topic(values: Mapping[TopicPartition, T]) -> dict[str, dict[int, T]]:
    """Values by topic and partition number."""
    found: dict[str, dict[int, T]] = {}
    for place, value in values.items():
        found.setdefault(place.topic, {})[place.partition] = value
    return found
