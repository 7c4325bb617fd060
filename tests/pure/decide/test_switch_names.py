"""The topics of the new cluster that a switch may change: no record of the ledger adds one to those of the file."""

from __future__ import annotations

import pytest

from ferry.config.settings import parse_settings
from ferry.features.switch.rules.names import written_names

LINES = (
    "clusters = a, b",
    "a.bootstrap.servers = one:9092",
    "b.bootstrap.servers = two:9092",
    "a->b.enabled = true",
    "a->b.topics = orders.*",
    "a->b.topics.exclude = orders-private",
)


@pytest.mark.parametrize(
    ("policy", "names"),
    [
        ("DefaultReplicationPolicy", {"a.orders", "orders", "a.orders-eu", "orders-eu"}),
        ("IdentityReplicationPolicy", {"orders", "orders-eu"}),
    ],
)
def test_a_forged_row_names_no_topic_that_the_flow_does_not_take(policy: str, names: set[str]) -> None:
    of_policy = f"replication.policy.class = org.apache.kafka.connect.mirror.{policy}"
    via = parse_settings("\n".join([*LINES, of_policy]), "mm2.properties").flow("a->b")
    rows = ["orders", "orders-eu", "payroll", "orders-private", "b.orders"]
    assert written_names(via, rows, ("a", "b")) == names
