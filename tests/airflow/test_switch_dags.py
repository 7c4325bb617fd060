"""The DAGs of a switch, as they are parsed: their order, their form, and the switch that a run is about."""

from __future__ import annotations

import inspect
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowSkipException

from ferry.config.flow.flow import FlowConfig
from ferry.config.flow.report import ReportConfig
from ferry.config.settings import parse_settings
from ferry.errors import BadInput
from ferry.features.switch.acts.sides import sides_of
from ferry.features.switch.cli import switching
from ferry.ledger.topic_ranges import TopicRanges
from ferry.model import Flow
from ferry.model.switch import (
    STEPS,
    Evidence,
    Step,
    StepDone,
    Switch,
    SwitchEnd,
    SwitchOptions,
    SwitchOutcome,
    SwitchState,
    Verb,
)
from ferry_airflow.assets import flow_alias
from ferry_airflow.switch_dags import switch_dag
from ferry_airflow.switch_operators import OfSwitch, SwitchDrainOperator
from ferry_airflow.switching import (
    asked_for,
    complaint,
    deviations_to_log,
    options_of,
    refuse_other_export,
    report_kept,
    switch_id,
)
from tests.golden import Golden

FILE = (
    "clusters = a, b\na.bootstrap.servers = h:1\nb.bootstrap.servers = h:1\n"
    "a->b.enabled = true\nb->a.enabled = true\nferry.retries = 2\nb->a.ferry.spark.conn.id = way_back\n"
)
SETTINGS = parse_settings(FILE, "f")
DAGS = {
    dag.dag_id: dag
    for dag in (switch_dag(SETTINGS.flow("a->b"), Path("/f"), verb, SETTINGS.flow("b->a")) for verb in Verb)
}

FIELDS = {
    "switch": "id",
    "quiet_timeout": "quiet_timeout_seconds",
    "drain_timeout": "drain_timeout_seconds",
    "leave_group": "leave_groups",
    "leave_topic": "leave_topics",
    "no_smoke": "smoke",
    "no_reverse": "reverse",
}
"""Options of the command line whose fields have other names."""
NO_FIELD = {
    *("ctx", "flow", "config", "as_json", "form", "quiet", "verbose", "patience"),  # the DAG's own, or of a terminal
    "approve_by",  # whom Airflow asks
    "report",  # of the file, for the page shows that one
    "lost_at",  # of who types the command in the outage: a report without it counts from when the source was last seen
    *(
        "stop_command",
        "stop_url",
        "redirect_command",
        "redirect_url",
    ),  # whoever may trigger a DAG does not thereby run commands on a worker
}


@pytest.mark.parametrize("verb", Verb)
def test_steps_follow_the_approval_in_their_order_and_the_flows_own_run_goes_first(verb: Verb) -> None:
    dag = DAGS[f"ferry_{verb}__a__b"]
    order = [task.task_id for task in dag.topological_sort() if task.task_id != "assets"]
    assert order == ["preview", "approve", "open", *STEPS[verb], "report"]
    assert all(len(task.downstream_task_ids - {"assets"}) <= 1 for task in dag.tasks)
    schedule: object = dag.schedule  # None too, which its type does not say
    assert schedule is None
    for task in dag.tasks:
        assert task.retries == (0 if task.task_id == "approve" else 2), task.task_id
        looks = task.task_id in {"preview", "approve", "assets", "report", Step.READINESS, Step.QUIET}
        pool = "ferry_b_a" if verb is Verb.FAILBACK else "ferry_a_b"  # of the flow whose runs it keeps apart from
        assert task.pool == ("default_pool" if looks else pool), task.task_id
        assert (task.priority_weight, task.weight_rule) == (1, "absolute"), task.task_id


@pytest.mark.parametrize("verb", Verb)
def test_an_untouched_form_asks_for_what_the_command_line_asks_for_by_default(verb: Verb) -> None:
    form = DAGS[f"ferry_{verb}__a__b"].params.dump()
    assert options_of(form) == SwitchOptions()
    assert form["dry_run"] is False
    assert ("quiet_seconds" in form) == (verb is not Verb.FAILOVER)
    filled = {**form, "leave_groups": ["g"], "smoke": False, "reverse": False, "leave_active": True, "interrupt": True}
    filled |= {"max_records": 0, "max_seconds": 1.5}
    assert options_of(filled) == SwitchOptions(
        leave_groups=("g",),
        smoke=False,
        reverse=False,
        leave_active=True,
        interrupt=True,
        rpo_records=0,
        rpo_seconds=1.5,
    )


@pytest.mark.parametrize("verb", Verb)
def test_the_form_has_each_option_of_the_command_line(verb: Verb) -> None:
    command = getattr(switching, f"{verb}_command")
    options = {FIELDS.get(name, name) for name in inspect.signature(command).parameters if name not in NO_FIELD}
    form = set(DAGS[f"ferry_{verb}__a__b"].params)
    assert form == options | {"reason", "approval_timeout_seconds"}


