"""What must happen to the target's topics before the copy."""

from dataclasses import replace

import pytest

from ferry.decide.planning import decide_plan
from ferry.decide.topics import topic_changes, topic_refusal
from ferry.model import RefusalKind, TopicChange
from ferry.policy import MAX_TOPIC_NAME
from tests.decide.values import FACTS, RECEIPT, RULES, part, target, topic


def test_a_missing_topic_is_created_like_the_source() -> None:
    orders = topic("orders", part(), part(), configs={"retention.ms": "5", "cleanup.policy": "compact"})
    assert topic_changes(RULES, FACTS, orders) == [
        TopicChange(
            kind="create",
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
    facts = replace(FACTS, targets={"a.orders": target("a.orders", 0)})
    (change,) = topic_changes(RULES, facts, topic("orders", part(), part()))
    assert (change.kind, change.topic, change.partitions) == ("grow", "a.orders", 2)


def test_a_topic_with_as_many_partitions_is_left_alone() -> None:
    facts = replace(FACTS, targets={"a.orders": target("a.orders", 0)})
    assert topic_changes(RULES, facts, topic("orders", part())) == []


def test_a_topic_that_was_copied_and_is_gone_is_not_created_again() -> None:
    facts = replace(FACTS, receipts={RECEIPT.target: RECEIPT})
    assert topic_changes(RULES, facts, topic("orders", part())) == []


@pytest.mark.parametrize(
    ("configured", "at_source", "brokers", "factor"),
    [(-1, 3, 3, 3), (-1, 3, 1, 1), (2, 3, 3, 2), (5, 1, 3, 3), (-1, 0, 3, 1)],
)
def test_the_replication_factor_fits_the_target(configured: int, at_source: int, brokers: int, factor: int) -> None:
    rules, facts = replace(RULES, replication_factor=configured), replace(FACTS, target_brokers=brokers)
    (change,) = topic_changes(rules, facts, topic("orders", part(), replication_factor=at_source))
    assert change.replication_factor == factor


def test_excluded_configurations_stay_behind() -> None:
    orders = topic("orders", part(), configs={"follower.replication.throttled.replicas": "*", "retention.ms": "5"})
    (change,) = topic_changes(RULES, FACTS, orders)
    assert change.configs == (("retention.ms", "5"),)


def test_no_configuration_goes_over_when_syncing_is_off() -> None:
    rules = replace(RULES, sync_configs=False)
    (change,) = topic_changes(rules, FACTS, topic("orders", part(), configs={"retention.ms": "5"}))
    assert change.configs == ()


def test_settings_that_may_not_be_seen_stand_against_a_copy_that_is_to_be_created_with_them() -> None:
    orders = replace(topic("orders", part()), configs=None)
    found = topic_refusal(RULES, FACTS, orders)
    assert found is not None
    assert (found.topic, found.partition, found.kind) == ("orders", None, RefusalKind.NOT_AUTHORIZED)
    assert "topic orders on cluster a, with which topic a.orders is to be created: grant DESCRIBE_CONFIGS on it" in (
        found.message
    )
    there = replace(FACTS, targets={"a.orders": target("a.orders", 0)})
    copied = replace(FACTS, receipts={RECEIPT.target: RECEIPT})  # and gone: refused by its receipts
    without = replace(RULES, sync_configs=False)
    for rules, facts in ((RULES, there), (RULES, copied), (without, FACTS)):
        assert topic_refusal(rules, facts, orders) is None, "nobody needs them"
    (change,) = topic_changes(without, FACTS, orders)
    assert change.configs == ()


@pytest.mark.parametrize(("length", "refused"), [(MAX_TOPIC_NAME - 2, False), (MAX_TOPIC_NAME - 1, True)])
def test_a_target_name_beyond_kafkas_limit_is_refused(length: int, refused: bool) -> None:
    found = topic_refusal(RULES, FACTS, topic("x" * length, part()))  # the target's name is longer by "a."
    assert (found is not None) is refused
    if found is not None:
        assert found.kind is RefusalKind.NAME_TOO_LONG
        assert "has 250 characters, Kafka allows 249: use a shorter alias" in found.message


@pytest.mark.parametrize(("copied", "remedy"), [(False, "delete the target topic"), (True, "another alias")])
def test_a_target_with_more_partitions_is_refused_and_deleting_it_advised_only_while_it_is_empty(
    copied: bool, remedy: str
) -> None:
    facts = replace(
        FACTS, targets={"a.orders": target("a.orders", 0, 0)}, receipts={RECEIPT.target: RECEIPT} if copied else {}
    )
    found = topic_refusal(RULES, facts, topic("orders", part()))
    assert found is not None
    assert found.kind is RefusalKind.PARTITION_COUNT
    for words in ("a.orders has 2 partitions", "orders has 1: give the source as many, or", remedy):
        assert words in found.message


def test_nothing_is_created_for_a_topic_that_is_refused() -> None:
    long = "x" * MAX_TOPIC_NAME
    plan = decide_plan(RULES, replace(FACTS, sources={long: topic(long, part())}), "run", 1)
    assert (plan.changes, plan.slices) == ((), ())
