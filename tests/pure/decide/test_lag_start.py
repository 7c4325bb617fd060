"""A run begins for a lag that a run can mend, once, and not while one is at it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.config.flow.lag_start import LagStart
from ferry.plan.rules.lag import PartitionLag
from ferry.plan.rules.lag_start import PATIENCE_MS, Call, LaneState, call_for_run
from tests.pure.decide.values import place

START = LagStart(records=10, seconds=60)


def lag(
    number: int, records: int | None, seconds: float | None, *, position: int = 0, topic: str = "t"
) -> PartitionLag:
    return PartitionLag(
        source=place(topic, number),
        target=place(f"a.{topic}", number),
        position=position,
        source_end=records,
        records=records,
        bytes=records,
        seconds=seconds,
    )


def called(
    *lags: PartitionLag, standing: LaneState | None = None, last: Call | None = None, now_ms: int = 0
) -> Call | None:
    return call_for_run(START, lags, LaneState() if standing is None else standing, last, now_ms)


@pytest.mark.parametrize(
    ("lags", "calls"),
    [
        ([lag(0, 9, 59)], False),
        ([lag(0, 5, 1), lag(1, 5, 1)], True),
        ([lag(0, 1, 60)], True),
        ([lag(0, 0, 0), lag(1, None, None)], False),
        ([lag(0, 3, None)], False),
        ([], False),
    ],
    ids=["below both", "records of all partitions", "age of one", "not known", "age not known", "nothing"],
)
def test_either_limit_calls_for_a_run(lags: list[PartitionLag], calls: bool) -> None:
    assert (called(*lags) is not None) is calls


def test_only_the_limit_that_is_set_counts() -> None:
    far = [lag(0, 1_000_000, 1_000_000)]
    assert call_for_run(LagStart(records=2_000_000), far, LaneState(), None, 0) is None
    assert call_for_run(LagStart(seconds=2_000_000), far, LaneState(), None, 0) is None
    assert not LagStart()


def test_what_is_paused_calls_for_nothing() -> None:
    assert called(lag(0, 99, 99), standing=LaneState(paused=frozenset({""}))) is None
    assert called(lag(0, 99, 99), standing=LaneState(paused=frozenset({"t"}))) is None
    assert called(lag(0, 99, 99, topic="u"), standing=LaneState(paused=frozenset({"t"})))


def test_no_run_is_called_while_one_is_under_way() -> None:
    assert called(lag(0, 99, 99), standing=LaneState(generation=5, under_way=True)) is None
    assert called(lag(0, 99, 99), standing=LaneState(generation=5))


def test_a_call_is_not_repeated_before_a_run_has_heard_it() -> None:
    first = called(lag(0, 99, 99), standing=LaneState(generation=5))
    assert first is not None
    assert called(lag(0, 200, 99), standing=LaneState(generation=5), last=first, now_ms=60_000) is None
    assert called(lag(0, 200, 99), standing=LaneState(generation=5), last=first, now_ms=PATIENCE_MS)


def test_what_a_run_left_where_it_was_calls_for_no_other_before_the_time_is_over() -> None:
    """A partition that is refused would else begin run after run."""
    first = called(lag(0, 99, 99, position=7), lag(1, 50, 9, position=0), standing=LaneState(generation=5))
    assert first is not None
    after = LaneState(generation=6)
    stuck = lag(0, 120, 130, position=7)
    assert called(stuck, lag(1, 2, 1, position=50), standing=after, last=first, now_ms=60_000) is None
    second = called(stuck, lag(1, 20, 1, position=50), standing=after, last=first, now_ms=60_000)
    assert second is not None, "the other partition goes on, and is behind again"
    assert second.total.records == 20
    assert called(stuck, standing=LaneState(generation=7), last=second, now_ms=120_000) is None, "still not forgotten"
    assert called(stuck, standing=LaneState(generation=7), last=second, now_ms=60_000 + PATIENCE_MS)
    moved = lag(0, 120, 130, position=8)
    assert called(moved, standing=LaneState(generation=7), last=second, now_ms=120_000)


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 20)), max_size=30), st.integers(1, 20))
def test_whatever_comes_a_flow_whose_runs_copy_all_is_called_as_often_as_its_limit_is_reached(
    arrivals: list[tuple[int, int]], limit: int
) -> None:
    """Each look sees what came since the last run; each call is heard before the next look."""
    position, end, generation, last = 0, 0, 0, None
    for number, (came, _) in enumerate(arrivals):
        end += came
        behind = end - position
        found = call_for_run(
            LagStart(records=limit),
            [lag(0, behind, 1.0 if behind else 0.0, position=position)],
            LaneState(generation=generation),
            last,
            number * 60_000,
        )
        assert (found is not None) is (behind >= limit)
        if found is not None:
            last, position, generation = found, end, generation + 1
