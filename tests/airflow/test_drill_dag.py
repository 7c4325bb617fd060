"""The DAG of drills, as it is parsed: its order, its form, and what the form is refused for."""

from __future__ import annotations

import inspect
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowException, AirflowSkipException, ParamValidationError

from ferry.config.flow.flow import FlowConfig
from ferry.config.settings import parse_settings
from ferry.errors import BadInput, OutcomeUnknown, Refused
from ferry.features.drill.cli import app as command_line
from ferry.features.evidence.acts.folder import Written
from ferry.features.switch.acts.sides import sides_of
from ferry.ledger.topic_ranges import TopicRanges
from ferry.model import Flow
from ferry.model.evidence import EvidenceKind, EvidenceReport
from ferry.model.switch import SwitchOptions, Verb
from ferry_airflow.assets import flow_alias
from ferry_airflow.drill_dag import drill_dag
from ferry_airflow.drilling import Asked, drill_of, reports_of
from ferry_airflow.measures import MOST_APPROVAL_SECONDS
from ferry_airflow.switching import options_of
from tests.golden import Golden, brief
from tests.pure.reports.values import EVIDENCE

FILE = (
    "clusters = a, b\na.bootstrap.servers = h:1\nb.bootstrap.servers = h:1\ntopics = orders.*\n"
    "a->b.enabled = true\nb->a.enabled = true\nferry.retries = 2\n"
)
SETTINGS = parse_settings(FILE, "f")
FLOW = SETTINGS.flow("a->b")
DAG = drill_dag(FLOW, Path("/f"), SETTINGS.flow("b->a"))
KINDS = [kind for kind in EvidenceKind if kind.is_drill]

FIELDS = {
    "topic": "topics",
    "group": "groups",
    "start": "from",
    "drill": "id",
    "quiet_timeout": "quiet_timeout_seconds",
    "drain_timeout": "drain_timeout_seconds",
    "leave_group": "leave_groups",
    "leave_topic": "leave_topics",
    "stay": "stay_seconds",
}
NO_FIELD = {
    *("ctx", "flow", "config", "as_json", "form", "quiet", "verbose", "patience"),
    *("approved_by", "redirect_command", "redirect_url"),
}
"""As of a switch: the DAG's own, a terminal's, who is asked, and commands that a form does not run on a worker."""


def asked(**form: Any) -> Asked:
    return Asked(settings=SETTINGS, flow=FLOW, params={**DAG.params.dump(), **form}, who="d@h", run="manual__1")


def test_a_person_is_asked_first_and_only_what_touches_production_takes_the_flows_pool() -> None:
    assert [task.task_id for task in DAG.topological_sort()][:2] == ["preview", "approve"]
    assert DAG.get_task("approve").downstream_task_ids == {"rehearse", "drill"}
    assert {task.task_id: task.pool for task in DAG.tasks} == {
        "preview": "default_pool",
        "approve": "default_pool",
        "rehearse": "default_pool",
        "drill": "ferry_a_b",
        "assets": "default_pool",
    }
    assert {task.retries for task in DAG.tasks} == {0}, "a drill is not begun again without somebody's looking at it"
    assert DAG.schedule is None


def test_assets_are_updated_however_the_drill_ends_and_the_run_is_as_the_drill() -> None:
    assets = DAG.get_task("assets")
    assert assets.upstream_task_ids == {"drill"}
    assert (assets.is_teardown, assets.on_failure_fail_dagrun) == (True, False)
    without = parse_settings(f"{FILE}ferry.airflow.assets = false\n", "f").flow("a->b")
    assert not drill_dag(without, Path("/f")).has_task("assets")
    assert [one.name for one in drill_dag(without, Path("/f"), SETTINGS.flow("b->a")).get_task("assets").outlets] == [
        "ferry b->a"
    ]


