"""What the documents tell people to type of Airflow's own commands, typed."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.airflow.conftest import Flows
from tests.harness import create_topic, numbered, producer, send
from tests.world.documents.commands import placed, told

IN_CONTAINER = ["compose", "exec", "airflow-scheduler", "airflow"]


def _airflow(flows: Flows, words: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "airflow", *words],
        env={**os.environ, **flows.home.environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_a_dag_is_unpaused_and_triggered_by_airflows_command_line(flows: Flows) -> None:
    create_topic(flows.source, "plain-typed", 1)
    send(producer(flows.source), "plain-typed", numbered(10))
    dag = flows.dag("plain")
    _airflow(flows, placed(told("dags", "pause"), {"ferry__primary__backup": dag}))
    assert flows.rest.ask("GET", f"/api/v2/dags/{dag}")["is_paused"]
    before = {str(run["dag_run_id"]) for run in flows.rest.runs(dag)}
    _airflow(flows, placed(told("unpause", "--yes"), {"ferry__primary__backup": dag}))
    assert not flows.rest.ask("GET", f"/api/v2/dags/{dag}")["is_paused"]
    for line in (told("airflow-scheduler", "unpause"), told("dags", "trigger")):
        words = placed(line, {"ferry__primary__backup": dag})
        assert words[:4] == IN_CONTAINER
        _airflow(flows, words[4:])
    (run,) = {str(run["dag_run_id"]) for run in flows.rest.runs(dag)} - before
    assert flows.rest.wait_run(dag, run, seconds=420) == "success", flows.rest.log(dag, run, "copy")
