"""The plan of a micro-run: what it will copy, change and refuse. Frozen once it is sealed in the ledger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from ferry.model.acl import AclChange
from ferry.model.flow import Flow, TopicPartition
from ferry.model.gap import Gap
from ferry.model.refusal import Refusal, RefusalKind
from ferry.model.unit import Era, Unit

PLAN_VERSION = 2
"""The newest that this Ferry reads: 2 has what the record path copies, which no earlier one must copy as bytes."""


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

    `partitions` are those that it has afterwards. A replication factor of -1 is the target's default, 0 says nothing:
    only a new topic is given one. `configs` are the settings to make; None resets one to the target's default, which
    only CONFIGURE does. `was` holds what is in force before, where CONFIGURE changes it.
    """

    kind: ChangeKind
    topic: str
    source_topic: str
    partitions: int
    replication_factor: int
    configs: tuple[tuple[str, str | None], ...] = ()
    was: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NotCopied:
    """Something of the source that Ferry leaves to the operator; `count` is None where the cluster does not tell."""

    what: str
    """A stable word: `client-quotas`, `scram-users`, `schema-ids`, `streams-state`."""
    count: int | None
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """Source offsets `[start, end)` of one topic-partition, bound for one target topic-partition by one slot.

    Both may lie inside a batch, whose records outside stay behind. `target_next` is the target offset behind the last
    receipt's data (-1: no receipt yet). The topic ids are as Kafka's tools print them; empty when the broker has none.
    """

    source: TopicPartition
    target: TopicPartition
    start: int
    end: int
    slot: int
    bytes_estimate: int
    first: bool
    source_topic_id: str = ""
    target_topic_id: str = ""
    target_next: int = -1
    log_start: int = 0
    merged: bool = False
    """Whether others write to the target topic, too: their records may lie between ours."""
    target_end: int = -1
    """Where the target partition ended when the plan was made; -1: not known."""
    since: int = -1
    """The run, by its generation, that last went back on this partition (ADR 18); -1: none did."""
    compacted: bool = False
    """Whether the source topic showed `compact` in its cleanup.policy when the plan was made."""
    read_epoch: int = -1
    """The leader epoch of what was last read of the source's log, which reaches `read_end` (KIP-101); -1: not known."""
    read_end: int = -1
    target_epoch: int = -1
    """A leader epoch of the target in which its log reached `target_next` (KIP-101); -1: not known."""
    transform: str = ""
    """The name of the transform by which its records are made; empty: they are copied as they are."""
    transform_digest: str = ""
    """Digest of that transform."""

    @property
    def told(self) -> str:
        """What a sentence calls it."""
        return str(self.source)

    @property
    def offsets(self) -> int:
        """Width in source offsets; an upper bound of the records."""
        return self.end - self.start


Piece = Slice | Unit
"""What a slot copies some of: slices, or units."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a run will do. The same facts give the same plan.

    `max_seconds` is how long an attempt at the run, all its slots together, may begin new chunks; 0 is no limit.
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
    """What policies passed over, or went back from, where a refusal would stand otherwise."""
    lifted: tuple[RefusalKind, ...] = ()
    """The same where there are no offsets to tell of, as of a topic that is gone: what each refusal would have been."""
    paused: tuple[str, ...] = ()
    source_cluster_id: str = ""
    target_cluster_id: str = ""
    max_seconds: int = 0
    caught_up: int = 0
    drift: tuple[TopicChange, ...] = ()
    """Changes of settings that are due and not made, for `sync.topic.configs.enabled` is off."""
    not_copied: tuple[NotCopied, ...] = ()
    """Looked up for a plan that is only shown."""
    acls: tuple[AclChange, ...] = ()
    """Changes to the target's ACLs: those that a run made when it was planned."""
    units: tuple[Unit, ...] = ()
    """What the record path deals to other partitions."""
    eras: tuple[Era, ...] = ()
    """By which rules `units` are dealt: one for each of their target topics, also where the file wants another one."""

    @property
    def version(self) -> int:
        """The format that it takes: the oldest that has all of it."""
        return PLAN_VERSION if self.row_slots or self.eras else 1

    @property
    def copies(self) -> tuple[tuple[str, str], ...]:
        """Source and target topics of all that is copied, ascending."""
        found = {(piece.source.topic, piece.target.topic) for piece in self.slices}
        return tuple(sorted(found | {(unit.source_topic, unit.target.topic) for unit in self.units}))

    def of_slot(self, slot: int) -> tuple[Slice, ...]:
        """The slices that one slot copies."""
        return tuple(piece for piece in self.slices if piece.slot == slot)

    @property
    def is_idle(self) -> bool:
        """Whether it looked at partitions, or was paused, and there is nothing to copy, to refuse or to change.

        A run that did something else, as an adoption, looked at none, and its notes say what it did.
        """
        done = (self.slices, self.units, self.refusals, self.changes, self.gaps, self.lifted, self.acls, self.eras)
        return not any(done) and bool(self.caught_up or self.paused or not self.notes)

    @property
    def looked(self) -> bool:
        """Whether its run looked at the source. One that skipped, adopted, or was opened by a switch did not."""
        return bool(self.slices or self.units or self.caught_up)

    @property
    def only_shown(self) -> bool:
        """Whether no run was opened for it (`ferry plan`): nothing of it is done."""
        return self.generation < 0

    @property
    def used_slots(self) -> tuple[int, ...]:
        """Slots that have something to copy, ascending."""
        return tuple(sorted({piece.slot for piece in self.slices} | {unit.slot for unit in self.units}))

    @property
    def row_slots(self) -> tuple[int, ...]:
        """Slots of the record path, ascending: all that they copy is transformed, and nothing of any other slot is."""
        slots = {piece.slot for piece in self.slices if piece.transform}
        return tuple(sorted(slots | {unit.slot for unit in self.units}))

    def units_of(self, slot: int) -> tuple[Unit, ...]:
        """The units that one slot copies, in the order in which it does."""
        return tuple(sorted((unit for unit in self.units if unit.slot == slot), key=lambda unit: unit.target))

    @property
    def unit_slots(self) -> tuple[int, ...]:
        """Slots that have units to copy, ascending; none of `used_slots` is among them."""
        return tuple(sorted({unit.slot for unit in self.units}))

    def without(self, refused: Mapping[str, Refusal]) -> Plan:
        """The plan without the slices and units of the source topics in `refused`, whose refusals join it."""
        return replace(
            self,
            slices=tuple(piece for piece in self.slices if piece.source.topic not in refused),
            units=tuple(unit for unit in self.units if unit.source_topic not in refused),
            eras=tuple(era for era in self.eras if era.source_topic not in refused),
            gaps=tuple(gap for gap in self.gaps if gap.source.topic not in refused),
            refusals=(*self.refusals, *(refusal for _, refusal in sorted(refused.items()))),
        )
