"""Windows of history run by a real Airflow: its own backfill by the command line and by REST, and a run by the form."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from ferry_airflow.rest import ENDED
from tests.airflow.conftest import Flows
from tests.harness import Message, create_topic, producer, read_topic, send, wait_until

DAY_MS = 86_400_000
LANE = "backfill-days"
SCRATCH = "backfill.backfill-orders.backfill.backfill-days"
DAG = "ferry_backfill__backfill__tbackfill"


def airflow(flows: Flows, *arguments: str) -> str:
    """Run Airflow's own program over the session's Airflow."""
    done = subprocess.run(
        [Path(sys.executable).with_name("airflow"), *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, **flows.home.environment},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def ended(flows: Flows, count: int) -> list[dict[str, object]]:
    """The DAG's runs, once there are so many, all have ended, and no backfill is under way."""

    def are_over() -> bool:
        done = [run for run in flows.rest.runs(DAG) if run["state"] in ENDED]
        return len(done) >= count and all(one["completed_at"] for one in flows.rest.backfills(DAG))

    wait_until(are_over, seconds=240)
    return flows.rest.runs(DAG)


def values(flows: Flows) -> list[int]:
    return [int(row[2] or b"") for row in read_topic(flows.target.bootstrap, SCRATCH)[0]]


def test_airflows_own_backfill_copies_each_window_once_and_loses_no_late_record(flows: Flows) -> None:
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    days = [today - timedelta(days=number) for number in (4, 3, 2, 1)]
    begin = int(days[0].timestamp() * 1000)
    sender = producer(flows.source)
    create_topic(flows.source, "backfill-orders")

    def record(*day_and_value: tuple[float, int]) -> None:
        messages = [Message(value=b"%d" % value, timestamp=begin + int(day * DAY_MS)) for day, value in day_and_value]
        send(sender, "backfill-orders", messages)

    record((-0.5, 0), (0.1, 1), (0.9, 2), (1.5, 3))
    flows.rest.wait_dag(DAG)
    flows.rest.pause(DAG, paused=False)
    first, second, third = (day.isoformat() for day in days[:3])
    airflow(
        flows,
        *("backfill", "create", "--dag-id", DAG, "--max-active-runs", "1"),
        *("--from-date", first, "--to-date", second, "--dag-run-conf", json.dumps({"lane": LANE})),
    )
    runs = ended(flows, 2)
    assert {run["state"] for run in runs} == {"success"}, flows.rest.log(DAG, str(runs[0]["dag_run_id"]), "plan")
    assert [str(run["partition_key"])[:10] for run in runs] == [day.date().isoformat() for day in days[:2]]
    assert values(flows) == [1, 2, 3]

    # Late, of the second day, which was copied; then the third day, with the first two again.
    record((1.2, 4), (2.5, 5), (3.5, 6))
    flows.rest.backfill(DAG, first, third, {"lane": LANE}, reprocess="completed")
    runs = ended(flows, 5)
    assert {run["state"] for run in runs} == {"success"}
    assert values(flows) == [1, 2, 3, 4, 5], "each record of the three days once, in order, the late one too"

    # A run by the form: a window that touches the last one; and one that the form cannot have.
    run = flows.rest.trigger(DAG, {"from": days[3].isoformat(), "to": today.isoformat(), "lane": LANE})
    assert flows.rest.wait_run(DAG, run) == "success", flows.rest.log(DAG, run, "plan")
    assert values(flows) == [1, 2, 3, 4, 5, 6]
    offsets = {"from_offsets": ["backfill-orders:0:0"], "to_offsets": ["backfill-orders:0:1"]}
    run = flows.rest.trigger(DAG, {**offsets, "lane": LANE})
    assert flows.rest.wait_run(DAG, run) == "failed"
    assert "Kafka only appends" in flows.rest.log(DAG, run, "plan")
    assert flows.rest.states(DAG, run)["copy"] == "upstream_failed"
    run = flows.rest.trigger(DAG, {**offsets, "lane": "backfill-offsets"})
    assert flows.rest.wait_run(DAG, run) == "success"
    assert "1 record(s) in 1 run(s), 0 offset(s) left" in flows.rest.log(DAG, run, "report")
