"""The task group of a micro-run, and what a DAG file may change about the DAGs of all flows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import DAG, BaseOperator, Param, TaskGroup
from airflow.sdk.exceptions import AirflowFailException, DuplicateTaskIdFound
from airflow.serialization.serialized_objects import DagSerialization

from ferry.errors import BadInput
from ferry_airflow import steps, syncing
from ferry_airflow.backfill import FerryWindowCopyOperator, FerryWindowPlanOperator, asked_backfill
from ferry_airflow.base import live_run
from ferry_airflow.dags import flow_dags
from ferry_airflow.naming import micro_run_id
from ferry_airflow.operators import FerryCheckpointOperator, FerryCopyOperator, FerryPlanOperator, FerryReportOperator
from ferry_airflow.task_group import ferry_task_group

CONFIG = """\
clusters = a, b
a.bootstrap.servers = h:1
b.bootstrap.servers = h:2
a->b.enabled = true
b->a.enabled = true
topics = .*
ferry.verify = receipt
ferry.retries = 2
a->b.ferry.pool = ours
ferry.backfill.windows = @daily
a->b.ferry.groups.schedule = * * * * *
"""
OWN = "ferry__a__b"
RUN = "scheduled__2026-01-01T00:00:00+00:00"
AN_HOUR = timedelta(hours=1)
TASKS = ["plan", "copy", "checkpoint", "report", "verify"]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "flows.properties"
    file.write_text(CONFIG)
    return file


def dag(name: str, **arguments: Any) -> DAG:
    return DAG(name, schedule=None, start_date=datetime(2026, 1, 1, tzinfo=UTC), **arguments)


def context(task: BaseOperator, **params: object) -> Any:
    assert task.dag is not None
    return {"run_id": RUN, "dag": task.dag, "params": params}


def test_a_group_has_the_tasks_of_the_flows_own_dag(config: Path) -> None:
    with dag("etl") as found:
        group = ferry_task_group("a->b", config)
    own = flow_dags(config)[OWN]
    assert group.group_id == OWN
    assert [task.label for task in found.tasks] == [task.task_id for task in own.tasks] == TASKS
    for task in found.tasks:
        twin = own.get_task(str(task.label))
        assert type(task) is type(twin)
        for name in ("pool", "retries", "retry_delay", "trigger_rule", "config", "flow", "outlets"):
            assert getattr(task, name) == getattr(twin, name), f"{name} of {task.task_id}"
        assert {one.rpartition(".")[2] for one in task.downstream_task_ids} == twin.downstream_task_ids
    assert found.get_task(f"{OWN}.copy").pool == "ours"
    assert DagSerialization.to_dict(found), "Airflow keeps it"


IN_THE_POOL: list[tuple[type[BaseOperator], dict[str, str]]] = [
    (FerryPlanOperator, {}),
    (FerryCopyOperator, {"conn_id": "spark"}),
    (FerryCheckpointOperator, {}),
    (FerryWindowPlanOperator, {}),
    (FerryWindowCopyOperator, {"conn_id": "spark"}),
]


@pytest.mark.parametrize(("operator", "more"), IN_THE_POOL, ids=[one.__name__ for one, _ in IN_THE_POOL])
def test_an_operator_alone_is_in_the_pool_of_its_flow_unless_its_author_names_another(
    operator: type[BaseOperator], more: dict[str, str], config: Path
) -> None:
    own: dict[str, Any] = {"task_id": "one", "config": str(config), "flow": "a->b", **more}
    assert operator(**own).pool == "ours"
    assert operator(**own, pool="other").pool == "other"
    with dag("etl", default_args={"pool": "of the DAG"}):
        assert operator(**own).pool == "of the DAG"


@pytest.mark.parametrize("changed", [{"config": "{{ var.value.ferry }}"}, {"flow": "a->c"}, {"flow": "{{ params.f }}"}])
def test_an_operator_whose_file_has_no_such_flow_when_it_is_parsed_is_in_airflows_pool(
    changed: dict[str, str], config: Path
) -> None:
    own: dict[str, Any] = {"task_id": "one", "config": str(config), "flow": "a->b", **changed}
    assert FerryPlanOperator(**own).pool == "default_pool"


def test_the_report_needs_no_slot_of_the_pool(config: Path) -> None:
    assert FerryReportOperator(task_id="one", config=str(config), flow="a->b").pool == "default_pool"


def test_a_group_takes_what_airflows_own_take_and_a_flow_that_there_is(config: Path) -> None:
    with dag("etl"):
        group = ferry_task_group("a->b", config, group_id="orders", tooltip="copies", default_args={"queue": "big"})
        assert (group.group_id, group.tooltip) == ("orders", "copies")
        assert {task.queue for task in group} == {"big"}
        with pytest.raises(BadInput, match="a->c"):
            ferry_task_group("a->c", config)
    config.write_text(CONFIG.replace("clusters = a, b", "clusters = a.x, b").replace("a->b", "a.x->b"))
    config.write_text(config.read_text().replace("b->a", "b->a.x").replace("\na.b", "\na.x.b"))
    with dag("etl"):
        assert ferry_task_group("a.x->b", config).group_id == "ferry__a-x__b"


def test_a_run_is_of_one_dag_and_one_group_alone(config: Path) -> None:
    """Airflow's run ids are unique within a DAG only: with the same id the second would find the plan of the first."""
    found: list[str] = []
    for name in (OWN, "etl", "etl_2"):
        with dag(name):
            groups = [ferry_task_group("a->b", config, group_id=group) for group in ("one", "two")]
            with TaskGroup("outer"):
                groups.append(ferry_task_group("a->b", config, group_id="one"))
        for group in groups:
            ids = {live_run(task, context(task)) for task in group}
            assert len(ids) == 1, "all tasks are of one run"
            found += ids
    own: Any = flow_dags(config)[OWN].tasks
    assert {live_run(task, context(task)) for task in own} == {RUN}, "as Airflow has it"
    with dag("etl"):
        assert len({*found, RUN}) == 10
        assert found[3:6] == [f"etl@one@{RUN}", f"etl@two@{RUN}", f"etl@outer.one@{RUN}"]
        ferry_task_group("a->b", config)
        with pytest.raises(DuplicateTaskIdFound):
            ferry_task_group("a->b", config)
    assert micro_run_id(OWN, "etl", "", RUN) == f"etl@{RUN}", "of operators in no group"


