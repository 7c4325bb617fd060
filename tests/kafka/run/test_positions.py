"""Positions that a target has forgotten."""

from __future__ import annotations

import time

import pytest
from confluent_kafka.admin import AdminClient

from ferry.dev import RunningCluster
from ferry.plan.lag import measure_lag
from ferry.protocol.names import position_group
from ferry.run.micro_run import local_origin
from tests.harness import Lab, numbered, producer, send
from tests.kafka.run.conftest import small_lab
from tests.kafka.run.hooks import Hooks, copy_held
from tests.said import codes
from tests.tiers import ANSWER_S, PATIENCE


class Died(Exception):
    """The writer is gone, its transaction left open."""


def die() -> None:
    raise Died


def test_a_dead_writers_open_transaction_delays_neither_plan_nor_lag(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str
) -> None:
    lab = small_lab(source_cluster, target_cluster, topic)
    assert lab.micro_run().records == 4_000
    send(producer(source_cluster), topic, numbered(400, partitions=4, start=4_000))
    with lab.runs() as runs:
        plan = runs.open_run("dies", local_origin())
        for slot in plan.used_slots:
            with pytest.raises(Died):
                copy_held(runs, plan, slot, Hooks(before={"commit": die}))
    patience = 5  # the transactions stay open for a minute
    with lab.runs(patience_s=patience) as runs:
        found = runs.preview()
    assert [(piece.start, piece.end) for piece in found.slices] == [(1_000, 1_100)] * 4
    assert set(codes(found.notes)) <= {"acls.none"}
    assert [lag.records for lag in measure_lag(lab.flow, patience_s=patience)] == [100] * 4
    assert lab.micro_run().records == 400
    assert lab.assert_equal() == 4_400


def test_positions_that_are_gone_are_rebuilt_from_the_ledger(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str
) -> None:
    lab = small_lab(source_cluster, target_cluster, topic)
    assert lab.micro_run().records == 4_000
    admin = AdminClient({"bootstrap.servers": target_cluster.bootstrap})
    admin.delete_consumer_groups([group := position_group(lab.flow.flow, "live")])[group].result(ANSWER_S)
    send(producer(source_cluster), topic, numbered(100, partitions=4, start=4_000))
    report = lab.micro_run()
    assert report.records == 100
    assert "position.missing" in codes(report.plan.notes)
    assert lab.assert_equal() == 4_100


def test_positions_that_expired_are_rebuilt_from_the_ledger(
    source_cluster: RunningCluster, forgetful: RunningCluster, resting: Lab
) -> None:
    group = position_group(resting.flow.flow, "live")
    admin = AdminClient({"bootstrap.servers": forgetful.bootstrap})
    # A minute of rest, which has begun with the fixture, and checks every second.
    until = time.monotonic() + 120 * PATIENCE
    while group in {found.group_id for found in admin.list_consumer_groups().result(ANSWER_S).valid}:
        assert time.monotonic() < until, "the group did not expire"
        time.sleep(0.2)
    send(producer(source_cluster), resting.topics[0], numbered(100, partitions=4, start=4_000))
    report = resting.micro_run()
    assert report.records == 100
    assert "position.missing" in codes(report.plan.notes)
    assert resting.assert_equal() == 4_100
