"""The task `copy` that waits in the triggerer, or finds its driver again: with YARN and Kubernetes scripted."""

from __future__ import annotations

import asyncio
import json
import stat
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.providers.apache.spark.hooks import spark_submit as spark_submit_hook
from airflow.providers.apache.spark.operators import spark_submit as spark_submit_operator
from airflow.sdk import DAG
from airflow.sdk.bases.operator import TriggerFailureReason
from airflow.sdk.exceptions import AirflowException, AirflowFailException, TaskDeferralTimeout, TaskDeferred
from airflow.triggers.base import BaseTrigger

from ferry.config.settings import load
from ferry.errors import FerryError, Superseded
from ferry.model import Origin
from ferry_airflow import copy_trigger, operators, steps, window_steps
from ferry_airflow.backfill import FerryWindowCopyOperator, backfill_dag
from ferry_airflow.base import origin_of
from ferry_airflow.cluster_driver import DriverState
from ferry_airflow.copy_trigger import MISSED, ConnectCopyTrigger, DriverTrigger
from ferry_airflow.dags import flow_dags
from ferry_airflow.failing import Failure, FinalFailure
from ferry_airflow.operators import FerryCopyOperator
from tests.airflow.managers import APPLICATION, POD, InCluster, Kubernetes, Yarn
from tests.airflow.submitting import outputs_closed
from tests.golden import Golden

FLOW = "a->b"
TEXT = "clusters = a, b\na.bootstrap.servers = h:1\nb.bootstrap.servers = h:2\na->b.enabled = true\n"
RUN = "scheduled__2026-01-31T06:00:00+00:00"
RUNNING, DONE, FAILED = ("RUNNING", "UNDEFINED"), ("FINISHED", "SUCCEEDED"), ("FINISHED", "FAILED")
SUBMIT = """#!{python}
import sys
with open({out!r}, "a") as out:
    print(*sys.argv[1:], file=out)
print("INFO Client: Submitted application {application}", flush=True)
print("INFO LoggingPodStatusWatcherImpl: pod name: {pod}", flush=True)
sys.exit({code})
"""
WAITING = DriverState(state="RUNNING", is_active=True, succeeded=False)
ENDED = DriverState(state="FAILED", is_active=False, succeeded=False)
SUCCEEDED = DriverState(state="SUCCEEDED", is_active=False, succeeded=True)


@pytest.fixture(params=["yarn", "kubernetes"])
def cluster(request: pytest.FixtureRequest, stage: Stage, yarn: Yarn) -> InCluster:
    """The stage on a cluster manager, with drivers in the cluster."""
    if request.param == "yarn":
        stage.on(yarn)
        killed = ("KILLED", "KILLED")
        words = {"begins": ("ACCEPTED", "UNDEFINED"), "runs": RUNNING, "done": DONE, "failed": FAILED, "killed": killed}
        return InCluster(yarn, APPLICATION, APPLICATION, {}, {**words, "not known": None})
    kubernetes = Kubernetes()
    for module in (spark_submit_hook, spark_submit_operator):
        stage.monkeypatch.setattr(module, "kube_client", kubernetes, raising=False)
    library = SimpleNamespace(client=SimpleNamespace(V1DeleteOptions=SimpleNamespace))
    stage.monkeypatch.setitem(sys.modules, "kubernetes", library)
    stage.connection(host="k8s://https://api:6443", extra={"deploy-mode": "cluster", "namespace": "ferry"})
    phases = {"begins": "Pending", "runs": "Running", "done": "Succeeded", "failed": "Failed", "killed": "Failed"}
    options = {"track_driver_via_k8s_api": True}
    return InCluster(kubernetes, f"ferry:{POD}", POD, options, {**phases, "not known": None})


@pytest.fixture
def yarn() -> Iterator[Yarn]:
    """YARN's REST API."""
    found = Yarn()
    yield found
    found.server.shutdown()
    found.server.server_close()


class Store(dict[str, Any]):
    """What a task keeps between its tries."""

    def set(self, key: str, value: Any) -> None:
        self[key] = value

    def delete(self, key: str) -> None:
        self.pop(key, None)


