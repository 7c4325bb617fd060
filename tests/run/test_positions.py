"""Positions that a target has forgotten."""

from __future__ import annotations

import time

import pytest
from confluent_kafka.admin import AdminClient

from ferry.dev import RunningCluster
from ferry.run.kafka_port import position_group
from tests.harness import Lab, numbered, producer, send


@pytest.mark.timeout(180)
def test_positions_that_expired_are_rebuilt_from_the_ledger(
    source_cluster: RunningCluster, forgetful: RunningCluster, resting: Lab
) -> None:
    group = position_group(resting.flow.flow, "live")
    admin = AdminClient({"bootstrap.servers": forgetful.bootstrap})
    until = time.monotonic() + 120  # a minute of rest, which has begun with the fixture, and checks every second
    while group in {found.group_id for found in admin.list_consumer_groups().result(30).valid}:
        assert time.monotonic() < until, "the group did not expire"
        time.sleep(0.2)
    send(producer(source_cluster), resting.topics[0], numbered(100, partitions=4, start=4_000))
    report = resting.micro_run()
    assert report.records == 100
    assert any("was missing" in note for note in report.plan.notes)
    assert resting.assert_equal() == 4_100
