"""Consumer groups on the operator's page: its question about them, and the answer. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from ferry.features.groups.rules.table import GroupHead, GroupOffset, GroupRow, GroupTable, NotShown
from ferry.model import TopicPartition
from ferry.page.cut import Cut
from ferry.page.question import Question

MOST_GROUPS = 2000
"""Consumer groups that are read, the first by name."""
LIST_OF_GROUPS = 20
"""Groups of a page."""
SHOWN_ROWS = 40
"""Partitions of a group in the list of groups; the group's own page has all."""
SHOWN_LACKING = 6
"""How many clusters and groups that could not be read are named."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stands:
    """The offset of a group in a partition, and its lag."""

    offset: int | None
    lag: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupLine:
    """One partition of a group; `outcome` is how its offset is translated, None if the partition is not copied."""

    place: TopicPartition
    at_source: Stands | None
    outcome: str | None
    translated: Stands | None
    at_target: Stands | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupStory:
    """A group with the first of its `partitions`."""

    group: str
    source: GroupHead | None
    target: GroupHead | None
    rows: tuple[GroupLine, ...]
    partitions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupsStory:
    """A page of the groups; `of_group` is a page of the partitions of the group that was asked for."""

    groups: Cut[GroupStory]
    of_group: Cut[GroupLine] | None
    lacking: tuple[NotShown, ...]
    more: bool
    """Whether there are more groups than were read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OfGroups(Question[GroupsStory]):
    """A page of the consumer groups; `group`: that one alone, with a page of its `partitions`."""

    page: int = 1
    q: str = ""
    group: str = ""
    partitions: int = 1


def group_line(row: GroupRow) -> GroupLine:
    """Return one partition of a group as a line."""
    place = row.source or row.target
    assert place is not None
    return GroupLine(
        place=place,
        at_source=_stands(row.at_source),
        outcome=row.outcome.word if row.outcome else None,
        translated=_stands(row.translated),
        at_target=_stands(row.at_target),
    )


def _stands(one: GroupOffset | None) -> Stands | None:
    return Stands(offset=one.offset, lag=one.lag) if one else None


def group_story(table: GroupTable) -> GroupStory:
    """Return a group for the list of all."""
    return GroupStory(
        group=table.group,
        source=table.source,
        target=table.target,
        rows=tuple(group_line(row) for row in table.rows[:SHOWN_ROWS]),
        partitions=len(table.rows),
    )