def test_groups_without_a_prefix_cannot_share_a_run(config: Path) -> None:
    with dag("etl"):
        group = ferry_task_group("a->b", config, group_id="one", prefix_group_id=False)
        assert {live_run(task, context(task)) for task in group} == {f"etl@one@{RUN}"}
        with pytest.raises(DuplicateTaskIdFound):
            ferry_task_group("a->b", config, group_id="two", prefix_group_id=False)


def test_a_window_in_the_live_lane_is_no_run_of_the_flows_own_dag(config: Path) -> None:
    name = "ferry_backfill__a__b"
    copy: Any = flow_dags(config)[name].get_task("copy")
    window = {"from": "2026-01-01T00:00:00Z", "to": "2026-01-02T00:00:00Z"}
    for form, run, place in (
        ({"lane": "backfill-x"}, RUN, "lane/backfill-x/run/scheduled__2026-01-01T00%3A00%3A00%2B00%3A00"),
        ({"into_live": True}, f"{name}@{RUN}", f"run/{name}%40scheduled__2026-01-01T00%3A00%3A00%2B00%3A00"),
    ):
        backfill = asked_backfill(copy, context(copy, **window, **form))
        assert (backfill.run, copy.run_link) == (run, f"/ferry/flow/a/b/{place}")


def test_each_task_of_a_micro_run_leads_to_its_page(config: Path) -> None:
    with dag("etl"):
        group = ferry_task_group("a->b", config, group_id="one")
    for task in group:
        (link,) = task.operator_extra_links
        assert link.name == "Receipts"
        live_run(task, context(task, dry_run=True))
        assert link.get_link(task, ti_key=SimpleNamespace()) == "", "a dry run has no page"
        live_run(task, context(task))
        place = "/ferry/flow/a/b/run/etl%40one%40scheduled__2026-01-01T00%3A00%3A00%2B00%3A00"
        assert link.get_link(task, ti_key=SimpleNamespace()) == place


@pytest.mark.parametrize(("name", "task_id"), [("ferry_verify__a__b", "verify"), ("ferry_groups__a__b", "sync")])
@pytest.mark.parametrize("is_own", [True, False])
def test_a_verification_and_a_sync_of_groups_lead_to_their_result_on_the_page(
    name: str, task_id: str, is_own: bool, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object) -> None:
        raise BadInput("it does not begin")

    monkeypatch.setattr(steps, "wanted_of", failing)
    monkeypatch.setattr(syncing, "sync", failing)
    task: Any = flow_dags(config)[name].get_task(task_id)
    asked = context(task) | ({} if is_own else {"dag": dag("etl")})
    with pytest.raises(AirflowFailException):
        task.execute(asked)
    (link,) = task.operator_extra_links
    place = f"/ferry/flow/a/b/dag/{name}/run/scheduled__2026-01-01T00%3A00%3A00%2B00%3A00"
    assert (link.name, link.get_link(task, ti_key=SimpleNamespace())) == ("Result", place if is_own else "")


