"""Topics that get other partitions: what stands against them, their part in a plan, and their lag."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ferry.config.flow.guards import GuardPolicy, Guards, OnGuard
from ferry.errors import Refused
from ferry.ledger.plan_codec import parse_plan, plan_records
from ferry.ledger.source_reads import Read, reads_of_units
from ferry.ledger.units import least_dealt
from ferry.messages.phrases import ANEW
from ferry.model import Era, Offsets, Pause, Plan, Reads, Receipt, Refusal, RefusalKind
from ferry.model.observed import BrokerSpace, OpenTransaction
from ferry.model.topic_settings import TopicSettings
from ferry.plan.rules.facts import Seen, SourceTopic
from ferry.plan.rules.lag import lag_of
from ferry.plan.rules.planning import decide_plan, without_foreign
from ferry.plan.rules.planning_rules import Rules, Transform
from ferry.plan.rules.repartition import deal_of
from ferry.plan.rules.repartition_refusals import dealt_before
from ferry.plan.rules.repartition_shares import Deal
from ferry.plan.rules.skipping import SkipRequest, skip_gap
from tests.golden import Golden
from tests.pure.decide.values import (
    FACTS,
    FLOW,
    LANE,
    RECEIPT,
    RULES,
    facts_with,
    part,
    place,
    redealt,
    target,
    topic,
)
from tests.said import codes, facts_in

SKIP = replace(RULES, guards=Guards(retention_passed=GuardPolicy(default=OnGuard.SKIP)))
RULE = Transform(name="small", partitions=2, digest="all")
ERA = Era(
    source_topic="t",
    target_topic="a.t",
    since=1,
    begins=(0, 0),
    digest="all",
    partitions=2,
    source_topic_id="id-t",
    target_topic_id="id-a.t",
)


def receipt(
    number: int, reached: Offsets, *, era: int = 1, generation: int = 1, target_next: int | None = None
) -> Receipt:
    return Receipt(
        flow=FLOW,
        lane=LANE,
        run="r",
        generation=generation,
        slot=0,
        source=place("t", number),
        target=place("a.t", number),
        start=0,
        end=sum(reached),
        target_next=target_next,
        segments=(),
        records=0,
        bytes=0,
        batches=0,
        digest="",
        at_ms=0,
        since=era,
        transform_digest="all",
        reads=Reads(starts=(0,) * len(reached), ends=reached),
        source_topic_id="id-t",
        target_topic_id="id-a.t",
        source_cluster_id="cluster-a",
    )


HALF = {one.target: one for one in (receipt(0, (5, 3), target_next=4), receipt(1, (5, 1), target_next=3))}
TWO = topic("t", part(end=9), part(end=9))
FACTS_HALF = facts_with(
    FACTS,
    source={"topics": {"t": TWO}},
    target={"topics": {"a.t": target("a.t", 5, 4)}},
    lane={"units": HALF, "eras": {"a.t": ERA}, "claims": {"a.t": LANE}},
)


def dealt(rule: Transform = RULE, rules: Rules = RULES, of: SourceTopic = TWO, **facts: Any) -> Deal:
    found = deal_of(rules, facts_with(FACTS_HALF, **facts), of, ["a.t"], rule, "run", 7)
    assert isinstance(found, Deal), found
    return found


def refused(rule: Transform = RULE, rules: Rules = RULES, of: SourceTopic = TWO, **facts: Any) -> tuple[Refusal, ...]:
    found = deal_of(rules, facts_with(FACTS_HALF, **facts), of, ["a.t"], rule, "run", 7)
    assert isinstance(found, tuple), found
    return found


def test_each_target_partition_goes_on_where_it_stands() -> None:
    found = dealt()
    assert not found.is_new
    assert not found.finishing
    assert [(one.starts, one.ends) for one in found.lots] == [((5, 3), (9, 9)), ((5, 1), (9, 9))]
    assert [(need.source.partition, need.start, need.offsets) for need in found.needs] == [(0, 5, 4), (1, 1, 8)]
    assert found.needs[0].bytes == 4 * (10_000 // 9)
    cut = found.limited({place("t", 0): 2, place("t", 1): 3})
    assert [(one.starts, one.ends) for one in cut.lots] == [((5, 3), (7, 4)), ((5, 1), (7, 4))]
    nothing = found.limited({})
    assert [one.offsets for one in nothing.lots] == [0, 0]


def test_what_was_read_furthest_in_each_leader_epoch_is_held_against_the_source() -> None:
    ahead = redealt(receipt(0, (5, 3, 0)), epochs=(2, 1))
    behind = redealt(receipt(1, (5, 1)), epochs=(1, 1))
    assert reads_of_units([ahead, behind]) == [
        Read(place("t", 0), 1, 5),  # what one unit has may be cut where another has what came in its place
        Read(place("t", 0), 2, 5),
        Read(place("t", 1), 1, 3),
    ]
    further = redealt(receipt(1, (9, 1)), epochs=(1, 1))
    assert reads_of_units([ahead, further])[:2] == [Read(place("t", 0), 2, 5), Read(place("t", 0), 1, 9)]
    assert reads_of_units([receipt(1, (4, 9))]) == [Read(place("t", 0), None, 4), Read(place("t", 1), None, 9)]


def test_a_part_is_read_from_the_log_of_its_receipt_where_it_goes_on_there() -> None:
    read = {place("a.t", 0): redealt(receipt(0, (5, 3), target_next=4), epochs=(2, 1))}
    first, second = dealt(lane={"units": read}).lots
    deal = dealt(lane={"units": read})
    assert deal.slice_of(first, 0).epochs == (2, 1)
    assert deal.slice_of(second, 0).epochs == ()
    assert deal.slice_of(replace(first, starts=(5, 8)), 0).epochs == (2, None), "what was skipped nobody read"
    old = replace(first, last=redealt(read[place("a.t", 0)], epochs=()))
    assert deal.slice_of(old, 0).epochs == ()


def test_a_changed_rule_waits_and_then_says_that_it_counts(golden: Golden) -> None:
    waiting = dealt(RULE._replace(digest="few"))
    assert waiting.finishing
    assert [(one.starts, one.ends) for one in waiting.lots] == [((5, 3), (5, 3)), ((5, 1), (5, 3))]
    golden(waiting.notes[0])
    level = {**HALF, place("a.t", 1): receipt(1, (5, 3), target_next=3)}
    begun = dealt(RULE._replace(digest="few", partitions=3, text="text"), lane={"units": level})
    assert begun.is_new
    assert begun.era == replace(ERA, since=7, begins=(5, 3), digest="few", partitions=3, spec="text")
    assert [one.starts for one in begun.lots] == [(5, 3)] * 3
    assert codes(begun.notes) == ["transform.begun"]
    (fewer,) = refused(RULE._replace(partitions=1), lane={"units": level})
    assert fewer.kind is RefusalKind.PARTITION_COUNT
    assert "ferry.transform.small.partitions = 2" in fewer.message


def test_a_copy_that_is_empty_and_too_wide_may_be_deleted() -> None:
    (found,) = refused(lane={"units": {}, "eras": {}}, target={"topics": {"a.t": target("a.t", 0, 0, 0)}})
    assert "delete the target topic" in found.message


def test_a_source_partition_in_trouble_is_left_out_of_all(golden: Golden) -> None:
    short = topic("t", part(end=9), part(log_start=4, end=9))
    found = dealt(of=short)
    assert [(one.topic, one.partition, one.kind) for one in found.refusals] == [("t", 1, RefusalKind.RETENTION_PASSED)]
    assert [(one.starts, one.ends) for one in found.lots] == [((5, 3), (9, 3)), ((5, 1), (9, 1))]
    lifted = dealt(rules=SKIP, of=short)
    assert not lifted.refusals
    assert [(gap.source, gap.start, gap.end, gap.generation) for gap in lifted.gaps] == [(place("t", 1), 1, 4, 7)]
    assert facts_in(lifted.notes[0])["key"] == "ferry.guard.retention.passed"
    assert [one.starts for one in lifted.lots] == [(5, 4), (5, 4)]
    # And what nobody has any more keeps a changed rule no longer waiting.
    assert dealt(RULE._replace(digest="few"), SKIP, short).era.begins == (5, 4)

    cut = dealt(of=topic("t", part(end=4), part(end=9)))
    assert [(one.partition, one.kind) for one in cut.refusals] == [(0, RefusalKind.SOURCE_TRUNCATED)]
    assert [(one.starts, one.ends) for one in cut.lots] == [((5, 3), (5, 9)), ((5, 1), (5, 9))]
    # Others have filled it up again since: leader epochs alone tell.
    filled = dealt(of=topic("t", replace(part(end=9), diverged=4), part(end=9)))
    assert [(one.partition, one.kind) for one in filled.refusals] == [(0, RefusalKind.SOURCE_TRUNCATED)]
    golden(filled.refusals[0].message)
    assert [one.ends for one in filled.lots] == [(5, 9), (5, 9)]
    held = dealt(of=topic("t", replace(part(end=4), high_watermark=6), part(end=9)))
    assert not held.refusals  # an open transaction, no cut
    assert [one.ends for one in held.lots] == [(5, 9), (5, 9)]

    unled = dealt(of=topic("t", part(end=9), leaderless=(0,)))
    assert [(one.partition, one.kind) for one in unled.refusals] == [(0, RefusalKind.NO_LEADER)]
    assert [(one.starts, one.ends) for one in unled.lots] == [((5, 3), (5, 9)), ((5, 1), (5, 9))]
    looped = dealt(others={"returned": {place("t", 0): ((6, 7),)}})
    assert [(one.partition, one.kind) for one in looped.refusals] == [(0, RefusalKind.LOOP)]
    assert [one.ends for one in looped.lots] == [(5, 9), (5, 9)]


def test_a_compacted_topic_that_rested_too_long_is_refused_or_skipped() -> None:
    resting: dict[str, Any] = {
        "lane": {
            "dealt": {place("t", 0): 5, place("t", 1): 1},
            "seen": {place("t", 1): Seen(whole_ms=0, asked_ms=0, asked_end=2)},
        },
        "now_ms": 10**9,
    }
    compacted = replace(
        TWO, settings=TopicSettings(own={"cleanup.policy": "compact", "delete.retention.ms": "1000"}, inherited={})
    )
    assert compacted.delete_retention_ms == 1000
    found = dealt(of=compacted, **resting)
    assert [(one.partition, one.kind) for one in found.refusals] == [(1, RefusalKind.TOMBSTONES_PASSED)]
    assert found.refusals[0].message.endswith(f"or {ANEW}")
    assert [one.ends for one in found.lots] == [(9, 3), (9, 1)]
    lenient = replace(RULES, guards=Guards(tombstones_passed=GuardPolicy(default=OnGuard.SKIP)))
    lifted = dealt(rules=lenient, of=compacted, **resting)
    assert not lifted.refusals
    assert [(gap.source, gap.start, gap.end, gap.why) for gap in lifted.gaps] == [
        (place("t", 1), 1, 1, RefusalKind.TOMBSTONES_PASSED)
    ]
    assert facts_in(lifted.notes[0])["key"] == "ferry.guard.tombstones.passed"


def test_a_target_partition_in_trouble_has_no_part() -> None:
    cases: list[tuple[dict[str, Any], RefusalKind]] = [
        ({"others": {"foreign": {place("a.t", 1): 4}}}, RefusalKind.FOREIGN_WRITER),
        (
            {"others": {"open_transactions": {place("a.t", 1): OpenTransaction(producer_id=1, start=4, last_ms=0)}}},
            RefusalKind.FOREIGN_WRITER,
        ),
        ({"target": {"cut": {place("a.t", 1): 2}}}, RefusalKind.TARGET_CHANGED),
        ({"target": {"topics": {"a.t": target("a.t", 5, 2)}}}, RefusalKind.TARGET_CHANGED),
        (
            {"target": {"topics": {"a.t": target("a.t", 5, 4, replicas={1: (1, 3)}, min_in_sync=2)}}},
            RefusalKind.TOO_FEW_REPLICAS,
        ),
    ]
    for facts, kind in cases:
        found = dealt(**facts)
        assert [(one.partition, one.kind) for one in found.refusals] == [(1, kind)]
        assert [one.target.partition for one in found.lots] == [0]


def test_a_first_copy_waits_for_all_partitions_of_the_source() -> None:
    first: dict[str, Any] = {"lane": {"units": {}, "eras": {}, "first_run": True}, "target": {"topics": {}}}
    found = refused(of=topic("t", part(), leaderless=(1,)), **first)
    assert [(one.partition, one.kind) for one in found] == [(1, RefusalKind.NO_LEADER), (None, RefusalKind.NO_LEADER)]
    begun = dealt(of=topic("t", part(log_start=3, start=3), part(start=60)), **first)
    assert begun.is_new
    assert begun.era.begins == (3, 60)
    assert not begun.notes
    # A partition that came later and has no leader waits, with those behind it; the others do not.
    later = dealt(of=topic("t", part(end=9), part(end=9), part(end=9), leaderless=(2,)))
    assert {len(one.starts) for one in later.lots} == {2}


def test_a_new_source_partition_begins_where_a_plan_first_saw_it() -> None:
    grown = topic("t", part(end=9), part(end=9), part(log_start=5, end=9))
    assert [one.starts[2] for one in dealt(of=grown).lots] == [5, 5]
    late = dealt(of=grown, lane={"starts": {place("t", 2): 2}})
    assert [(one.partition, one.kind) for one in late.refusals] == [(2, RefusalKind.RETENTION_PASSED)]


@pytest.mark.parametrize(
    ("facts", "kind", "says"),
    [
        (
            {"lane": {"receipts": {place("a.t"): replace(RECEIPT, target=place("a.t"))}}},
            RefusalKind.TRANSFORM,
            "by partition until",
        ),
        ({"target": {"topics": {}}}, RefusalKind.TARGET_CHANGED, "is gone"),
        (
            {"target": {"topics": {"a.t": target("a.t", 5, 4, topic_id="new")}}},
            RefusalKind.TARGET_CHANGED,
            "created again",
        ),
        ({"target": {"topics": {"a.t": target("a.t", 5)}}}, RefusalKind.TARGET_CHANGED, "fewer than were written"),
        ({"source": {"cluster_id": "other"}}, RefusalKind.CLUSTER_CHANGED, "from another cluster"),
        # A driver that was overtaken has put an older rule back: each partition would begin at its beginning again.
        ({"lane": {"eras": {"a.t": replace(ERA, since=0)}}}, RefusalKind.LEDGER_BEHIND, "current rule is older"),
    ],
)
def test_what_stands_against_the_whole_topic_is_one_sentence(facts: dict[str, Any], kind: str, says: str) -> None:
    (found,) = refused(**facts)
    assert (found.topic, found.partition, found.kind) == ("t", None, kind)
    assert says in found.message


def test_another_source_topic_of_the_name_is_refused() -> None:
    (again,) = refused(of=replace(TWO, topic_id="new"))
    assert again.kind is RefusalKind.TOPIC_RECREATED
    (fewer,) = refused(of=replace(topic("t", part()), topic_id=""))
    assert fewer.kind is RefusalKind.TOPIC_RECREATED


def test_windows_and_shared_topics_are_refused() -> None:
    for rules in (replace(RULES, lane="backfill-x"), replace(RULES, merges=lambda _: True)):
        (found,) = refused(rules=rules)
        assert found.kind is RefusalKind.TRANSFORM
    assert dealt_before(FACTS.lane, "t", "a.t") is None
    before = dealt_before(FACTS_HALF.lane, "t", "a.t")
    assert before is not None
    assert "repartitioned into 2 partitions" in before.message


# In a plan

DEALT = replace(RULES, max_tasks=3, transform_of=lambda name: RULE._replace(partitions=4) if name == "t" else None)
BESIDE = facts_with(
    FACTS,
    source={"topics": {"t": topic("t", part(), part()), "u": topic("u", part())}},
    target={"defaults": {}},
    lane={"first_run": True},
)


def test_units_are_planned_beside_slices_in_slots_of_their_own() -> None:
    plan = decide_plan(DEALT, BESIDE, "r", 7)
    assert {piece.source.topic for piece in plan.kept} == {"u"}
    assert [(unit.target, unit.starts, unit.ends, unit.since, unit.partitions) for unit in plan.dealt] == [
        (place("a.t", number), (0, 0), (100, 100), 7, 4) for number in range(4)
    ]
    assert [(era.since, era.partitions, era.begins) for era in plan.eras] == [(7, 4, (0, 0))]
    assert not set(plan.row_slots) & {piece.slot for piece in plan.kept}
    assert set(plan.used_slots) <= {0, 1, 2}
    created = {change.topic: change.partitions for change in plan.changes}
    assert created == {"a.t": 4, "a.u": 1}
    assert plan.version == 2
    assert parse_plan_of(plan) == plan


def parse_plan_of(plan: Plan) -> Plan:
    *parts, seal = plan_records(plan)
    return parse_plan({number: part.value or b"" for number, part in enumerate(parts)}, seal.value or b"", "the plan")


def test_budgets_are_shared_by_slices_and_units() -> None:
    plan = decide_plan(replace(DEALT, max_records=90), BESIDE, "r", 7)
    assert [piece.offsets for piece in plan.kept] == [30]
    assert {unit.ends for unit in plan.dealt} == {(30, 30)}
    half = decide_plan(replace(DEALT, max_bytes=15_000), BESIDE, "r", 7)
    assert [piece.offsets for piece in half.kept] == [50]
    assert {unit.ends for unit in half.dealt} == {(50, 50)}


def test_disks_without_room_refuse_units_too() -> None:
    space = {1: BrokerSpace(total=1_000_000, usable=201_000)}
    wide = replace(target("a.t", 0, 0, 0, 0), brokers=dict.fromkeys(range(4), (1,)))
    facts = facts_with(BESIDE, target={"topics": {"a.t": wide}, "space": space, "brokers": 1})
    plan = decide_plan(replace(DEALT, free_percent=20), facts, "r", 7)
    assert not plan.dealt
    assert not plan.eras
    assert [(one.topic, one.partition, one.kind) for one in plan.refusals] == [
        ("t", None, RefusalKind.NO_SPACE),
        ("u", None, RefusalKind.NO_SPACE),
    ]


def test_a_topic_that_another_lane_claimed_meanwhile_has_no_units_and_no_rule() -> None:
    plan = without_foreign(decide_plan(DEALT, BESIDE, "r", 7), {"a.t": "other"})
    assert not plan.dealt
    assert not plan.eras
    assert [one.kind for one in plan.refusals] == [RefusalKind.OWNED]
    assert {piece.source.topic for piece in plan.kept} == {"u"}


def test_a_caught_up_topic_has_no_units_and_a_paused_one_no_word() -> None:
    done = {place("a.t", number): receipt(number, (9, 9), target_next=4) for number in range(2)}
    facts = facts_with(FACTS_HALF, lane={"units": done})
    plan = decide_plan(replace(DEALT, transform_of=lambda _: RULE), facts, "r", 7)
    assert not plan.dealt
    assert plan.caught_up == 2
    paused = facts_with(facts, lane={"pauses": {"t": Pause(topic="t", since_ms=1, who="x", why="y")}})
    plan = decide_plan(replace(DEALT, transform_of=lambda _: RULE), paused, "r", 7)
    assert (plan.paused, plan.caught_up, plan.eras) == (("t",), 0, ())


def test_a_rule_that_cannot_be_carried_out_any_more_refuses_its_topic_alone(golden: Golden) -> None:
    rules = replace(DEALT, transform_of=lambda name: RULE._replace(digest="few") if name == "t" else None)
    facts = facts_with(
        FACTS_HALF,
        source={"topics": {**FACTS_HALF.source.topics, "u": topic("u", part())}},
        lane={"lost_rules": {"a.t": "PySpark is another"}},
    )
    plan = decide_plan(rules, facts, "r", 7)
    (refusal,) = plan.refusals
    assert (refusal.topic, refusal.kind) == ("t", RefusalKind.TRANSFORM)
    golden(refusal.message)
    assert {piece.source.topic for piece in plan.kept} == {"u"}


def test_a_place_that_is_passed_by_hand_is_passed_for_all_target_partitions(golden: Golden) -> None:
    rules = replace(RULES, transform_of=lambda name: RULE if name == "t" else None)
    facts = facts_with(FACTS_HALF, lane={"dealt": {place("t", 0): 5, place("t", 1): 1}})
    gap = skip_gap(rules, facts, SkipRequest(source=place("t", 1), to=4, who="x", reason="y"), "r", 7)
    assert (gap.start, gap.end, gap.why) == (1, 4, RefusalKind.STUCK)
    behind = dealt(lane={"dealt": facts.lane.dealt, "skips": {place("t", 1): (gap,)}})
    assert [one.starts for one in behind.lots] == [(5, 4), (5, 4)]
    assert not behind.gaps
    # Retention has taken less than that, or more.
    short = dealt(
        of=topic("t", part(end=9), part(log_start=3)),
        lane={"dealt": facts.lane.dealt, "skips": {place("t", 1): (gap,)}},
    )
    assert not short.refusals
    more = dealt(
        of=topic("t", part(end=9), part(log_start=6)),
        lane={"dealt": facts.lane.dealt, "skips": {place("t", 1): (gap,)}},
    )
    assert [(one.partition, one.kind) for one in more.refusals] == [(1, RefusalKind.RETENTION_PASSED)]
    assert "records 4 to 5 were deleted" in more.refusals[0].message
    # A run that was opened meanwhile has copied some of it: the skip does not count.
    later = {**HALF, place("a.t", 1): receipt(1, (5, 2), target_next=3)}
    void = dealt(lane={"units": later, "dealt": {place("t", 0): 5, place("t", 1): 2}, "skips": {place("t", 1): (gap,)}})
    assert [one.starts for one in void.lots] == [(5, 3), (5, 2)]

    cut = facts_with(facts, source={"topics": {"t": topic("t", part(end=4), part(end=9))}})
    with pytest.raises(Refused) as refused:
        skip_gap(rules, cut, SkipRequest(source=place("t", 0), to=4, who="x", reason="y"), "r", 7)
    golden(refused.value, "truncated meanwhile")
    with pytest.raises(Refused) as caught:
        skip_gap(DEALT, BESIDE, SkipRequest(source=place("t"), to=9, who="x", reason="y"), "r", 7)
    golden(caught.value)


def test_a_hidden_copy_of_a_dealt_topic_is_not_gone() -> None:
    assert [one.code for one in refused(target={"topics": {}, "hidden": frozenset({"a.t"})})] == ["target.hidden"]


# Lag


def test_the_lag_of_a_dealt_topic_is_by_source_partitions_as_far_as_all_target_partitions_have_come() -> None:
    """Also of one without a leader; and a topic that is gone is not known, which is no health."""
    facts = facts_with(FACTS_HALF, lane={"dealt": least_dealt((ERA,), HALF.values())})
    lags = lag_of(facts, RULES.policy, "a")
    assert [(lag.source, lag.target.topic, lag.position, lag.records, lag.dealt) for lag in lags] == [
        (place("t", 0), "a.t", 5, 4, True),
        (place("t", 1), "a.t", 1, 8, True),
    ]
    headless = facts_with(facts, source={"topics": {"t": topic("t", part(end=9), leaderless=(1,))}})
    assert [(lag.position, lag.records, lag.dealt) for lag in lag_of(headless, RULES.policy, "a")] == [
        (5, 4, True),
        (1, None, True),
    ]
    gone = facts_with(facts, source={"topics": {}, "absent": frozenset({"t"})})
    assert [(lag.source, lag.target.topic, lag.position, lag.records) for lag in lag_of(gone, RULES.policy, "a")] == [
        (place("t", 0), "a.t", 5, None),
        (place("t", 1), "a.t", 1, None),
    ]
