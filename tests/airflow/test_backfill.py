"""Windows of history run by a real Airflow: its own backfill, by command line, by REST and in the page, and one run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from ferry_airflow.rest import ENDED
from tests.airflow.browser import Browser, browser
from tests.airflow.conftest import Flows
from tests.harness import Message, create_topic, producer, read_topic, send, wait_until

DAY_MS = 86_400_000
LANE = "backfill-days"
SCRATCH = "backfill.backfill-orders.backfill.backfill-days"
DIALOG = "//*[@role='dialog' and @data-scope='dialog']"
DAG = "ferry_backfill__backfill__tbackfill"


def airflow(flows: Flows, *arguments: str) -> str:
    """Run Airflow's own program over the session's Airflow."""
    done = subprocess.run(
        [Path(sys.executable).with_name("airflow"), *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **flows.home.environment},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def ended(flows: Flows, count: int, lane: str = LANE) -> list[dict[str, Any]]:
    """The runs of a lane, once there are so many, all have ended, and no backfill is under way."""

    def mine() -> list[dict[str, Any]]:
        return [run for run in flows.rest.runs(DAG) if run["conf"].get("lane") == lane]

    def are_over() -> bool:
        done = [run for run in mine() if run["state"] in ENDED]
        return len(done) >= count and all(one["completed_at"] for one in flows.rest.backfills(DAG))

    wait_until(are_over, "the end of all runs and backfills", 240)
    return mine()


def values(flows: Flows) -> list[int]:
    return [int(row[2] or b"") for row in read_topic(flows.target.bootstrap, SCRATCH)[0]]


def set_date(page: Browser, label: str, day: datetime) -> None:
    """Fill in a day in the little window of a field of the dates; its times are Airflow's, the day's first and last."""
    page.one(f"{DIALOG}//label[normalize-space()='{label}']/..//*[@data-testid='datetime-input']").click()
    date = page.one("//input[@placeholder='YYYY/MM/DD']")
    date.fill(f"{day:%Y/%m/%d}")
    date.press("Tab")
    page.one(f"{DIALOG}//h2").click()
    page.one(f"{DIALOG}//label[normalize-space()='{label}']/..//*[contains(., '{day.day}, {day:%Y}')]")


def test_a_backfill_from_the_page(flows: Flows) -> None:
    day = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=6)
    begin = int(day.timestamp() * 1000)
    create_topic(flows.source, "backfill-page")
    times = (begin - DAY_MS, begin + 1, begin + DAY_MS - 1, begin + DAY_MS)
    messages = [Message(value=b"%d" % number, timestamp=at) for number, at in enumerate(times)]
    send(producer(flows.source), "backfill-page", messages)
    flows.rest.wait_dag(DAG)
    flows.rest.pause(DAG, paused=False)
    with browser() as page:
        page.open(flows.home, f"/dags/{DAG}")
        page.press("Trigger")
        page.one(f"{DIALOG}//label[.//*[normalize-space()='Backfill']]").click()
        for label in ("From", "To"):
            set_date(page, label, day)
        page.one(f"{DIALOG}//*[normalize-space()='1 run will be triggered.']")
        page.write("Lane", "-page")
        page.one(f"{page.field('Topics')}//textarea").press_sequentially("backfill-page")
        # Without this Airflow's form leaves out what was written into it.
        page.one(f"{DIALOG}//label[.//*[normalize-space()='Override parameters on existing runs']]").click()
        page.press("Run Backfill", within=DIALOG)
        page.gone(DIALOG)

    (run,) = ended(flows, 1, "backfill-airflow-page")
    assert run["state"] == "success", flows.rest.log(DAG, run["dag_run_id"], "plan")
    copied = read_topic(flows.target.bootstrap, "backfill.backfill-page.backfill.backfill-airflow-page")[0]
    assert [row[2] for row in copied] == [b"1", b"2"]


def test_airflows_own_backfill_copies_each_window_once_and_loses_no_late_record(flows: Flows) -> None:
    today = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    days = [today - timedelta(days=number) for number in (3, 2)]
    begin = int(days[0].timestamp() * 1000)
    sender = producer(flows.source)
    create_topic(flows.source, "backfill-orders")

    def record(*day_and_value: tuple[float, int]) -> None:
        messages = [Message(value=b"%d" % value, timestamp=begin + int(day * DAY_MS)) for day, value in day_and_value]
        send(sender, "backfill-orders", messages)

    record((-0.5, 0), (0.1, 1), (0.9, 2))
    flows.rest.wait_dag(DAG)
    flows.rest.pause(DAG, paused=False)
    conf = {"lane": LANE, "topics": ["backfill-orders"]}
    first, second = (day.isoformat() for day in days)
    airflow(
        flows,
        *("backfill", "create", "--dag-id", DAG, "--max-active-runs", "1"),
        *("--from-date", first, "--to-date", first, "--dag-run-conf", json.dumps(conf)),
    )
    (run,) = ended(flows, 1)
    assert run["state"] == "success", flows.rest.log(DAG, str(run["dag_run_id"]), "plan")
    assert str(run["partition_key"])[:10] == days[0].date().isoformat()
    assert values(flows) == [1, 2]

    # Late, of the first day, which was copied; then the second day, with the first one again.
    record((0.2, 3), (1.5, 4), (2.5, 5))
    flows.rest.backfill(DAG, first, second, conf, reprocess="completed")
    runs = ended(flows, 3)
    assert {run["state"] for run in runs} == {"success"}
    assert {str(run["partition_key"])[:10] for run in runs} == {day.date().isoformat() for day in days}
    assert values(flows) == [1, 2, 3, 4], "each record of the two days once, in order, the late one too"


def test_a_window_by_the_form_in_times_or_offsets(flows: Flows) -> None:
    create_topic(flows.source, "backfill-form")
    begin = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=3)
    messages = [Message(value=b"%d" % hour, timestamp=int(begin.timestamp() + hour * 3600) * 1000) for hour in range(3)]
    send(producer(flows.source), "backfill-form", messages)
    flows.rest.wait_dag(DAG)
    flows.rest.pause(DAG, paused=False)
    form = {"lane": "backfill-form", "from_offsets": ["backfill-form:0:1"], "to_offsets": ["backfill-form:0:3"]}
    run = flows.rest.trigger(DAG, {**form, "max_records": 1})
    assert flows.rest.wait_run(DAG, run) == "success", flows.rest.log(DAG, run, "plan")
    assert "2 records in 2 runs, 0 offsets " in flows.rest.log(DAG, run, "report")
    assert flows.rest.tasks(DAG, run)["copy"]["pool"] == "ferry_backfill_tbackfill"

    # An earlier window, in times this time: it would lie behind the later one.
    times = {"times": [f"backfill-form={begin.isoformat()}/{(begin + timedelta(hours=1)).isoformat()}"]}
    run = flows.rest.trigger(DAG, {"lane": "backfill-form", **times})
    assert flows.rest.wait_run(DAG, run) == "failed"
    assert "Kafka only appends" in flows.rest.log(DAG, run, "plan")
    assert flows.rest.states(DAG, run) == {"plan": "failed", "copy": "upstream_failed", "report": "failed"}
