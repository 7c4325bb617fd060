"""What is said of the groups of a run."""

from __future__ import annotations

from dataclasses import replace

from ferry.decide.groups.sentences import group_sentences
from ferry.model import Found, GroupOutcome, Left, Why

NOTHING = GroupOutcome(groups=0, offsets=0, unchanged=0, left=(), inexact={})


def left(group: str, why: Why) -> Left:
    return Left(group=group, place=None, why=why, message=f"group {group} is so")


def test_each_group_that_was_left_has_a_line_and_the_sum_comes_last() -> None:
    found = GroupOutcome(
        groups=2,
        offsets=7,
        unchanged=3,
        left=(left("a", Why.FAILED), left("b", Why.ACTIVE), left("b", Why.MOVED), left("c", Why.DELETED)),
        inexact={"ahead": 2, "before": 1},
        more=9,
    )
    assert group_sentences(found) == [
        "group failed: group a is so",
        "group left: group b is so",
        "group left: group b is so",
        "group deleted at the source: group c is so",
        "and 9 more of the groups were left or failed",
        (
            "groups: 2 written with 7 offsets (2 at the copied end, as their groups are ahead of it; 1 at the first "
            "copied record, as their groups stand before it), 3 offsets right already, 3 left or failed"
        ),
    ]
    assert [one.group for one in found.failed] == ["a"]


def test_every_way_of_translating_inexactly_has_words() -> None:
    ways = {found.value: 1 for found in Found if found is not Found.EXACT}
    (line,) = group_sentences(replace(NOTHING, inexact=ways))
    assert line.count("; ") == len(ways) - 1
    assert "at the target's log start" in line


def test_where_there_are_no_groups_there_is_nothing_to_tell() -> None:
    assert NOTHING.is_empty
    assert group_sentences(NOTHING) == ["groups: 0 written with 0 offsets, 0 offsets right already, 0 left or failed"]
