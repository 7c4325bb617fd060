"""Values in the trigger forms: units as in options, plain numbers as before, lists, and errors with the field."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowFailException, ParamValidationError

from ferry.config.settings import parse_settings
from ferry.errors import BadInput
from ferry.features.switch.settings import Approvers
from ferry.model.switch import Verb
from ferry_airflow import steps, switching
from ferry_airflow.backfill import (
    FerryWindowCopyOperator,
    FerryWindowPlanOperator,
    FerryWindowReportOperator,
    backfill_dag,
)
from ferry_airflow.base import is_dry_run
from ferry_airflow.drill_dag import drill_dag
from ferry_airflow.drill_operators import DrillApprovalOperator
from ferry_airflow.drilling import Asked, drill_of
from ferry_airflow.measures import names_of
from ferry_airflow.operators import FerryCheckpointOperator, FerryCopyOperator, FerryPlanOperator, FerryReportOperator
from ferry_airflow.switch_dags import switch_dag
from ferry_airflow.switch_operators import SwitchApprovalOperator, SwitchReportOperator
from ferry_airflow.verify_operators import FerryVerifyRunOperator
from ferry_airflow.window_steps import backfill_of
from tests.golden import Golden, brief

SETTINGS = parse_settings(
    "clusters = a, b\na.bootstrap.servers = h:1\nb.bootstrap.servers = h:1\na->b.enabled = true\n", "f"
)
FLOW = SETTINGS.flow("a->b")
RUN: Callable[[], DAG] = partial(backfill_dag, FLOW, Path("/f"), "@daily")
SWITCH: Callable[[], DAG] = partial(switch_dag, FLOW, Path("/f"), Verb.SWITCHOVER)
DRILL: Callable[[], DAG] = partial(drill_dag, FLOW, Path("/f"))


def filled(made: Callable[[], DAG], **form: Any) -> dict[str, Any]:
    """The form of a DAG as Airflow merges and checks it."""
    params = made().params
    params.update(form)
    return params.validate()


@pytest.mark.parametrize(
    ("size", "count"),
    [("10GiB", 10 << 30), ("2kb", 2000), ("500", 500), (500, 500), (5e9, 5_000_000_000), (None, None)],
)
def test_a_budget_in_bytes(size: object, count: int | None) -> None:
    assert steps.options_of(filled(RUN, max_bytes=size)).max_bytes == count


@pytest.mark.parametrize(("time", "count"), [("15m", 900), ("1h30m", 5400), ("90", 90), (90, 90), (None, None)])
def test_a_budget_in_seconds(time: object, count: int | None) -> None:
    assert steps.options_of(filled(RUN, max_seconds=time)).max_seconds == count


def test_the_waits_and_the_objective_of_a_switch() -> None:
    form = filled(
        SWITCH, quiet_seconds="1500ms", quiet_timeout_seconds=30, drain_timeout_seconds="1d", max_seconds="2m"
    )
    options = switching.options_of(form)
    waits = options.quiet_seconds, options.quiet_timeout_seconds, options.drain_timeout_seconds
    assert (waits, options.rpo_seconds) == ((1.5, 30, 86_400), 120)


@pytest.mark.parametrize("value", ["abc", "-1", "", 0, 1.5, True, ["1"]])
@pytest.mark.parametrize("name", ["max_bytes", "max_seconds"])
def test_airflow_refuses_at_once_what_begins_with_no_number_and_names_the_field(name: str, value: object) -> None:
    with pytest.raises(ParamValidationError, match=name):
        filled(RUN, **{name: value})


def start(**form: Any) -> tuple[str, ...]:
    asked = Asked(settings=SETTINGS, flow=FLOW, params=filled(DRILL, **form), who="d@h", run="manual__1")
    return drill_of(asked).preview()


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("max_bytes", lambda **form: steps.options_of(filled(RUN, **form))),
        ("max_seconds", lambda **form: steps.options_of(filled(RUN, **form))),
        ("quiet_seconds", lambda **form: switching.options_of(filled(SWITCH, **form))),
        ("quiet_timeout_seconds", lambda **form: switching.options_of(filled(SWITCH, **form))),
        ("drain_timeout_seconds", lambda **form: switching.options_of(filled(SWITCH, **form))),
        ("max_seconds", lambda **form: switching.options_of(filled(SWITCH, **form))),
        ("max_bytes", lambda **form: start(kind="shadow", **form)),
        ("stay_seconds", lambda **form: start(kind="full", **form)),
    ],
    ids=[
        "max_bytes",
        "max_seconds of a run",
        "quiet_seconds",
        "quiet_timeout_seconds",
        "drain_timeout_seconds",
        "max_seconds of a switch",
        "max_bytes of a drill",
        "stay_seconds",
    ],
)
def test_the_task_names_the_field_and_what_to_write(name: str, read: Callable[..., object], golden: Golden) -> None:
    with pytest.raises(BadInput) as wrong:
        read(**{name: "5x"})
    golden(wrong.value)


@pytest.mark.parametrize(
    ("within", "seconds"), [("2d", 172_800), (60, 60), ("7d", 604_800), ("8d", None), ("5x", None)]
)
def test_an_approval_within_a_week(within: object, seconds: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    task: Any = DRILL().get_task("approve")
    monkeypatch.setattr("airflow.providers.standard.operators.hitl.ApprovalOperator.execute", lambda *_: "asked")
    monkeypatch.setattr(task, "refuse_earlier_question", lambda _: None)
    params = filled(DRILL, kind="full", approval_timeout_seconds=within)
    context = {"params": params, "ti": SimpleNamespace(xcom_pull=lambda **_: ""), "dag_run": SimpleNamespace()}
    if seconds is None:
        with pytest.raises(AirflowFailException, match="approval_timeout_seconds: "):
            task.execute(context)
    else:
        task.execute(context)
        assert task.response_timeout.total_seconds() == seconds


def test_an_untouched_form_shows_its_defaults_with_units() -> None:
    form = filled(SWITCH)
    assert (form["quiet_seconds"], form["approval_timeout_seconds"], filled(DRILL)["stay_seconds"]) == (
        "10s",
        "1h",
        "0s",
    )


NAMES: dict[str, Callable[..., object]] = {
    "topics of a run": lambda names: steps.options_of({"topics": names}).only,
    "topics of a comparison": lambda names: steps.wanted_of({"topics": names}).topics,
    "groups": lambda names: frozenset(names_of({"groups": names}, "groups")) or None,
}


@pytest.mark.parametrize("read", NAMES.values(), ids=NAMES.keys())
def test_names_are_a_list_and_a_text_is_refused_where_no_form_checks_it(read: Callable[..., object]) -> None:
    """A DAG with the task group has params of its own, whose types its author chooses."""
    assert read(["orders", "users"]) == {"orders", "users"}
    assert read(None) is None
    assert read([]) is None
    for wrong in ("orders", "['orders']", {"orders": 1}, [7], [""]):
        with pytest.raises(BadInput):
            read(wrong)


WINDOW: dict[str, Any] = {"lane": "backfill-x", "from": "1970-01-01T00:00:01Z", "to": "1970-01-01T00:00:02Z"}

FLAGS: dict[str, Callable[[dict[str, Any]], object]] = {
    "take_over": lambda form: steps.options_of(form).take_over,
    "without_ledger": lambda form: steps.wanted_of(form).without_ledger,
    "into_live": lambda form: backfill_of(FLOW, "r", {**WINDOW, **form}, None).lane is None,
    "allow_deleted": lambda form: window_of(form).allow_deleted,
    "dry_run": lambda form: is_dry_run(of_form(form)),
    **{
        name: lambda form, name=name: getattr(switching.options_of(form), name)  # type: ignore[misc]
        for name in ("leave_active", "leave_unknown", "remove_write_block", "smoke", "reverse", "interrupt")
    },
}


def of_form(form: dict[str, Any]) -> Any:
    return {"params": form}


def window_of(form: dict[str, Any]) -> Any:
    return backfill_of(FLOW, "r", {**WINDOW, **form}, None).options.window


@pytest.mark.parametrize("name", FLAGS)
def test_a_flag_is_a_boolean_and_a_text_is_refused_where_no_form_checks_it(name: str) -> None:
    """`TriggerDagRunOperator` passes the text False, which counts as true in Python."""
    read = FLAGS[name]
    assert (read({name: True}), read({name: False})) == (True, False)
    assert read({}) == read({name: None}) == (name in ("smoke", "reverse"))
    wrongs: list[Any] = ["true", "False", "", 0, 1, []]
    for wrong in wrongs:
        with pytest.raises((BadInput, AirflowFailException), match=name):
            read({name: wrong})


NUMBERS: dict[str, tuple[int, str, Callable[[dict[str, Any]], int | None]]] = {
    "max_records of a run": (1, "max_records", lambda form: steps.options_of(form).max_records),
    "max_records of a switch": (0, "max_records", lambda form: switching.options_of(form).rpo_records),
    "partition": (0, "partition", lambda form: steps.wanted_of(form).partition),
    "sample": (1, "sample", lambda form: steps.wanted_of({"mode": "sample", **form}).sample),
}


@pytest.mark.parametrize(("least", "name", "read"), NUMBERS.values(), ids=NUMBERS.keys())
def test_a_whole_number_is_read_as_one(least: int, name: str, read: Callable[[dict[str, Any]], int | None]) -> None:
    for given, number in ((7, 7), (7.0, 7), ("7", 7), (least, least), (None, None)):
        assert read({name: given}) == number
    wrongs: list[Any] = [True, False, "", "7x", "-1", 2.5, float("inf"), [7], "1" * 5000, 2**63, least - 1]
    for wrong in wrongs:
        with pytest.raises(BadInput, match=name):
            read({name: wrong})


@pytest.mark.parametrize("form", [{"max_records": "0"}, {"take_over": "False"}, {"mode": "Sample"}], ids=brief)
def test_a_value_that_no_form_has_checked_is_named(form: dict[str, Any], golden: Golden) -> None:
    with pytest.raises(BadInput) as refused:
        (steps.wanted_of if "mode" in form else steps.options_of)(form)
    golden(refused.value)


NAMED: dict[str, Any] = {"config": "/f", "flow": "a->b"}
SPARK = {**NAMED, "conn_id": "there"}
TASKS: list[Callable[..., Any]] = [
    partial(FerryPlanOperator, **NAMED),
    partial(FerryCopyOperator, **SPARK),
    partial(FerryCheckpointOperator, **NAMED),
    partial(FerryReportOperator, **NAMED),
    partial(FerryVerifyRunOperator, **SPARK),
    partial(FerryWindowPlanOperator, **NAMED),
    partial(FerryWindowCopyOperator, **SPARK),
    partial(FerryWindowReportOperator, **NAMED),
    partial(SwitchReportOperator, **NAMED, verb="switchover"),
    partial(SwitchApprovalOperator, **NAMED, verb="switchover", subject="s", approvers=Approvers()),
    partial(DrillApprovalOperator, **NAMED, subject="s", approvers=Approvers()),
]


@pytest.mark.parametrize("make", TASKS, ids=lambda make: make.func.__name__)
def test_a_dry_run_that_is_a_text_fails_the_task_and_is_not_taken_for_one(
    make: Callable[..., Any], tmp_path: Path
) -> None:
    file = tmp_path / "f"
    file.write_text("clusters = a, b\na.bootstrap.servers = h:1\nb.bootstrap.servers = h:1\na->b.enabled = true\n")
    task = make(task_id="t")
    task.config = str(file)
    params = {**WINDOW, "kind": "tabletop", "dry_run": "False"}
    with pytest.raises(AirflowFailException, match="dry_run"):
        task.execute({"params": params, "dag": SimpleNamespace(dag_id="d", timetable=None), "run_id": "r"})
