"""What is read of Airflow's tables: the DAGs of very many flows with their newest runs."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from airflow.dag_processing.collection import AssetModelOperation
from airflow.models.asset import AssetModel
from airflow.models.dag import DagModel
from airflow.models.dagrun import DagRun
from airflow.models.taskinstance import TaskInstance
from airflow.models.xcom import XComModel
from airflow.providers.standard.operators.empty import EmptyOperator
from airflow.sdk import DAG, Asset, chain
from airflow.serialization.serialized_objects import DagSerialization, LazyDeserializedDAG
from sqlalchemy import event, insert, select, update
from sqlalchemy.orm import Session

from ferry.config.settings import parse_settings
from ferry.errors import BadInput
from ferry_airflow.assets import topic_asset
from ferry_airflow.naming import ASKED_WRONG, REASON
from ferry_airflow.page import airflow_side, dag_runs
from ferry_airflow.page.airflow_side import AT_ONCE, DagState, dag_states, with_failed, with_older

NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)
FLOWS = 2 * AT_ONCE + 1
DAGS = [f"ferry__a__b{number:03}" for number in range(FLOWS)]


@contextmanager
def counted(session: Session) -> Iterator[list[str]]:
    """The statements that the database gets in the block."""
    asked: list[str] = []

    def note(connection: object, cursor: object, statement: str, *more: object) -> None:
        asked.append(statement)

    event.listen(session.get_bind(), "before_cursor_execute", note)
    yield asked
    event.remove(session.get_bind(), "before_cursor_execute", note)


def dags(session: Session, names: Sequence[str], *, stale: bool = False) -> None:
    """DAGs as Airflow keeps them, each with seven runs."""
    rows = [{"dag_id": name, "is_paused": name.endswith("1"), "is_stale": stale} for name in names]
    limits = {"max_active_tasks": 1, "max_consecutive_failed_dag_runs": 0, "has_task_concurrency_limits": False}
    session.execute(insert(DagModel).values(timetable_summary="@daily", bundle_name="dags", **limits), rows)
    runs = [
        {"dag_id": name, "run_id": f"{name}-{at}", "run_after": NOON + timedelta(hours=at * 7 % 5, minutes=at)}
        for name in names
        for at in range(7)
    ]
    session.execute(insert(DagRun).values(state="success", run_type="manual", queued_at=NOON, conf={}), runs)


def test_the_list_of_very_many_flows_asks_as_often_as_that_of_one(tables: Session) -> None:
    dags(tables, DAGS)
    with counted(tables) as asked:
        found = dag_states(dict.fromkeys([*DAGS, "ferry__no__such"], 3))
    assert len(asked) == 1 + -(-FLOWS // AT_ONCE), asked
    assert found["ferry__no__such"] == DagState()
    for name in DAGS:
        state = found[name]
        assert (state.known, state.paused, state.schedule) == (True, name.endswith("1"), "@daily")
        newest = sorted(range(7), key=lambda at: -(at * 7 % 5 * 60 + at))[:3]
        assert [run.run for run in state.runs] == [f"{name}-{at}" for at in newest]


def test_a_run_that_failed_by_what_it_was_asked_for_is_known_in_the_same_query(tables: Session) -> None:
    dags(tables, DAGS[:2])
    ids = {one.run_id: one.id for one in tables.execute(select(DagRun.run_id, DagRun.id))}
    own, other = f"{DAGS[0]}-1", f"{DAGS[0]}-2"
    for run, key in ((own, ASKED_WRONG), (own, REASON), (other, REASON)):
        tables.execute(
            insert(XComModel).values(
                dag_run_id=ids[run], task_id="plan", key=key, dag_id=DAGS[0], run_id=run, value="no topic"
            )
        )
    with counted(tables) as asked:
        found = dag_states(dict.fromkeys(DAGS[:2], 25))
    assert len(asked) == 2
    assert [run.run for state in found.values() for run in state.runs if run.asked_wrong] == [own]
    assert dag_runs.first_reasons([(DAGS[0], own), (DAGS[0], "no such"), (DAGS[1], own)]) == {
        (DAGS[0], own): "no topic"
    }


def test_each_dag_has_as_many_runs_as_were_asked_for_and_one_that_is_gone_none(tables: Session) -> None:
    dags(tables, DAGS[:3])
    dags(tables, DAGS[3:4], stale=True)
    found = dag_states({DAGS[0]: 0, DAGS[1]: 1, DAGS[2]: 25, DAGS[3]: 5})
    assert [len(found[name].runs) for name in DAGS[:4]] == [0, 1, 7, 0]
    assert found[DAGS[3]] == DagState()
    with counted(tables) as asked:
        assert dag_states({DAGS[0]: 0})[DAGS[0]].known
        assert dag_states({}) == {}
    assert not any("dag_run" in statement for statement in asked)


def test_older_runs_are_looked_up_by_their_ids_in_one_query(tables: Session) -> None:
    dags(tables, DAGS[:2])
    known = dag_states({DAGS[0]: 2})[DAGS[0]]
    have = [run.run for run in known.runs]
    older = [f"{DAGS[0]}-{at}" for at in range(7) if f"{DAGS[0]}-{at}" not in have]
    with counted(tables) as asked:
        found = with_older(DAGS[0], known, [*have, *older, f"{DAGS[1]}-0", *(f"gone-{at}" for at in range(1_000))])
        assert len(asked) == 1
        assert with_older(DAGS[0], known, have) == known
        for other in (replace(known, hides_runs=True), DagState()):
            assert with_older(DAGS[0], other, older) == other
    assert len(asked) == 1, "nothing to look up, or nothing that may be seen"
    assert found.runs[:2] == known.runs
    assert {run.run for run in found.runs} == {*have, *older}


def test_failed_runs_are_looked_up_in_one_query_the_newest_first(
    tables: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    dags(tables, DAGS[:2])
    failed = [f"{DAGS[0]}-{at}" for at in (1, 2, 5)]  # begun at 14:01, at 16:02 and at 12:05
    tables.execute(update(DagRun).where(DagRun.run_id.in_([*failed, f"{DAGS[1]}-0"])).values(_state="failed"))
    newest = dag_states({DAGS[0]: 2})[DAGS[0]]
    assert [run.run for run in newest.runs] == [f"{DAGS[0]}-2", f"{DAGS[0]}-4"]
    with counted(tables) as asked:
        found = with_failed(DAGS[0], newest)
        assert len(asked) == 1
        for other in (replace(newest, hides_runs=True), DagState()):
            assert with_failed(DAGS[0], other) == other
    assert len(asked) == 1, "nothing that may be seen"
    assert [run.run for run in found.runs[2:]] == [f"{DAGS[0]}-1", f"{DAGS[0]}-5"], "each once"
    monkeypatch.setattr(airflow_side, "FAILED_RUNS", 2)
    assert [run.run for run in with_failed(DAGS[0], newest).runs[2:]] == [f"{DAGS[0]}-1"]


def test_a_dag_that_names_a_topics_asset_decides_its_extra(tables: Session) -> None:
    """So the page that Ferry gives an asset stays only if no DAG names it, as docs/airflow.md has it."""
    flow = parse_settings(
        "clusters = a, b\na.bootstrap.servers = h:1\nb.bootstrap.servers = h:2\na->b.enabled = true\n", "f"
    ).flow("a->b")
    mine = topic_asset(flow, "target", "a.t")
    model = AssetModel(name=mine.name, uri=mine.uri, group=mine.group, extra=mine.extra)
    tables.add(model)
    tables.flush()

    def parsed(**extra: Any) -> dict[str, Any]:
        """The asset's extra after Airflow has read a DAG file that names it."""
        with DAG("reader", schedule=[Asset(mine.uri, **extra)]) as dag:
            EmptyOperator(task_id="read")
        read = LazyDeserializedDAG(data=DagSerialization.to_dict(dag))
        AssetModelOperation.collect({"reader": read}).sync_assets(session=tables)
        return dict(model.extra)

    assert parsed() == {}
    assert parsed(extra=mine.extra) == mine.extra


