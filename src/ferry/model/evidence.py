"""The evidence of a drill or a switch: who did what when, what would be lost, and what was measured."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from ferry.model.check import Check
from ferry.model.flow import Flow, TopicPartition


class EvidenceKind(StrEnum):
    """What was done. The first four are drills, the others are real."""

    TABLETOP = "tabletop"
    SHADOW = "shadow"
    PARTIAL = "partial"
    FULL = "full"
    FAILOVER = "failover"
    SWITCHOVER = "switchover"
    FAILBACK = "failback"

    @property
    def is_drill(self) -> bool:
        """Whether it was a rehearsal."""
        return self in (EvidenceKind.TABLETOP, EvidenceKind.SHADOW, EvidenceKind.PARTIAL, EvidenceKind.FULL)


class EvidenceOutcome(StrEnum):
    """How it ended. `deviations`: everything was done, and something was not as it should be."""

    SUCCESS = "success"
    DEVIATIONS = "deviations"
    FAILED = "failed"
    REFUSED = "refused"


class StepOutcome(StrEnum):
    """How one step ended."""

    DONE = "done"
    FAILED = "failed"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceCluster:
    """One of the two clusters, by its alias and its own id."""

    alias: str
    cluster_id: str
    brokers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineStep:
    """One step of the timeline. Times are ms; `approved_by` is empty where no approval was needed."""

    name: str
    title: str
    began_ms: int
    ended_ms: int
    outcome: StepOutcome
    detail: str = ""
    approved_by: str = ""
    approved_ms: int = 0

    @property
    def seconds(self) -> float:
        """How long it took, in seconds."""
        return (self.ended_ms - self.began_ms) / 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """What the target lacks of one source partition, which a failover at that moment loses: its RPO.

    `records` counts offsets, so it is an upper bound; `seconds` is the age of the oldest of them. None: not known.
    `via` is the flow, where that is not the report's own: a full drill is about both ways.
    """

    source: TopicPartition
    target: TopicPartition
    position: int | None
    source_end: int | None
    records: int | None
    bytes: int | None
    seconds: float | None
    via: str = ""


START = "start"
"""Why offsets were skipped that are before the start of a lane."""

STRANDED = "stranded"
"""Why offsets were skipped that a switch left out: records that came to the old cluster and were never copied."""

DEAD_LETTERS = "dead-letters"
"""Why records are not on the target on which a transform failed: they are among the dead letters."""

ADOPTED = "adopted"
"""Why records may not be on the target from before an adoption: what the replicator of then left out is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PassedOver:
    """Source offsets `[start, end)` that the lane never copied, because an operator or the configuration decided it.

    `start` None: where they begin is not known, so their number is not known. `why` is the refusal in whose place it
    was decided, or `START` or `STRANDED`. `who` and `reason` are empty where the ledger does not have them. `via` is
    the flow, where that is not the report's own: a full drill is about both ways.

    With DEAD_LETTERS or ADOPTED as `why`, it is so many `records` in that range that the target lacks, not all of it;
    None: not known. The partition is -1 where the ledger does not have it, because the topic is repartitioned.
    """

    source: TopicPartition
    start: int | None
    end: int
    why: str
    who: str = ""
    reason: str = ""
    via: str = ""
    records: int | None = None

    @property
    def where(self) -> str:
        """The partition or topic, with the flow where that is not the report's own."""
        place = self.source.topic if self.source.partition < 0 else str(self.source)
        return f"{place} of {self.via}" if self.via else place

    @property
    def is_counted(self) -> bool:
        """Whether it is about `records` in the range, and not about all of its offsets."""
        return self.why in (DEAD_LETTERS, ADOPTED)

    @property
    def offsets(self) -> int | None:
        """How many offsets it holds; None: not known."""
        if self.is_counted:
            return self.records
        return None if self.start is None else self.end - self.start

    def unread(self, offset: int) -> int | None:
        """Return how many of its offsets a reader at `offset` has not read; None: not known."""
        if offset >= self.end:
            return 0
        return None if self.start is None or self.is_counted else self.end - max(self.start, offset)

    def holds(self, offset: int) -> bool | None:
        """Return whether an offset is in it; None: it may be."""
        if offset >= self.end or (self.start is not None and offset < self.start):
            return False
        return None if self.start is None or self.is_counted else True


