"""Replication policies against MirrorMaker 2's own, and loops of any length."""

import pytest

from ferry.policy import (
    DefaultReplicationPolicy,
    IdentityReplicationPolicy,
    is_ferry_internal,
    would_loop,
)


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
    [
        ("ferry-ledger.a.internal", True),
        ("ferry-delivery.app.internal", True),
        ("ferry-ledger.internal", True),
        ("x.ferry-ledger.a.internal", False),
    ],
)
def test_ledgers_are_known_by_name(topic: str, internal: bool) -> None:
    assert is_ferry_internal(topic) is internal
