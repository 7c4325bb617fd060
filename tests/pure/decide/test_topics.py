"""What must happen to the target's topics before the copy."""

from dataclasses import replace
from typing import Any

import pytest

from ferry.config.flow.guards import GuardPolicy, Guards, OnGuard
from ferry.model import ChangeKind, Receipt, RefusalKind, TopicChange, TopicPartition
from ferry.plan.rules.facts import Facts, SourceTopic
from ferry.plan.rules.planning import decide_plan
from ferry.plan.rules.planning_rules import Rules
from ferry.plan.rules.topics import TopicChanges, topic_refusal
from ferry.policy import MAX_TOPIC_NAME, IdentityReplicationPolicy, LanePolicy
from tests.golden import Golden
from tests.pure.decide.values import FACTS, RECEIPT, RULES, facts_with, part, target, topic
from tests.said import facts_in


def gone_through(rules: Rules, facts: Facts, *topics: SourceTopic) -> TopicChanges:
    changes = TopicChanges(
        rules=rules, facts=facts_with(facts, source={"topics": {each.name: each for each in topics}})
    )
    for each in topics:
        changes.add(each, f"a.{each.name}")
    return changes


def topic_changes(rules: Rules, facts: Facts, topic: SourceTopic) -> list[TopicChange]:
    return gone_through(rules, facts, topic).due


def test_a_missing_topic_is_created_like_the_source() -> None:
    orders = topic("orders", part(), part(), configs={"retention.ms": "5", "cleanup.policy": "compact"})
    assert topic_changes(RULES, FACTS, orders) == [
        TopicChange(
            kind=ChangeKind.CREATE,
            topic="a.orders",
            source_topic="orders",
            partitions=2,
            replication_factor=3,
            configs=(("cleanup.policy", "compact"), ("retention.ms", "5")),
        )
    ]


def test_partitions_without_a_leader_count_too() -> None:
    (change,) = topic_changes(RULES, FACTS, topic("orders", part(), leaderless=(1, 2)))
    assert change.partitions == 3


def test_a_topic_with_fewer_partitions_is_grown() -> None:
    facts = facts_with(FACTS, target={"topics": {"a.orders": target("a.orders", 0)}})
    (change,) = topic_changes(RULES, facts, topic("orders", part(), part()))
    assert (change.kind, change.topic, change.partitions) == ("grow", "a.orders", 2)


def test_a_topic_with_as_many_partitions_is_left_alone() -> None:
    facts = facts_with(FACTS, target={"topics": {"a.orders": target("a.orders", 0)}})
    assert topic_changes(RULES, facts, topic("orders", part())) == []


def test_a_topic_that_was_copied_and_is_gone_is_not_created_again() -> None:
    facts = facts_with(FACTS, lane={"receipts": {RECEIPT.target: RECEIPT}})
    assert topic_changes(RULES, facts, topic("orders", part())) == []


@pytest.mark.parametrize(
    ("configured", "at_source", "from_source", "brokers", "factor"),
    [
        (2, 3, False, 3, 2),
        (2, 3, False, 1, 1),
        (5, 1, False, 3, 3),
        (-1, 3, False, 1, -1),  # the target's default
        (2, 3, True, 3, 3),
        (2, 3, True, 2, 2),
        (-1, 1, True, 3, 1),
        (2, 0, True, 3, 1),
    ],
)
def test_the_replication_factor_fits_the_target(
    configured: int, at_source: int, from_source: bool, brokers: int, factor: int
) -> None:
    rules = replace(RULES, replication_factor=configured, replication_from_source=from_source)
    changes = gone_through(
        rules,
        facts_with(FACTS, target={"brokers": brokers}),
        topic("orders", part(), replication_factor=at_source),
    )
    assert [change.replication_factor for change in changes.due] == [factor]
    wanted = max(1, at_source) if from_source else configured
    fewer = {"topics": "a.orders", "replicas": factor, "wanted": wanted, "cluster": "b"}
    assert [facts_in(note) for note in changes.notes()] == ([] if factor == wanted else [fewer])


def test_excluded_configurations_stay_behind() -> None:
    orders = topic("orders", part(), configs={"follower.replication.throttled.replicas": "*", "retention.ms": "5"})
    (change,) = topic_changes(RULES, FACTS, orders)
    assert change.configs == (("retention.ms", "5"),)


