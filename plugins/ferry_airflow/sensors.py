"""Sensors of a flow, for DAGs that continue when something is copied. They wait in the triggerer and hold no worker."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any, NoReturn

from airflow.sdk import BaseSensorOperator, Context

from ferry.config.flow.start import StartTime, parse_start
from ferry.config.settings import load
from ferry.config.text.problem import BadValue
from ferry.errors import BadInput
from ferry_airflow.base import airflow_errors, final_failure
from ferry_airflow.lag_trigger import CaughtUpTrigger, LagBelowTrigger
from ferry_airflow.measures import checked_names
from ferry_airflow.task_group import config_path
from ferry_airflow.task_log import QuietLog


class _FlowSensor(QuietLog, BaseSensorOperator):
    """A sensor of one flow. Of Airflow's arguments, `poke_interval`, `timeout` and `soft_fail` count."""

    template_fields: Sequence[str] = ("flow", "topics", "config")

    def __init__(
        self, *, flow: str, topics: Collection[str] | None = None, config: str | None = None, **kwargs: Any
    ) -> None:
        """`flow` is `source->target`; `topics` are names at the source, None: all of the flow.

        `config` is the path of the configuration file, by default the one that FERRY_CONFIG names. Raises BadInput for
        an empty `topics`, or a text without a template. A template of all of it needs native rendering.
        """
        super().__init__(**kwargs)
        if topics is not None and (not topics or (isinstance(topics, str) and "{{" not in topics)):
            checked_names("topics", topics)  # other templates, and results of tasks, are checked when they are rendered
        self.flow = flow
        self.topics = topics
        self.config = config

    def _checked(self) -> dict[str, Any]:
        """Return what its trigger needs; raises BadInput if the file has no such flow. It asks no cluster."""
        path = config_path(self.config)
        flow = load(path).flow(self.flow).flow
        topics = None if self.topics is None else sorted(checked_names("topics", self.topics))
        return {"config": str(path), "flow": str(flow), "topics": topics, "every_seconds": self.poke_interval}

    def _wait(self, trigger: CaughtUpTrigger | LagBelowTrigger) -> NoReturn:
        self.defer(trigger=trigger, method_name="execute_complete", timeout=timedelta(seconds=self.timeout))

    def execute_complete(self, context: Context, event: dict[str, Any]) -> None:
        """End the task as the trigger's event says; an error that stays fails it without a retry."""
        if "error" in event:
            raise final_failure(event["error"])
        self.log.info("%s", event["seen"])


class FerryCaughtUpSensor(_FlowSensor):
    """Waits until a flow has copied what was at the source before a time.

    In each partition that is every record before the first one of that time or later, as Kafka finds it. Records that
    an operator or a guard skipped count as copied.
    """

    template_fields = (*_FlowSensor.template_fields, "until")

    def __init__(self, *, flow: str, until: datetime | str | None = None, **kwargs: Any) -> None:
        """`until` is the time, with its zone, and may be a template.

        By default it is the end of the run's data interval, or else its logical date, or else when it was due.
        """
        super().__init__(flow=flow, **kwargs)
        if isinstance(until, datetime):
            _ms_of(until)
        self.until = until

    def execute(self, context: Context) -> None:
        """Wait in the triggerer; fail at once for a bad argument."""
        with airflow_errors():
            trigger = CaughtUpTrigger(until_ms=_ms_of(self._until(context)), **self._checked())
        self._wait(trigger)

    def _until(self, context: Context) -> datetime | str:
        if self.until is not None:
            return self.until
        return context.get("data_interval_end") or context.get("logical_date") or context["dag_run"].run_after


class FerryLagSensor(_FlowSensor):
    """Waits until a flow's lag is below limits, as `ferry lag` measures it."""

    template_fields = (*_FlowSensor.template_fields, "below_records", "below_seconds")

    def __init__(
        self,
        *,
        flow: str,
        below_records: float | str | None = None,
        below_seconds: float | str | None = None,
        **kwargs: Any,
    ) -> None:
        """`below_records` is the limit of all partitions together, `below_seconds` of the oldest record of any.

        If both are given, the lag must be below both. Raises BadInput without a limit, or with one that is not finite
        and above 0.
        """
        super().__init__(flow=flow, **kwargs)
        if below_records is None and below_seconds is None:
            raise BadInput("no limit is given: give below_records, below_seconds or both")
        for name, limit in (("below_records", below_records), ("below_seconds", below_seconds)):
            if limit is not None and not isinstance(limit, str):
                _limit(name, limit)
        self.below_records = below_records
        self.below_seconds = below_seconds

    def execute(self, context: Context) -> None:
        """Wait in the triggerer; fail at once for a bad argument."""
        with airflow_errors():
            records, seconds = self.below_records, self.below_seconds
            trigger = LagBelowTrigger(
                records=None if records is None else math.ceil(_limit("below_records", records)),
                seconds=None if seconds is None else _limit("below_seconds", seconds),
                **self._checked(),
            )
        self._wait(trigger)


def _limit(name: str, value: float | str) -> float:
    """Return a limit, which a template renders as text; raises BadInput for one that is not finite and above 0."""
    try:
        limit = float(value)
    except (TypeError, ValueError, OverflowError):
        limit = 0
    if not 0 < limit < math.inf:
        raise BadInput(f"{name} {value!r} is not a finite number above 0: write one that a lag can be below, such as 1")
    return limit


def _ms_of(until: datetime | str) -> int:
    """Return a time in ms; raises BadInput for one without a zone, and for text that is not a time."""
    text = until.isoformat() if isinstance(until, datetime) else str(until)
    try:
        found = parse_start(text)
    except BadValue:
        found = None
    if not isinstance(found, StartTime):
        raise BadInput(f"until {text!r} is not a time with its zone: write one such as 2026-01-31T06:00:00Z")
    return found.timestamp_ms
