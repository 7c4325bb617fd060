"""What the ledger keeps of old runs."""

from __future__ import annotations

import pytest

from ferry.dev import RunningCluster
from ferry.run.plan import opening
from tests.harness import Lab, create_topic, new_alias, numbered, producer, send


def test_old_runs_leave_the_ledger_and_their_receipts_stay(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "KEPT_RUNS", 2)
    create_topic(source_cluster, topic)
    lab = Lab(source=source_cluster, target=target_cluster, alias=new_alias(), topics=(topic,))
    for number in range(5):
        send(producer(source_cluster), topic, numbered(10, start=number * 10))
        assert lab.micro_run().records == 10
    with lab.runs() as runs:
        view = runs.ledger()
    plans = {key[2] for key, _ in view.of_kind("plan")}
    assert len(plans) == len({key[2] for key, _ in view.of_kind("run")}) == 2, "the newest two"
    assert lab.assert_equal() == 50
