"""The usual table of a consumer group (offset, log size, lag, owner), for both sides of a flow. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from ferry.features.groups.rules.offset_map import Translated
from ferry.model import NO_STATE, CommittedOffset, DescribedGroup, GroupKind, ListedGroup, Member, TopicPartition

Translate: TypeAlias = Callable[[TopicPartition, int], tuple[TopicPartition, Translated] | None]
"""Returns where an offset of a source partition is on the target; None where nothing of the partition is copied."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupsOfSide:
    """What one cluster returns of the groups that are asked about.

    Only groups that have offsets or members are in those fields.
    """

    listed: Mapping[str, ListedGroup] = field(default_factory=dict)
    described: Mapping[str, DescribedGroup] = field(default_factory=dict)
    offsets: Mapping[str, Mapping[TopicPartition, CommittedOffset]] = field(default_factory=dict)
    ends: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Log sizes: high watermarks. Partitions that are deleted or have no leader are not in it."""
    failed: frozenset[str] = frozenset()
    """Groups that are not listed, and of which it is not known whether they have offsets."""

    @property
    def groups(self) -> frozenset[str]:
        """The names of all groups that are listed or have offsets."""
        return frozenset(self.listed.keys() | self.offsets.keys())


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupHead:
    """A group on one cluster. `members` is None if the cluster was not asked, or did not answer."""

    kind: GroupKind
    state: str
    members: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupOffset:
    """The position of a group on a partition: the next offset that it reads.

    `offset` is None if a member has the partition and has committed nothing yet; `log_size` is None if it is not known.
    """

    offset: int | None
    log_size: int | None
    owner: Member | None = None

    @property
    def lag(self) -> int | None:
        """Return the offsets between the group and the log's end; negative if the group is after the end.

        None: not known.
        """
        return None if self.log_size is None or self.offset is None else self.log_size - self.offset


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRow:
    """One partition of a group: its position at the source, the same translated, and its position on the target.

    `source` is None for a partition of the target alone, `target` where nothing of the source partition is copied.
    """

    source: TopicPartition | None
    target: TopicPartition | None
    at_source: GroupOffset | None = None
    outcome: Translated | None = None
    translated: GroupOffset | None = None
    at_target: GroupOffset | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupTable:
    """One group. A head is None where that cluster does not have the group, or could not be asked."""

    group: str
    source: GroupHead | None
    target: GroupHead | None
    rows: tuple[GroupRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class NotShown:
    """What the tables lack, and why: a cluster, one of its groups (`group`), or a part of that."""

    cluster: str
    group: str | None
    why: str


def group_tables(
    groups: Iterable[str], source: GroupsOfSide, target: GroupsOfSide, translate: Translate
) -> Iterator[GroupTable]:
    """Make the tables of groups, one by one, each in the order of its partitions."""
    for group in groups:
        yield GroupTable(
            group=group,
            source=_head(group, source),
            target=_head(group, target),
            rows=tuple(_rows(group, source, target, translate)),
        )


def _head(group: str, side: GroupsOfSide) -> GroupHead | None:
    listed, described = side.listed.get(group), side.described.get(group)
    if listed is None:
        return None
    if described is None:
        without = not listed.is_active and listed.state != NO_STATE
        return GroupHead(kind=listed.kind, state=listed.state, members=0 if without else None)
    known = described.kind not in (GroupKind.SHARE, GroupKind.STREAMS)
    return GroupHead(kind=described.kind, state=described.state, members=len(described.members) if known else None)


def _rows(group: str, source: GroupsOfSide, target: GroupsOfSide, translate: Translate) -> Iterator[GroupRow]:
    here, there = _standings(group, source), _standings(group, target)
    for place in sorted(here):
        at_source = here[place]
        found = None if at_source.offset is None else translate(place, at_source.offset)
        if found is None:
            yield GroupRow(source=place, target=None, at_source=at_source)
            continue
        copy, outcome = found
        yield GroupRow(
            source=place,
            target=copy,
            at_source=at_source,
            outcome=outcome,
            translated=GroupOffset(offset=outcome.offset, log_size=target.ends.get(copy)),
            at_target=there.pop(copy, None),
        )
    for place in sorted(there):
        yield GroupRow(source=None, target=place, at_target=there[place])


def _standings(group: str, side: GroupsOfSide) -> dict[TopicPartition, GroupOffset]:
    described = side.described.get(group)
    owners = {} if described is None else described.owners
    offsets = {place: committed.offset for place, committed in side.offsets.get(group, {}).items()}
    return {
        place: GroupOffset(offset=offsets.get(place), log_size=side.ends.get(place), owner=owners.get(place))
        for place in offsets.keys() | owners.keys()
    }


def narrowed(side: GroupsOfSide, topics: Collection[str]) -> GroupsOfSide:
    """Return the groups with their offsets and members on these topics alone."""
    return replace(
        side,
        offsets={
            group: {place: one for place, one in places.items() if place.topic in topics}
            for group, places in side.offsets.items()
        },
        described={
            name: replace(
                group,
                members=tuple(
                    replace(member, owns=tuple(place for place in member.owns if place.topic in topics))
                    for member in group.members
                ),
            )
            for name, group in side.described.items()
        },
    )


def places_of(side: GroupsOfSide) -> set[TopicPartition]:
    """Return all partitions on which a group has an offset, or that a member reads."""
    return {place for places in side.offsets.values() for place in places} | {
        place for group in side.described.values() for place in group.owners
    }
