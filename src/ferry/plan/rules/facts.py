"""What a plan is decided from: facts of both clusters and of the ledger, gathered before the decision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from ferry.ledger.other_flows import OtherFlow
from ferry.model import Era, Gap, Pause, Position, Range, Receipt, TopicPartition
from ferry.model.observed import BrokerSpace, OpenTransaction, Unavailable
from ferry.model.topic_settings import TopicSettings

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcePartition:
    """One source partition; `end` is the last stable offset (or the high watermark when reading uncommitted).

    `size_bytes` is the size of its log on disk, None when not known. `start` is where a first run begins.
    """

    log_start: int
    end: int
    size_bytes: int | None
    start: int
    diverged: int | None = None
    """The offset from which the log differs from its copy (KIP-101); None if leader epochs show no difference."""
    high_watermark: int | None = None
    """The end of the log including what open transactions hold back; None: not asked, or not answered."""
    leader_epoch: int | None = None
    """The epoch of the leader that reported the ends, or of a later one; None: its brokers report none."""

    @property
    def log_end(self) -> int:
        """The end of the log including what open transactions hold back, as far as it is known."""
        return self.end if self.high_watermark is None else max(self.end, self.high_watermark)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What the ledger holds about one compacted source partition (`ferry.plan.rules.tombstones`). Times are ms."""

    whole_ms: int
    """A time of which the lane has copied all that was there then."""
    asked_ms: int
    asked_end: int
    """Where the partition ended at `asked_ms`; once the lane has got there, `asked_ms` is the new `whole_ms`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceTopic:
    """A source topic that the filters took; `leaderless` are the partitions without a leader at the moment.

    `settings` is None when this login may not see them, or when the cluster answered `settings_error` instead.
    """

    name: str
    topic_id: str
    partitions: Mapping[int, SourcePartition]
    leaderless: tuple[int, ...]
    replication_factor: int
    settings: TopicSettings | None
    unserved: Mapping[int, Unavailable] = field(default_factory=dict)
    """Why leaderless partitions are not served, by number, if their leader did not answer or reported an error."""
    settings_error: str = ""

    @property
    def compacted(self) -> bool:
        """Whether its cleanup.policy contains `compact`."""
        return self.settings is not None and "compact" in (self.settings.in_force("cleanup.policy") or "")

    @property
    def delete_retention_ms(self) -> int | None:
        """`delete.retention.ms` of a compacted topic; None if it is not compacted, or does not show its settings."""
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
    """Replicas in sync and all replicas, by partition."""
    brokers: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """The brokers that have the replicas, by partition."""
    settings: TopicSettings | None = None
    """None when this login may not see them, or when the cluster answered `settings_error` instead."""
    unserved: Mapping[int, Unavailable] = field(default_factory=dict)
    """Why partitions have no end, by number, as far as it is known."""
    settings_error: str = ""

    @property
    def min_in_sync(self) -> int:
        """`min.insync.replicas`; 1 when this login may not see it."""
        found = None if self.settings is None else self.settings.in_force("min.insync.replicas")
        return 1 if found is None else int(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfound:
    """What a flow's topic filter was compared with, if it takes no topic that the source lists."""

    patterns: tuple[str, ...]
    """The items of `topics` that are patterns, not names."""
    empty: bool
    """Whether `topics` has no items at all."""
    shown: int
    """How many topics the source lists that do not serve Kafka, MirrorMaker or Ferry."""
    excluded: tuple[str, ...]
    """Topics among the shown ones that `topics` takes and `topics.exclude` leaves out."""
    idle: str = ""
    """Why it may rightly take none: half a sentence, empty when nothing shows it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFacts:
    """What the source shows of the topics that the flow's filters take."""

    cluster_id: str
    topics: Mapping[str, SourceTopic]
    absent: frozenset[str] = frozenset()
    """Source topics that the lane has receipts of and the filters take, but that the source does not list."""
    deleted: frozenset[str] = frozenset()
    """Absent topics of which all brokers of the source answer that no topic has their id any more."""
    hidden: frozenset[str] = frozenset()
    """Names in the flow's `topics` that this login may not see at the source, whether they exist or not."""
    unmatched: tuple[str, ...] = ()
    """Names in the flow's `topics` that match no topic of the source."""
    unfound: Unfound | None = None
    """Set for a flow whose filter takes no topic that the source lists."""
    open_transactions: Mapping[TopicPartition, OpenTransaction] = field(default_factory=dict)
    """Open transactions by source partition, where they bound what is read (read_committed)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetFacts:
    """What the target shows of the copies, and of the room that its brokers have."""

    cluster_id: str
    brokers: int
    """How many brokers the target has."""
    topics: Mapping[str, TargetTopic]
    """The copies that exist and that this login may see, by their own names."""
    hidden: frozenset[str] = frozenset()
    """Copies that this login may not see, whether they exist or not."""
    defaults: Mapping[str, str] = field(default_factory=dict)
    """The settings of a new topic of the target if nothing is set; empty when they are not known."""
    known_settings: frozenset[str] = frozenset()
    """The names of the settings of topics that the target's Kafka has; empty when they are not known."""
    space: Mapping[int, BrokerSpace] | None = None
    """Disk space by broker of the target, for those that report it; None: not asked."""
    cut: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Target partitions cut since the lane wrote to them: the offset from which each has other records or none."""
    kept: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Target partitions that lost records: up to which source offset each still has what was copied."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneFacts:
    """What the flow's ledger and its position group hold of the lane. Times are ms."""

    receipts: Mapping[TopicPartition, Receipt]
    """The last receipt for each target partition in this lane."""
    units: Mapping[TopicPartition, Receipt] = field(default_factory=dict)
    """The last receipt for each target partition of repartitioned topics, in this lane."""
    positions: Mapping[TopicPartition, Position | None]
    """The position in the position group for each target partition with a receipt or with records; None if it has none.

    For a partition that is not a key nothing is known: it was not asked for, or its position is pending.
    """
    starts: Mapping[TopicPartition, int]
    """Where the lane's first run began, for each source partition that existed at that time.

    In the first run itself: the configured offsets of partitions that could not be asked.
    """
    pending: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Source partitions that existed at the first run but could not be asked yet: the time (ms) at which they begin."""
    first_run: bool
    begins: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Where a window begins, by source partition: the lane continues there, or after it."""
    skips: Mapping[TopicPartition, tuple[Gap, ...]] = field(default_factory=dict)
    """The gaps that an operator passed by hand, by source partition, ascending."""
    seen: Mapping[TopicPartition, Seen] = field(default_factory=dict)
    """What the ledger holds about compacted source partitions."""
    claims: Mapping[str, str]
    shared: frozenset[str] = frozenset()
    """Target topics that this flow has agreed to share, by its ledger."""
    pauses: Mapping[str, Pause]
    eras: Mapping[str, Era] = field(default_factory=dict)
    """The rule by which the lane repartitions a topic's records, by target topic."""
    lost_rules: Mapping[str, str] = field(default_factory=dict)
    """Why some of these rules cannot be carried out any more, by target topic, as half a sentence with the remedy."""
    dealt: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Source partitions of repartitioned topics: the offset that all of their target partitions have reached."""
    open_on_ledger: Mapping[TopicPartition, OpenTransaction] = field(default_factory=dict)
    """The oldest transaction that is open on the flow's ledger, by its partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoReceipt:
    """Source offsets `[start, end)` that a flow with identical offsets wrote there, and that no receipt covers yet.

    `why`: they could not be read, so it is not known whether that flow wrote them; empty: it did.
    """

    start: int
    end: int
    writer: str
    """The flow that wrote them."""
    why: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherFacts:
    """What others wrote to the copies, and what the ledgers of other flows show."""

    flows: tuple[OtherFlow, ...] = ()
    """Other flows into the target, as far as their topics concern this one."""
    returned: Mapping[TopicPartition, tuple[Range, ...]] = field(default_factory=dict)
    """The offsets that came from the target cluster, by source partition."""
    no_receipt: Mapping[TopicPartition, NoReceipt] = field(default_factory=dict)
    """What came from the target cluster and has no receipt yet, by source partition."""
    accounted: Mapping[TopicPartition, int] = field(default_factory=dict)
    """The offset up to which target partitions were searched for records of others."""
    foreign: Mapping[TopicPartition, int] = field(default_factory=dict)
    """The first foreign record after the lane's last record, by target partition."""
    open_transactions: Mapping[TopicPartition, OpenTransaction] = field(default_factory=dict)
    """The foreign transaction that is open on a target partition."""
    unaccounted: Mapping[TopicPartition, int] = field(default_factory=dict)
    """The first offset that none of the flows' ledgers accounts for, by merged target partition."""
    back_paused: bool = False
    """Whether the opposite flow is paused in its own ledger, until an operator resumes it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Everything that a plan depends on; the same facts give the same plan. Times are ms."""

    now_ms: int
    source: SourceFacts
    target: TargetFacts
    lane: LaneFacts
    others: OtherFacts = field(default_factory=OtherFacts)


def by_topic(values: Mapping[TopicPartition, T]) -> dict[str, dict[int, T]]:
    """Return values by topic and partition number."""
    found: dict[str, dict[int, T]] = {}
    for place, value in values.items():
        found.setdefault(place.topic, {})[place.partition] = value
    return found