class Stage:
    """A task `copy` whose spark-submit is a stand-in, and whose ledger is what `left` says."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.monkeypatch = monkeypatch
        self.store = Store()
        self.left: bool | FerryError = True
        self.copier = "this try"
        self.started = datetime.now(UTC)
        config = folder / "flows.properties"
        config.write_text(TEXT)
        self.config = str(config)
        self.submit()
        monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
        monkeypatch.setattr(steps, "nothing_left", lambda *_: self._nothing_left())
        monkeypatch.setattr(steps, "newest_copier", lambda *_: self._newest_copier())
        monkeypatch.setattr(operators, "live_run", lambda *_: RUN)

    def _newest_copier(self) -> Origin:
        """What began the newest attempt: another triggerer for the try of `context`, or a person at a terminal."""
        other = Origin(host="another:1")
        return replace(origin_of(self.context), host=other.host) if self.copier == "this try" else other

    def _nothing_left(self) -> bool:
        if isinstance(self.left, FerryError):
            raise self.left
        return not self.left

    @property
    def out(self) -> Path:
        return self.folder / "submitted"

    @property
    def submitted(self) -> list[str]:
        return self.out.read_text().splitlines() if self.out.exists() else []

    def submit(self, code: int = 0) -> None:
        """Make the stand-in of spark-submit, which ends with that code."""
        file = self.folder / "spark-submit"
        file.write_text(
            SUBMIT.format(python=sys.executable, out=str(self.out), application=APPLICATION, pod=POD, code=code)
        )
        file.chmod(file.stat().st_mode | stat.S_IXUSR)

    def connection(self, **fields: Any) -> None:
        """Make the Spark connection."""
        self.monkeypatch.setenv("AIRFLOW_CONN_THERE", json.dumps({"conn_type": "spark", **fields}))

    def on(self, yarn: Yarn) -> None:
        """Make a Spark connection to YARN, with drivers in the cluster."""
        extra = {"deploy-mode": "cluster", "yarn_resourcemanager_webapp_address": yarn.address}
        self.connection(host="yarn", extra=extra)

    def task(self, **more: Any) -> FerryCopyOperator:
        return FerryCopyOperator(task_id="copy", config=self.config, flow=FLOW, conn_id="there", **more)

    @property
    def context(self) -> Any:
        return {
            "dag": SimpleNamespace(dag_id="ferry__a__b"),
            "run_id": RUN,
            "params": {},
            "ti": SimpleNamespace(
                try_number=2, stats_tags={}, xcom_push=lambda *_, **__: None, start_date=self.started
            ),
            "task_state_store": self.store,
        }

    def deferred(self, **more: Any) -> tuple[BaseTrigger, TaskDeferred]:
        """What a deferrable task waits by."""
        with pytest.raises(TaskDeferred) as raised:
            self.task(deferrable=True, **more).execute(self.context)
        return raised.value.trigger, raised.value


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    """A task `copy` with something to copy."""
    with outputs_closed():
        yield Stage(tmp_path, monkeypatch)


def driver_trigger(**more: Any) -> DriverTrigger:
    return DriverTrigger(**{"conn_id": "there", "driver": APPLICATION, "options": {}, "every_seconds": 0, **more})


def connect_trigger() -> ConnectCopyTrigger:
    return ConnectCopyTrigger(
        config="/f", flow=FLOW, run_id=RUN, conn_id="there", dag_id="d", dag_run_id="r", try_number=2
    )


def event_of(trigger: BaseTrigger) -> dict[str, Any]:
    """The one event of a trigger."""

    async def run() -> list[dict[str, Any]]:
        return [event.payload async for event in trigger.run()]

    (found,) = asyncio.run(run())
    return found


@pytest.mark.parametrize("trigger", [driver_trigger(options={"keytab": "/k"}), connect_trigger()])
def test_airflow_can_make_a_trigger_again(trigger: DriverTrigger | ConnectCopyTrigger) -> None:
    path, arguments = trigger.serialize()
    again = getattr(copy_trigger, path.rpartition(".")[2])(**json.loads(json.dumps(arguments)))
    assert again.serialize() == (path, arguments)


@pytest.mark.parametrize(
    ("script", "state", "succeeded"),
    [
        ([WAITING, WAITING, SUCCEEDED], "SUCCEEDED", True),
        ([ENDED], "FAILED", False),
        ([OSError(), WAITING, *[OSError()] * (MISSED - 1), SUCCEEDED], "SUCCEEDED", True),
        ([WAITING, *[OSError()] * MISSED], None, False),
    ],
)
def test_a_driver_is_awaited_until_its_state_is_an_end_or_unknown_for_long(
    script: list[Any], state: str | None, succeeded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter(script)

    def answer(*asked: Any) -> DriverState:
        assert asked == ("there", APPLICATION, {})
        found = next(answers)
        if isinstance(found, Exception):
            raise found
        return found  # type: ignore[no-any-return]

    monkeypatch.setattr(copy_trigger, "state_of", answer)
    assert event_of(driver_trigger()) == {"driver": APPLICATION, "state": state, "succeeded": succeeded}
    assert next(answers, None) is None, "it asked until the script's end"


def test_a_driver_in_the_cluster_is_awaited_by_what_the_connection_names(stage: Stage, cluster: InCluster) -> None:
    trigger, _ = stage.deferred(**cluster.options)
    assert isinstance(trigger, DriverTrigger)
    trigger.every_seconds = 0
    cluster.answers("begins", "runs", "done")
    found = event_of(trigger)
    assert (found["driver"], found["state"].upper(), found["succeeded"]) == (cluster.driver, "SUCCEEDED", True)
    assert cluster.manager.answers == []


@pytest.mark.parametrize("answer", ["failed", "killed", "not known"])
def test_a_driver_that_did_not_end_well_did_not_succeed(answer: str, stage: Stage, cluster: InCluster) -> None:
    trigger, _ = stage.deferred(**cluster.options)
    assert isinstance(trigger, DriverTrigger)
    trigger.every_seconds = 0
    cluster.answers("runs", answer)
    assert event_of(trigger)["succeeded"] is False


def test_a_user_who_ends_the_task_ends_the_driver(stage: Stage, cluster: InCluster) -> None:
    trigger, _ = stage.deferred(**cluster.options)
    asyncio.run(trigger.on_kill())
    assert cluster.manager.ended == [cluster.ended]


def test_a_wait_that_is_too_long_ends_the_driver(stage: Stage, cluster: InCluster) -> None:
    stage.deferred(**cluster.options)
    task = stage.task(**cluster.options)
    with pytest.raises(TaskDeferralTimeout):
        task.resume_execution("__fail__", {"error": TriggerFailureReason.TRIGGER_TIMEOUT}, stage.context)
    assert cluster.manager.ended == [cluster.ended]


@pytest.mark.parametrize(("answer", "submissions"), [("runs", 1), ("failed", 2), ("killed", 2), ("not known", 2)])
def test_a_retry_waits_for_the_driver_of_its_plan_while_that_runs(
    answer: str, submissions: int, stage: Stage, cluster: InCluster
) -> None:
    stage.deferred(**cluster.options)
    cluster.answers(answer)
    trigger, _ = stage.deferred(**cluster.options)
    assert isinstance(trigger, DriverTrigger)
    assert trigger.driver == cluster.driver
    assert len(stage.submitted) == submissions
    assert "waitAppCompletion=false" in stage.submitted[0], "spark-submit does not wait"


def test_a_retry_whose_driver_has_ended_well_starts_none_and_a_cleared_task_does(
    stage: Stage, cluster: InCluster
) -> None:
    stage.deferred(**cluster.options)
    cluster.answers("done")
    stage.task(deferrable=True, **cluster.options).execute(stage.context)
    assert (len(stage.submitted), stage.store) == (1, {})
    stage.deferred(**cluster.options)
    assert len(stage.submitted) == 2


def test_a_driver_of_another_job_of_the_task_is_not_taken_for_this_one(stage: Stage, yarn: Yarn) -> None:
    stage.on(yarn)
    stage.deferred()
    stage.monkeypatch.setattr(operators, "live_run", lambda *_: "another")
    stage.deferred()
    assert len(stage.submitted) == 2


def test_a_task_that_is_not_durable_starts_another_driver(stage: Stage, yarn: Yarn) -> None:
    stage.on(yarn)
    stage.deferred(durable=False)
    stage.deferred(durable=False)
    assert (len(stage.submitted), stage.store) == (2, {})


def test_a_worker_waits_for_a_driver_and_reads_its_end_from_the_ledger(stage: Stage, yarn: Yarn) -> None:
    stage.on(yarn)
    yarn.answers = [FAILED]
    with pytest.raises(AirflowException):
        stage.task().execute(stage.context)
    yarn.answers = [FAILED, FAILED]
    left = iter([False, True])
    stage.monkeypatch.setattr(steps, "nothing_left", lambda *_: next(left))
    stage.task().execute(stage.context)
    assert len(stage.submitted) == 2


@pytest.mark.parametrize("cluster", ["kubernetes"], indirect=True)
def test_a_driver_whose_pod_is_gone_did_not_succeed_unless_all_is_copied(
    stage: Stage, cluster: InCluster, golden: Golden
) -> None:
    """The provider returns from its wait as if the driver had ended well."""
    cluster.answers("not known")
    with pytest.raises(Failure) as raised:
        stage.task(**cluster.options).execute(stage.context)
    golden(raised.value)
    left = iter([False, True])
    stage.monkeypatch.setattr(steps, "nothing_left", lambda *_: next(left))
    stage.task(**cluster.options).execute(stage.context)
    assert len(stage.submitted) == 2


@pytest.mark.parametrize("cluster", ["kubernetes"], indirect=True)
@pytest.mark.parametrize("durable", [True, False])
def test_a_driver_that_ended_well_may_leave_what_it_refused(stage: Stage, cluster: InCluster, *, durable: bool) -> None:
    cluster.answers("done")
    stage.task(**cluster.options, durable=durable).execute(stage.context)
    assert cluster.manager.ended == [POD], "the provider deletes it"


@pytest.mark.parametrize("cluster", ["kubernetes"], indirect=True)
@pytest.mark.parametrize("left", [True, False])
def test_a_window_whose_driver_is_gone_is_not_copied_unless_the_ledger_has_it(
    stage: Stage, cluster: InCluster, *, left: bool
) -> None:
    task = FerryWindowCopyOperator(task_id="copy", config=stage.config, flow=FLOW, conn_id="there", **cluster.options)
    asked: list[tuple[Any, ...]] = []

    def nothing_left(flow: object, *run: Any) -> bool:
        asked.append(run)
        return not left

    stage.monkeypatch.setattr(steps, "nothing_left", nothing_left)
    stage.monkeypatch.setattr(window_steps, "copy_window", lambda _, __, copy, ___: copy("w1~2"))
    params = {"lane": "backfill-june", "from_offsets": ["x:0:1"], "to_offsets": ["x:0:3"]}
    context: Any = {
        **stage.context,
        "params": params,
        "dag": backfill_dag(load(Path(stage.config)).flow(FLOW), Path("/f"), "@daily"),
    }
    cluster.answers("not known")
    with pytest.raises(Failure) if left else nullcontext():
        task.execute(context)
    assert asked == [("w1~2", "backfill-june")]


def test_without_yarns_address_spark_submit_waits_in_the_worker(stage: Stage) -> None:
    stage.connection(host="yarn", extra={"deploy-mode": "cluster"})
    stage.task(deferrable=True).execute(stage.context)
    assert len(stage.submitted) == 1
    assert "waitAppCompletion" not in stage.submitted[0]


def test_in_client_mode_a_deferrable_task_waits_in_the_worker(stage: Stage) -> None:
    stage.connection(host="yarn")
    stage.monkeypatch.setattr("ferry_airflow.spark_job.offered", lambda _, path: nullcontext(path))
    stage.task(deferrable=True).execute(stage.context)
    assert len(stage.submitted) == 1


def test_a_standalone_cluster_runs_no_python_driver(stage: Stage) -> None:
    stage.connection(host="spark://master:7077", extra={"deploy-mode": "cluster"})
    with pytest.raises(AirflowFailException, match="client"):
        stage.task().execute(stage.context)
    assert stage.submitted == []


GOOD: dict[str, Any] = {"driver": APPLICATION, "state": "SUCCEEDED", "succeeded": True}
BAD = {**GOOD, "state": "FAILED", "succeeded": False}
UNKNOWN = {**GOOD, "state": None, "succeeded": False}


@pytest.mark.parametrize(
    ("event", "left", "error"),
    [
        (GOOD, True, None),
        (BAD, False, None),
        (UNKNOWN, False, None),
        (BAD, True, Failure),
        (UNKNOWN, True, Failure),
        (BAD, Superseded("another run has the lane"), FinalFailure),
        ({}, True, None),
        ({"error": "the topic is paused", "final": True}, True, FinalFailure),
        ({"error": "cluster a does not answer", "final": False}, True, Failure),
    ],
)
def test_after_the_wait_the_ledger_decides_what_a_driver_did(
    event: dict[str, Any], left: Any, error: type[Exception] | None, stage: Stage
) -> None:
    stage.left = left
    task = stage.task()
    if error is None:
        task.execute_complete(stage.context, event)
        return
    with pytest.raises(AirflowException) as raised:
        task.execute_complete(stage.context, event)
    assert type(raised.value) is error


TAKEN_OVER = {"error": "superseded by attempt 2", "final": True, "superseded": True}
"""The event of a copy of which another attempt at the same run, or a newer run, has what is left."""


def test_a_copy_that_another_attempt_took_over_is_waited_for_again(stage: Stage) -> None:
    stage.connection(conn_type="spark_connect", host="h", port=15002)
    with pytest.raises(TaskDeferred) as raised:
        stage.task(deferrable=True).execute_complete(stage.context, TAKEN_OVER)
    assert isinstance(raised.value.trigger, ConnectCopyTrigger)
    assert raised.value.trigger.run_id == RUN


@pytest.mark.parametrize(
    ("minutes_ago", "least_s", "most_s"),
    [(0, 590, 600), (4, 350, 360), (30, 1, 1)],
    ids=["just begun", "in the middle", "too late"],
)
def test_each_wait_of_a_try_has_what_is_left_of_its_execution_timeout(
    minutes_ago: int, least_s: float, most_s: float, stage: Stage
) -> None:
    """Two triggerers that take a copy from each other in turn must come to an end."""
    stage.connection(conn_type="spark_connect", host="h", port=15002)
    stage.started -= timedelta(minutes=minutes_ago)
    task = stage.task(deferrable=True, execution_timeout=timedelta(minutes=10))
    with pytest.raises(TaskDeferred) as raised:
        task.execute_complete(stage.context, TAKEN_OVER)
    assert raised.value.timeout is not None
    assert least_s <= raised.value.timeout.total_seconds() <= most_s


def test_the_wait_for_a_driver_has_what_is_left_of_the_execution_timeout(stage: Stage, yarn: Yarn) -> None:
    stage.on(yarn)
    stage.started -= timedelta(minutes=4)
    _, wait = stage.deferred(execution_timeout=timedelta(minutes=10))
    assert wait.timeout is not None
    assert 300 < wait.timeout.total_seconds() <= 360


def test_without_an_execution_timeout_a_wait_has_no_end(stage: Stage, yarn: Yarn) -> None:
    stage.on(yarn)
    assert stage.deferred()[1].timeout is None


def test_a_copy_that_a_person_took_over_fails_and_leaves_it_to_the_person(stage: Stage) -> None:
    stage.connection(conn_type="spark_connect", host="h", port=15002)
    stage.copier = "ferry run --resume"
    with pytest.raises(FinalFailure):
        stage.task(deferrable=True).execute_complete(stage.context, TAKEN_OVER)


def test_a_copy_that_another_attempt_has_finished_is_done(stage: Stage) -> None:
    stage.left = False
    stage.task(deferrable=True).execute_complete(stage.context, TAKEN_OVER)


def test_a_copy_that_a_newer_run_took_over_fails(stage: Stage) -> None:
    stage.left = Superseded("another run has the lane")
    with pytest.raises(FinalFailure):
        stage.task(deferrable=True).execute_complete(stage.context, TAKEN_OVER)


def test_a_driver_that_ended_well_is_forgotten_and_another_one_is_asked_for_again(stage: Stage, yarn: Yarn) -> None:
    stage.on(yarn)
    stage.deferred()
    kept = dict(stage.store)
    with pytest.raises(AirflowException):
        stage.task().execute_complete(stage.context, UNKNOWN)
    assert stage.store == kept
    stage.task().execute_complete(stage.context, GOOD)
    assert stage.store == {}


def test_over_spark_connect_the_trigger_has_what_the_copy_needs(stage: Stage) -> None:
    stage.connection(conn_type="spark_connect", host="h", port=15002)
    trigger, wait = stage.deferred()
    assert isinstance(trigger, ConnectCopyTrigger)
    assert trigger.serialize()[1] == {
        "config": stage.config,
        "flow": FLOW,
        "run_id": RUN,
        "conn_id": "there",
        "dag_id": "ferry__a__b",
        "dag_run_id": RUN,
        "try_number": 2,
    }
    assert wait.method_name == "execute_complete"


def waits(dag: DAG) -> bool:
    """Whether the DAG's copies are deferrable."""
    task = dag.get_task("copy")
    assert isinstance(task, FerryCopyOperator)
    return task.deferrable


def test_copy_waits_as_airflow_or_the_dag_file_sets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "f.properties"
    config.write_text(TEXT)
    (plain,) = (dag for dag in flow_dags(config).values() if "copy" in dag.task_ids and "checkpoint" in dag.task_ids)
    assert waits(plain) is False
    (set_so,) = (
        dag
        for dag in flow_dags(config, default_args={"deferrable": True}).values()
        if "copy" in dag.task_ids and "checkpoint" in dag.task_ids
    )
    assert waits(set_so) is True
