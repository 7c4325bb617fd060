"""Sensors of a flow: what they wait for, what they refuse, and that they wait in a real triggerer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pendulum
import pytest
from airflow.sdk import DAG
from airflow.sdk.bases.operator import TriggerFailureReason
from airflow.sdk.exceptions import AirflowFailException, AirflowSensorTimeout, AirflowSkipException, TaskDeferred
from airflow.triggers.base import TriggerEvent
from structlog.testing import capture_logs

from ferry.clock import wall_ms
from ferry.errors import BadInput, FerryError, Refused, Unreachable
from ferry.plan.rules.lag import LagLook, TotalLag
from ferry.plan.rules.lag_start import Call
from ferry_airflow import lag_trigger
from ferry_airflow.lag_trigger import CaughtUpTrigger, LagBelowTrigger, LagTrigger
from ferry_airflow.sensors import FerryCaughtUpSensor, FerryLagSensor
from tests.airflow.conftest import example
from tests.pure.decide.test_lag_look import T0, lag

FLOW = "a->b"
TEXT = "clusters = a, b\na.bootstrap.servers = h:1\nb.bootstrap.servers = h:2\na->b.enabled = true\n"
UNTIL = datetime(2026, 1, 31, 6, tzinfo=UTC)
UNTIL_MS = int(UNTIL.timestamp() * 1000)

BEHIND = LagLook(lags=[lag(T0, 4, records=6, seconds=60)], ends={T0: 10})
DONE = LagLook(lags=[lag(T0, 10)], ends={T0: 10})

Sensor = FerryCaughtUpSensor | FerryLagSensor


@pytest.fixture
def config(tmp_path: Path) -> str:
    file = tmp_path / "f.properties"
    file.write_text(TEXT)
    return str(file)


def caught_up(**more: Any) -> CaughtUpTrigger:
    return CaughtUpTrigger(config="/f", flow=FLOW, topics=None, every_seconds=0, **{"until_ms": 0, **more})


def below(**more: Any) -> LagBelowTrigger:
    limits = {"records": 5, "seconds": None, **more}
    return LagBelowTrigger(config="/f", flow=FLOW, topics=None, every_seconds=0, **limits)


def events(trigger: CaughtUpTrigger | LagBelowTrigger, looks: Iterable[LagLook | Exception]) -> list[dict[str, Any]]:
    """What the trigger yields until it ends, if these are its measurements."""
    script = iter(looks)

    def look() -> LagLook:
        found = next(script)
        if isinstance(found, Exception):
            raise found
        return found

    async def run() -> list[TriggerEvent]:
        return [event async for event in trigger.run()]

    trigger.look = look  # type: ignore[method-assign]
    found = [event.payload for event in asyncio.run(run())]
    assert next(script, None) is None, "it ended before its last measurement"
    return found


@pytest.mark.parametrize("make", [caught_up, below])
def test_it_waits_until_a_measurement_is_as_wanted_and_logs_one_line_for_each(
    make: Callable[[], CaughtUpTrigger | LagBelowTrigger],
) -> None:
    with capture_logs() as lines:
        (event,) = events(make(), [BEHIND, Unreachable("no answer"), LagLook(lags=[]), DONE])
    assert list(event) == ["seen"]
    assert [line["log_level"] for line in lines] == ["info", "warning", "info"]


def test_what_a_client_prints_of_a_measurement_is_in_the_warning_alone(caplog: pytest.LogCaptureFixture) -> None:
    trigger = below()

    def look() -> LagLook:
        logging.getLogger("kafka.net.manager").error("Connection failed: 111 ECONNREFUSED")
        raise Unreachable("no answer (111 ECONNREFUSED)")

    client = logging.getLogger("kafka")
    before = client.level
    try:
        with capture_logs() as lines:
            assert asyncio.run(trigger.measured(look)) is None
    finally:
        client.setLevel(before)
    assert [line["log_level"] for line in lines] == ["warning"]
    assert "ECONNREFUSED" in str(lines)
    assert not [record for record in caplog.records if record.name.startswith("kafka")]


@pytest.mark.parametrize("error", [Refused("not allowed"), BadInput("wrong")])
def test_an_error_that_stays_ends_the_wait_and_fails_the_task(error: FerryError) -> None:
    (event,) = events(below(), [BEHIND, error])
    assert event == {"error": str(error)}
    with pytest.raises(AirflowFailException, match=str(error)):
        FerryLagSensor(task_id="t", flow=FLOW, below_records=1).execute_complete({}, event)


def test_an_unexpected_error_ends_the_trigger_so_that_airflow_fails_the_task() -> None:
    with pytest.raises(ZeroDivisionError):
        events(below(), [ZeroDivisionError()])


def test_the_trigger_that_starts_runs_outlives_every_error() -> None:
    trigger = LagTrigger(config="/f", flow=FLOW, records=1, seconds=None, every_seconds=0)
    total = TotalLag(partitions=1, behind=1, unknown=0, records=6, bytes=6, seconds=60.0)
    script: list[Any] = [BadInput("wrong"), Unreachable("no answer"), ZeroDivisionError(), None]
    script.append(Call(generation=1, at_ms=2, positions={}, total=total))

    def look(_: Call | None) -> Any:
        found = script.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    async def first() -> Any:
        return (await anext(trigger.run())).payload

    trigger.look = look  # type: ignore[method-assign, assignment]
    with capture_logs() as lines:
        assert asyncio.run(first())["records"] == 6
    assert [line["log_level"] for line in lines] == ["warning", "warning", "error", "info"]


def test_nothing_is_measured_before_the_time_has_come(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    now = [UNTIL_MS - 5_000]

    async def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += int(seconds * 1000)

    monkeypatch.setattr(lag_trigger, "wall_ms", lambda: now[0])
    monkeypatch.setattr(asyncio, "sleep", sleep)
    assert len(events(caught_up(until_ms=UNTIL_MS), [DONE])) == 1
    assert slept == [5.0]


@pytest.mark.parametrize("trigger", [caught_up(until_ms=7), below(seconds=2.5)])
def test_airflow_can_make_a_trigger_again(trigger: CaughtUpTrigger | LagBelowTrigger) -> None:
    path, arguments = trigger.serialize()
    again = getattr(lag_trigger, path.rpartition(".")[2])(**arguments)
    assert again.serialize() == (path, arguments)


def deferred(sensor: Sensor, **context: Any) -> tuple[dict[str, Any], TaskDeferred]:
    """The arguments of the trigger that a sensor waits by."""
    with pytest.raises(TaskDeferred) as raised:
        sensor.execute(context)  # type: ignore[arg-type]
    return raised.value.trigger.serialize()[1], raised.value


def test_a_sensor_waits_by_its_trigger_as_long_as_its_timeout(config: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FERRY_CONFIG", config)
    sensor = FerryLagSensor(
        task_id="t", flow=FLOW, topics=["t"], below_records=5, below_seconds=60, poke_interval=7, timeout=99
    )
    arguments, wait = deferred(sensor)
    assert arguments == {
        "config": config,
        "flow": FLOW,
        "topics": ["t"],
        "records": 5,
        "seconds": 60,
        "every_seconds": 7,
    }
    assert (wait.method_name, wait.timeout) == ("execute_complete", timedelta(seconds=99))


@pytest.mark.parametrize(("soft_fail", "error"), [(False, AirflowSensorTimeout), (True, AirflowSkipException)])
def test_a_sensor_that_waits_too_long_ends_as_airflows_do(soft_fail: bool, error: type[Exception]) -> None:
    sensor = FerryLagSensor(task_id="t", flow=FLOW, below_records=1, soft_fail=soft_fail)
    with pytest.raises(error):
        sensor.resume_execution("__fail__", {"error": TriggerFailureReason.TRIGGER_TIMEOUT}, {})


@pytest.mark.parametrize(
    ("until", "context"),
    [
        (UNTIL, {}),
        ("2026-01-31T06:00:00Z", {}),
        ("2026-01-31 06:00:00+00:00", {}),
        (None, {"data_interval_end": UNTIL, "logical_date": UNTIL - timedelta(hours=1)}),
        (None, {"data_interval_end": None, "logical_date": UNTIL}),
        (None, {"dag_run": SimpleNamespace(run_after=UNTIL)}),
    ],
    ids=["time", "text", "text of a template", "data interval", "logical date", "run of an asset"],
)
def test_the_time_is_given_or_the_runs_own(config: str, until: datetime | str | None, context: dict[str, Any]) -> None:
    sensor = FerryCaughtUpSensor(task_id="t", flow=FLOW, until=until, config=config)
    assert deferred(sensor, **context)[0]["until_ms"] == UNTIL_MS


@pytest.mark.parametrize(
    "make",
    [
        lambda: FerryLagSensor(task_id="t", flow=FLOW),
        lambda: FerryLagSensor(task_id="t", flow=FLOW, below_records=0),
        lambda: FerryLagSensor(task_id="t", flow=FLOW, below_seconds=-1),
        lambda: FerryLagSensor(task_id="t", flow=FLOW, below_seconds=float("nan")),
        lambda: FerryLagSensor(task_id="t", flow=FLOW, below_records=float("inf")),
        lambda: FerryLagSensor(task_id="t", flow=FLOW, below_records=10**400),
        lambda: FerryLagSensor(task_id="t", flow=FLOW, below_seconds=float("inf")),
        lambda: FerryLagSensor(task_id="t", flow=FLOW, below_records=1, topics=[]),
        lambda: FerryLagSensor(task_id="t", flow=FLOW, below_records=1, topics="orders"),
        lambda: FerryCaughtUpSensor(task_id="t", flow=FLOW, until=UNTIL.replace(tzinfo=None)),
    ],
    ids=[
        "no limit",
        "limit 0",
        "limit below 0",
        "no number",
        "no end",
        "too long for a float",
        "no end of time",
        "no topic",
        "topics as text",
        "time without zone",
    ],
)
def test_a_bad_argument_is_refused_when_the_dag_is_parsed(make: Callable[[], Sensor]) -> None:
    with pytest.raises(BadInput):
        make()


@pytest.mark.parametrize(
    "sensor",
    [
        FerryCaughtUpSensor(task_id="t", flow=FLOW, until="None"),
        FerryCaughtUpSensor(task_id="t", flow=FLOW, until="2026-01-31T06:00:00"),
        FerryCaughtUpSensor(task_id="t", flow=FLOW, until="t:0:5"),
        FerryCaughtUpSensor(task_id="t", flow="a->c", until=UNTIL),
        FerryLagSensor(task_id="t", flow=FLOW, below_records="{{ x }}"),
        FerryLagSensor(task_id="t", flow=FLOW, below_records="1e400"),
    ],
    ids=["no time", "no zone", "offset", "no such flow", "no number", "no end"],
)
def test_a_bad_value_of_a_template_fails_the_task_at_once(
    sensor: Sensor, config: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FERRY_CONFIG", config)
    with pytest.raises(AirflowFailException):
        sensor.execute({})


@pytest.mark.parametrize(("limit", "records"), [(1, 1), ("1000", 1000), (0.5, 1), ("0.5", 1), (1.5, 2), ("1e3", 1000)])
def test_a_part_of_a_record_is_the_next_whole_one(config: str, limit: float | str, records: int) -> None:
    """Fewer than 1.5 records are fewer than 2; fewer than 0 there cannot be."""
    sensor = FerryLagSensor(task_id="t", flow=FLOW, below_records=limit, config=config)
    assert deferred(sensor)[0]["records"] == records


@pytest.mark.parametrize("native", [False, True])
def test_topics_that_are_one_template_need_native_rendering(config: str, native: bool) -> None:
    with DAG("d", schedule=None, render_template_as_native_obj=native):
        sensor = FerryLagSensor(task_id="t", flow=FLOW, below_records=1, topics="{{ names }}", config=config)
    context: Any = {"names": ["orders", "users"]}
    sensor.render_template_fields(context)
    if native:
        assert deferred(sensor, **context)[0]["topics"] == ["orders", "users"]
    else:
        with pytest.raises(AirflowFailException):
            sensor.execute(context)


@pytest.mark.parametrize("name", ["", 7])
def test_a_template_of_an_element_that_is_no_name_fails_the_task_at_once(config: str, name: object) -> None:
    sensor = FerryLagSensor(task_id="t", flow=FLOW, below_records=1, topics=["orders", "{{ name }}"], config=config)
    sensor.topics = ["orders", name]  # type: ignore[list-item]  # as rendered
    with pytest.raises(AirflowFailException):
        sensor.execute({})


def test_without_a_file_it_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FERRY_CONFIG", raising=False)
    with pytest.raises(AirflowFailException, match="FERRY_CONFIG"):
        FerryCaughtUpSensor(task_id="t", flow=FLOW, until=UNTIL).execute({})
    assert wall_ms() > UNTIL_MS


@pytest.mark.parametrize(
    ("name", "tasks"),
    [
        ("orders_arrived", {"read": set()}),
        ("orders_by_hour", {"whole_hour": set(), "read": {"whole_hour"}}),
        ("day_is_copied", {"caught_up": set(), "lag": set()}),
    ],
)
def test_the_dags_of_the_documents_are_whole(
    name: str, tasks: dict[str, set[str]], config: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path(config).write_text(
        "clusters = primary, backup\nprimary.bootstrap.servers = h:1\nbackup.bootstrap.servers = h:2\n"
        "primary->backup.enabled = true\nprimary->backup.topics = orders\n"
    )
    monkeypatch.setenv("FERRY_CONFIG", config)
    found: dict[str, Any] = {}
    exec(example("airflow", f"def {name}(").replace(f"\n{name}()", f"\nmade = {name}()"), found)
    dag = found["made"]
    assert (dag.dag_id, {task.task_id: task.upstream_task_ids for task in dag.tasks}) == (name, tasks)


def test_a_template_of_the_documents_is_the_end_of_the_hour(config: str) -> None:
    sensor = FerryCaughtUpSensor(
        task_id="t", flow=FLOW, topics=["{{ topic }}"], until="{{ partition_date.add(hours=1) }}", config=config
    )
    context: Any = {"partition_date": pendulum.instance(UNTIL - timedelta(hours=1)), "topic": "orders"}
    sensor.render_template_fields(context)
    arguments, _ = deferred(sensor, **context)
    assert (arguments["until_ms"], arguments["topics"]) == (UNTIL_MS, ["orders"])
