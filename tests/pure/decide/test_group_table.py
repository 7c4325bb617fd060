"""The table of a group: both sides and the translation of one partition beside each other, whatever is missing."""

from __future__ import annotations

from ferry.features.groups.rules.offset_map import Ahead, Exact, Translated
from ferry.features.groups.rules.table import (
    GroupHead,
    GroupOffset,
    GroupRow,
    GroupsOfSide,
    group_tables,
    narrowed,
    places_of,
)
from ferry.model import NO_STATE, CommittedOffset, DescribedGroup, GroupKind, ListedGroup, Member, TopicPartition
from tests.pure.decide.values import place

HERE, THERE, FOREIGN = place("orders"), place("a.orders"), place("local", 3)
READER = Member(member_id="m-1", client_id="app", host="/10.0.0.5", owns=(HERE,))


def listed(name: str, state: str = "Empty", kind: GroupKind = GroupKind.CLASSIC) -> ListedGroup:
    return ListedGroup(name=name, kind=kind, state=state, protocol_type="consumer")


def side(*groups: ListedGroup, **offsets: dict[TopicPartition, int]) -> GroupsOfSide:
    """A cluster with these groups and offsets; the log of each of the three partitions has 100."""
    return GroupsOfSide(
        listed={group.name: group for group in groups},
        described={
            group.name: DescribedGroup(name=group.name, kind=group.kind, state=group.state, members=(READER,))
            for group in groups
            if group.is_active
        },
        offsets={
            group: {at: CommittedOffset(offset=offset) for at, offset in ones.items()}
            for group, ones in offsets.items()
        },
        ends={HERE: 100, THERE: 100, FOREIGN: 100},
    )


def one_less(at: TopicPartition, offset: int) -> tuple[TopicPartition, Translated] | None:
    """A flow that has copied `orders` up to 60, all but the first record."""
    if at != HERE:
        return None
    return THERE, Ahead(offset=59) if offset > 60 else Exact(offset=offset - 1)


def test_source_translation_and_target_are_in_one_row() -> None:
    source = side(listed("app", "Stable"), app={HERE: 40})
    target = side(listed("app"), app={THERE: 30, FOREIGN: 100})
    (table,) = group_tables(["app"], source, target, one_less)
    assert table.source == GroupHead(kind=GroupKind.CLASSIC, state="Stable", members=1)
    assert table.target == GroupHead(kind=GroupKind.CLASSIC, state="Empty", members=0)
    assert table.rows == (
        GroupRow(
            source=HERE,
            target=THERE,
            at_source=GroupOffset(offset=40, log_size=100, owner=READER),
            outcome=Exact(offset=39),
            translated=GroupOffset(offset=39, log_size=100),
            at_target=GroupOffset(offset=30, log_size=100),
        ),
        GroupRow(source=None, target=FOREIGN, at_target=GroupOffset(offset=100, log_size=100)),
    )
    row = table.rows[0]
    assert row.at_source is not None
    assert row.translated is not None
    assert (row.at_source.lag, row.translated.lag) == (60, 61)


def test_what_is_not_copied_has_no_translation() -> None:
    (table,) = group_tables(["app"], side(listed("app"), app={FOREIGN: 7}), side(), one_less)
    assert table.target is None
    assert table.rows == (GroupRow(source=FOREIGN, target=None, at_source=GroupOffset(offset=7, log_size=100)),)


def test_a_group_that_is_ahead_of_the_copy_says_so() -> None:
    (table,) = group_tables(["app"], side(listed("app"), app={HERE: 90}), side(), one_less)
    assert (table.rows[0].outcome, table.rows[0].at_target) == (Ahead(offset=59), None)


def test_a_side_that_is_down_leaves_the_other() -> None:
    (table,) = group_tables(["app"], side(), side(listed("app"), app={THERE: 30}), one_less)
    assert table.rows == (GroupRow(source=None, target=THERE, at_target=GroupOffset(offset=30, log_size=100)),)
    (table,) = group_tables(["app"], side(listed("app"), app={HERE: 30}), GroupsOfSide(), lambda *_: None)
    assert [row.source for row in table.rows] == [HERE]


def test_a_deleted_topic_has_neither_size_nor_lag() -> None:
    gone = place("gone")
    (table,) = group_tables(["app"], side(listed("app"), app={gone: 5}), side(), one_less)
    standing = table.rows[0].at_source
    assert standing is not None
    assert (standing.log_size, standing.lag) == (None, None)


def test_groups_without_offsets_and_groups_that_are_nowhere_are_tables_too() -> None:
    share = listed("sharing", "Stable", GroupKind.SHARE)
    tables = {
        one.group: one
        for one in group_tables(["dead", "idle", "sharing"], side(listed("idle"), share), side(), one_less)
    }
    assert (tables["dead"].source, tables["dead"].target, tables["dead"].rows) == (None, None, ())
    assert (tables["idle"].source, tables["idle"].rows) == (
        GroupHead(kind=GroupKind.CLASSIC, state="Empty", members=0),
        (),
    )
    assert tables["sharing"].source == GroupHead(kind=GroupKind.SHARE, state="Stable", members=None)


def test_members_are_not_known_of_a_group_without_a_state_that_could_not_be_described() -> None:
    """Brokers before 2.6 list no state."""
    (table,) = group_tables(["app"], side(listed("app", NO_STATE)), side(), one_less)
    assert table.source == GroupHead(kind=GroupKind.CLASSIC, state=NO_STATE, members=None)


def test_a_member_that_has_committed_nothing_yet_is_shown_with_its_partition() -> None:
    (table,) = group_tables(["app"], side(listed("app", "Stable"), app={FOREIGN: 7}), side(), one_less)
    assert table.rows[1] == GroupRow(
        source=HERE, target=None, at_source=GroupOffset(offset=None, log_size=100, owner=READER)
    )


def test_topics_narrow_offsets_and_members() -> None:
    found = side(listed("app", "Stable"), app={HERE: 1, FOREIGN: 2}, other={FOREIGN: 3})
    assert places_of(found) == {HERE, FOREIGN}
    assert narrowed(found, {"orders"}).offsets == {"app": {HERE: CommittedOffset(offset=1)}, "other": {}}
    assert places_of(narrowed(found, {"local"})) == {FOREIGN}