TASKS = ("plan", "copy", "checkpoint", "report")


def failed_run(tables: Session, monkeypatch: pytest.MonkeyPatch, *states: str) -> str:
    """A DAG of four tasks, with a failed run `r` in which each task has its state."""
    with DAG("ferry__a__b", schedule=None) as dag:
        chain(*(EmptyOperator(task_id=name) for name in TASKS))
    found = DagSerialization.from_dict(DagSerialization.to_dict(dag))
    monkeypatch.setattr(airflow_side, "_dag_of", lambda run, session: found)
    tables.execute(
        insert(DagRun).values(
            id=1, dag_id=dag.dag_id, run_id="r", state="failed", run_type="manual", run_after=NOON, queued_at=NOON
        )
    )
    for name, state in zip(TASKS, states, strict=True):
        tables.execute(
            insert(TaskInstance).values(
                id=uuid.uuid4(), task_id=name, dag_id=dag.dag_id, run_id="r", state=state, pool="p", try_number=1
            )
        )
    return dag.dag_id


@pytest.mark.parametrize(
    ("states", "kept"),
    [
        (("success", "failed", "success", "failed"), 1),
        (("success", "upstream_failed", "skipped", "failed"), 1),
        (("skipped", "skipped", "skipped", "skipped"), 0),  # was marked as failed while it was queued
        (("success", "success", "skipped", "skipped"), 2),  # ran longer than its DAG allows, or was marked
    ],
)
def test_a_run_continues_from_its_failed_tasks_else_from_its_skipped_ones(
    tables: Session, monkeypatch: pytest.MonkeyPatch, states: Sequence[str], kept: int
) -> None:
    dag = failed_run(tables, monkeypatch, *states)
    assert airflow_side.clear_failed(dag, "r") == 4 - kept
    rows = tables.execute(select(TaskInstance.task_id, TaskInstance.state)).all()
    assert {row.task_id: row.state for row in rows} == {
        name: states[at] if at < kept else None for at, name in enumerate(TASKS)
    }
    assert tables.scalar(select(DagRun.state)) == "queued"
    for run in ("r", "nosuch"):
        with pytest.raises(BadInput):
            airflow_side.clear_failed(dag, run)


def test_a_run_with_nothing_to_clear_says_so(tables: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    dag = failed_run(tables, monkeypatch, *(["success"] * 4))
    with pytest.raises(BadInput):
        airflow_side.clear_failed(dag, "r")
    assert tables.scalar(select(DagRun.state)) == "failed"