def test_the_report_of_a_drill_names_who_triggered_it_and_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    kept: list[EvidenceReport] = []

    def written(folder: object, evidence: EvidenceReport) -> Written:
        kept.append(evidence)
        raise OutcomeUnknown("it is not needed here")

    monkeypatch.setattr("ferry_airflow.drill_operators.settings_for", lambda path, flow: SETTINGS)
    monkeypatch.setattr("ferry_airflow.drilling.reports_of", lambda asked: None)
    drill = SimpleNamespace(run=lambda stop, say: (EVIDENCE, None))
    monkeypatch.setattr("ferry_airflow.drilling.drill_of", lambda asked: drill)
    monkeypatch.setattr("ferry_airflow.drilling.written", written)
    context: Any = {
        "params": DAG.params.dump() | {"kind": "shadow", "reason": " the yearly audit\n"},
        "run_id": "manual__1",
        "dag": DAG,
        "dag_run": SimpleNamespace(triggering_user_name="ada"),
        "ti": SimpleNamespace(xcom_push=lambda key, value: None),
    }
    task: Any = DAG.get_task("rehearse")
    with pytest.raises(AirflowException):
        task.execute(context)
    assert [(one.who, one.asked_by, one.reason) for one in kept] == [(EVIDENCE.who, "ada", "the yearly audit")]


def test_each_run_that_a_partial_drill_opened_has_its_events(monkeypatch: pytest.MonkeyPatch) -> None:
    copied = {
        run: TopicRanges(source="orders", target="a.orders", records=records, bytes=1, partitions=(), read=())
        for run, records in (("partial-1", 5), ("partial-2", 7))
    }
    told: list[tuple[str, Any]] = []
    monkeypatch.setattr("ferry_airflow.steps.copied_topics", lambda flow, run: [copied[run]])
    monkeypatch.setattr("ferry_airflow.drill_operators.settings_for", lambda path, flow: SETTINGS)
    kept: dict[str, Any] = {"ferry_runs": ["partial-1", "partial-2"]}
    alias = SimpleNamespace(add=lambda asset, extra: told.append((asset.uri, extra)))
    context: Any = {
        "ti": SimpleNamespace(xcom_pull=lambda task_ids, key: kept.get(key) if task_ids == "drill" else None),
        "outlet_events": {flow_alias(FLOW.flow): alias},
        "params": DAG.params.dump() | {"kind": "partial"},
        "run_id": "manual__1",
        "dag": DAG,
    }
    task: Any = DAG.get_task("assets")
    task.execute(context)
    uri = "kafka://h:1/a.orders"
    assert [(asset, one["run"], one["records"]) for asset, one in told] == [
        (uri, "partial-1", 5),
        (uri, "partial-2", 7),
    ]
    kept.clear()
    with pytest.raises(AirflowSkipException, match="nothing"):
        task.execute(context)


def test_each_run_that_drained_in_a_full_drill_has_its_events(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[str, str]] = []
    events = {
        flow_alias(Flow.parse(name)): SimpleNamespace(add=lambda asset, extra: told.append((asset.uri, extra["run"])))
        for name in ("a->b", "b->a")
    }

    def switcher(config: str, flow: str, verb: Verb, dag_id: str) -> Any:
        return nullcontext(SimpleNamespace(sides=sides_of(SETTINGS, SETTINGS.flow(flow), verb)))

    def copied(flow: FlowConfig, run: str) -> list[TopicRanges]:
        return [TopicRanges(source="t", target=flow.copy_of("t"), records=1, bytes=1, partitions=(), read=())]

    monkeypatch.setattr("ferry_airflow.switching.switcher", switcher)
    monkeypatch.setattr("ferry_airflow.switching.drained_by", lambda found, switch: [f"{switch}-drain-1"])
    monkeypatch.setattr("ferry_airflow.steps.copied_topics", copied)
    monkeypatch.setattr("ferry_airflow.drill_operators.settings_for", lambda path, flow: SETTINGS)
    context: Any = {
        "ti": SimpleNamespace(xcom_pull=lambda task_ids, key: None),
        "outlet_events": events,
        "params": DAG.params.dump() | {"kind": "full", "id": "spring"},
        "run_id": "manual__1",
        "dag": DAG,
    }
    task: Any = DAG.get_task("assets")
    task.execute(context)
    assert told == [("kafka://h:1/a.t", "spring-out-drain-1"), ("kafka://h:1/b.t", "spring-back-drain-1")]
    context["params"]["dry_run"] = True
    with pytest.raises(AirflowSkipException, match="nothing"):
        task.execute(context)