def oldest_loss(losses: Collection[Loss]) -> float | None:
    """Return the largest age (s) of what is lost; None when it is not known for a partition, or there is none."""
    ages = [loss.seconds for loss in losses if loss.records is not None and loss.seconds is not None]
    return max(ages) if ages and len(ages) == len(losses) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMoved:
    """One consumer group: where it was moved, and which records its members read twice or never there.

    Offsets were `committed` for some of its `partitions`. Of these, `exact` continue at exactly the record that they
    would have read next; None: they were not compared. `reread` and `skipped` count records of these partitions.
    `beyond` counts source offsets that the group had read beyond the copy; `lag` is what it had not read at the source
    before anything was changed. None of the others: not known. `via` is the flow, where that is not the report's own: a
    full drill is about both ways.
    """

    group: str
    target_group: str
    partitions: int
    committed: int
    exact: int | None
    reread: int | None
    skipped: int | None
    beyond: int | None = None
    note: str = ""
    lag: int | None = None
    via: str = ""

    @property
    def where(self) -> str:
        """The group, with the flow where that is not the report's own."""
        return f"{self.group} of {self.via}" if self.via else self.group


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One moment of the copying: records still to be copied, and the rate since the sample before.

    `via` is the flow, where that is not the report's own: a full drill is about both ways.
    """

    at_ms: int
    lag_records: int
    records_per_second: float
    bytes_per_second: float
    via: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """One figure and its upper limit. `wanted` None: no limit was set. `measured` None: not known.

    `of`: what alone it is about; empty: all.
    """

    name: str
    unit: str
    wanted: float | None
    measured: float | None
    of: str = ""

    @property
    def is_met(self) -> bool | None:
        """Whether the figure is within the limit; None without a limit. A figure that is not known does not meet it."""
        if self.wanted is None:
            return None
        return self.measured is not None and self.measured <= self.wanted


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """The result of a comparison of both clusters' content, in short."""

    equal: bool
    complete: bool
    partitions: int
    records: int
    bytes: int
    seconds: float
    differences: int
    findings: tuple[str, ...] = ()
    """One sentence for each difference that is shown, and for each range that could not be compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """One way of a full drill: the flow along which clients moved, and when (ms) its losses were measured; 0: never."""

    flow: Flow
    losses_at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceReport:
    """A whole report. `id` is unique in a flow; `who` began it. Times are ms, `rto_s` seconds from the loss to service.

    A figure of None is not known, or was not measured. A full drill has `losses`, `groups`, `samples` and `passed_over`
    of both ways. What is counted of them is None, because no number is true of both.
    """

    id: str
    kind: EvidenceKind
    flow: Flow
    lane: str
    policy: str
    clusters: tuple[EvidenceCluster, ...]
    who: str
    version: str
    began_ms: int
    ended_ms: int
    outcome: EvidenceOutcome
    summary: str
    asked_by: str = ""
    """The user of Airflow who started it; empty: Airflow reports none, or `who` is a person at a terminal."""
    reason: str = ""
    """Why it was started, in the words of that user; empty: it is not recorded."""
    steps: tuple[TimelineStep, ...] = ()
    goals: tuple[Goal, ...] = ()
    losses: tuple[Loss, ...] = ()
    losses_at_ms: int = 0
    """When the losses were measured; 0: they were not, or `ways` has when."""
    ways: tuple[Way, ...] = ()
    """Of a full drill: each way that was begun, in order. Empty also where the report mixes both ways."""
    passed_over: tuple[PassedOver, ...] | None = None
    """What the target lacks, the losses apart; None: not known, or not asked for."""
    rto_s: float | None = None
    rto_means: str = ""
    """What the RTO was computed from, or why it is not known, in a sentence."""
    from_start_s: float | None = None
    """Seconds from the start of the command to service; None: not known, or no client was moved."""
    first_record_s: float | None = None
    """Seconds until a consumer of a group of the new cluster had its first record; None: not known."""
    first_record_means: str = ""
    """From when these seconds count, or why they are not known, in a sentence; empty: nothing was to be measured."""
    groups: tuple[GroupMoved, ...] = ()
    verification: Compared | None = None
    samples: tuple[Sample, ...] = ()
    checks: tuple[Check, ...] = ()
    would: tuple[str, ...] = ()
    """What was not done but would be: the plan of a tabletop drill, or of a dry run."""
    deviations: tuple[str, ...] = ()
    refusals: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def seconds(self) -> float:
        """Seconds from the beginning to the end."""
        return (self.ended_ms - self.began_ms) / 1000

    @property
    def is_mixed(self) -> bool:
        """Whether it is about both ways of a full drill, and does not keep them apart."""
        drain = f"{EvidenceKind.FAILBACK}-drain"  # the first step of the way back of which a report has figures
        return self.kind is EvidenceKind.FULL and not self.ways and any(one.name == drain for one in self.steps)

    @property
    def _is_one_way(self) -> bool:
        return not self.ways and not self.is_mixed

    @property
    def lost_records(self) -> int | None:
        """Records of all partitions that the target lacks, at most.

        None when the number is not known for a partition, there is no partition, or it is about two ways.
        """
        known = self._is_one_way and self.losses_at_ms and self.losses
        return summed([loss.records for loss in self.losses]) if known else None

    @property
    def dead_letters(self) -> int | None:
        """Records that are dead letters in place of copies; None: not known, or it is about two ways."""
        return self._lacking(DEAD_LETTERS)

    @property
    def before_adoption(self) -> int | None:
        """Records that another replicator left out before an adoption; None: not known, or of two ways."""
        return self._lacking(ADOPTED)

    def _lacking(self, why: str) -> int | None:
        passed = self.passed_over
        if passed is None or not self._is_one_way:
            return None
        return summed([one.records for one in passed if one.why == why])

    @property
    def lost_seconds(self) -> float | None:
        """The largest age of what the target lacks; None when `lost_records` may be, too."""
        return oldest_loss(self.losses) if self._is_one_way and self.losses_at_ms else None

    @property
    def reread(self) -> int | None:
        """Records that the groups read twice.

        None when it is not known for a group, there is no group, or it is about two ways.
        """
        return summed([group.reread for group in self.groups]) if self._is_one_way and self.groups else None


def summed(counts: Collection[int | None]) -> int | None:
    """Return the sum of counts; None where one of them is not known."""
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """The report before a report in its folder: file name, SHA-256 (hex) of its JSON, and of its page, if any."""

    name: str
    sha256: str
    page_sha256: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Signer:
    """The key that signs: the algorithm, and the SHA-256 (hex) of the public key's SubjectPublicKeyInfo (RFC 5280)."""

    algorithm: str
    key_sha256: str
