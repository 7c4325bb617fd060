"""Replication policies against MirrorMaker 2's own, and loops of any length."""

import pytest

from ferry.policy import (
    DefaultReplicationPolicy,
    IdentityReplicationPolicy,
    ReplicationPolicy,
    is_ferry_internal,
    is_heartbeats_topic,
    would_loop,
)
from tests.config.java_oracle import ask, decoded, encoded

TOPICS = (
    "foo", "a.foo", "b.a.foo", "heartbeats", "a.heartbeats", "b.a.heartbeats", "a_heartbeats",
    "mm2-offset-syncs.b.internal", "mm2-offset-syncs_b_internal", "x.checkpoints.internal",
    "x_checkpoints_internal", "checkpoints.internal", "__consumer_offsets", "__x", ".x", "foo.internal",
    "foo-internal", "mm2.foo", ".", "..", "a..foo", "foo.", "a..", "-internal", ".internal", "_", "__", "a_b",
    "a__b", "a___", "myheartbeats", "my.heartbeats", "mm2.internal", "a.b.c.d", "foo_",
)  # fmt: skip


def policy_of(kind: str, separator: str) -> ReplicationPolicy:
    if kind == "IdentityReplicationPolicy":
        return IdentityReplicationPolicy(source_alias="a", separator=separator)
    return DefaultReplicationPolicy(separator=separator)


def test_mirror_maker_agrees_on_every_name() -> None:
    cases = [
        (kind, separator, topic)
        for kind in ("DefaultReplicationPolicy", "IdentityReplicationPolicy")
        for separator in (".", "_", "__", "-")
        for topic in TOPICS
    ]
    answers = ask([f"policy {kind} {encoded(sep)} {encoded('a')} {encoded(topic)}" for kind, sep, topic in cases])
    for (kind, separator, topic), answer in zip(cases, answers, strict=True):
        policy = policy_of(kind, separator)
        ours = [
            policy.topic_source(topic),
            policy.upstream_topic(topic),
            policy.original_topic(topic),
            policy.format_remote_topic("a", topic),
            str(policy.is_internal_topic(topic)).lower(),
            str(is_heartbeats_topic(policy, topic)).lower(),
        ]
        assert ours == [decoded(word) for word in answer.split(" ")[1:]], (kind, separator, topic)


@pytest.mark.parametrize(
    ("topic", "loops"),
    [("orders", False), ("b.orders", True), ("c.b.orders", True), ("d.c.b.orders", True), ("c.d.orders", False)],
)
def test_a_topic_that_came_through_the_target_would_loop(topic: str, loops: bool) -> None:
    assert would_loop(DefaultReplicationPolicy(), topic, "b") is loops


def test_identity_never_shows_a_loop_between_two_clusters() -> None:
    policy = IdentityReplicationPolicy(source_alias="a")
    assert not would_loop(policy, "b.orders", "b")
    assert would_loop(policy, "b.heartbeats", "b")


@pytest.mark.parametrize(
    ("topic", "internal"),
    [("ferry-ledger.a.internal", True), ("ferry-ledger.internal", True), ("x.ferry-ledger.a.internal", False)],
)
def test_ledgers_are_known_by_name(topic: str, internal: bool) -> None:
    assert is_ferry_internal(topic) is internal