@pytest.mark.parametrize("verb", [Verb.SWITCHOVER, Verb.FAILBACK])
def test_what_is_left_is_copied_by_the_spark_of_the_flow_that_is_drained(verb: Verb) -> None:
    drain = DAGS[f"ferry_{verb}__a__b"].get_task(Step.DRAIN)
    assert isinstance(drain, SwitchDrainOperator)
    assert drain._conn_id == ("way_back" if verb is Verb.FAILBACK else "spark_default")


@pytest.mark.parametrize("verb", Verb)
def test_assets_are_updated_however_the_drain_ends_and_the_run_is_as_its_steps(verb: Verb) -> None:
    dag, via = DAGS[f"ferry_{verb}__a__b"], "b->a" if verb is Verb.FAILBACK else "a->b"
    assert dag.has_task("assets") == (Step.DRAIN in STEPS[verb])
    if verb is not Verb.FAILOVER:
        assets = dag.get_task("assets")
        assert assets.upstream_task_ids == {"drain"}
        assert (assets.is_teardown, assets.on_failure_fail_dagrun) == (True, False)
        assert [one.name for one in assets.outlets] == [f"ferry {via}"]
    without = parse_settings(f"{FILE}{via}.ferry.airflow.assets = false\n", "f")
    assert not switch_dag(without.flow("a->b"), Path("/f"), verb, without.flow("b->a")).has_task("assets")


@pytest.mark.parametrize("verb", [Verb.SWITCHOVER, Verb.FAILBACK])
def test_each_run_with_a_plan_that_a_drain_opened_has_its_events(monkeypatch: pytest.MonkeyPatch, verb: Verb) -> None:
    """The ledger has them, also those of a try that was killed; a run of the flow, or of another switch, has not."""
    via = sides_of(SETTINGS, SETTINGS.flow("a->b"), verb).via
    copied = {"june-drain-1": 5, "june-drain-2": 7}
    runs = ["june-drain-1", "june-drain-2", "june-drain-fenced", "july-drain-1", "scheduled__1"]
    view = SimpleNamespace(
        runs=[
            SimpleNamespace(record=SimpleNamespace(run=run, lane=via.lane), generation=number)
            for number, run in enumerate(runs)
        ]
    )
    ledger = SimpleNamespace(exists=lambda: True, view=lambda: view, view_with=lambda lane, run: run)
    found = SimpleNamespace(sides=SimpleNamespace(via=via), ledger=ledger)
    told: list[tuple[str, str, int]] = []

    def add(asset: Any, extra: Any) -> None:
        told.append((asset.uri, extra["run"], extra["records"]))

    def topics(flow: FlowConfig, run: str) -> list[TopicRanges]:
        return [TopicRanges(source="t", target="t-copy", records=copied[run], bytes=1, partitions=(), read=())]

    monkeypatch.setattr("ferry_airflow.switching.switcher", lambda *_, **__: nullcontext(found))
    monkeypatch.setattr("ferry_airflow.switching.sealed_plan", lambda view, *_: () if view in copied else None)
    monkeypatch.setattr("ferry_airflow.steps.copied_topics", topics)
    dag = DAGS[f"ferry_{verb}__a__b"]
    context: Any = {
        "dag": dag,
        "run_id": "manual__1",
        "params": dag.params.dump() | {"id": "june"},
        "outlet_events": {flow_alias(via.flow): SimpleNamespace(add=add)},
    }
    task: Any = dag.get_task("assets")
    task.execute(context)
    uri = "kafka://h:1/t-copy"
    assert told == [(uri, "june-drain-1", 5), (uri, "june-drain-2", 7)]
    for nothing in ({"id": "may"}, {"id": "june", "dry_run": True}):
        context["params"] = dag.params.dump() | nothing
        with pytest.raises(AirflowSkipException, match="nothing"):
            task.execute(context)


def test_stranded_records_go_beside_the_reports_or_where_the_form_says(golden: Golden) -> None:
    def export(folder: str, *dirs: str, verb: Verb = Verb.FAILBACK, **form: str) -> str:
        return asked_for(form, verb, "b-1", ReportConfig(folder=folder, dirs=dirs)).export

    assert export("/srv/reports") == "/srv/reports/ferry-stranded-b-1.jsonl"
    assert export("file:///srv") == "/srv/ferry-stranded-b-1.jsonl"
    assert export("s3://reports", "/srv/moves", output="/srv/moves/june/x") == "/srv/moves/june/x"
    assert export("ferry-reports", verb=Verb.FAILOVER) == ""
    for nowhere in ("ferry-reports", "s3://reports/x"):
        with pytest.raises(BadInput) as wrong:
            export(nowhere)
        golden(wrong.value, nowhere)


