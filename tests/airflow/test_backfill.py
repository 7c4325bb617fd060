"""Windows of history run by a real Airflow: its own backfill by the command line and by REST, and a run by the form."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

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
        done = [run for run in flows.rest.runs(DAG) if run["state"] in ENDED and run["partition_key"]]
        return len(done) >= count and all(one["completed_at"] for one in flows.rest.backfills(DAG))

    wait_until(are_over, seconds=240)
    return [run for run in flows.rest.runs(DAG) if run["partition_key"]]


def values(flows: Flows) -> list[int]:
    return [int(row[2] or b"") for row in read_topic(flows.target.bootstrap, SCRATCH)[0]]


@pytest.mark.timeout(600)  # five runs, three of them with Spark, one after the other
def test_airflows_own_backfill_copies_each_window_once_and_loses_no_late_record(flows: Flows) -> None:
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    days = [today - timedelta(days=number) for number in (4, 3, 2)]
    begin = int(days[0].timestamp() * 1000)
    sender = producer(flows.source)
    create_topic(flows.source, "backfill-orders")

    def record(*day_and_value: tuple[float, int]) -> None:
        messages = [Message(value=b"%d" % value, timestamp=begin + int(day * DAY_MS)) for day, value in day_and_value]
        send(sender, "backfill-orders", messages)

    record((-0.5, 0), (0.1, 1), (0.9, 2), (1.5, 3))
    flows.rest.wait_dag(DAG)
    flows.rest.pause(DAG, paused=False)
    conf = {"lane": LANE, "topics": ["backfill-orders"]}
    first, second, third = (day.isoformat() for day in days)
    airflow(
        flows,
        *("backfill", "create", "--dag-id", DAG, "--max-active-runs", "1"),
        *("--from-date", first, "--to-date", second, "--dag-run-conf", json.dumps(conf)),
    )
    runs = ended(flows, 2)
    assert {run["state"] for run in runs} == {"success"}, flows.rest.log(DAG, str(runs[0]["dag_run_id"]), "plan")
    assert [str(run["partition_key"])[:10] for run in runs] == [day.date().isoformat() for day in days[:2]]
    assert values(flows) == [1, 2, 3]

    # Late, of the second day, which was copied; then the third day, with the first two again.
    record((1.2, 4), (2.5, 5), (3.5, 6))
    flows.rest.backfill(DAG, first, third, conf, reprocess="completed")
    runs = ended(flows, 5)
    assert {run["state"] for run in runs} == {"success"}
    assert values(flows) == [1, 2, 3, 4, 5], "each record of the three days once, in order, the late one too"


def test_a_window_by_the_form_in_times_or_offsets(flows: Flows) -> None:
    create_topic(flows.source, "backfill-form")
    begin = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=3)
    messages = [Message(value=b"%d" % hour, timestamp=int(begin.timestamp() + hour * 3600) * 1000) for hour in range(3)]
    send(producer(flows.source), "backfill-form", messages)
    flows.rest.wait_dag(DAG)
    flows.rest.pause(DAG, paused=False)
    form = {"lane": "backfill-form", "from_offsets": ["backfill-form:0:1"], "to_offsets": ["backfill-form:0:3"]}
    run = flows.rest.trigger(DAG, form)
    assert flows.rest.wait_run(DAG, run) == "success", flows.rest.log(DAG, run, "plan")
    assert "2 record(s) in 1 run(s), 0 offset(s) left" in flows.rest.log(DAG, run, "report")
    assert flows.rest.tasks(DAG, run)["copy"]["pool"] == "ferry_backfill_tbackfill"

    # An earlier window, in times this time: it would lie behind the later one.
    times = {"from": begin.isoformat(), "to": (begin + timedelta(hours=1)).isoformat(), "topics": ["backfill-form"]}
    run = flows.rest.trigger(DAG, {"lane": "backfill-form", **times})
    assert flows.rest.wait_run(DAG, run) == "failed"
    assert "Kafka only appends" in flows.rest.log(DAG, run, "plan")
    assert flows.rest.states(DAG, run) == {"plan": "failed", "copy": "upstream_failed", "report": "failed"}
