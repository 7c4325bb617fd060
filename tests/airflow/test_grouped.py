"""Micro-runs as task groups of another author's DAGs, in a real Airflow: the DAGs that docs/operators.md shows."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from ferry.clock import wall_ms
from ferry_airflow.rest import ENDED
from tests.airflow.conftest import ASKED_SECONDS, BY_HOUR, GROUPED, Flows
from tests.harness import Message, create_topic, numbered, producer, send, whole_ledger
from tests.spark.jobs import until

DAG, SKIPPED, TOPIC = "copy_orders", "skip_orders", f"{GROUPED}-orders"
TASKS = ("plan", "copy", "checkpoint", "report")
HOUR_MS = 3_600_000


@pytest.mark.timeout(900)
def test_a_group_in_another_dag_is_a_run_of_its_own_with_the_same_id_in_airflow(flows: Flows) -> None:
    rest, lab, own = flows.rest, flows.lab(GROUPED), flows.dag(GROUPED)
    create_topic(flows.source, TOPIC)
    send(producer(flows.source), TOPIC, numbered(100))
    for one in (DAG, SKIPPED):
        rest.wait_dag(one)
        rest.pause(one, paused=False)
    run, state = flows.run(GROUPED)
    assert state == "success", rest.log(own, run, "copy")
    send(producer(flows.source), TOPIC, numbered(50, start=100))

    def trigger(dag: str) -> str:
        rest.ask("POST", f"/api/v2/dags/{dag}/dagRuns", {"dag_run_id": run, "logical_date": None, "conf": {}})
        return rest.wait_run(dag, run)

    assert trigger(DAG) == "success", rest.log(DAG, run, "orders.report")
    name = f"{DAG}@orders@{run}"
    assert lab.assert_equal() == 150
    assert {(one.run, one.origin.dag_id, one.records) for one in lab.receipts()} == {
        (run, own, 100),
        (name, DAG, 50),
    }
    assert f"copied by {name}" in rest.log(DAG, run, "after")
    tasks = rest.tasks(DAG, run)
    assert {tasks[f"orders.{one}"]["pool"] for one in TASKS[:3]} == {f"ferry_{GROUPED}_t{GROUPED}"}
    its_own = rest.links(own, run, "report")["Receipts"]
    until(lambda: "Tasks and logs" in rest.opened(its_own), "the page has read the ledger")
    for task in TASKS:
        page = rest.opened(rest.links(DAG, run, f"orders.{task}")["Receipts"])
        assert name in page
        assert f"/dags/{own}/runs/" not in page, "Airflow's run of the same id is another"

    # A run that is cleared finds its plan again, and copies nothing twice.
    rest.clear(DAG, run)
    assert rest.wait_run(DAG, run) == "success", rest.log(DAG, run, "orders.plan", attempt=2)
    assert f" to copy in run {name}" in rest.log(DAG, run, "orders.copy", attempt=2)
    with lab.runs() as runs:
        assert [one.record.run for one in whole_ledger(runs).runs] == [run, name]

    assert trigger(SKIPPED) == "success"
    assert rest.states(SKIPPED, run) == dict.fromkeys(
        ("before", *(f"orders.{one}" for one in TASKS), "after"), "skipped"
    )


@pytest.mark.timeout(900)
def test_ten_lines_copy_wait_until_nothing_is_left_and_start_a_partitioned_dag_with_the_hour(flows: Flows) -> None:
    rest, topic, copying, reading = flows.rest, f"{BY_HOUR}-lines", "copy_hours", "read_hours"
    hour_ms = wall_ms() // HOUR_MS * HOUR_MS - 3 * HOUR_MS
    hour = f"{datetime.fromtimestamp(hour_ms / 1000, UTC):%Y-%m-%dT%H}"
    create_topic(flows.source, topic)
    send(producer(flows.source), topic, [Message(value=b"%d" % at, timestamp=hour_ms + at) for at in range(20)])
    for one in (copying, reading):
        rest.wait_dag(one)
        rest.pause(one, paused=False)
    try:
        run = rest.trigger(copying)
        assert rest.wait_run(copying, run, seconds=ASKED_SECONDS) == "success", rest.log(copying, run, "hours.report")
        until(lambda: any(one["state"] in ENDED for one in rest.runs(reading)), f"a run of {reading}")
    finally:
        for one in (copying, reading):
            rest.pause(one, paused=True)
    (read,) = rest.runs(reading)
    assert (read["state"], read["partition_key"]) == ("success", hour)
    assert f"records of hour {hour}" in rest.log(reading, str(read["dag_run_id"]), "read")
    name = f"{copying}@hours@{run}"
    copied = [one for one in flows.lab(BY_HOUR).receipts() if one.run == name and one.source.topic == topic]
    assert sum(one.records for one in copied) == 20
    assert rest.states(copying, run)["nothing_left"] == "success"
