"""A plan follows from its facts: the same facts, the same plan."""

import math
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.config.flow.guards import GuardPolicy, Guards, OnGuard
from ferry.errors import BadInput, Refused
from ferry.model import Gap, Pause, Plan, Receipt, RefusalKind, Resolution, TopicPartition
from ferry.plan.rules.facts import Facts, SourcePartition
from ferry.plan.rules.planning import decide_plan, without_foreign
from ferry.plan.rules.planning_rules import Rules, Transform
from ferry.plan.rules.progress import UNKNOWN_RECORD_BYTES
from tests.golden import Golden
from tests.pure.decide.values import FACTS, RECEIPT, RULES, facts_with, part, place, target, topic


def planned(facts: Facts, rules: Rules = RULES) -> Plan:
    return decide_plan(rules, facts, "run", 7)


@st.composite
def parts(draw: st.DrawFn) -> SourcePartition:
    log_start = draw(st.integers(0, 50))
    end = draw(st.integers(log_start, log_start + 200))
    return part(
        log_start=log_start,
        end=end,
        size_bytes=draw(st.none() | st.integers(0, 10**6)),
        start=draw(st.integers(log_start, end)),
    )


@st.composite
def situations(draw: st.DrawFn) -> Facts:
    """Some topics, some of their partitions copied up to somewhere; nothing wrong."""
    names = draw(st.lists(st.sampled_from(["orders", "users", "events"]), unique=True))
    sources = {name: topic(name, *draw(st.lists(parts(), min_size=1, max_size=4))) for name in names}
    receipts = {}
    for name, there in sources.items():
        for number, each in there.partitions.items():
            if draw(st.booleans()):
                last = replace(
                    RECEIPT,
                    source=place(name, number),
                    target=place(f"a.{name}", number),
                    end=draw(st.integers(each.log_start, each.end)),
                    target_next=5,
                    source_topic_id=there.topic_id,
                    target_topic_id=f"id-a.{name}",
                )
                receipts[last.target] = last
    return facts_with(
        FACTS,
        source={"topics": sources},
        target={
            "topics": {
                f"a.{name}": target(f"a.{name}", *(6 for _ in there.partitions)) for name, there in sources.items()
            }
        },
        lane={"receipts": receipts, "first_run": not receipts and draw(st.booleans())},
    )


budgets = st.none() | st.integers(1, 2000)
rules_ = st.builds(
    lambda tasks, size, records: replace(RULES, max_tasks=tasks, max_bytes=size, max_records=records),
    st.integers(1, 5),
    budgets,
    budgets,
)


@given(situations(), rules_)
def test_the_same_facts_give_the_same_plan(facts: Facts, rules: Rules) -> None:
    backwards = facts_with(facts, source={"topics": dict(reversed(list(facts.source.topics.items())))})
    assert planned(facts, rules) == planned(facts, rules) == planned(backwards, rules)


@given(situations(), rules_)
def test_a_slice_lies_in_the_log_behind_what_was_copied(facts: Facts, rules: Rules) -> None:
    for piece in planned(facts, rules).slices:
        there = facts.source.topics[piece.source.topic].partitions[piece.source.partition]
        assert there.log_start <= piece.start < piece.end <= there.end
        last = facts.lane.receipts.get(piece.target)
        assert piece.first is (last is None)
        if last is not None:
            assert (piece.start, piece.target_next) == (last.end, last.target_next)


@given(situations(), rules_)
def test_each_target_partition_is_in_one_slice_and_each_slice_in_one_slot(facts: Facts, rules: Rules) -> None:
    plan = planned(facts, rules)
    assert max(Counter(piece.target for piece in plan.slices).values(), default=1) == 1
    assert {piece.slot for piece in plan.slices} == set(range(min(rules.max_tasks, len(plan.slices))))
    assert sorted(piece for slot in plan.used_slots for piece in [p.target for p in plan.of_slot(slot)]) == sorted(
        piece.target for piece in plan.slices
    )


@given(situations(), rules_)
def test_a_run_keeps_to_its_budget(facts: Facts, rules: Rules) -> None:
    plan = planned(facts, rules)
    if rules.max_records is not None:
        assert sum(piece.offsets for piece in plan.slices) <= rules.max_records
    if rules.max_bytes is not None:
        # A slice has one offset at least, whatever that weighs.
        assert sum(piece.bytes_estimate for piece in plan.slices if piece.offsets > 1) <= rules.max_bytes


