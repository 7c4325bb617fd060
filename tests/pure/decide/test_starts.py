"""Where a lane began is recorded once, and a changed configuration moves nothing afterwards."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.config.flow.guards import GuardPolicy, Guards, OnGuard
from ferry.config.flow.start import Start, StartEarliest, StartLatest, StartOffsets, StartTime
from ferry.errors import Refused
from ferry.ledger.ledger import fold
from ferry.model import Pause, RefusalKind
from ferry.plan.rules.facts import SourceTopic
from ferry.plan.rules.planning import decide_plan
from ferry.plan.rules.skipping import SkipRequest, skip_gap
from ferry.plan.rules.starts import (
    NOT_KNOWN,
    LaneStarts,
    due_starts,
    first_run,
    later_start_records,
    recorded_starts,
    start_records,
    starts_at_time,
    unasked_starts,
)
from tests.golden import Golden
from tests.pure.decide.values import FACTS, LANE, RECEIPT, RULES, facts_with, lying, part, place, topic
from tests.said import data_of

STARTED = facts_with(
    FACTS,
    source={
        "topics": {"orders": topic("orders", part(start=60), part(start=0)), "users": topic("users", part(start=0))}
    },
    lane={"first_run": True},
)


def test_a_lane_that_never_had_a_plan_is_at_its_first_run() -> None:
    view = fold(lying(*start_records("drill", STARTED)), 9)
    assert first_run(view, LANE)
    assert not first_run(view, "drill")


def test_a_first_run_without_any_topic_is_one_too() -> None:
    assert not first_run(fold(lying(*start_records(LANE, FACTS)), 9), LANE)


def test_starts_come_back_also_those_at_the_beginning() -> None:
    view = fold(lying(*start_records(LANE, STARTED)), 9)
    orders = {place("orders", 0): 60, place("orders", 1): 0}
    passed = {place("orders", 0): (0, 60)}
    assert recorded_starts(view, LANE) == LaneStarts(offsets={**orders, place("users"): 0}, passed=passed)
    assert recorded_starts(view, "drill") == LaneStarts()
    windowed = fold(lying(*start_records(LANE, STARTED, windowed=True)), 9)
    assert recorded_starts(windowed, LANE) == LaneStarts(offsets=orders, passed=passed)


def test_what_was_there_at_the_first_look_and_goes_before_it_is_copied_is_a_loss(golden: Golden) -> None:
    """Whatever kept it from being copied: here the topic is paused. What went before that look was never ours."""
    first = facts_with(
        FACTS, source={"topics": {"orders": topic("orders", part(log_start=7))}}, lane={"first_run": True}
    )
    paused = facts_with(
        first, lane={"pauses": {"orders": Pause(topic="orders", who="ann", why="", since_ms=1, until_ms=0)}}
    )
    assert decide_plan(RULES, paused, "run", 1).slices == ()
    view = fold(lying(*start_records(LANE, paused)), 9)
    later = facts_with(first, lane={"first_run": False, "starts": recorded_starts(view, LANE).offsets})
    (piece,) = decide_plan(RULES, later, "run", 2).slices
    assert piece.start == 7
    gone = facts_with(later, source={"topics": {"orders": topic("orders", part(log_start=9))}})
    (refusal,) = decide_plan(RULES, gone, "run", 2).refusals
    assert refusal.kind is RefusalKind.RETENTION_PASSED
    golden(refusal.message)
    plan = decide_plan(
        replace(RULES, guards=Guards(retention_passed=GuardPolicy(default=OnGuard.SKIP))), gone, "run", 2
    )
    assert [(gap.start, gap.end) for gap in plan.gaps] == [(7, 9)]
    assert [piece.start for piece in plan.slices] == [9]
    gap = skip_gap(RULES, gone, SkipRequest(source=place("orders"), to=9, who="ann", reason="known"), "skip", 3)
    assert (gap.start, gap.end) == (7, 9), "or somebody passes it by hand"
    passed = decide_plan(RULES, facts_with(gone, lane={"skips": {place("orders"): (gap,)}}), "run", 4)
    assert (passed.refusals, [piece.start for piece in passed.slices]) == ((), [9])


def test_a_skip_that_is_refused_has_the_code_of_the_refusal() -> None:
    facts = facts_with(FACTS, source={"topics": {"orders": topic("orders", part(), leaderless=(1,))}})
    wish = SkipRequest(source=place("orders", 1), to=9, who="ann", reason="known")
    with pytest.raises(Refused) as caught:
        skip_gap(RULES, facts, wish, "skip", 3)
    assert data_of(caught.value) == ("source.no-leader", {"topic": "orders", "partition": 1, "source": "orders-1"})


def test_partitions_that_come_later_are_recorded_by_the_first_plan_that_sees_them() -> None:
    view = fold(lying(*start_records(LANE, STARTED)), 9)
    begun = recorded_starts(view, LANE)
    grown = topic("users", part(), part(log_start=3))
    now = facts_with(
        FACTS,
        source={"topics": {"orders": STARTED.source.topics["orders"], "users": grown}},
        lane={"starts": begun.offsets},
    )
    records = later_start_records(view, LANE, now)
    assert [json.loads(record.value or b"")["offsets"] for record in records] == [[[0, 0], [1, 3]]]
    assert later_start_records(view, LANE, now, windowed=True) == []
    begun = recorded_starts(fold(lying(*records), 9), LANE)
    known = facts_with(now, lane={"starts": {**now.lane.starts, **begun.offsets}})
    assert later_start_records(view, LANE, known) == [], "once"
    copied = replace(RECEIPT, source=place("users", 1), target=place("a.users", 1))
    assert later_start_records(view, LANE, facts_with(now, lane={"receipts": {copied.target: copied}})) == []


@given(st.integers(0, 100), st.integers(0, 100))
def test_the_second_run_begins_where_the_first_would_have(start: int, configured_later: int) -> None:
    def facts(at: int) -> dict[str, SourceTopic]:
        return {"orders": topic("orders", part(end=101, start=at))}

    first = facts_with(FACTS, source={"topics": facts(start)}, lane={"first_run": True})
    view = fold(lying(*start_records(LANE, first)), 9)
    second = facts_with(
        FACTS,
        source={"topics": facts(configured_later)},
        lane={"first_run": first_run(view, LANE), "starts": recorded_starts(view, LANE).offsets},
    )
    (one,), (two,) = (decide_plan(RULES, each, "run", 1).slices for each in (first, second))
    assert one.start == two.start == start


AWAY, ALSO_AWAY = place("orders", 1), place("orders", 2)


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        (StartEarliest(), LaneStarts()),
        (StartLatest(), LaneStarts(pending={AWAY: 900, ALSO_AWAY: 900})),
        (StartTime(timestamp_ms=7), LaneStarts(pending={AWAY: 7, ALSO_AWAY: 7})),
        (StartOffsets(offsets={AWAY: 60, place("users"): 5}), LaneStarts(offsets={AWAY: 60})),
    ],
    ids=["earliest", "latest", "time", "offsets"],
)
def test_partitions_that_cannot_be_asked_at_the_first_run_keep_the_configured_start(
    start: Start, expected: LaneStarts
) -> None:
    assert unasked_starts(start, [AWAY, ALSO_AWAY], 900) == expected


def test_pending_starts_lie_beside_the_offsets_and_are_settled_one_by_one() -> None:
    offsets = {place("orders", 0): 60, place("users"): 0}
    pending = {AWAY: 900, ALSO_AWAY: 900}
    first = facts_with(
        FACTS,
        source={
            "topics": {"orders": topic("orders", part(start=60), leaderless=(1, 2)), "users": topic("users", part())}
        },
        lane={"first_run": True, "pending": pending},
    )
    records = start_records(LANE, first)
    assert json.loads(records[0].value or b"") == {
        "v": 1,
        "offsets": [[0, 60]],
        "passed": [[0, 0, 60]],
        "pending": [[1, 900], [2, 900]],
        "topic_id": "id-orders",
    }
    view = fold(lying(*records), 9)
    begun = recorded_starts(view, LANE)
    passed = {place("orders", 0): (0, 60)}
    assert begun == LaneStarts(offsets=offsets, pending=pending, passed=passed)

    later = facts_with(FACTS, lane={"starts": begun.offsets, "pending": begun.pending})
    assert later_start_records(view, LANE, later) == []
    begun = begun.settled({AWAY: 70})
    later = facts_with(FACTS, lane={"starts": begun.offsets, "pending": begun.pending})
    settled = later_start_records(view, LANE, later)
    view = fold(lying(*records, *settled), 9)
    assert recorded_starts(view, LANE) == LaneStarts(
        offsets={**offsets, AWAY: 70}, pending={ALSO_AWAY: 900}, passed={**passed, AWAY: (NOT_KNOWN, 70)}
    )
    assert later_start_records(view, LANE, later) == [], "what is settled is written once"


def test_a_given_offset_of_a_partition_without_leader_is_recorded_at_once() -> None:
    sources = {"orders": topic("orders", part(), leaderless=(1,))}
    records = start_records(
        LANE, facts_with(FACTS, source={"topics": sources}, lane={"first_run": True, "starts": {AWAY: 60}})
    )
    assert recorded_starts(fold(lying(*records), 9), LANE) == LaneStarts(
        offsets={place("orders"): 0, AWAY: 60}, passed={AWAY: (NOT_KNOWN, 60)}
    )


def test_what_was_recorded_of_a_topic_that_was_created_again_does_not_count() -> None:
    sources = {"orders": topic("orders", part(start=60), leaderless=(1,)), "users": topic("users", part(start=7))}
    records = start_records(
        LANE, facts_with(FACTS, source={"topics": sources}, lane={"first_run": True, "pending": {AWAY: 900}})
    )
    view = fold(lying(*records), 9)
    users = LaneStarts(offsets={place("users"): 7}, passed={place("users"): (0, 7)})
    assert recorded_starts(view, LANE, {"orders": "id-new", "users": "id-users"}) == users
    passed = {place("orders"): (0, 60), place("users"): (0, 7)}
    both = LaneStarts(offsets={place("orders"): 60, place("users"): 7}, pending={AWAY: 900}, passed=passed)
    for ids in ({"orders": "id-orders"}, {"orders": ""}, {}):  # brokers without topic ids tell none
        assert recorded_starts(view, LANE, ids) == both


def test_due_are_pending_partitions_that_are_served_and_have_no_receipt() -> None:
    pending = {AWAY: 900, ALSO_AWAY: 900, place("orders", 3): 900}
    assert due_starts(pending, served={AWAY, ALSO_AWAY, place("orders")}, copied={ALSO_AWAY}) == {AWAY: 900}


def test_a_time_behind_the_last_record_is_the_end_as_it_is_now() -> None:
    first, ends = place("orders", 3), dict.fromkeys([AWAY, ALSO_AWAY, place("orders", 3)], 100)
    assert starts_at_time({AWAY: 12, ALSO_AWAY: -1, first: 0}, ends) == {AWAY: 12, ALSO_AWAY: 100, first: 0}
