"""Where a lane began is recorded once, and a changed configuration moves nothing afterwards."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from ferry.decide.ledger import fold
from ferry.decide.planning import decide_plan
from ferry.decide.starts import first_run, recorded_starts, start_records
from tests.decide.values import FACTS, LANE, RULES, lying, part, place, topic

STARTED = replace(
    FACTS,
    first_run=True,
    sources={"orders": topic("orders", part(start=60), part(start=0)), "users": topic("users", part(start=0))},
)


def test_a_lane_that_never_had_a_plan_is_at_its_first_run() -> None:
    view = fold(lying(*start_records("drill", STARTED)), 9)
    assert first_run(view, LANE)
    assert not first_run(view, "drill")


def test_a_first_run_without_any_topic_is_one_too() -> None:
    assert not first_run(fold(lying(*start_records(LANE, FACTS)), 9), LANE)


def test_starts_come_back_for_topics_that_do_not_begin_at_their_beginning() -> None:
    view = fold(lying(*start_records(LANE, STARTED)), 9)
    assert recorded_starts(view, LANE) == {place("orders", 0): 60, place("orders", 1): 0}
    assert recorded_starts(view, "drill") == {}


@given(st.integers(0, 100), st.integers(0, 100))
def test_the_second_run_begins_where_the_first_would_have(start: int, configured_later: int) -> None:
    def facts(at: int) -> dict[str, object]:
        return {"orders": topic("orders", part(end=101, start=at))}

    first = replace(FACTS, first_run=True, sources=facts(start))
    view = fold(lying(*start_records(LANE, first)), 9)
    second = replace(
        FACTS, first_run=first_run(view, LANE), starts=recorded_starts(view, LANE), sources=facts(configured_later)
    )
    (one,), (two,) = (decide_plan(RULES, each, "run", 1).slices for each in (first, second))
    assert one.start == two.start == start
