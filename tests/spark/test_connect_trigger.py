"""The trigger that copies over Spark Connect, with a real server: it copies, and ends the copy when it is ended."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from ferry.dev import RunningCluster
from ferry.ledger.report import RunState
from ferry.ports import free_ports
from ferry_airflow.copy_trigger import ConnectCopyTrigger
from tests.harness import Lab, whole_ledger
from tests.quotas import held
from tests.spark.jobs import SLOW_RATE, connect_server, first_receipts, plan, slow_lab, until

RUN = "manual__2026-01-31"


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A Spark Connect server, and Airflow's connection to it."""
    (port,) = free_ports(1)
    monkeypatch.setenv("AIRFLOW_CONN_CONNECTED", f"spark-connect://127.0.0.1:{port}")
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")  # as PySpark sets it, but not for what other tests start
    with connect_server(tmp_path, port):
        yield


def trigger_of(lab: Lab, folder: Path) -> ConnectCopyTrigger:
    """The trigger of a planned run."""
    return ConnectCopyTrigger(
        config=str(lab.write(folder)),
        flow=str(lab.flow.flow),
        run_id=RUN,
        conn_id="connected",
        dag_id="a-dag",
        dag_run_id=RUN,
        try_number=1,
    )


def test_an_ended_trigger_ends_its_copy_and_the_next_one_copies_the_rest(
    source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str, tmp_path: Path, server: None
) -> None:
    lab = slow_lab(source_cluster, target_cluster, topic)
    plan(lab, RUN)

    async def ended() -> None:
        trigger = trigger_of(lab, tmp_path)
        wait = asyncio.ensure_future(anext(trigger.run()))

        def look() -> None:
            assert not wait.done(), "it ended before it was ended"

        await asyncio.to_thread(first_receipts, lab, 1, look)
        look()
        wait.cancel()
        with pytest.raises(asyncio.CancelledError):
            await wait
        await trigger.cleanup()

    with held(lab, SLOW_RATE):
        asyncio.run(ended())
    with lab.runs() as runs:
        until(lambda: not whole_ledger(runs).open, "the end of the open chunks")
        assert runs.report(RUN).state is RunState.PARTIAL
    kept = lab.receipts()

    async def copied() -> object:
        trigger = trigger_of(lab, tmp_path)
        event = await anext(trigger.run())
        await trigger.cleanup()
        return event.payload

    assert asyncio.run(copied()) == {}
    assert lab.receipts()[: len(kept)] == kept
    assert lab.assert_equal() == 24_000
