"""The translation of single offsets, and of all offsets of a group. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ferry.features.groups.rules.offset_map import Before, Translated
from ferry.features.groups.rules.repartition_map import GoesOn
from ferry.model import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Translation:
    """The translation of an offset; the outcome's offset is on the side that was not asked about."""

    source: TopicPartition
    target: TopicPartition
    outcome: Translated

    @property
    def pruned(self) -> int | None:
        """The offset up to which the ledger was pruned, if the offset that was asked about is before it."""
        return self.outcome.pruned if isinstance(self.outcome, Before) else None


class AtOffset(NamedTuple):
    """An offset of a group that has no translation."""

    place: TopicPartition
    offset: int


class Troubled(NamedTuple):
    """An offset of a group that leads nowhere, and a sentence that says why."""

    place: TopicPartition
    offset: int
    why: str


class GoesOnIn(NamedTuple):
    """Where a group continues in one target partition of a repartitioned source topic."""

    topic: str
    place: TopicPartition
    at: GoesOn


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupTranslation:
    """The translations of all offsets of a group, each with the offset that was asked about.

    The lane has copied nothing of `uncopied`, though the flow takes those topics; the flow does not take `foreign`.
    """

    group: str
    found: tuple[tuple[int, Translation], ...]
    uncopied: tuple[AtOffset, ...]
    foreign: tuple[AtOffset, ...]
    troubled: tuple[Troubled, ...] = ()
    dealt: tuple[GoesOnIn, ...] = ()
    """For repartitioned source topics: where in each target partition the group would continue without missing a
    record."""
