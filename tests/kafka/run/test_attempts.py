"""Transactions of version 1 on a broker of today; deaths at each request are those of tests/pure/scripted."""

from __future__ import annotations

import pytest

from ferry.dev import RunningCluster
from ferry.ledger.report import RunState
from ferry.run.micro_run import local_origin
from tests.harness import numbered, producer, send
from tests.kafka.run.conftest import small_lab
from tests.kafka.run.hooks import Hooks, copy_held


@pytest.mark.usefixtures("resting")
def test_transactions_of_version_1_copy_chunk_after_chunk(
    source_cluster: RunningCluster, forgetful: RunningCluster, topic: str
) -> None:
    lab = small_lab(source_cluster, forgetful, topic)
    with lab.runs() as runs:
        assert runs.connections.target.transaction_version == 1
    report = lab.micro_run()
    assert (report.state, report.records) == (RunState.SUCCESS, 4_000)
    assert len(report.receipts) > 4
    send(producer(source_cluster), topic, numbered(400, partitions=4, start=4_000))
    assert lab.micro_run().records == 400
    assert lab.assert_equal() == 4_400


class Killed(Exception):
    """An attempt ends here, without a word to the broker."""


def die() -> None:
    """End the attempt."""
    raise Killed


def test_an_attempt_that_dies_in_a_transaction_of_version_1_is_repeated(
    source_cluster: RunningCluster, forgetful: RunningCluster, topic: str
) -> None:
    lab = small_lab(source_cluster, forgetful, topic)
    with lab.runs() as runs:
        plan = runs.open_run("one", local_origin())
        for slot in plan.used_slots:
            with pytest.raises(Killed):
                copy_held(runs, plan, slot, Hooks(before={"commit": die}))
        assert lab.copy(runs, plan).state is RunState.SUCCESS
    assert lab.assert_equal() == 4_000
