"""Where the groups of a drill continue: their translated offsets, and whether the record there is the right one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ferry.features.groups.rules.offset_map import Ahead, Before, Translated
from ferry.model import TopicPartition
from ferry.model.evidence import GroupMoved, summed
from ferry.words import agreeing

Record = tuple[int, bytes | None, bytes | None, bytes]
"""A record that both sides must have: timestamp, key, value, and headers as they are on the wire."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPosition:
    """One group on one source partition. If `became` is None, nothing of the partition was copied."""

    group: str
    source: TopicPartition
    offset: int
    target: TopicPartition | None = None
    became: Translated | None = None
    unread: int | None = 0
    """How many offsets after `offset` the lane has skipped on purpose; None: not known."""
    copied_end: int = 0
    """The source offset at which the copy ends (exclusive)."""

    @property
    def is_committed(self) -> bool:
        """Whether an offset is written.

        None is written before the copy's window, because a group cannot continue there.
        """
        return self.became is not None and not isinstance(self.became, Before)

    @property
    def beyond(self) -> int:
        """How many source offsets the group had read that the copy does not have."""
        return max(0, self.offset - self.copied_end) if isinstance(self.became, Ahead) else 0


def moved(
    group: str,
    target_group: str,
    standings: list[GroupPosition],
    *,
    refused: str = "",
    same: Mapping[TopicPartition, bool] | None = None,
) -> GroupMoved:
    """Return what happened to a group.

    `same` has, for each partition that was read, whether the next record is the same.
    """
    committed = [] if refused else [one for one in standings if one.is_committed]
    before = sum(isinstance(one.became, Before) for one in standings)
    nothing = sum(one.became is None for one in standings)
    exact = None if same is None else sum(same.get(one.source, False) for one in committed)
    notes = [refused] if refused else []
    if before:
        them = agreeing(before, "of its partitions is", "of its partitions are")
        notes.append(f"{them} before the drill's window: begin earlier with --from")
    if nothing:
        has = "it has" if nothing == 1 else "they have"
        notes.append(f"nothing was copied of {nothing} of its partitions: {has} no records in the window")
    known = bool(committed) and exact == len(committed)
    unread = summed([one.unread for one in committed])
    return GroupMoved(
        group=group,
        target_group=target_group,
        partitions=len(standings),
        committed=len(committed),
        exact=exact,
        reread=0 if known else None,
        skipped=unread if known else None,
        beyond=sum(one.beyond for one in committed) if committed else None,
        note="; ".join(notes),
    )


def is_same(here: Record | None, here_offset: int, there: Record | None, copied_end: int) -> bool:
    """Return whether a reader at the target continues where one at the source does; offsets are the source's.

    If the target has no next record, the source's next record must be after the end of the copy.
    """
    if there is None:
        return here is None or here_offset >= copied_end
    return here == there
