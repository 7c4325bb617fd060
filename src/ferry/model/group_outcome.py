"""What became of consumer groups: what was written, and what was left and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from ferry.model.ages import AgeStats
from ferry.model.flow import TopicPartition


class Why(StrEnum):
    """Why an offset, or a whole group, was left as it is on the target."""

    ACTIVE = "active"
    MOVED = "moved"
    BACK = "back"
    """Of runs by earlier versions: Ferry's own offset would go back. It goes back now."""
    PENDING = "pending"
    NOT_COPIED = "not-copied"
    KIND = "kind"
    MERGED = "merged"
    """Stands in a topic whose copy several flows write: its position is no statement about the others' records."""
    DEALT = "dealt"
    """Of runs by earlier versions: it stands in a topic that is dealt to other partitions. It is translated now."""
    DELETED = "deleted"
    CREATED = "created"
    """To be written back to nothing, and Ferry deletes no offset."""
    FAILED = "failed"


WANTED = frozenset({Why.ACTIVE, Why.MOVED, Why.BACK, Why.PENDING, Why.CREATED, Why.FAILED})
"""What stood against an offset that was to be written; the others are the way things are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """A group, or one target partition of it, that was left, and the sentence that says why."""

    group: str
    place: TopicPartition | None
    why: Why
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupOutcome:
    """What became of the groups in a run: how many groups and offsets were written, how many offsets were right
    already, what was left and why. `inexact` counts written offsets by how they were translated, where not exactly.
    Of very many left ones the first are named, and `more` is how many are not; `unnamed` is how many groups, at most,
    are among the latter alone and were to be written. `again` is how many records at most the
    written groups read again in topics that are dealt to other partitions, without those that nobody can count.
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
    """From asking the source for offsets to the target's answer, over the groups that were written; None: none was."""

    @property
    def is_empty(self) -> bool:
        """Whether no group has an offset in what is copied: there is nothing to tell."""
        return not (self.offsets or self.unchanged or self.left)

    @property
    def failed(self) -> tuple[Left, ...]:
        """Those that were to be written and could not be."""
        return tuple(left for left in self.left if left.why is Why.FAILED)
