"""Which tasks Airflow tries again, as its tables have them after broker failures, kills and clears."""

from __future__ import annotations

import json
import uuid
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from airflow.models.dag_version import DagVersion
from airflow.models.dagrun import DagRun
from airflow.models.serialized_dag import SerializedDagModel
from airflow.models.taskinstance import TaskInstance
from airflow.models.taskinstancehistory import TaskInstanceHistory
from airflow.models.xcom import XComModel
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG
from airflow.serialization.serialized_objects import DagSerialization
from sqlalchemy import insert
from sqlalchemy.orm import Session

from ferry_airflow.naming import REASON
from ferry_airflow.page import access, retries
from ferry_airflow.page.airflow_side import DagRunRow, DagState
from ferry_airflow.page.filters import ms_of
from ferry_airflow.page.retries import delays_in, retries_of, with_retries
from tests.airflow.page.conftest import Keeper, Right, Somebody
from tests.airflow.page.test_airflow_side import NOON, counted

DAG_ID = "ferry__primary__backup"
FAR = "cluster-primary-is-down"
DELAY = timedelta(seconds=30)
USER: Any = Somebody()


def began(session: Session, dag: str = DAG_ID, run: str = "r", number: int = 1) -> None:
    """An active run."""
    its = {"dag_id": dag, "run_id": run, "id": number, "run_after": NOON, "queued_at": NOON}
    session.execute(insert(DagRun).values(state="running", run_type="manual", conf={}, **its))


def tried(session: Session, state: str | None, *ended: str, dag: str = DAG_ID, task: str = "copy", **its: Any) -> None:
    """A task in a state, whose tries before ended so, one each minute."""
    of = {"dag_id": dag, "run_id": "r", "task_id": task, "map_index": -1, "pool": "p"}
    number = len(ended) + (state != "up_for_retry")
    values = {"max_tries": 4, "start_date": NOON + timedelta(minutes=9), "try_number": number, **its}
    session.execute(insert(TaskInstance).values(id=uuid.uuid4(), state=state, **of, **values))
    for at, word in enumerate(ended, 1):
        past = {"try_number": at, "state": word, "end_date": NOON + timedelta(minutes=at), "max_tries": 4}
        session.execute(insert(TaskInstanceHistory).values(task_instance_id=uuid.uuid4(), **of, **past))


def past(session: Session, number: int, word: str | None, minute: int) -> None:
    """A row of the history of the task."""
    of = {"dag_id": DAG_ID, "run_id": "r", "task_id": "copy", "map_index": -1, "pool": "p", "max_tries": 4}
    ended = NOON + timedelta(minutes=minute)
    values = {"try_number": number, "state": word, "end_date": ended, "task_instance_id": uuid.uuid4()}
    session.execute(insert(TaskInstanceHistory).values(**of, **values))


def kept(session: Session, text: str, dag: str = DAG_ID, number: int = 1) -> None:
    """What the last try kept when it failed."""
    its = {"dag_id": dag, "run_id": "r", "task_id": "copy", "key": REASON, "value": text}
    session.execute(insert(XComModel).values(dag_run_id=number, map_index=-1, **its))


def version(session: Session, dag: str = DAG_ID) -> uuid.UUID:
    """A version of the DAG as Airflow keeps it."""
    with DAG(dag, schedule=None, default_args={"retry_delay": DELAY}) as made:
        EmptyOperator(task_id="copy", retries=4)
    number = uuid.uuid4()
    session.execute(insert(DagVersion).values(id=number, dag_id=dag, version_number=1, bundle_name="dags"))
    data = DagSerialization.to_dict(made)
    its = {"id": uuid.uuid4(), "dag_id": dag, "dag_version_id": number, "dag_hash": "0", "data": data}
    session.execute(insert(SerializedDagModel).values(**its))
    return number


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "kept_delays", {})


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch) -> set[Right]:
    """What Airflow does not allow."""
    found: set[Right] = set()
    monkeypatch.setattr(access, "get_auth_manager", lambda: Keeper(found))
    monkeypatch.setattr(access, "teams_of", lambda dags: {})
    return found


def test_between_two_tries_the_next_has_its_time_and_the_last_its_reason(tables: Session) -> None:
    began(tables)
    tried(tables, "up_for_retry", "failed", dag_version_id=version(tables))
    kept(tables, FAR)
    with counted(tables) as asked:
        (one,) = retries_of([(DAG_ID, "r")])[DAG_ID, "r"]
        assert len(asked) == 3, asked
        retries_of([(DAG_ID, "r")])
    assert len(asked) == 5, "the delays of a version are read once"
    ended_ms = ms_of(NOON + timedelta(minutes=1))
    assert (one.task, one.number, one.most, one.ended, one.last) == ("copy", 2, 5, 1, 1)
    assert (one.ended_ms, one.due_ms, one.began_ms) == (ended_ms, (ended_ms or 0) + 30_000, None)
    assert one.why == FAR


def test_a_try_that_is_under_way_has_its_beginning_and_what_is_gone_is_not_known(tables: Session) -> None:
    began(tables)
    tried(tables, "running", "failed", "failed")
    kept(tables, "of a task that Airflow has not deleted yet")
    with counted(tables) as asked:
        (one,) = retries_of([(DAG_ID, "r")])[DAG_ID, "r"]
    assert len(asked) == 1, asked
    assert (one.number, one.most, one.ended, one.last) == (3, 5, 2, 2)
    assert (one.began_ms, one.due_ms, one.why) == (ms_of(NOON + timedelta(minutes=9)), None, "")


