"""Where the groups of a drill continue: their translated offsets, and whether the record there is the right one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ferry.features.groups.rules.offset_map import Ahead, Approximate, Before, Exact, Translated
from ferry.features.groups.rules.repartition_map import DealtMap
from ferry.features.groups.rules.translated import dealt_checkpoints
from ferry.model import Checkpoint, Found, Offsets, TopicPartition
from ferry.model.evidence import GroupMoved, summed
from ferry.words import agreeing

Record = tuple[int, bytes | None, bytes | None, bytes]
"""A record that both sides must have: timestamp, key, value, and headers as they are on the wire."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPosition:
    """One group on one source partition. If `became` is None, nothing of the partition was copied.

    With `why`, a sentence, its offset cannot be translated. `is_window`: the copy is of a window alone, as in a drill's
    own lane. In a repartitioned topic (`dealt`), it is one target partition: `offset` is the sum of what the group has
    read, and `source` has the target partition's number.
    """

    group: str
    source: TopicPartition
    offset: int
    target: TopicPartition | None = None
    became: Translated | None = None
    unread: int | None = 0
    """How many offsets after `offset` the lane has skipped on purpose; None: not known."""
    copied_end: int = 0
    """The source offset at which the copy ends (exclusive)."""
    why: str = ""
    is_window: bool = True
    dealt: bool = False

    @property
    def is_committed(self) -> bool:
        """Whether an offset is written.

        None is written before the copy's window, because a group cannot continue there.
        """
        return self.became is not None and not self.is_before

    @property
    def is_before(self) -> bool:
        """Whether it is before the copy's window."""
        return self.is_window and isinstance(self.became, Before)

    @property
    def beyond(self) -> int | None:
        """How many source offsets the group had read that the copy does not have; None: not known."""
        if not isinstance(self.became, Ahead):
            return 0
        return None if self.dealt else max(0, self.offset - self.copied_end)


def dealt_positions(group: str, topic: str, read: Offsets, led: DealtMap, unread: int | None) -> list[GroupPosition]:
    """Return where a group continues in a repartitioned topic of the live lane.

    `unread` is how many offsets after `read` the lane has skipped on purpose.
    """
    found, against = dealt_checkpoints(group, topic, read, led)
    positions = [
        GroupPosition(
            group=group,
            source=one.source,
            offset=one.source_offset,
            target=one.target,
            became=_became(one),
            unread=0 if number else unread,
            is_window=False,
            dealt=True,
        )
        for number, one in enumerate(found)
    ]
    positions += [
        GroupPosition(
            group=group,
            source=TopicPartition(topic, place.partition),
            offset=sum(read),
            target=place,
            why=why,
            is_window=False,
            dealt=True,
        )
        for place, why in sorted(against.items())
    ]
    return positions


def _became(one: Checkpoint) -> Translated:
    if one.outcome is Found.EXACT:
        return Exact(offset=one.target_offset)
    if one.outcome is Found.AHEAD:
        return Ahead(offset=one.target_offset)
    return Approximate(offset=one.target_offset)  # it misses nothing, and reads some records again


def moved(
    group: str,
    target_group: str,
    standings: list[GroupPosition],
    *,
    refused: str = "",
    same: Mapping[TopicPartition, bool] | None = None,
) -> GroupMoved:
    """Return what happened to a group. It is moved as a whole, so one offset that cannot be translated is a refusal.

    `same` has, for each partition that was read, whether the next record is the same. It is not known of a group with
    offsets in a repartitioned topic, where no single record is next.
    """
    troubles = {one.why for one in standings if one.why}
    committed = [] if refused or troubles else [one for one in standings if one.is_committed]
    before = sum(one.is_before for one in standings)
    nothing = [one for one in standings if one.became is None and not one.why]
    if any(one.dealt for one in committed):
        same = None
    exact = None if same is None else sum(same.get(one.source, False) for one in committed)
    notes = sorted(troubles | ({refused} if refused else set()))
    if before:
        them = agreeing(before, "of its partitions is", "of its partitions are")
        notes.append(f"{them} before the drill's window: begin earlier with --from")
    if nothing:
        has = "it has" if len(nothing) == 1 else "they have"
        window = f": {has} no records in the window" if nothing[0].is_window else ""
        notes.append(f"nothing was copied of {len(nothing)} of its partitions{window}")
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
        beyond=summed([one.beyond for one in committed]) if committed else None,
        note="; ".join(notes),
    )


def is_same(here: Record | None, here_offset: int, there: Record | None, copied_end: int) -> bool:
    """Return whether a reader at the target continues where one at the source does; offsets are the source's.

    If the target has no next record, the source's next record must be after the end of the copy.
    """
    if there is None:
        return here is None or here_offset >= copied_end
    return here == there
