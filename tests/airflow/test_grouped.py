"""A micro-run as the task group of another author's DAG, in a real Airflow: the DAG that docs/operators.md shows."""

from __future__ import annotations

import pytest

from tests.airflow.conftest import GROUPED, Flows
from tests.harness import create_topic, numbered, producer, send
from tests.spark.jobs import until

DAG, SKIPPED, TOPIC = "copy_orders", "skip_orders", f"{GROUPED}-orders"
TASKS = ("plan", "copy", "checkpoint", "report")


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
        rest._ask("POST", f"/api/v2/dags/{dag}/dagRuns", {"dag_run_id": run, "logical_date": None, "conf": {}})
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
    assert f"nothing is left to copy in run {name}" in rest.log(DAG, run, "orders.copy", attempt=2)
    with lab.runs() as runs:
        assert [one.record.run for one in runs.whole_ledger().runs] == [run, name]

    assert trigger(SKIPPED) == "success"
    assert rest.states(SKIPPED, run) == dict.fromkeys(
        ("before", *(f"orders.{one}" for one in TASKS), "after"), "skipped"
    )
