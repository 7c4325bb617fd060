"""A task that fails keeps why, as its XCom: the page shows it (`tests/airflow/page/test_beside.py`)."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import (
    AirflowException,
    AirflowFailException,
    AirflowNotFoundException,
    AirflowRuntimeError,
    AirflowSecretsBackendAccessDenied,
    AirflowSkipException,
    ErrorType,
)
from airflow.sdk.execution_time import context as airflow_context
from airflow.sdk.execution_time.comms import ErrorResponse
from airflow.sdk.execution_time.context import set_current_context

from ferry.errors import BadInput, FerryError, Refused, Retryable, Unreachable
from ferry.plan.options import RunOptions
from ferry.plan.preview import of_this_run
from ferry.plan.rules.planning import decide_plan
from ferry_airflow import steps
from ferry_airflow.base import LONGEST_REASON, airflow_errors, final_failure
from ferry_airflow.cluster_settings import settings_of
from ferry_airflow.naming import ASKED_WRONG, REASON
from ferry_airflow.operators import FerryCopyOperator, FerryReportOperator
from tests.golden import Golden
from tests.pure.decide.values import FACTS, RULES


class Task:
    """A task instance that keeps what is pushed, and knows what the task `plan` kept and how it ended."""

    def __init__(self, planned: str | None = None, state: str = "failed") -> None:
        self.kept: dict[str, Any] = {}
        self.planned = planned
        self.state = state

    def get_task_states(self, dag_id: str, task_ids: list[str], run_ids: list[str]) -> dict[str, dict[str, str]]:
        assert dag_id == "ferry__a__b"
        return {run: dict.fromkeys(task_ids, self.state) for run in run_ids}

    def xcom_push(self, key: str, value: Any) -> None:
        self.kept[key] = value

    def xcom_pull(self, task_ids: str, key: str) -> str | None:
        return self.planned if (task_ids, key) == ("plan", REASON) else None


@pytest.mark.parametrize(
    ("error", "ends"),
    [
        (Refused("the topic is paused"), AirflowFailException),
        (BadInput("no topic nosuchtopic"), AirflowFailException),
        (Unreachable("cluster a does not answer"), AirflowException),
    ],
)
def test_a_failing_task_keeps_its_sentence(error: FerryError, ends: type[Exception]) -> None:
    task: Any = Task()
    with set_current_context({"ti": task}), pytest.raises(ends, match=str(error)), airflow_errors():
        raise error
    assert task.kept == {REASON: str(error)}
    with set_current_context({"ti": task}):
        final_failure("x" * (LONGEST_REASON + 1))
    assert len(task.kept[REASON]) == LONGEST_REASON


def test_a_run_that_fails_by_what_it_was_asked_for_keeps_that_beside_its_sentence() -> None:
    """A topic that it names and that is not there; what the flow's file says wrong is no fault of the run."""
    for only, is_of_run in ((frozenset({"ordres"}), True), (None, False)):
        task: Any = Task()
        with (
            set_current_context({"ti": task}),
            pytest.raises(AirflowFailException),
            airflow_errors(),
            of_this_run(RunOptions(only=only)),
        ):
            decide_plan(replace(RULES, only=frozenset({"ordres"})), FACTS, "r", -1)
        assert " copy topic ordres" in task.kept.pop(REASON)
        assert task.kept == ({ASKED_WRONG: True} if is_of_run else {})


def test_a_task_whose_sentence_cannot_be_kept_fails_no_less() -> None:
    with pytest.raises(AirflowFailException, match="paused"), airflow_errors():
        raise Refused("the topic is paused")


def test_a_report_of_a_run_that_was_not_planned_says_what_the_plan_said(
    monkeypatch: pytest.MonkeyPatch, golden: Golden
) -> None:
    def unplanned(flow: Any, run: str) -> Any:
        raise BadInput("the ledger has no plan of run r")

    monkeypatch.setattr(steps, "reported", unplanned)
    operator = FerryReportOperator(task_id="report", config="/f", flow="a->b")
    task: Any = Task(planned="cluster a has no topic nosuchtopic")
    context: Any = {"ti": task, "run_id": "r", "dag": SimpleNamespace(dag_id="ferry__a__b"), "params": {}}
    with set_current_context(context), pytest.raises(AirflowFailException) as caught:
        operator._reported(None, context)  # type: ignore[arg-type]
    golden(caught.value, "the plan failed")
    assert task.kept[REASON].endswith(task.planned)
    task = Task()
    context["ti"] = task
    with set_current_context(context), pytest.raises(BadInput) as wrong:
        operator._reported(None, context)  # type: ignore[arg-type]
    golden(wrong.value, "no plan")
    context["ti"] = Task(state="upstream_failed")
    with set_current_context(context), pytest.raises(AirflowFailException) as caught:
        operator._reported(None, context)  # type: ignore[arg-type]
    golden(caught.value, "before plan")
    context["ti"] = Task(state="skipped")
    with set_current_context(context), pytest.raises(AirflowSkipException) as skipped:
        operator._reported(None, context)  # type: ignore[arg-type]
    golden(skipped.value, "plan skipped")
    assert operator.run_link == "", "there is no page of it"


@pytest.mark.parametrize(
    ("conn_id", "named"),
    [("no_such_connection", "does not exist"), ("kafka_not_spark", "is of type 'kafka'")],
)
def test_a_spark_connection_that_is_missing_or_of_another_type_is_named(
    conn_id: str, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_NOT_SPARK", "kafka://127.0.0.1:1")
    operator = FerryCopyOperator(task_id="copy", config="flows.properties", flow="a->b", conn_id=conn_id)
    task: Any = Task()
    with set_current_context({"ti": task}), pytest.raises(AirflowFailException, match=f"{conn_id}' {named}"):
        operator.spark_connection()
    assert conn_id in task.kept[REASON]


def airflow_error(kind: ErrorType) -> AirflowRuntimeError:
    return AirflowRuntimeError(ErrorResponse(error=kind, detail={"message": "it is in repair"}))


@pytest.mark.parametrize(
    ("error", "kind", "is_final"),
    [
        (AirflowNotFoundException("none"), BadInput, True),
        (airflow_error(ErrorType.CONNECTION_NOT_FOUND), BadInput, True),
        (airflow_error(ErrorType.API_SERVER_ERROR), Retryable, False),
        (airflow_error(ErrorType.GENERIC_ERROR), Retryable, False),
        (AirflowSecretsBackendAccessDenied("it is in repair"), Refused, True),
    ],
    ids=["not-found", "connection-not-found", "api-server", "generic", "denied"],
)
def test_only_a_connection_that_airflow_does_not_find_is_missing(
    error: Exception, kind: type[FerryError], is_final: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asked(conn_id: str) -> None:
        raise error

    monkeypatch.setattr(airflow_context, "_get_connection", asked)
    operator = FerryCopyOperator(task_id="copy", config="flows.properties", flow="a->b", conn_id="spark_there")
    task: Any = Task()
    with set_current_context({"ti": task}), pytest.raises(AirflowException) as failed:
        operator.spark_connection()
    with pytest.raises(FerryError) as found:
        settings_of("kafka_there")
    assert isinstance(failed.value, AirflowFailException) is is_final
    assert type(found.value) is kind
    for conn_id, said in (("spark_there", task.kept[REASON]), ("kafka_there", str(found.value))):
        assert conn_id in said
        assert ("does not exist" in said) is (kind is BadInput)
        assert ("it is in repair" in said) is (kind is not BadInput), "Airflow's own words"
