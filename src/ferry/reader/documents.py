"""The answers of the page's reader, each with as much as one page shows; pure.

The questions are in `ferry.reader.questions`. Both are written and read as JSON by the types of their fields
(`ferry.reader.typed`). Questions and answers about a feature are in the feature's folder (`ferry.page.part`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from ferry.features.doctor.rules.clusters import ClusterFacts, PartitionHealth, Steering
from ferry.features.groups.rules.repartitioned import ChunkSpan, DealtPart
from ferry.ledger.history import NOT_ENDED, SILENT_MS, PastState
from ferry.ledger.progress import Progress, RunProgress
from ferry.ledger.repartitioned_at import Dealt
from ferry.model import (
    Gap,
    LaneKind,
    OpenedRun,
    Pause,
    Range,
    Receipt,
    Refusal,
    Segment,
    TopicPartition,
)
from ferry.model.check import Check
from ferry.model.switch import Move, SwitchOutcome, Verb
from ferry.page.cut import Cut
from ferry.plan.rules.lag import PartitionLag, TotalLag

__all__ = ["NOT_ENDED", "SILENT_MS", "Dealt", "PastState", "Progress", "RunProgress"]

FEW = 20
"""How many things of a kind a plan shows."""
SHOWN_SEGMENTS = 100
"""Segments of a receipt in a list; the receipt's own page has all."""
SHOWN_SLICES = 100
SHOWN_REFUSALS = 6
"""Refusals of a run on its flow's overview; the run's own page has all."""
SHOWN_TOPICS = 6


class Condition(StrEnum):
    """The meaning of a colour; a word is always next to it."""

    GOOD = "good"
    BUSY = "busy"
    WARN = "warn"
    BAD = "bad"
    HELD = "held"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRun:
    """What one run had to copy of a topic, and what it copied; `due` counts source offsets."""

    due: int
    records: int
    bytes: int
    latency_ms: int | None = None
    """Age (ms) of the oldest of its records when it was written; None: their times are not known."""
    uncounted: bool = False
    """Whether the ledger has forgotten some of its receipts: records and bytes are of the others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDigest:
    """A run in a few hundred bytes, so that many fit into memory. Times are ms."""

    run: str
    generation: int
    state: PastState
    started_ms: int
    ended_ms: int
    slices: int
    """Slices and units; a unit is a slice of one target partition of a repartitioned topic."""
    due: int
    """Source offsets that the plan was to copy: the lane's lag, as far as the budget went."""
    records: int
    bytes: int
    latency_ms: int | None
    """Age of the oldest of its records when it was written: its greatest lag. None: their times are not known."""
    refused: int
    refusals: tuple[Refusal, ...]
    kinds: Mapping[str, int]
    gaps: tuple[Gap, ...]
    notes: tuple[str, ...]
    topics: Mapping[str, TopicRun]
    who: str
    undone: tuple[tuple[str, str], ...] = ()
    """The first of what it left undone in addition to refusals, as `left_undone` words it."""
    undone_in_all: int = 0
    uncounted: bool = False
    """Whether the ledger has forgotten some of its receipts: records, bytes and seconds are of the others."""
    idle: bool = False
    """Whether it ended well with nothing to copy, refuse or change, and wrote no group."""
    progress: RunProgress | None = None
    """How far it has come, if it is open."""
    cut_short: bool = False
    """Whether a budget of bytes or records left something to later runs. A kept plan may lack it."""
    silent: tuple[str, ...] = ()
    """The clusters that did not answer its copy, after its last receipt; when that was, the ledger does not show."""

    @property
    def seconds(self) -> float:
        """The time from its opening to its last receipt."""
        return max(0, self.ended_ms - self.started_ms) / 1000


Short = tuple[int, int]
"""Time in ms, and records of lag."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRow:
    """A source topic: sums over its partitions as `total_of` makes them."""

    topic: str
    target: str
    total: TotalLag
    paused: Pause | None
    lately: tuple[Short | None, ...] = ()
    """Its measured lag over time, in a list of topics; None for a time without measurement between two points."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """A cluster that did not answer: why, and since when."""

    cluster: str
    why: str
    since_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A word with its colour, and a sentence."""

    condition: Condition
    word: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Recurring:
    """What runs refused of a topic or partition for one reason: the newest sentence, and since when."""

    refusal: Refusal
    run: str
    """The newest run that refused it."""
    at_ms: int
    since_ms: int
    """When the oldest known of these runs was opened."""
    runs: int
    still: bool
    """Whether the newest run of all refused it."""


