"""The DAG that writes offsets of groups between runs: off by default, with a schedule and a pool of its own."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowFailException
from airflow.serialization.serialized_objects import DagSerialization
from confluent_kafka import TopicPartition as Place

from ferry.errors import BadInput
from ferry.model import Flow
from ferry_airflow import groups_operators, syncing
from ferry_airflow.dags import flow_dags
from ferry_airflow.groups_operators import FerrySyncGroupsOperator
from ferry_airflow.naming import sync_id
from ferry_airflow.syncing import Synced
from tests.airflow.conftest import Flows
from tests.harness import create_topic, numbered, producer, send
from tests.kafka.run.groups import consumer
from tests.tiers import ANSWER_S

FILE = """\
clusters = a, b
a.bootstrap.servers = h:1
b.bootstrap.servers = h:2
a->b.enabled = true
b->a.enabled = true
topics = .*
ferry.retries = 2
ferry.schedule = @daily
"""
NAME = "ferry_groups__a__b"
KEY = "a->b.ferry.groups.schedule"


def dags(tmp_path: Path, *lines: str, **overrides: Any) -> dict[str, DAG]:
    file = tmp_path / "flows.properties"
    file.write_text(FILE + "".join(f"{line}\n" for line in lines))
    return flow_dags(file, **overrides)


def test_a_flow_has_it_only_where_its_file_says_so(tmp_path: Path) -> None:
    plain = dags(tmp_path)
    assert NAME not in plain
    assert dags(tmp_path, f"{KEY} = * * * * *").keys() - plain.keys() == {NAME}
    assert NAME not in dags(tmp_path, f"{KEY} = * * * * *", "sync.group.offsets.enabled = false")
    with pytest.raises(BadInput, match="often"):
        dags(tmp_path, f"{KEY} = often")


def test_it_runs_on_its_own_schedule_in_no_pool_of_the_flow(tmp_path: Path) -> None:
    found: Any = dags(tmp_path, f"{KEY} = */2 * * * *")[NAME]
    assert (found.schedule, found.catchup, found.max_active_runs) == ("*/2 * * * *", False, 1)
    assert found.is_paused_upon_creation is None
    assert found.tags == {"ferry", "ferry:groups", "a", "b"}
    assert sorted(found.params) == ["dry_run", "groups"]
    (task,) = found.tasks
    assert isinstance(task, FerrySyncGroupsOperator)
    assert (task.task_id, task.pool, task.retries, task.flow) == ("sync", "default_pool", 2, "a->b")
    assert DagSerialization.to_dict(found), "Airflow keeps it"
    by_hand: Any = dags(tmp_path, f"{KEY} = none")[NAME]
    assert (by_hand.schedule, by_hand.is_paused_upon_creation) == (None, False)


def test_overrides_hold_for_it(tmp_path: Path) -> None:
    names = {"pool": "rest", "tags": ["team"], "dag_display_name": "{role} of {source}"}
    found = dags(tmp_path, f"{KEY} = @hourly", **names)[NAME]
    assert (found.dag_display_name, found.get_task("sync").pool) == ("groups of a", "rest")
    assert "team" in found.tags
    with pytest.raises(BadInput, match="groups"):
        dags(tmp_path, f"{KEY} = @hourly", params={"groups": "x"})


def test_a_sync_in_airflow_carries_positions_and_names_what_failed(flows: Flows) -> None:
    topic, dag = "between-orders", "ferry_groups__between__tbetween"
    lab = flows.lab("between")
    create_topic(flows.source, topic, 1)
    send(producer(flows.source), topic, numbered(20, partitions=1))

    def synced(state: str, **form: Any) -> dict[str, Any]:
        run = flows.rest.trigger(dag, form)
        assert flows.rest.wait_run(dag, run) == state, flows.rest.log(dag, run, "sync")
        found: dict[str, Any] = flows.rest.returned(dag, run, "sync")
        return found

    assert synced("success")["outcome"] == "left alone", "the flow has no run yet"
    lab.micro_run()
    with consumer(flows.source, "between-app") as client:
        client.commit(offsets=[Place(topic, 0, 8)], asynchronous=False)
    found = synced("failed", groups=["between-app", "between-nowhere"])
    assert (found["outcome"], found["offsets"]) == ("failed", 1), "the other one is done"
    assert [(one["group"], one["why"]) for one in found["left"]] == [("between-nowhere", "failed")]
    with consumer(flows.target, "between-app") as client:
        (at,) = client.committed([Place(lab.target_topic(topic), 0)], timeout=ANSWER_S)
    assert at.offset == 8
    found = synced("success", dry_run=False)
    assert (found["outcome"], found["offsets"], found["unchanged"]) == ("synced", 0, 1)


class Kept:
    """The XComs of a task."""

    def __init__(self) -> None:
        self.pushed: dict[str, Any] = {}

    def xcom_push(self, key: str, value: Any) -> None:
        self.pushed[key] = value


@pytest.mark.parametrize("complaint", [None, "1 not translated in a sync of groups of a->b: no coordinator"])
def test_the_task_returns_the_outcome_even_if_it_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, complaint: str | None
) -> None:
    found: Any = dags(tmp_path, f"{KEY} = @hourly")[NAME]
    asked: list[tuple[str, dict[str, Any]]] = []

    def done(_: object, run: str, params: dict[str, Any]) -> Synced:
        asked.append((run, params))
        return Synced(lines=("a line",), body={"outcome": "x"}, complaint=complaint)

    flow = SimpleNamespace(flow=Flow(source="a", target="b"))
    monkeypatch.setattr(groups_operators, "flow_named", lambda _: flow)
    monkeypatch.setattr(syncing, "sync", done)
    task, kept = found.get_task("sync"), Kept()
    context: Any = {"dag": found, "run_id": "manual__1", "params": {"groups": ["app"]}, "ti": kept}
    if complaint is None:
        task.execute(context)
    else:
        with pytest.raises(AirflowFailException, match="coordinator"):
            task.execute(context)
    assert asked == [(sync_id(NAME, "sync", "manual__1"), {"groups": ["app"]})]
    assert kept.pushed["return_value"] == {"outcome": "x"}