def test_settings_go_over_to_a_new_copy_also_when_syncing_is_off() -> None:
    rules = replace(RULES, sync_configs=False)
    (change,) = topic_changes(rules, FACTS, topic("orders", part(), configs={"retention.ms": "5"}))
    assert change.configs == (("retention.ms", "5"),)


THERE = facts_with(FACTS, target={"topics": {"a.orders": target("a.orders", 0, configs={"retention.ms": "6"})}})
ORDERS = topic("orders", part(), configs={"retention.ms": "5"})


def test_settings_that_differ_are_changed_in_the_very_next_run() -> None:
    changes = gone_through(RULES, THERE, ORDERS)
    assert [(change.kind, change.configs) for change in changes.due] == [
        (ChangeKind.CONFIGURE, (("retention.ms", "5"),))
    ]
    assert (changes.drift, changes.notes()) == ([], [])


def test_settings_that_differ_are_drift_when_syncing_is_off() -> None:
    changes = gone_through(replace(RULES, sync_configs=False), THERE, ORDERS)
    assert changes.due == []
    assert [(change.configs, change.was) for change in changes.drift] == [
        ((("retention.ms", "5"),), (("retention.ms", "6"),))
    ]
    assert changes.notes() == []  # what the source deletes sooner is not lost there


@pytest.mark.parametrize(
    ("source_id", "target_id", "changed"),
    [
        ("id-orders", "id-a.orders", True),
        ("new", "id-a.orders", False),
        ("id-orders", "new", False),
        ("", "id-a.orders", True),
    ],
)
def test_a_copy_that_is_not_the_source_topics_any_more_is_not_touched(
    source_id: str, target_id: str, changed: bool
) -> None:
    """The settings of a topic that was created again could delete what was copied of the one before."""
    orders = replace(topic("orders", part(), part(), configs={"retention.ms": "5"}), topic_id=source_id)
    facts = facts_with(
        FACTS,
        source={"topics": {"orders": orders}},
        target={"topics": {"a.orders": target("a.orders", 41, topic_id=target_id)}},
        lane={"receipts": {RECEIPT.target: RECEIPT}},
    )
    plan = decide_plan(RULES, facts, "run", 1)
    assert [change.kind for change in plan.changes] == ([ChangeKind.GROW, ChangeKind.CONFIGURE] if changed else [])
    assert (plan.refusals == ()) is changed


def test_a_merged_topic_has_settings_of_no_single_source() -> None:
    changes = gone_through(replace(RULES, merges=lambda name: name == "orders"), THERE, ORDERS)
    assert (changes.due, changes.drift, changes.notes()) == ([], [], [])


@pytest.mark.parametrize("at_source", [True, False])
def test_settings_that_one_side_hides_are_not_compared_and_that_is_said(at_source: bool, golden: Golden) -> None:
    hidden = replace(ORDERS, settings=None) if at_source else ORDERS
    there = THERE.target.topics["a.orders"]
    facts = THERE if at_source else facts_with(THERE, target={"topics": {"a.orders": replace(there, settings=None)}})
    changes = gone_through(RULES, facts, hidden)
    assert changes.due == []
    (note,) = changes.notes()
    golden(note)
    assert gone_through(replace(RULES, sync_configs=False), facts, hidden).notes() == []


def test_settings_that_may_not_be_seen_stand_against_a_copy_that_is_to_be_created_with_them(golden: Golden) -> None:
    orders = replace(topic("orders", part()), settings=None)
    found = topic_refusal(RULES, FACTS, orders)
    assert found is not None
    assert (found.topic, found.partition, found.kind) == ("orders", None, RefusalKind.NOT_AUTHORIZED)
    golden(found.message, "asked for")
    there = facts_with(FACTS, target={"topics": {"a.orders": target("a.orders", 0)}})
    copied = facts_with(FACTS, lane={"receipts": {RECEIPT.target: RECEIPT}})  # and gone: refused by its receipts
    without = replace(RULES, sync_configs=False)
    for rules, facts in ((RULES, there), (RULES, copied), (without, FACTS)):
        assert topic_refusal(rules, facts, orders) is None, "nobody needs them"
    changes = gone_through(without, FACTS, orders)
    assert [change.configs for change in changes.due] == [()]
    golden(changes.notes()[0], "not asked for")