@dataclass(slots=True)
class Answer:
    """The last answer to a question; `got` is None as long as there is none. `error`: why a newer one did not come."""

    got: Any = None
    error: str = ""
    at_ms: int = 0
    """When `got` came; 0: none came yet."""
    failed_ms: int = 0
    """When the last try failed, with `error`; 0: it did not."""
    is_asked: bool = False
    """Whether a newer one is on its way."""
    asked_at: float = 0.0
    """When it was last asked for, by the monotonic clock."""

    @property
    def waiting(self) -> bool:
        """Whether there is nothing to show yet."""
        return not (self.at_ms or self.failed_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class Behind:
    """Partitions whose lag exceeds the recovery point, of `partitions`; the lag of `unknown` ones is not known."""

    count: int
    partitions: int
    unknown: int
    worst: PartitionLag | None
    """Of those whose lag is known."""
    paused: int = 0
    """How many are in topics that are paused on their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """The switch to a flow's target that promoted it last, as the ledger there shows it."""

    verb: Verb
    switch: str
    cluster: str
    """To which it moves clients."""
    since_ms: int
    """When it promoted that cluster."""
    end: SwitchOutcome | None
    """How the switch ended; None: it has not ended."""
    redirected: bool
    """Whether it sent clients there."""
    found: tuple[str, ...] | None = None
    """The switches in the opposite direction that it found when it began; None: their ledger could not be read."""

    @property
    def move(self) -> Move:
        """The move of clients, to be compared with one in the opposite direction."""
        return Move(switch=self.switch, found=self.found, at_ms=self.since_ms)


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """A flow as of its last poll, as far as each of its pages shows it. `number` changes with every poll; 0: none yet.

    `mark` identifies this state among all states that any reader has returned.
    """

    mark: str = ""
    number: int = 0
    looked_ms: int = 0
    """When the last poll was tried."""
    ledger_ms: int = 0
    """The time of the ledger's part; 0: it was never read."""
    lag_ms: int = 0
    """The time of the lag."""
    never_ran: bool = False
    """Whether the ledger has no run of the flow's own lane."""
    total: TotalLag | None = None
    behind: Behind | None = None
    """How far the lag is over the recovery point; None: it is within it, or there is no such limit."""
    topics: int = 0
    runs: tuple[RunDigest, ...] = ()
    """The newest first, as many as were asked for, without their figures by topic."""
    runs_read: int = 0
    """How many were read by now."""
    known_runs: int = 0
    """How many of the flow's own lane are in the ledger."""
    succeeded_ms: int | None = None
    """When the last run ended that copied all it had to copy."""
    other_lanes: int = 0
    """How many lanes there are in addition to the flow's own."""
    pause: Pause | None = None
    """The pause of the whole flow."""
    paused_topics: int = 0
    first_paused: Pause | None = None
    """The pause of the first topic by name, of those that are paused on their own."""
    paused_lag: TotalLag | None = None
    """The lag of topics that are paused on their own; None if there are none."""
    active_lag: TotalLag | None = None
    """The lag of the other topics, if there are such."""
    moved: Moved | None = None
    """The switch that last promoted the flow's target; None: no switch has."""
    troubles: tuple[Trouble, ...] = ()
    hindrances: tuple[Trouble, ...] = ()
    """What prevents a poll and is not an outage; not of a cluster."""

    @property
    def last_run(self) -> RunDigest | None:
        """The newest run."""
        return self.runs[0] if self.runs else None

    @property
    def lag(self) -> TotalLag | None:
        """The lag of what is to be copied: without topics that are paused on their own."""
        return self.total if self.active_lag is None else self.active_lag


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterStory:
    """A cluster of a flow as its brokers showed it at `asked_ms`; None and 0: they never have."""

    alias: str
    asked_ms: int = 0
    facts: ClusterFacts | None = None
    steering: Steering | None = None
    health: PartitionHealth | None = None
    """Of the partitions of the flow's topics; None: not known, see `not_known`."""
    not_known: str = ""
    """Why the health of the partitions is not known; a sentence."""
    why: str = ""
    """Why it did not answer the last question; empty: it did, or see `not_asked`."""
    not_asked: str = ""
    """Why the last question could not be asked: a secret, a login, an ACL. Whether the cluster answers is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClustersStory:
    """Both clusters of a flow."""

    source: ClusterStory
    target: ClusterStory


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicStory:
    """A topic; `row` is None if the source does not show it."""

    row: TopicRow | None
    parts: Cut[PartitionLag]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """A topic that the source did not show at a poll."""

    topic: str
    lag_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFigures:
    """A run's report in figures."""

    records: int
    bytes: int
    batches: int
    seconds: float
    uncounted: int
    """Slices whose receipts are forgotten."""
    slices: int
    units: int
    caught_up: int
    done: int
    refused: int
    unfinished: int
    left: int
    cut_short: bool = False
    """Whether a budget of bytes or records left something to later runs. A kept plan may lack it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remains:
    """The receipts that are left of a run whose plan was pruned from the ledger."""

    records: int
    bytes: int
    receipts: int
    units: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiptLine:
    """A receipt in a list, with the first of its segments; `segments` counts all."""

    receipt: Receipt
    segments: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitLine:
    """A receipt of a target partition of a repartitioned topic; `offsets` counts those of the source."""

    source_topic: str
    target: TopicPartition
    target_start: int | None
    target_next: int | None
    offsets: int
    records: int
    bytes: int
    digest: str
    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStory:
    """A run as in the ledger; `opened` and `state` are None if its record was pruned.

    `figures` is None if it has no sealed plan. `followed`: a newer run of its lane has begun, which fences it.
    """

    opened: OpenedRun | None
    state: PastState | None
    figures: RunFigures | None
    remains: Remains | None
    """Set if it was pruned, or if something is left of an earlier run under its name."""
    units: int
    """Receipts of repartitioned topics, of all of them."""
    receipts: Cut[ReceiptLine]
    dealt: Cut[UnitLine]
    refused: Cut[Line]
    others: Cut[Line]
    followed: bool = False
    progress: RunProgress | None = None
    """How far it has come, if it is open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceiptStory:
    """A receipt without its segments, and a page of these."""

    receipt: Receipt
    segments: Cut[Segment]


@dataclass(frozen=True, slots=True, kw_only=True)
class WhereLine:
    """Whether a record is in a target partition, and in which span there."""

    target: TopicPartition
    state: Dealt
    keyless: bool
    span: ChunkSpan | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DealtPage:
    """A page of the target partitions, and one of the chunks."""

    parts: Cut[DealtPart]
    chunks: Cut[ChunkSpan]
    where: tuple[WhereLine, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HolderLine:
    """A receipt with an offset in its range; `void` is why it is no longer valid for that, None if it is valid."""

    source: TopicPartition
    start: int
    end: int
    run: str
    at_ms: int
    segment: Segment | None
    void: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetStory:
    """The counterpart of an offset on the other side, as a word and a figure, and the receipts that show it."""

    source: TopicPartition
    target: TopicPartition
    word: str
    offset: int
    is_pruned: bool
    held: tuple[HolderLine, ...]
    read_all: bool = False
    """Whether it is the position after the last record, of a reader that has read all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneLine:
    """A summary of a lane, with the first of its topics and its progress."""

    name: str
    kind: LaneKind | None
    topics: tuple[str, ...]
    topics_in_all: int
    parts: int
    records: int
    windows: int
    uncounted: str
    outlook: str
    last: RunDigest | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartLine:
    """What a lane has copied of a partition: the first of its `ranges_in_all` ranges of source offsets."""

    source: TopicPartition
    target: TopicPartition
    ranges: tuple[Range, ...]
    ranges_in_all: int
    records: int
    pruned: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LanePage:
    """A lane with a page of its runs, newest first, and of what it has copied."""

    lane: LaneLine
    runs: tuple[RunDigest, ...]
    known_runs: int
    """How many runs of it are in the ledger."""
    copied: Cut[PartLine]


@dataclass(frozen=True, slots=True, kw_only=True)
class GapLine:
    """Offsets that a plan skips."""

    how: str
    source: TopicPartition
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeLine:
    """A topic that a plan changes."""

    kind: str
    topic: str
    partitions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceLine:
    """What a plan copies of a partition."""

    source: TopicPartition
    target: TopicPartition
    start: int
    end: int
    bytes_estimate: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DealLine:
    """What a plan writes to a target partition of a repartitioned topic."""

    target: TopicPartition
    source_topic: str
    offsets: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanStory:
    """A plan in figures, with the first of each kind of its parts."""

    offsets: int
    bytes: int
    caught_up: int
    refusals: Cut[Refusal]
    gaps: Cut[GapLine]
    changes: Cut[ChangeLine]
    drift: Cut[str]
    """Settings of topics that differ from the source and are left."""
    acls: Cut[str]
    """Access control lists that would be created or deleted."""
    not_copied: Cut[str]
    """What the source has that no run copies, such as quotas."""
    paused: Cut[str]
    notes: Cut[str]
    slices: Cut[SliceLine]
    units: Cut[DealLine]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobStory:
    """The state of a job of `who`; `refused`: it was not begun, because too many are running."""

    job: str = ""
    who: str = ""
    done: bool = False
    error: str = ""
    text: str = ""
    plan: PlanStory | None = None
    checks: tuple[Check, ...] = ()
    """The checks of readiness, in their order."""
    refused: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """The answer to an action that has nothing to show but that it is done."""