@given(situations(), rules_)
def test_a_budget_that_suffices_leaves_nothing_behind(facts: Facts, rules: Rules) -> None:
    everything = planned(facts)
    enough = sum(piece.offsets for piece in everything.slices)
    size = sum(piece.bytes_estimate for piece in everything.slices) + len(everything.slices)
    assert planned(facts, replace(RULES, max_records=enough, max_bytes=size)) == everything


@given(situations(), st.integers(1, 500))
def test_a_run_uses_its_whole_budget(facts: Facts, records: int) -> None:
    left = sum(piece.offsets for piece in planned(facts).slices)
    plan = planned(facts, replace(RULES, max_records=records))
    assert sum(piece.offsets for piece in plan.slices) == min(left, records)
    assert plan.cut_short == (records < left)


@given(st.lists(st.integers(1, 50), min_size=1, max_size=12), st.integers(1, 12))
def test_whoever_waits_is_served_in_turn_however_small_the_budget(needs: list[int], records: int) -> None:
    """Small partitions refill between the runs and large ones never end."""
    copied: dict[TopicPartition, Receipt] = {}
    for generation in range(math.ceil(len(needs) / records)):
        ends = [need + max(0, generation) for need in needs]
        facts = facts_with(
            FACTS,
            source={"topics": {"orders": topic("orders", *(part(end=end) for end in ends))}},
            target={"topics": {"a.orders": target("a.orders", *(RECEIPT.target_next or 0 for _ in ends))}},
            lane={"receipts": dict(copied)},
        )
        for slice_ in decide_plan(replace(RULES, max_records=records), facts, "run", generation).slices:
            copied[slice_.target] = replace(
                RECEIPT, source=slice_.source, target=slice_.target, end=slice_.end, generation=generation
            )
    assert len(copied) == len(needs)


def test_nothing_to_copy_is_a_plan_without_slices() -> None:
    facts = facts_with(
        FACTS,
        source={"topics": {"orders": topic("orders", part(end=0))}},
        target={"topics": {"a.orders": target("a.orders", 0)}},
    )
    plan = planned(facts)
    assert (plan.slices, plan.changes, plan.refusals, plan.caught_up) == ((), (), (), 1)


def test_partitions_that_are_refused_paused_or_beyond_the_budget_are_not_caught_up() -> None:
    names = ("full", "level", "odd", "paused")
    facts = facts_with(
        FACTS,
        source={"topics": {name: topic(name, part(end=0), part(end=100 if name == "full" else 0)) for name in names}},
        target={"topics": {f"a.{name}": target(f"a.{name}", *[0] * (5 if name == "odd" else 2)) for name in names}},
        lane={"pauses": {"paused": Pause(topic="paused", who="w", why="y", since_ms=1, until_ms=0)}},
    )
    plan = planned(facts, replace(RULES, max_records=1))
    assert ([refusal.topic for refusal in plan.refusals], plan.paused) == (["odd"], ("paused",))
    assert (len(plan.slices), plan.caught_up) == (1, 3)


# Where a partition begins

ORDERS = facts_with(FACTS, source={"topics": {"orders": topic("orders", part(log_start=10, end=100, start=60))}})


@pytest.mark.parametrize(
    ("facts", "start"),
    [
        (facts_with(ORDERS, lane={"first_run": True}), 60),  # where the configuration says
        (facts_with(ORDERS, lane={"starts": {place("orders"): 70}}), 70),  # where the first run began, copied or not
        (ORDERS, 10),  # it came after the first run: its beginning
    ],
)
def test_where_a_partition_without_a_receipt_begins(facts: Facts, start: int) -> None:
    (piece,) = planned(facts).slices
    assert (piece.start, piece.end, piece.first) == (start, 100, True)


@pytest.mark.parametrize(("began", "kept"), [(5, 5), (3, 7)], ids=["where it began", "behind what was passed by hand"])
def test_what_retention_took_of_a_partition_that_was_not_begun_since_the_lane_began_is_told(
    began: int, kept: int, golden: Golden
) -> None:
    by_hand = Gap(source=place("orders"), start=began, end=kept, why=RefusalKind.STUCK, run="skip-1", at_ms=1)
    facts = facts_with(ORDERS, lane={"starts": {place("orders"): began}, "skips": {place("orders"): (by_hand,)}})
    plan = planned(facts)
    ((kind, message),) = [(refusal.kind, refusal.message) for refusal in plan.refusals]
    assert (kind, plan.slices) == (RefusalKind.RETENTION_PASSED, ())
    golden(message)
    plan = planned(facts, replace(RULES, guards=Guards(retention_passed=GuardPolicy(default=OnGuard.SKIP))))
    assert [(piece.start, piece.end) for piece in plan.slices] == [(10, 100)]
    assert [(gap.start, gap.end, gap.since, gap.how) for gap in plan.gaps] == [(kept, 10, -1, Resolution.SKIP)]
    assert planned(facts_with(facts, lane={"first_run": True})).refusals == ()


