"""A compacted topic must be read to its end again and again: else a deleted key may remain on the target."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.config.flow.guards import GuardPolicy, Guards, OnGuard
from ferry.ledger.ledger import fold
from ferry.model import Plan, RefusalKind
from ferry.plan.rules.facts import Facts, Seen
from ferry.plan.rules.planning import decide_plan
from ferry.plan.rules.tombstones import read_on, seen_records, seen_to_end
from tests.golden import Golden
from tests.pure.decide.test_guards import SOUND, source
from tests.pure.decide.values import LANE, RULES, facts_with, lying, part, place, topic
from tests.said import facts_in, of_code

RETENTION = 1_000
COMPACTED = {"cleanup.policy": "compact,delete", "delete.retention.ms": str(RETENTION)}
ORDERS = topic("orders", part(), configs=COMPACTED)
READ = Seen(whole_ms=5_000, asked_ms=5_500, asked_end=60)  # the lane stands at 40


def facts(now_ms: int, seen: Seen | None = READ, end: int = 100) -> Facts:
    there = replace(ORDERS, partitions={0: part(end=end)})
    return facts_with(source(there), now_ms=now_ms, lane={"seen": {} if seen is None else {place("orders"): seen}})


def planned(given_facts: Facts, policy: OnGuard = OnGuard.FAIL) -> Plan:
    rules = replace(RULES, guards=Guards(tombstones_passed=GuardPolicy(default=policy)))
    return decide_plan(rules, given_facts, "run-2", 9)


@pytest.mark.parametrize(
    ("found", "refused"),
    [
        (facts(6_000), False),
        (facts(6_001), True),
        (facts(99_999, end=40), False),  # nothing new, so nothing was missed
        (facts(6_400, replace(READ, asked_end=40)), False),  # it had all that was there at 5,500
        (facts(6_501, replace(READ, asked_end=40)), True),
        (facts(99_999, None), False),  # nothing is known
        (
            facts_with(facts(99_999), source={"topics": {**SOUND.source.topics, "orders": topic("orders", part())}}),
            False,
        ),  # not compacted
    ],
)
def test_a_lane_that_did_not_come_to_the_end_for_too_long_is_refused(found: Facts, refused: bool) -> None:
    plan = planned(found)
    assert [refusal.kind for refusal in plan.refusals] == [RefusalKind.TOMBSTONES_PASSED] * refused
    assert "users" in {piece.source.topic for piece in plan.slices}


def test_the_sentence_says_what_keeps_it_from_coming_back_before_the_ways_on(golden: Golden) -> None:
    """Where runs come too seldom, either way on leads to the same refusal again."""
    (refusal,) = planned(facts(9_000)).refusals
    remedy = refusal.message.partition("may remain on the target: ")[2]
    golden(remedy)


def test_it_goes_on_where_the_guard_says_so_and_the_time_begins_anew(golden: Golden) -> None:
    found = facts(9_000)
    plan = planned(found, OnGuard.SKIP)
    (gap,) = plan.gaps
    assert (gap.why, gap.start, gap.end) == (RefusalKind.TOMBSTONES_PASSED, 40, 40)
    golden(gap.reason)
    ids = {"orders": "id-orders"}
    view = fold(lying(*seen_records(RULES, found, plan)), 99)
    assert seen_to_end(view, LANE, ids) == {place("orders"): Seen(whole_ms=9_000, asked_ms=9_000, asked_end=100)}
    assert seen_to_end(view, LANE, {"orders": "id-new"}) == {}, "of another topic under the name nothing is known"


def test_a_refused_partition_keeps_its_time_and_a_young_record_is_not_written_again() -> None:
    found = facts(9_000)
    assert seen_records(RULES, found, planned(found)) == []
    young = facts(5_550, replace(READ, asked_end=40))
    assert seen_records(RULES, young, planned(young)) == []
    old = facts(5_700, replace(READ, asked_end=40))
    (record,) = seen_records(RULES, old, planned(old))
    assert seen_to_end(fold(lying(record), 99), LANE, {"orders": "id-orders"}) == {
        place("orders"): Seen(whole_ms=5_500, asked_ms=5_700, asked_end=100)
    }
    assert seen_records(replace(RULES, only=frozenset({"users"})), old, planned(old)) == []


@given(st.lists(st.tuples(st.integers(1, 50), st.integers(0, 30), st.integers(0, 40)), max_size=20))
def test_the_lane_always_has_all_that_was_there_at_the_time_that_is_kept(steps: list[tuple[int, int, int]]) -> None:
    """Each step: time passes, the source grows, and the lane copies some of what there is."""
    seen, now, end, stands = None, 0, 0, 0
    ends = []
    for passes, grows, copies in steps:
        now, end = now + passes, end + grows
        ends.append((now, end))
        seen = read_on(seen, stands, end, now)
        if seen.whole_ms > ends[0][0]:  # before that the lane had nothing that could have been deleted
            assert stands >= max(size for at, size in ends if at <= seen.whole_ms)
        stands = min(end, stands + copies)


@pytest.mark.parametrize(
    ("seconds", "records", "seen", "noted"),
    [
        (1, None, False, False),  # the run ends within delete.retention.ms, at the partition's end
        (2, None, False, True),
        (1, 10, False, True),
        (2, 10, True, False),  # no first copy any more
    ],
)
def test_a_first_copy_that_may_take_too_long_is_noted_before(
    seconds: int, records: int | None, seen: bool, noted: bool
) -> None:
    rules = replace(RULES, max_seconds=seconds, max_records=records, only=frozenset({"orders"}))
    given_facts = (
        facts(5_000)
        if seen
        else facts_with(facts(5_000, None), lane={"receipts": {}, "positions": {}, "first_run": True})
    )
    notes = decide_plan(rules, given_facts, "run-1", 3).notes
    said = of_code("held.first-copy", notes)
    assert bool(said) is noted, notes
    assert all(facts_in(note) == {"topics": "orders", "shortest": "orders", "shortest_ms": 1000} for note in said)