@pytest.mark.parametrize(
    "named", ["/etc/cron.d/x", "/srv/reports/../x", "/srv/reports", "x", "s3://a/x", "file:///etc/x"]
)
def test_stranded_records_go_to_no_other_place_whoever_names_it(named: str, golden: Golden) -> None:
    """The form does, or a record of the ledger of a switch that somebody opened elsewhere."""
    config = ReportConfig(folder="/srv/reports")
    with pytest.raises(BadInput) as wrong:
        asked_for({"output": named}, Verb.FAILBACK, "b-1", config)
    golden(wrong.value, "form")
    with pytest.raises(BadInput) as wrong:
        refuse_other_export(SwitchOptions(export=named), config)
    golden(wrong.value, "ledger")


def test_a_switch_that_is_left_says_where_to_go_on_also_when_a_task_died_behind_its_step(golden: Golden) -> None:
    """Of the step that is next no task has run then, and none would: one before it has failed."""
    switch = Switch(
        id="june",
        verb=Verb.SWITCHOVER,
        named=Flow.parse("a->b"),
        via=Flow.parse("a->b"),
        who="d@h",
        approved_by="ann",
        approved_ms=1,
        at_ms=2,
    )
    done = StepDone(step=Step.READINESS, who="d@h", begun_ms=3, done_ms=4, evidence=Evidence(sentence="well"))
    golden(complaint(SwitchState(switch=switch, offset=5, done={Step.READINESS: done})))


@pytest.mark.parametrize(
    ("folder", "why"),
    [
        ("", None),
        ("reports", "give ferry.report.dir (reports) a full path or a URL"),
        ("{tmp}/reports", "does not answer"),
        ("nowhere://reports", "nowhere"),
    ],
)
def test_a_switch_that_is_over_is_no_failure_where_its_report_cannot_be_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str, why: str | None
) -> None:
    monkeypatch.setattr("ferry_airflow.switching.PATIENCE_SECONDS", 0.1)
    file = tmp_path / "mm2.properties"
    named = f"ferry.report.dir = {folder.format(tmp=tmp_path)}\n" if folder else ""
    file.write_text(FILE.replace("h:1", "127.0.0.1:1") + named)
    flow = Flow.parse("a->b")
    switch = Switch(
        id="june", verb=Verb.FAILOVER, named=flow, via=flow, who="d@h", approved_by="ann", approved_ms=1, at_ms=2
    )
    end = SwitchEnd(outcome=SwitchOutcome.FINISHED, who="d@h", why="", at_ms=9)
    written, said = report_kept(str(file), "a->b", SwitchState(switch=switch, offset=5, end=end))
    assert written is None
    if why is None:
        assert said is None, "nobody asked for one"
    else:
        assert said is not None
        assert said.startswith("failover june is over, ")
        assert why in said
        assert said.endswith("ferry reports switch 'a->b' june")


@pytest.mark.parametrize(("outcome", "count"), [(SwitchOutcome.FINISHED, 1), (SwitchOutcome.ABANDONED, 0)])
def test_the_log_of_a_finished_switch_has_its_deviations(tmp_path: Path, outcome: SwitchOutcome, count: int) -> None:
    file = tmp_path / "mm2.properties"
    file.write_text(FILE.replace("h:1", "127.0.0.1:1") + "ferry.rpo.seconds = 60\n")
    flow = Flow.parse("a->b")
    switch = Switch(
        id="june", verb=Verb.FAILOVER, named=flow, via=flow, who="d@h", approved_by="ann", approved_ms=1, at_ms=2
    )
    end = SwitchEnd(outcome=outcome, who="d@h", why="", at_ms=9)
    lines = deviations_to_log(str(file), "a->b", SwitchState(switch=switch, offset=5, end=end))
    assert [line.partition(": ")[0] for line in lines] == ["deviation"] * count


def test_a_cleared_run_is_about_the_same_switch_and_the_form_may_name_another() -> None:
    run = "manual__2026-11-22T08:53:37.744938+00:00_x"
    assert switch_id(run, {"id": None}) == switch_id(run, {}) == "manual__2026-11-22T08-53-37.744938-00-00_x"
    assert switch_id(run, {"id": "june"}) == "june"
    assert len(switch_id("y" * 250, {})) == 100


def test_a_switch_may_name_places_of_both_of_its_flows(golden: Golden) -> None:
    """The report of a failback goes where its own flow says, and the records beside it."""
    text = f"{FILE}a->b.ferry.report.dir = /srv/there\nb->a.ferry.report.dir = /srv/back\n"
    settings = parse_settings(text, "f")
    sides = sides_of(settings, settings.flow("a->b"), Verb.FAILBACK)
    reports = OfSwitch()._reports(SimpleNamespace(sides=sides))  # type: ignore[arg-type]
    for named in ("/srv/there/x", "/srv/back/x"):
        refuse_other_export(SwitchOptions(export=named), reports)
    with pytest.raises(BadInput) as wrong:
        refuse_other_export(SwitchOptions(export="/srv/x"), reports)
    golden(wrong.value)