@pytest.mark.parametrize(("length", "refused"), [(MAX_TOPIC_NAME - 2, False), (MAX_TOPIC_NAME - 1, True)])
def test_a_target_name_beyond_kafkas_limit_is_refused(length: int, refused: bool, golden: Golden) -> None:
    found = topic_refusal(RULES, FACTS, topic("x" * length, part()))  # the target's name is longer by "a."
    assert (found is not None) is refused
    if found is not None:
        assert found.kind is RefusalKind.NAME_TOO_LONG
        golden(found.message)


def test_a_scratch_name_that_is_too_long_is_shortened_by_its_lane_whatever_the_policy(golden: Golden) -> None:
    lane = LanePolicy(base=IdentityReplicationPolicy(source_alias="a"), lane="backfill-january")
    rules = replace(RULES, policy=lane, lane=lane.lane, scratch=True)
    found = topic_refusal(rules, FACTS, topic("x" * MAX_TOPIC_NAME, part()))
    assert found is not None
    assert found.kind is RefusalKind.NAME_TOO_LONG
    golden(found.message)


@pytest.mark.parametrize(
    ("copied", "code"), [(False, "target.partition-count"), (True, "target.partition-count.copied")]
)
def test_a_target_with_more_partitions_is_refused_and_deleting_it_advised_only_while_it_is_empty(
    copied: bool, code: str
) -> None:
    facts = facts_with(
        FACTS,
        target={"topics": {"a.orders": target("a.orders", 0, 0)}},
        lane={"receipts": {RECEIPT.target: RECEIPT} if copied else {}},
    )
    found = topic_refusal(RULES, facts, topic("orders", part()))
    assert found is not None
    assert (found.kind, found.code, found.topic) == (RefusalKind.PARTITION_COUNT, code, "orders")
    assert dict(found.facts) == {"target": "a.orders", "there": 2, "here": 1}


def test_nothing_is_created_for_a_topic_that_is_refused() -> None:
    long = "x" * MAX_TOPIC_NAME
    plan = decide_plan(RULES, facts_with(FACTS, source={"topics": {long: topic(long, part())}}), "run", 1)
    assert (plan.changes, plan.slices) == ((), ())


@pytest.mark.parametrize("guard", [OnGuard.FAIL, OnGuard.RESTART])
@pytest.mark.parametrize("lasts", [{}, {RECEIPT.target: RECEIPT}], ids=["new", "copied"])
def test_a_hidden_copy_is_refused_and_not_created(guard: OnGuard, lasts: dict[TopicPartition, Receipt]) -> None:
    rules = replace(RULES, guards=Guards(target_changed=GuardPolicy(default=guard)))
    facts = facts_with(
        FACTS,
        source={"topics": {"orders": ORDERS}},
        target={"topics": {}, "hidden": frozenset({"a.orders"})},
        lane={"receipts": lasts},
    )
    plan = decide_plan(rules, facts, "run", 1)
    assert [(one.topic, one.partition, one.code) for one in plan.refusals] == [("orders", None, "target.hidden")]
    assert (plan.changes, plan.slices, plan.gaps) == ((), (), ())


@pytest.mark.parametrize("lasts", [{}, {RECEIPT.target: RECEIPT}], ids=["new", "copied"])
@pytest.mark.parametrize("sync", [True, False])
@pytest.mark.parametrize("at_source", [True, False])
def test_a_topic_whose_settings_are_answered_with_an_error_is_refused(
    at_source: bool, sync: bool, lasts: dict[TopicPartition, Receipt], golden: Golden
) -> None:
    """It is not known whether the source is compacted, nor how many replicas of the copy must be in sync."""
    odd: dict[str, Any] = {"settings": None, "settings_error": "UnknownError (-1)"}
    copy = target("a.orders", 40)
    facts = facts_with(
        FACTS,
        source={"topics": {"orders": replace(ORDERS, **odd) if at_source else ORDERS, "users": topic("users", part())}},
        target={"topics": {"a.orders": copy if at_source else replace(copy, **odd)}},
        lane={"receipts": lasts},
    )
    plan = decide_plan(replace(RULES, sync_configs=sync), facts, "run", 1)
    (refusal,) = plan.refusals
    assert (refusal.topic, refusal.partition, refusal.code) == ("orders", None, "settings.unknown")
    assert {piece.source.topic for piece in plan.slices} <= {"users"}
    assert {change.source_topic for change in plan.changes} == {"users"}
    golden(refusal.message)