def test_the_form_has_each_option_of_the_command_line() -> None:
    commands = [getattr(command_line, f"{kind}_command") for kind in KINDS]
    names = {name for command in commands for name in inspect.signature(command).parameters}
    options = {FIELDS.get(name, name) for name in names - NO_FIELD}
    assert set(DAG.params) == options | {"kind", "reason", "approval_timeout_seconds"}
    assert options_of(DAG.params.dump()) == SwitchOptions()
    assert DAG.params.get_param("kind").schema["enum"] == KINDS


@pytest.mark.parametrize("seconds", [0, MOST_APPROVAL_SECONDS + 1])
def test_an_approval_expires_whatever_is_asked_for(seconds: int) -> None:
    field = DAG.params.get_param("approval_timeout_seconds")
    assert field.resolve(MOST_APPROVAL_SECONDS) == MOST_APPROVAL_SECONDS
    with pytest.raises(ParamValidationError):
        field.resolve(seconds)


@pytest.mark.parametrize(
    "form",
    [
        {"kind": "tabletop", "topics": ["orders"]},
        {"kind": "shadow", "groups": ["g"]},
        {"kind": "partial", "topics": ["orders"], "clean": True},
        {"kind": "full", "from": "earliest"},
        {"kind": "partial"},
        {"kind": "shadow", "from": "yesterday"},
        {"kind": "shadow", "from": "2026-01-31T06:00:00"},
        {"kind": "partial", "topics": ["other"]},
    ],
    ids=brief,
)
def test_what_makes_no_sense_is_refused_before_anybody_is_asked(form: dict[str, Any], golden: Golden) -> None:
    with pytest.raises(BadInput) as refused:
        drill_of(asked(**form)).preview()
    golden(refused.value)


def test_reports_go_where_somebody_finds_them(tmp_path: Path, golden: Golden) -> None:
    with pytest.raises(BadInput) as wrong:
        reports_of(asked())
    golden(wrong.value, "no full path")
    given = replace(FLOW, report=replace(FLOW.report, folder=str(tmp_path / "file")))
    assert reports_of(replace(asked(), flow=given)).where == str(tmp_path / "file")
    (tmp_path / "taken").write_text("")
    taken = replace(FLOW, report=replace(FLOW.report, folder=str(tmp_path / "taken")))
    with pytest.raises(Refused) as refused:
        reports_of(replace(asked(), flow=taken))
    golden(refused.value, "a file")


def test_a_form_names_no_place_but_those_of_the_file(tmp_path: Path) -> None:
    folder, other = tmp_path / "reports", tmp_path / "other"
    (tmp_path / "elsewhere").mkdir()
    folder.mkdir()
    (folder / "link").symlink_to(tmp_path / "elsewhere")
    given = replace(FLOW.report, folder=str(folder), dirs=(str(other), "s3://reports/drills"))

    def where(named: str) -> str:
        return reports_of(replace(asked(report=named), flow=replace(FLOW, report=given))).where

    for named in (str(folder), str(folder / "spring"), str(other), f"file://{other}/spring"):
        assert where(named) == named.removeprefix("file://")
    for named in (
        str(tmp_path / "elsewhere"),
        str(folder / ".." / "elsewhere"),
        str(folder / "link"),
        "s3://attacker/reports",
        "s3://reports/drills/below",
        "ftp://127.0.0.1:1/x",
        f"simplecache::file://{folder}",
        f"FILE://{folder}",
    ):
        with pytest.raises(BadInput, match=r"ferry\.report\.dirs"):
            where(named)
    assert not list((tmp_path / "elsewhere").iterdir())


def test_a_full_drill_takes_no_file_from_a_form_that_has_no_field_for_it() -> None:
    drill = drill_of(asked(kind="full", output="/etc/cron.d/x"))
    assert drill._drill()._options.switch.export == ""  # type: ignore[attr-defined]
