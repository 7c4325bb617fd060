"""The task `copy` with its driver in a real YARN: it waits elsewhere, outlives its worker, and is ended."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import TaskDeferred

from ferry.dev import RunningCluster
from ferry.ledger.report import RunState
from ferry.model import Flow
from ferry_airflow.copy_trigger import DriverTrigger
from ferry_airflow.naming import dag_id
from ferry_airflow.operators import FerryCopyOperator
from tests.harness import Lab
from tests.spark.jobs import ROOT, plan, slow_lab, until
from tests.spark.yarn import Yarn, yarn

RUN = "manual__2026-01-31"
WORKER = """
import json, pathlib, sys
from tests.spark.test_yarn import Task

config, flow, conf, kept = sys.argv[1:]
task = Task(config, flow, json.loads(conf), pathlib.Path(kept))
task.operator(deferrable=False).execute(task.context)
"""
"""A worker with one try of the task, which waits there."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yarn]:
    """YARN with one node."""
    with yarn(tmp_path_factory.mktemp("yarn")) as found:
        yield found


class Kept(dict[str, Any]):
    """What a task keeps between its tries, in a file."""

    def __init__(self, file: Path) -> None:
        super().__init__(json.loads(file.read_text()) if file.exists() else {})
        self.file = file

    def set(self, key: str, value: Any) -> None:
        """Keep a value."""
        self[key] = value
        self.file.write_text(json.dumps(self))

    def delete(self, key: str) -> None:
        """Forget a value."""
        self.pop(key, None)
        self.file.write_text(json.dumps(self))


class Task:
    """The task `copy` of a run that is planned."""

    def __init__(self, config: str, flow: str, conf: dict[str, str], kept: Path) -> None:
        self.config = config
        self.flow = flow
        self.conf = conf
        self.kept = kept

    def operator(self, *, deferrable: bool) -> FerryCopyOperator:
        """The operator of one try."""
        return FerryCopyOperator(
            task_id="copy",
            config=self.config,
            flow=self.flow,
            conn_id="in_yarn",
            conf=self.conf,
            deferrable=deferrable,
        )

    @property
    def context(self) -> Any:
        """What Airflow gives to a try."""
        return {
            "dag": SimpleNamespace(dag_id=dag_id(Flow.parse(self.flow))),
            "run_id": RUN,
            "params": {},
            "ti": SimpleNamespace(try_number=1, stats_tags={}, xcom_push=lambda *_, **__: None),
            "task_state_store": Kept(self.kept),
        }

    def deferred(self) -> DriverTrigger:
        """What a try waits by."""
        with pytest.raises(TaskDeferred) as raised:
            self.operator(deferrable=True).execute(self.context)
        assert isinstance(raised.value.trigger, DriverTrigger)
        path, arguments = raised.value.trigger.serialize()
        assert path.endswith("DriverTrigger")
        return DriverTrigger(**{**json.loads(json.dumps(arguments)), "every_seconds": 1})

    def complete(self, trigger: DriverTrigger) -> dict[str, Any]:
        """Wait by the trigger, and end the task; the event."""

        async def event() -> dict[str, Any]:
            return (await anext(trigger.run())).payload  # type: ignore[no-any-return]

        found = asyncio.run(event())
        self.operator(deferrable=True).execute_complete(self.context, found)
        return found


def assert_done(lab: Lab) -> None:
    """All is copied, once."""
    with lab.runs() as runs:
        assert runs.report(RUN).state is RunState.SUCCESS
    assert lab.assert_equal() == 24_000


@pytest.fixture
def lab(source_cluster: RunningCluster, target_cluster: RunningCluster, topic: str) -> Lab:
    """A flow whose run takes seconds."""
    return slow_lab(source_cluster, target_cluster, topic)


@pytest.fixture
def task(lab: Lab, cluster: Yarn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Task:
    """The task `copy`, whose Spark connection is of YARN."""
    environment = {**cluster.environment, "AIRFLOW_CONN_IN_YARN": json.dumps(cluster.connection)}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    plan(lab, RUN)
    return Task(str(lab.write(tmp_path)), str(lab.flow.flow), cluster.spark, tmp_path / "kept.json")


def test_a_copy_waits_for_its_driver_without_a_process(task: Task, lab: Lab, cluster: Yarn) -> None:
    before = set(cluster.applications())
    trigger = task.deferred()
    assert set(cluster.applications()) - before == {trigger.driver}
    assert task.complete(trigger) == {"driver": trigger.driver, "state": "SUCCEEDED", "succeeded": True}
    assert_done(lab)
    assert Kept(task.kept) == {}


def test_a_try_whose_worker_died_waits_for_the_driver_that_it_started(task: Task, lab: Lab, cluster: Yarn) -> None:
    before = set(cluster.applications())
    output = task.kept.with_name("worker.log")
    arguments = [task.config, task.flow, json.dumps(task.conf), str(task.kept)]
    with output.open("wb") as sink:
        worker = subprocess.Popen([sys.executable, "-c", WORKER, *arguments], stdout=sink, stderr=sink, cwd=ROOT)

    def begun() -> bool:
        assert worker.poll() is None, output.read_text()
        return bool(lab.receipts())

    until(begun, "a first receipt")
    worker.kill()
    worker.wait()
    (driver,) = set(cluster.applications()) - before
    trigger = task.deferred()
    assert trigger.driver == driver
    task.complete(trigger)
    assert set(cluster.applications()) - before == {driver}
    assert_done(lab)


def test_a_user_who_ends_the_task_ends_its_driver_and_the_next_try_copies_what_is_left(
    task: Task, lab: Lab, cluster: Yarn
) -> None:
    trigger = task.deferred()
    until(lambda: bool(lab.receipts()), "a first receipt")
    asyncio.run(trigger.on_kill())
    until(lambda: cluster.applications()[trigger.driver] == "KILLED", "the driver's end")
    with lab.runs() as runs:
        assert runs.report(RUN).state is RunState.PARTIAL
    again = task.deferred()
    assert again.driver != trigger.driver
    task.complete(again)
    assert_done(lab)
