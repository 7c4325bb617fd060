"""The plan of a micro-run: what it will copy, change and refuse. Frozen once it is sealed in the ledger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from ferry.model.acl import AclChange
from ferry.model.era import Era
from ferry.model.flow import Flow, TopicPartition
from ferry.model.gap import Gap
from ferry.model.reads import Epochs, Offsets, Reads
from ferry.model.refusal import Refusal, RefusalKind
from ferry.registry import IDENTICAL

PLAN_VERSION = 6
"""The newest format that this Ferry reads.

Format 2 has slices of the record path, which no earlier Ferry may copy as bytes. Format 3 has slices that keep the
source's offsets, which no earlier Ferry may copy in transactions. Format 4 has those whose sequence numbers are not
their offsets any more, or will not be, because markers pass holes of the source. Format 5 has those whose copies still
begin with empty records, which no earlier Ferry would delete.
"""


class ChangeKind(StrEnum):
    """What is done to a topic of the target."""

    CREATE = "create"
    GROW = "grow"
    """More partitions; never fewer."""
    CONFIGURE = "configure"
    """Set or reset settings of the topic."""
    DELETE = "delete"
    """The source topic was deleted, and the flow was asked to follow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicChange:
    """A change to a topic of the target that must come before the copy.

    `partitions` are those that it has afterwards. A replication factor of -1 is the target's default; 0 means none,
    because only a new topic gets one. `configs` are the settings to make; None resets one to the target's default,
    which only CONFIGURE does. `was` holds what is in force before, where CONFIGURE changes it.
    """

    kind: ChangeKind
    topic: str
    source_topic: str
    partitions: int
    replication_factor: int
    configs: tuple[tuple[str, str | None], ...] = ()
    was: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsupported:
    """Something of the source that Ferry leaves to the operator.

    `count` is None where the cluster does not report it.
    """

    what: str
    """A stable word: `client-quotas`, `scram-users`, `schema-ids`, `streams-state`."""
    count: int | None
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """What a run copies into one target partition by one slot: source offsets `[start, end)`.

    Both may be inside a batch, whose records outside the range are not copied. `target_next` is the target offset after
    the last receipt's data (None: no receipt yet). The topic ids have the form of Kafka's tools; empty when the broker
    has none.

    A slice is repartitioned (`dealt`) when its topic gets other partitions: records of all source partitions go into
    its target partition by their keys. Then `reads` has the offsets of each source partition, and `start` and `end` are
    its sums. `source` has the topic, and as number the slice's own number in the topic. That is the target partition's,
    counted through all target topics when there are several.
    """

    source: TopicPartition
    target: TopicPartition
    start: int
    end: int
    slot: int
    bytes_estimate: int = 0
    first: bool = False
    source_topic_id: str = ""
    target_topic_id: str = ""
    target_next: int | None = None
    log_start: int = 0
    merged: bool = False
    """Whether other flows write to the target topic, too: their records may be between ours."""
    target_end: int | None = None
    """Where the target partition ended when the plan was made; None: not known."""
    since: int = -1
    """The run, by its generation, that last went back on this partition (ADR 18); -1: none did.

    For a repartitioned slice, the run that began the repartitioning rule.
    """
    compacted: bool = False
    """Whether the source topic showed `compact` in its cleanup.policy when the plan was made."""
    read_epoch: int | None = None
    """The leader epoch of what was last read of the source's log, which reaches `read_end` (KIP-101).

    None: not known.
    """
    read_end: int | None = None
    target_epoch: int | None = None
    """A leader epoch of the target in which its log reached `target_next` (KIP-101); None: not known."""
    transform: str = ""
    """The name of the transform that makes its records; empty: they are copied unchanged, or repartitioned."""
    transform_digest: str = ""
    """Digest of that transform, or of the one that repartitions."""
    reads: Reads | None = None
    """The offsets of each source partition that a repartitioned slice reads; None: it reads `source` alone."""
    partitions: int = 0
    """The number of partitions of the target topic that records are repartitioned to; 0: they are not."""
    producer: int | None = None
    """The producer id under which records are written at the offsets that they have at the source.

    None: they get the target's next offsets.
    """
    max_age_ms: int | None = None
    """With `producer`: how old, in ms, a batch may be by its largest timestamp, so that its state outlives it."""
    late_ms: int | None = None
    """With `producer`: how late, in ms, a marker may arrive that passes a hole of the source; None: none is written."""
    marked_ms: int | None = None
    """With `producer`: until when earlier runs may have sent markers to the target partition, by wall clocks, in ms.

    0: all of them were answered. None: there were none, so each record's sequence number is its offset.
    """
    empty_until: int | None = None
    """With `producer`, and a receipt: up to where the target may still have empty records, to be deleted; None: not."""
    continued_at: int | None = None
    """With `producer`: before this offset, source and target have the same records of other producers; None: none.

    A switch had moved clients to the target, and they are back. `target_next` is not before it.
    """

    @property
    def name(self) -> str:
        """The name of the slice in sentences."""
        return f"{self.target}, repartitioned from topic {self.source.topic}," if self.dealt else str(self.source)

    @property
    def feature(self) -> str:
        """The feature whose port copies it as bytes (`Feature.port` in `ferry.registry`); empty: the kernel's does."""
        return IDENTICAL if self.producer is not None else ""

    @property
    def dealt(self) -> bool:
        """Whether it has records of all partitions of the source topic."""
        return self.reads is not None

    @property
    def offsets(self) -> int:
        """Width in source offsets.

        It is an upper bound of the records; a repartitioned slice leaves most of them to other slices.
        """
        return self.end - self.start

    @property
    def starts(self) -> Offsets:
        """The first offset in each source partition that it reads."""
        return (self.start,) if self.reads is None else self.reads.starts

    @property
    def ends(self) -> Offsets:
        """The end offset in each source partition that it reads."""
        return (self.end,) if self.reads is None else self.reads.ends

    @property
    def epochs(self) -> Epochs:
        """Leader epochs of what was last read of these partitions (KIP-101); None, or shorter: not known."""
        return (self.read_epoch,) if self.reads is None else self.reads.epochs

    @property
    def spans(self) -> tuple[tuple[TopicPartition, int, int], ...]:
        """The source partitions that it reads, each with its `[start, end)`."""
        if self.reads is None:
            return ((self.source, self.start, self.end),)
        return self.reads.spans(self.source.topic)

    @property
    def marks(self) -> tuple[tuple[TopicPartition, int | None, int | None], ...]:
        """What was last read of these logs (KIP-101).

        Each has a leader epoch, and the offset that was reached in it; None: not known.
        """
        if self.reads is None:
            return ((self.source, self.read_epoch, self.read_end),)
        pairs = enumerate(zip(self.reads.epochs, self.reads.starts))  # noqa: B905 - epochs may be shorter
        return tuple((TopicPartition(self.source.topic, number), epoch, end) for number, (epoch, end) in pairs)

    def reading(self, reads: Reads) -> Slice:
        """Return a repartitioned slice with other offsets."""
        return replace(self, reads=reads, start=reads.start, end=reads.end)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a run will do. The same facts give the same plan.

    `max_seconds` is how long an attempt at the run, all its slots together, may begin new chunks; 0 means no limit.
    `caught_up` counts the partitions that may be copied and have nothing to copy now.
    """

    flow: Flow
    lane: str
    run: str
    generation: int
    slots: int
    slices: tuple[Slice, ...]
    changes: tuple[TopicChange, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    notes: tuple[str, ...] = ()
    gaps: tuple[Gap, ...] = ()
    """What policies skipped, or went back from, in place of a refusal."""
    lifted: tuple[RefusalKind, ...] = ()
    """Refusals that were lifted without offsets, as for a topic that is gone: their kinds."""
    paused: tuple[str, ...] = ()
    """Source topics of which nothing is copied, because they, or the flow, are paused."""
    flow_paused: bool = False
    """Whether the whole flow is paused: its run moves no group, either. A kept plan may lack it."""
    source_cluster_id: str = ""
    target_cluster_id: str = ""
    max_seconds: int = 0
    caught_up: int = 0
    cut_short: bool = False
    """Whether a budget left something that could be copied to a later run. A kept plan may lack it."""
    drift: tuple[TopicChange, ...] = ()
    """Changes of settings that are due and not made, because `sync.topic.configs.enabled` is off."""
    not_copied: tuple[Unsupported, ...] = ()
    """Found only for a plan that is shown and not run."""
    acls: tuple[AclChange, ...] = ()
    """Changes to the target's ACLs: those that a run made when it was planned."""
    eras: tuple[Era, ...] = ()
    """The rules by which slices are repartitioned: one for each target topic, also where the file wants another one."""

    @property
    def version(self) -> int:
        """The format that the plan needs: the oldest that can hold all of it."""
        if any(piece.continued_at is not None for piece in self.slices):
            return PLAN_VERSION
        if any(piece.empty_until is not None for piece in self.slices):
            return 5
        if any(piece.late_ms is not None or piece.marked_ms is not None for piece in self.slices):
            return 4
        if any(piece.producer is not None for piece in self.slices):
            return 3
        return 2 if self.row_slots or self.eras else 1

    @property
    def copies(self) -> tuple[tuple[str, str], ...]:
        """Source and target topics of all that is copied, ascending."""
        return tuple(sorted({(piece.source.topic, piece.target.topic) for piece in self.slices}))

    @property
    def kept(self) -> tuple[Slice, ...]:
        """The slices whose records keep the number of their partition."""
        return tuple(piece for piece in self.slices if piece.reads is None)

    @property
    def dealt(self) -> tuple[Slice, ...]:
        """The slices of repartitioned topics."""
        return tuple(piece for piece in self.slices if piece.reads is not None)

    def of_slot(self, slot: int) -> tuple[Slice, ...]:
        """Return the slices that one slot copies, in its order: repartitioned ones last, by their targets."""
        units = (piece for piece in self.dealt if piece.slot == slot)
        kept = (piece for piece in self.kept if piece.slot == slot)
        return (*kept, *sorted(units, key=lambda piece: piece.target))

    @property
    def held_back(self) -> tuple[str, ...]:
        """What is paused, in words: the whole flow, or some topics."""
        return ("the whole flow",) if self.flow_paused else self.paused

    @property
    def is_idle(self) -> bool:
        """Whether its run read partitions, or was paused, and there is nothing to copy, to refuse or to change.

        A run with another purpose, such as an adoption, read none, and its notes show what it did.
        """
        done = (self.slices, self.refusals, self.changes, self.gaps, self.lifted, self.acls, self.eras)
        return not any(done) and bool(self.caught_up or self.held_back or not self.notes)

    @property
    def looked(self) -> bool:
        """Whether its run read the source. One that skipped, adopted, or was opened by a switch did not."""
        return bool(self.slices or self.caught_up)

    @property
    def only_shown(self) -> bool:
        """Whether no run was opened for it (`ferry plan`): nothing of it is done."""
        return self.generation < 0

    @property
    def used_slots(self) -> tuple[int, ...]:
        """Slots that have something to copy, ascending."""
        return tuple(sorted({piece.slot for piece in self.slices}))

    @property
    def row_slots(self) -> tuple[int, ...]:
        """Slots of the record path, ascending: all that they copy is transformed, and nothing of any other slot is."""
        return tuple(sorted({piece.slot for piece in self.slices if piece.transform or piece.dealt}))

    def without(self, refused: Mapping[str, Refusal]) -> Plan:
        """Return the plan without the slices of the source topics in `refused`, whose refusals are added."""
        return replace(
            self,
            slices=tuple(piece for piece in self.slices if piece.source.topic not in refused),
            eras=tuple(era for era in self.eras if era.source_topic not in refused),
            gaps=tuple(gap for gap in self.gaps if gap.source.topic not in refused),
            refusals=(*self.refusals, *(refusal for _, refusal in sorted(refused.items()))),
        )
