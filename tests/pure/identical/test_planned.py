"""Which slices of a plan can have identical offsets, and why others cannot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from ferry.features.identical.rules.empty import cost_of
from ferry.features.identical.rules.planned import (
    EXPIRATION,
    IDLE,
    LEASE_MS,
    MARGIN_MS,
    Found,
    TargetTopicFound,
    stays_identical,
    with_identical,
    without_skips,
    without_unfit,
)
from ferry.ledger.codec import IDENTICAL_VERSION
from ferry.ledger.plan_codec import parse_plan, plan_records
from ferry.messages.refusals import refused
from ferry.model import Flow, Gap, LaneKind, Plan, RefusalKind, Resolution, Slice, TopicPartition, facts_of
from ferry.model import code_of as noted
from tests.pure.identical.test_slot import BROKER, DAY, SETTINGS

ORDERS = TopicPartition(topic="orders", partition=0)
PIECE = Slice(source=ORDERS, target=ORDERS, start=0, end=100, slot=0, first=True, target_end=0)
PLAN = Plan(flow=Flow(source="a", target="b"), lane="live", run="r", generation=7, slots=1, slices=(PIECE,))


def found(settings: Mapping[str, str] | None = None, broker: Mapping[str, str] | None = None, **changes: Any) -> Found:
    """A target that suits, but for some settings."""
    topic = TargetTopicFound(settings={**SETTINGS, **(settings or {})}, in_sync={0: 2})
    base = Found(may_lose=False, brokers={1: {**BROKER, **(broker or {})}}, topics={"orders": topic}, receipts={})
    return replace(base, **changes)


def code_of(plan: Plan) -> str | None:
    """The code of the only refusal; None if there is none."""
    assert bool(plan.refusals) != bool(plan.slices), "a slice is copied, or it is refused"
    return next((one.code for one in plan.refusals), None)


def test_a_slice_that_suits_has_the_producer_and_the_age_that_its_batches_may_have() -> None:
    (piece,) = with_identical(PLAN, found(), 42).slices
    late = (DAY - LEASE_MS) // 4  # more than connections.max.idle.ms and the margin
    assert late > 600_000 + MARGIN_MS
    assert (piece.producer, piece.max_age_ms) == (42, DAY - LEASE_MS - 2 * late)


def test_such_a_plan_has_a_format_that_earlier_versions_do_not_read_and_comes_back() -> None:
    plan = with_identical(PLAN, found(), 42)
    *parts, seal = plan_records(plan)
    values = {number: one.value for number, one in enumerate(parts) if one.value is not None}
    assert (plan.version, seal.value is not None) == (IDENTICAL_VERSION, True)
    assert parse_plan(values, seal.value or b"", "plan").slices == plan.slices
    assert PLAN.version == 1


@pytest.mark.parametrize(
    ("piece", "code"),
    [
        ({"transform": "mask"}, "identical.transform"),
        ({"merged": True}, "identical.merged"),
        ({"since": 3}, "identical.passed"),
        ({"start": 5}, "identical.begins"),
        ({"start": 5, "log_start": 5}, "identical.first"),
        ({"end": 2**31}, "identical.too-long"),
        ({"compacted": True}, "identical.compacted"),
        ({"target_end": 101}, "identical.ahead"),
        ({"start": 50, "target_next": 50, "target_end": 49}, "identical.lost"),
        ({"target": TopicPartition(topic="orders", partition=1)}, "identical.transform"),
        ({"start": 50, "target_next": 50, "target_end": 60}, None),
    ],
)
def test_what_a_slice_needs(piece: Mapping[str, Any], code: str | None) -> None:
    plan = replace(PLAN, slices=(replace(PIECE, **piece),))
    assert code_of(with_identical(plan, found(), 42)) == code


@pytest.mark.parametrize(
    ("piece", "firsts", "code"),
    [
        ({}, {}, None),
        ({}, {5}, None),
        ({}, {0}, "identical.first.other"),
        ({}, {5, 7}, "identical.first.other"),
        ({"log_start": 4}, {}, "identical.begins"),
        ({"target_next": 5, "target_end": 5}, {0}, None),
        ({"target_next": 4}, {4}, "identical.begins"),
        ({"start": 0, "log_start": 0}, {5}, "identical.first.other"),
        ({"target_end": 3}, {5}, None),
        ({"target_end": 101}, {5}, "identical.ahead"),
    ],
)
def test_what_a_copy_needs_that_begins_with_empty_records(
    piece: Mapping[str, Any], firsts: set[int], code: str | None
) -> None:
    sent = {ORDERS: frozenset(firsts)} if firsts else {}
    plan = replace(PLAN, slices=(replace(PIECE, **{"start": 5, "log_start": 5, **piece}),))
    made = with_identical(plan, found(may_pass=True, sent=sent), 42)
    assert code_of(made) == code
    costs = [note for note in made.notes if noted(note) == "identical.first.note"]
    assert bool(costs) == (code is None and "target_next" not in piece)


@pytest.mark.parametrize(("end", "left"), [(0, 1_000), (None, 1_000), (400, 600), (999, 1), (1_000, 0), (1_050, 0)])
@pytest.mark.parametrize("may_pass", [True, False])
def test_the_cost_is_that_of_what_is_not_there_yet(end: int | None, left: int, may_pass: bool) -> None:
    piece = replace(PIECE, start=1_000, log_start=1_000, end=1_100, target_end=end)
    sent = {ORDERS: frozenset({1_000})} if end else {}
    given = found(may_pass=may_pass, sent=sent, limits={"orders": 500})
    plan = with_identical(replace(PLAN, slices=(piece,)), given, 42)
    cost = cost_of([(left, 500)])
    if left and not may_pass:
        (refusal,) = plan.refusals
        facts = dict(refusal.facts)
        assert refusal.code == ("identical.first.rest" if end else "identical.first")
        assert (facts["seconds"], facts["bytes"]) == (cost.seconds, cost.bytes)
        return
    assert plan.refusals == ()
    costs = [dict(facts_of(note)) for note in plan.notes if noted(note) == "identical.first.note"]
    assert [(one["offsets"], one["bytes"]) for one in costs] == ([(left, cost.bytes)] if left else [])


@pytest.mark.parametrize(
    ("settings", "broker", "code"),
    [
        ({"cleanup.policy": "compact"}, {}, "identical.compacted"),
        ({"message.timestamp.type": "LogAppendTime"}, {}, "identical.timestamps"),
        ({"unclean.leader.election.enable": "true"}, {}, "identical.may-lose"),
        ({"min.insync.replicas": "1"}, {}, "identical.may-lose"),
        ({"retention.ms": "3600000"}, {}, "identical.state-too-short"),
        ({"retention.bytes": "1000"}, {}, "identical.state-too-short"),
        ({"cleanup.policy": "", "retention.ms": "3600000"}, {}, None),
        ({"retention.ms": "-1"}, {}, None),
        ({}, {EXPIRATION: "3600000"}, "identical.state-too-short"),
        ({}, {IDLE: "-1"}, "identical.late-unbounded"),
        ({}, {IDLE: str(DAY)}, "identical.state-too-short"),
    ],
)
def test_what_the_target_needs(settings: Mapping[str, str], broker: Mapping[str, str], code: str | None) -> None:
    assert code_of(with_identical(PLAN, found(settings, broker), 42)) == code


def test_a_target_that_may_lose_is_taken_only_on_purpose() -> None:
    one = TargetTopicFound(settings={**SETTINGS, "min.insync.replicas": "1"}, in_sync={0: 1})
    assert code_of(with_identical(PLAN, found(topics={"orders": one}), 42)) == "identical.may-lose"
    assert code_of(with_identical(PLAN, found(topics={"orders": one}, may_lose=True), 42)) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"topics": {}, "denied": frozenset({"orders"})},
        {"brokers": {}},
        {"brokers": {1: {}}},
        {"brokers": {1: {EXPIRATION: "1"}}},
    ],
)
def test_what_is_not_known_is_refused(changes: Mapping[str, Any]) -> None:
    assert code_of(with_identical(PLAN, found(**changes), 42)) == "identical.unknown"


def test_brokers_without_the_setting_are_too_old_and_no_permission_is_missing() -> None:
    """They show the other one."""
    old = {IDLE: "600000"}
    (refusal,) = with_identical(PLAN, found(brokers={1: BROKER, 2: old, 3: old}), 42).refusals
    facts = dict(refusal.facts)
    assert (refusal.code, facts["brokers"], facts["setting"]) == ("identical.too-old", "2, 3", EXPIRATION)
    assert refusal.kind is not RefusalKind.NOT_AUTHORIZED


def test_a_topic_that_no_broker_shows_yet_is_not_a_missing_permission() -> None:
    (refusal,) = with_identical(PLAN, found(topics={}), 42).refusals
    assert (refusal.code, refusal.kind) == ("identical.not-shown", RefusalKind.TARGET_CHANGED)


def test_what_is_appended_to_the_live_topics_is_refused() -> None:
    assert code_of(with_identical(PLAN, found(lane=LaneKind.APPEND), 42)) == "identical.lane"


@pytest.mark.parametrize(
    ("lane", "may_pass", "piece", "code"),
    [
        (LaneKind.DRILL, False, {"log_start": 2}, None),
        (LaneKind.DRILL, False, {"target_next": 3}, "identical.begins"),
        (LaneKind.BACKFILL, True, {"log_start": 2}, None),
        (LaneKind.BACKFILL, False, {"log_start": 2}, "identical.first"),
        (None, True, {"log_start": 2}, "identical.begins"),
    ],
)
def test_copies_of_lanes_with_topics_of_their_own_may_begin_after_the_source_does(
    lane: LaneKind | None, may_pass: bool, piece: Mapping[str, Any], code: str | None
) -> None:
    plan = replace(PLAN, slices=(replace(PIECE, **{"start": 5, **piece}),))
    assert code_of(with_identical(plan, found(lane=lane, may_pass=may_pass), 42)) == code


def test_offsets_that_a_guard_passes_over_are_refused() -> None:
    gap = Gap(
        source=ORDERS,
        start=0,
        end=0,
        why=RefusalKind.FOREIGN_WRITER,
        run="r",
        at_ms=0,
        how=Resolution.SKIP,
        who="",
        reason="",
        generation=7,
    )
    assert code_of(with_identical(replace(PLAN, gaps=(gap,)), found(), 42)) == "identical.passed"


def test_retention_that_passed_names_no_guard_that_skips() -> None:
    refusals = (
        refused("source.retention-passed", "orders", 1, log_start=9, start=5, last=8),
        refused("source.retention-passed.one", "orders", 0, log_start=6, start=5),
        refused("identical.stays", "orders", 2, place="a.orders-2"),
    )
    whole = replace(PLAN, refusals=refusals)
    assert without_skips(whole, lambda topic: f"a.{topic}", lambda _: False) == whole, "of translated topics"
    plan = without_skips(whole, lambda topic: f"a.{topic}", lambda _: True)
    assert [(one.code, one.kind, one.partition) for one in plan.refusals] == [
        ("identical.gone", RefusalKind.RETENTION_PASSED, 1),
        ("identical.gone", RefusalKind.RETENTION_PASSED, 0),
        ("identical.stays", RefusalKind.INVALID_CONFIG, 2),
    ]
    assert dict(plan.refusals[0].facts) == {"log_start": 9, "start": 5, "place": "a.orders-1"}


BEATS = TopicPartition(topic="heartbeats", partition=0)
BEAT = replace(PIECE, source=BEATS, target=BEATS, start=7, compacted=True)


@pytest.mark.parametrize("slots", [1, 2, 5])
def test_heartbeats_stay_translated_in_a_slot_of_their_own_and_a_note_says_so(slots: int) -> None:
    pieces = (PIECE, replace(PIECE, source=ORDERS._replace(partition=1), target=ORDERS._replace(partition=1)), BEAT)
    suits = replace(found(), translated=frozenset({"heartbeats"}), heartbeats=frozenset({"heartbeats"}))
    suits.topics["orders"].in_sync[1] = 2  # type: ignore[index]
    plan = with_identical(replace(PLAN, slots=slots, slices=pieces), suits, 42)
    assert {piece.source: piece.producer for piece in plan.slices} == {
        ORDERS: 42,
        ORDERS._replace(partition=1): 42,
        BEATS: None,
    }
    kinds = {number: {piece.producer for piece in plan.of_slot(number)} for number in plan.used_slots}
    assert all(len(kind) == 1 for kind in kinds.values())
    assert (plan.refusals, plan.slots, max(plan.used_slots) < plan.slots) == ((), max(2, slots), True)
    assert list(map(noted, plan.notes)) == ["identical.heartbeats"]
    assert with_identical(PLAN, suits, 42).notes == ()


def test_a_plan_of_heartbeats_alone_asks_for_nothing_of_the_target() -> None:
    beats = frozenset({"heartbeats"})
    plan = with_identical(replace(PLAN, slices=(BEAT,)), found(topics={}, translated=beats, heartbeats=beats), 42)
    assert ([piece.producer for piece in plan.slices], plan.version) == ([None], 1)


def test_topics_that_the_file_leaves_out_are_translated_unless_they_were_identical_once() -> None:
    """A compacted topic may be translated where others keep their offsets. A late request could double a record."""
    users = TopicPartition(topic="users", partition=0)
    left_out = replace(PIECE, source=users, target=users, compacted=True)
    once = replace(left_out, source=users._replace(partition=1), target=users._replace(partition=1))
    suits = found(translated=frozenset({"users"}), written=frozenset({once.target}))
    whole = replace(PLAN, slots=2, slices=(PIECE, left_out, once))
    for plan in (with_identical(whole, suits, 42), without_unfit(whole, suits)):
        assert [piece.source for piece in plan.slices] == [ORDERS, users]
        assert [(one.code, one.partition) for one in plan.refusals] == [("identical.stays", 1)]
        assert len({piece.slot for piece in plan.slices}) == 2
        assert [(noted(one), facts_of(one)) for one in plan.notes] == [("identical.others", (("topics", "users"),))]
    assert [piece.producer for piece in with_identical(whole, suits, 42).slices] == [42, None]


def test_a_partition_that_may_have_got_identical_offsets_is_never_copied_in_transactions_and_others_are() -> None:
    second = replace(PIECE, source=ORDERS._replace(partition=1), target=ORDERS._replace(partition=1))
    gaps = tuple(
        Gap(
            source=piece.source, start=0, end=0, why=RefusalKind.RETENTION_PASSED, run="r", at_ms=0, how=Resolution.SKIP
        )
        for piece in (PIECE, second)
    )
    plan = stays_identical(replace(PLAN, slices=(PIECE, second), gaps=gaps), {ORDERS})
    assert [(one.code, one.topic, one.partition) for one in plan.refusals] == [("identical.stays", "orders", 0)]
    assert (plan.slices, plan.gaps) == ((second,), gaps[1:])
    assert stays_identical(PLAN, {second.target}) == PLAN