def test_a_first_run_that_starts_at_the_end_copies_nothing() -> None:
    facts = facts_with(
        FACTS, source={"topics": {"orders": topic("orders", part(end=100, start=100))}}, lane={"first_run": True}
    )
    assert planned(facts).slices == ()


def test_bytes_are_estimated_by_the_logs_average_or_a_kibibyte_each() -> None:
    known, unknown = part(log_start=10, end=110, size_bytes=5000), part(end=3, size_bytes=None)
    plan = planned(facts_with(FACTS, source={"topics": {"orders": topic("orders", known, unknown)}}))
    assert [piece.bytes_estimate for piece in plan.slices] == [5000, 3 * UNKNOWN_RECORD_BYTES]


# What a run is narrowed to

TWO = facts_with(FACTS, source={"topics": {name: topic(name, part()) for name in ("orders", "users")}})
PAUSE = Pause(topic="users", who="ann", why="maintenance", since_ms=0)


@pytest.mark.parametrize(
    ("pauses", "copied", "paused"),
    [
        ({}, ["orders", "users"], ()),
        ({"users": PAUSE}, ["orders"], ("users",)),
        ({"": PAUSE}, [], ("orders", "users")),
    ],
)
def test_paused_topics_are_named_and_neither_copied_nor_created(
    pauses: dict[str, Pause], copied: list[str], paused: tuple[str, ...]
) -> None:
    plan = planned(facts_with(TWO, lane={"pauses": pauses}))
    assert [piece.source.topic for piece in plan.slices] == copied
    assert [change.source_topic for change in plan.changes] == copied
    assert (plan.paused, plan.flow_paused) == (paused, "" in pauses)
    assert plan.is_idle is plan.flow_paused


def test_a_run_may_be_narrowed_to_some_topics() -> None:
    plan = planned(TWO, replace(RULES, only=frozenset({"users"})))
    assert {piece.source.topic for piece in plan.slices} == {"users"}


def test_a_run_narrowed_to_a_topic_that_the_flow_does_not_copy_is_bad_input(golden: Golden) -> None:
    with pytest.raises(BadInput) as caught:
        planned(TWO, replace(RULES, only=frozenset({"nope", "users"})))
    golden(caught.value)


# Who owns a target topic


def test_a_topic_that_another_lane_claimed_meanwhile_is_refused_and_the_others_stay(golden: Golden) -> None:
    plan = planned(facts_with(TWO, source={"topics": {**TWO.source.topics, "users": topic("users", part(), part())}}))
    assert without_foreign(plan, {"a.orders": "live", "a.users": "live"}) == plan
    mine = without_foreign(plan, {"a.orders": "live", "a.users": "drill"})
    assert [piece.source.topic for piece in mine.slices] == ["orders"]
    (refused,) = mine.refusals
    assert (refused.topic, refused.partition, refused.kind) == ("users", None, RefusalKind.OWNED)
    golden(refused.message)


MASKED = Transform("masked", "d1")
MIXED = facts_with(FACTS, source={"topics": {name: topic(name, part(), part()) for name in ("clicks", "orders")}})


def changed(rules: Rules) -> Rules:
    return replace(rules, transform_of=lambda name: MASKED if name == "orders" else None)


def test_what_a_transform_names_is_in_slots_of_its_own_and_says_by_which_one_it_is_made() -> None:
    plan = decide_plan(changed(RULES), MIXED, "r", 1)
    made = {piece.source.topic: (piece.transform, piece.transform_digest) for piece in plan.slices}
    assert made == {"clicks": ("", ""), "orders": ("masked", "d1")}
    assert plan.row_slots == (1,)
    assert {piece.slot for piece in plan.slices if not piece.transform} == {0}
    assert plan.version == 2
    assert decide_plan(RULES, MIXED, "r", 1).version == 1


def test_one_task_cannot_both_copy_and_change(golden: Golden) -> None:
    one = replace(changed(RULES), max_tasks=1)
    with pytest.raises(Refused) as caught:
        decide_plan(one, MIXED, "r", 1)
    golden(caught.value)
    for name in ("clicks", "orders"):
        plan = decide_plan(replace(one, only=frozenset({name})), MIXED, "r", 1)
        assert {piece.slot for piece in plan.slices} == {0}
