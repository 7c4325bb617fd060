"""What is said of the groups of a run."""

from __future__ import annotations

from dataclasses import replace

from ferry.features.groups.rules.sentences import group_sentences
from ferry.model import Found, GroupOutcome, Left, Why
from tests.golden import Golden

NOTHING = GroupOutcome(groups=0, offsets=0, unchanged=0, left=(), inexact={})


def left(group: str, why: Why) -> Left:
    return Left(group=group, place=None, why=why, message=f"group {group} is so")


def test_each_group_that_was_left_has_a_line_and_the_sum_comes_last(golden: Golden) -> None:
    found = GroupOutcome(
        groups=2,
        offsets=7,
        unchanged=3,
        left=(left("a", Why.FAILED), left("b", Why.ACTIVE), left("b", Why.MOVED), left("c", Why.DELETED)),
        inexact={"ahead": 2, "before": 1},
        more=9,
    )
    golden("\n".join(group_sentences(found)))
    assert [one.group for one in found.failed] == ["a"]


def test_every_way_of_translating_inexactly_has_words(golden: Golden) -> None:
    ways = {found.value: 1 for found in Found if found is not Found.EXACT}
    (line,) = group_sentences(replace(NOTHING, inexact=ways))
    assert line.count("; ") == len(ways) - 1
    golden(line)


def test_where_there_are_no_groups_there_is_nothing_to_tell(golden: Golden) -> None:
    assert NOTHING.is_empty
    golden("\n".join(group_sentences(NOTHING)))


def test_what_is_read_again_is_of_the_offsets_for_which_it_is_counted(golden: Golden) -> None:
    """For the groups that are before the copy it is not known, so that "at most" is not for the sum."""
    (line,) = group_sentences(replace(NOTHING, groups=2, offsets=3, inexact={"again": 2, "before": 1}, again=5))
    assert "5 records at most again; " in line
    golden(line)