@pytest.mark.parametrize("base_url", ["https://airflow.example/team", ""])
def test_the_documentation_of_each_dag_leads_to_the_page_and_to_no_file(
    base_url: str, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", base_url)
    page = f"{base_url or ''}/ferry/flow/a/b/"
    for name, found in flow_dags(config).items():
        if name.endswith("__a__b"):
            assert found.doc_md is not None
            assert f"({page})" in found.doc_md, name
            assert ".md" not in found.doc_md, name


def test_each_dag_has_the_tag_of_its_role(config: Path) -> None:
    roles = {
        **dict.fromkeys(("ferry__a__b",), "copy"),
        **{f"ferry_{role}__a__b": role for role in ("verify", "groups", "backfill", "drill")},
        **{f"ferry_{verb}__a__b": "switch" for verb in ("switchover", "failover", "failback")},
    }
    found = {name: one for name, one in flow_dags(config).items() if name.endswith("a__b")}
    assert {name: one.tags for name, one in found.items()} == {
        name: {"ferry", f"ferry:{role}", "a", "b"} for name, role in roles.items()
    }


def test_tasks_that_write_in_the_live_lane_are_in_the_flows_pool(config: Path) -> None:
    dags = flow_dags(config)
    pooled = {
        name: {task.task_id for task in dags[name].tasks if task.pool == "ours"} for name in dags if name[-4:] == "a__b"
    }
    assert pooled == {
        "ferry__a__b": {"plan", "copy", "checkpoint"},
        "ferry_verify__a__b": set(),
        "ferry_groups__a__b": set(),
        "ferry_backfill__a__b": {"plan", "copy"},
        "ferry_drill__a__b": {"drill"},
        **{
            f"ferry_{verb}__a__b": {
                task.task_id for task in dags[f"ferry_{verb}__a__b"].tasks
            } - {"preview", "approve", "readiness", "quiet", "assets", "report"}
            for verb in ("switchover", "failover")
        },
        "ferry_failback__a__b": set(),
    }  # fmt: skip
    assert {task.pool for one in dags.values() for task in one.tasks} == {"ours", "ferry_b_a", "default_pool"}


def called(_: Any) -> None:
    """A callback."""


def test_overrides_hold_for_all_dags(config: Path) -> None:
    dags = flow_dags(
        config,
        default_args={"max_retry_delay": AN_HOUR, "executor_memory": "4g"},
        owner="data",
        queue="big",
        pool="rest",
        tags=["team"],
        params={"ticket": Param("", type="string")},
        on_failure_callback=called,
        on_success_callback=[called],
        dag_display_name="Ferry {role}: {source} to {target}",
    )
    plain = flow_dags(config)
    assert len(dags) == 15
    for name, found in dags.items():
        assert found.tags == {*plain[name].tags, "team"}
        assert set(found.params) == {*plain[name].params, "ticket"}
        assert (found.on_failure_callback, found.on_success_callback) == (called, [called])
        assert (found.max_active_runs, found.catchup) == (1, False)
        for task in found.tasks:
            twin = plain[name].get_task(task.task_id)
            assert (task.owner, task.queue, task.max_retry_delay) == ("data", "big", AN_HOUR)
            assert task.pool == ("rest" if twin.pool == "default_pool" else twin.pool), "those of the flow stay"
            for kept in ("retries", "priority_weight", "weight_rule", "trigger_rule", "retry_delay"):
                assert getattr(task, kept) == getattr(twin, kept), f"{kept} of {task.task_id}"
    assert dags[OWN].dag_display_name == "Ferry copy: a to b"
    assert dags["ferry_failover__b__a"].dag_display_name == "Ferry failover: b to a"
    assert plain[OWN].dag_display_name == OWN
    copy: Any = dags[OWN].get_task("copy")
    assert copy._executor_memory == "4g"


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"max_active_runs": 2}, "max_active_runs"),
        ({"catchup": True}, "catchup"),
        ({"tag": "x"}, "tag"),
        ({"default_args": {"retries": 3}}, "ferry.retries"),
        ({"default_args": {"trigger_rule": "all_done"}}, "trigger_rule"),
        ({"params": {"dry_run": True}}, "dry_run"),
        ({"params": {"kind": "full"}}, "kind"),
        ({"dag_display_name": "{flow}"}, "{role}"),
        ({"dag_display_name": "{0}"}, "{role}"),
        ({"dag_display_name": "{role"}, "{role}"),
    ],
)
def test_what_ferry_needs_and_what_there_is_not_cannot_be_overridden(
    given: dict[str, Any], named: str, config: Path
) -> None:
    with pytest.raises(BadInput) as error:
        flow_dags(config, **given)
    assert named in str(error.value)
    assert "\n" not in str(error.value)
