"""Slow transforms: when they are told, and which are given up."""

from __future__ import annotations

from dataclasses import replace

from ferry.features.records.rules.pace import Pace, Tasks, TransformTasks, edge_tasks
from tests.golden import Golden

SMALL = TransformTasks(transform="small", tasks=range(1, 4), timeout_s=0)
SLOW = TransformTasks(transform="slow", tasks=range(4, 6), timeout_s=600, stream=1)


def at(small: float, slow: float, done: frozenset[int] = frozenset()) -> Tasks:
    return Tasks(running={0: 1e6, 2: small / 2, 3: small, 4: slow}, done=done)


def test_a_slow_transform_is_told_after_a_minute_and_each_time_that_it_has_doubled(golden: Golden) -> None:
    pace = Pace([SMALL, SLOW])
    assert pace.slow(at(59, 10)) == []
    (told,) = pace.slow(at(61, 10, frozenset((0, 1))))
    golden(told, "first")
    assert pace.slow(at(121, 10)) == []
    (one, other) = pace.slow(at(122, 300))
    assert "small is slow" in one
    golden(other, "later")


def test_only_what_has_a_limit_is_given_up(golden: Golden) -> None:
    pace = Pace([SMALL, SLOW])
    assert pace.given_up(at(1e6, 599)) == {}
    found = pace.given_up(at(1e6, 600))
    assert list(found) == [SLOW.stream]
    golden(found[SLOW.stream])
    assert Pace([SLOW]).given_up(Tasks(running={}, done=frozenset((4, 5)))) == {}


def test_a_task_with_several_reads_may_take_as_many_times_as_long(golden: Golden) -> None:
    """So a throttle, with which fewer tasks have the same reads, refuses no transform that was fast enough before."""
    pace = Pace([replace(SLOW, reads=3), replace(SMALL, reads=2)])
    assert pace.slow(at(119, 179)) == []
    slow, small = pace.slow(at(121, 181))
    golden(slow, "slow")
    assert "small is slow" in small
    assert pace.given_up(at(1e6, 1799)) == {}
    assert list(pace.given_up(at(1e6, 1800))) == [SLOW.stream]


def test_units_of_an_old_rule_and_slices_of_the_new_one_are_apart_by_their_stream() -> None:
    units = replace(SLOW, tasks=range(1, 4), stream=0)
    assert list(Pace([units, SLOW]).given_up(at(1, 601))) == [SLOW.stream]
    assert len(Pace([units, SLOW]).slow(at(61, 61))) == 2


def test_of_a_comparison_it_is_said_that_nothing_is_compared(golden: Golden) -> None:
    held = replace(SLOW, done="compared")
    (told,) = Pace([held]).slow(at(1, 61))
    golden(told, "slow")
    (sentence,) = Pace([held]).given_up(at(1, 601)).values()
    golden(sentence, "too slow")


def test_the_stage_that_is_watched_has_another_number_of_tasks_than_the_one_behind_it() -> None:
    pairs = [(others, behind) for others in range(9) for behind in range(1, 9)]
    assert [(others, behind) for others, behind in pairs if others + edge_tasks(others, behind) == behind] == []
    assert {edge_tasks(others, behind) for others, behind in pairs if others + 1 != behind} == {1}
