"""Slow transforms: when they are told, and which are given up."""

from __future__ import annotations

from dataclasses import replace

from ferry.decide.records.pace import Pace, Share, Tasks, edge_tasks

SMALL = Share(transform="small", tasks=range(1, 4), timeout_s=0)
SLOW = Share(transform="slow", tasks=range(4, 6), timeout_s=600)


def at(small: float, slow: float, done: frozenset[int] = frozenset()) -> Tasks:
    return Tasks(running={0: 1e6, 2: small / 2, 3: small, 4: slow}, done=done)


def test_a_slow_transform_is_told_after_a_minute_and_each_time_that_it_has_doubled() -> None:
    pace = Pace([SMALL, SLOW])
    assert pace.slow(at(59, 10)) == []
    (told,) = pace.slow(at(61, 10, frozenset((0, 1))))
    assert told == (
        "ferry.transform.small is slow: 1 of 3 tasks are done, and one is at work for 61 s; nothing of it is written "
        "before all are done, and ferry.transform.small.timeout.ms would end it"
    )
    assert pace.slow(at(121, 10)) == []
    (one, other) = pace.slow(at(122, 300))
    assert "small is slow" in one
    assert other.startswith("ferry.transform.slow is slow: 0 of 2 tasks are done, and one is at work for 300 s; ")
    assert other.endswith("it is ended after 600 s")


def test_only_what_has_a_limit_is_given_up() -> None:
    pace = Pace([SMALL, SLOW])
    assert pace.given_up(at(1e6, 599)) == {}
    (sentence,) = pace.given_up(at(1e6, 600)).values()
    assert sentence == (
        "ferry.transform.slow takes too long: a task was at work for 600 s and was ended, and nothing of it is "
        "written; make it faster, copy less at a time (ferry.run.max.records), or raise ferry.transform.slow.timeout.ms"
    )
    assert Pace([SLOW]).given_up(Tasks(running={}, done=frozenset((4, 5)))) == {}


def test_of_a_comparison_it_is_said_that_nothing_is_compared() -> None:
    held = replace(SLOW, done="compared")
    (told,) = Pace([held]).slow(at(1, 61))
    assert "nothing of it is compared before all are done" in told
    (sentence,) = Pace([held]).given_up(at(1, 601)).values()
    assert sentence.endswith("nothing of it is compared; make it faster, or raise ferry.transform.slow.timeout.ms")


def test_the_stage_that_is_watched_has_another_number_of_tasks_than_the_one_behind_it() -> None:
    pairs = [(others, behind) for others in range(9) for behind in range(1, 9)]
    assert [(others, behind) for others, behind in pairs if others + edge_tasks(others, behind) == behind] == []
    assert {edge_tasks(others, behind) for others, behind in pairs if others + 1 != behind} == {1}
