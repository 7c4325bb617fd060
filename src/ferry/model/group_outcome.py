"""The outcome of consumer groups: what was written, and what was left and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from ferry.model.ages import AgeStats
from ferry.model.flow import TopicPartition


class Why(StrEnum):
    """Why an offset, or a whole group, was left unchanged on the target."""

    ACTIVE = "active"
    MOVED = "moved"
    BACK = "back"
    """Only in kept records of runs: Ferry's own offset would go back. It goes back now."""
    PENDING = "pending"
    NOT_COPIED = "not-copied"
    KIND = "kind"
    MERGED = "merged"
    """The group reads a topic whose copy several flows write: its offset shows nothing about the others' records."""
    DEALT = "dealt"
    """Only in kept records of runs: the group reads a repartitioned topic. Its offset is translated now."""
    DELETED = "deleted"
    CREATED = "created"
    """A restore would have to delete the offset, and Ferry deletes no offset."""
    FAILED = "failed"


WANTED = frozenset({Why.ACTIVE, Why.MOVED, Why.BACK, Why.PENDING, Why.CREATED, Why.FAILED})
"""The reasons that prevented an offset from being written; the others are normal."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """A group, or one target partition of it, that was left, and the sentence with the reason."""

    group: str
    place: TopicPartition | None
    why: Why
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupOutcome:
    """The outcome of the groups in a run.

    It has how many groups and offsets were written, how many offsets were right already, and what was left and why.
    `inexact` counts written offsets by how they were translated, where not exactly. Only the first of very many left
    entries are in `left`, and `more` is the number of the others. `unnamed` is the most groups that are only among
    those others and were to be written. `again` is the most records that the written groups read again in repartitioned
    topics, at the offsets that `inexact` counts as `again`. For others it is none, or not known.
    """

    groups: int
    offsets: int
    unchanged: int
    left: tuple[Left, ...]
    inexact: Mapping[str, int]
    more: int = 0
    unnamed: int = 0
    at_ms: int = 0
    again: int = 0
    latency: AgeStats | None = None
    """The time from the request for source offsets to the target's answer, over the groups that were written.

    None: no group was written.
    """

    @property
    def is_empty(self) -> bool:
        """Whether no group has an offset in what is copied: there is nothing to report."""
        return not (self.offsets or self.unchanged or self.left)

    @property
    def failed(self) -> tuple[Left, ...]:
        """Entries that were to be written and could not be."""
        return tuple(left for left in self.left if left.why is Why.FAILED)