def test_a_policy_of_the_user_sets_the_delay_and_keeps_the_reason(tables: Session) -> None:
    began(tables)
    tried(tables, "up_for_retry", "failed", retry_delay_override=90.0, retry_reason="rate limit")
    tables.execute(TaskInstanceHistory.__table__.update().values(retry_reason="rate limit"))
    (one,) = retries_of([(DAG_ID, "r")])[DAG_ID, "r"]
    assert one.due_ms == ms_of(NOON + timedelta(minutes=2, seconds=30))
    assert one.why == "rate limit"


@pytest.mark.parametrize(
    ("state", "ended"),
    [
        ("running", ()),  # the first try
        ("running", ("success",)),  # cleared though it had copied all
        ("success", ("failed",)),
        ("failed", ("failed",)),
        (None, ("failed",)),  # cleared, and not its turn yet
    ],
)
def test_what_is_not_tried_again(tables: Session, state: str | None, ended: tuple[str, ...]) -> None:
    began(tables)
    tried(tables, state, *ended)
    assert retries_of([(DAG_ID, "r")]) == {}


@pytest.mark.parametrize("word", ["upstream_failed", "skipped", "removed", "failed"])
@pytest.mark.parametrize("number", [0, 1])
def test_a_row_of_the_history_that_is_no_failed_try_is_not_counted(tables: Session, word: str, number: int) -> None:
    began(tables)
    tried(tables, "running", try_number=number + 1)
    past(tables, number, word, 1)
    found = retries_of([(DAG_ID, "r")])
    assert [one.ended for one in found.get((DAG_ID, "r"), ())] == ([1] if (word, number) == ("failed", 1) else [])


def test_only_tries_after_the_last_success_are_counted(tables: Session) -> None:
    began(tables)
    tried(tables, "running", "failed", "success")
    assert retries_of([(DAG_ID, "r")]) == {}
    past(tables, 3, None, 3)
    (one,) = retries_of([(DAG_ID, "r")])[DAG_ID, "r"]
    assert (one.ended, one.last, one.ended_ms) == (1, 3, ms_of(NOON + timedelta(minutes=3)))


def test_a_number_of_tries_that_airflow_does_not_have_is_not_known(tables: Session) -> None:
    began(tables)
    tried(tables, "queued", "failed", max_tries=-1)
    (one,) = retries_of([(DAG_ID, "r")])[DAG_ID, "r"]
    assert (one.number, one.most, one.began_ms, one.due_ms) == (2, None, None, None)


def test_the_time_of_a_next_try_that_grows_or_has_no_version_is_not_known(tables: Session) -> None:
    began(tables)
    tried(tables, "up_for_retry", "failed", dag_version_id=None)
    assert retries_of([(DAG_ID, "r")])[DAG_ID, "r"][0].due_ms is None
    with DAG("d", schedule=None) as made:
        EmptyOperator(task_id="grows", retry_exponential_backoff=2.0)
        EmptyOperator(task_id="waits", retry_delay=DELAY)
    found = json.loads(json.dumps(DagSerialization.to_dict(made)))
    assert delays_in(found) == {"waits": DELAY}
    for odd in ({}, {"dag": {"tasks": [3]}}, {"dag": None}):
        assert delays_in(odd) == {}


def active(*dags: str) -> dict[str, DagState]:
    run = DagRunRow(run="r", state="running", queued=NOON, started=NOON, ended=None, who="")
    return {dag: DagState(known=True, runs=(run,)) for dag in dags}


def test_very_many_flows_take_as_many_queries_as_one(tables: Session, refused: set[Right]) -> None:
    names = [f"ferry__a__b{number:03}" for number in range(60)]
    for number, name in enumerate(names, 1):
        began(tables, name, number=number)
        tried(tables, "up_for_retry", "failed", dag=name, dag_version_id=version(tables, name))
        kept(tables, FAR, name, number)
    with counted(tables) as asked:
        found = with_retries(USER, active(*names))
    assert len(asked) == 3
    assert all(state.runs[0].retry and state.runs[0].retry.why == FAR for state in found.values())
    assert not any(state.hides_tasks for state in found.values())


def test_without_an_active_run_nothing_is_asked(tables: Session, refused: set[Right]) -> None:
    its = active(DAG_ID)[DAG_ID]
    ended = {DAG_ID: replace(its, runs=(replace(its.runs[0], state="failed"),))}
    with counted(tables) as asked:
        assert with_retries(USER, ended) == ended
        assert with_retries(USER, {DAG_ID: DagState()}) == {DAG_ID: DagState()}
    assert asked == []


def test_who_may_not_read_tasks_or_what_they_keep_sees_neither(tables: Session, refused: set[Right]) -> None:
    other = "ferry__a__b"
    for number, dag in enumerate((DAG_ID, other), 1):
        began(tables, dag, number=number)
        tried(tables, "up_for_retry", "failed", dag=dag)
        kept(tables, FAR, dag, number)
    refused |= {(DAG_ID, "GET", access.XCOMS), (other, "GET", access.TASKS)}
    found = with_retries(USER, active(DAG_ID, other))
    (one,) = found[DAG_ID].runs[0].retries
    assert (one.number, one.why) == (2, "")
    assert found[other].runs[0].retries == ()
    assert (found[DAG_ID].hides_tasks, found[other].hides_tasks) == (False, True)
