"""Alerts from Airflow's tasks about a flow, to the function or notifier that the flow's file names."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from airflow.sdk import BaseNotifier
from airflow.sdk.definitions.callback import SyncCallback
from airflow.sdk.definitions.deadline import DeadlineAlert, DeadlineReference

from ferry.clock import wall_ms
from ferry.config.flow.flow import FlowConfig
from ferry.config.settings import load
from ferry.errors import BadInput, FerryError
from ferry.features.observe.rules.due import shortest_interval
from ferry.features.observe.settings import AlertSettings

log = logging.getLogger(__name__)

WORD = "ferry_alert"
"""The name of the alert in a notifier's templates: `{{ ferry_alert.sentence }}`."""
_PATIENCE_S = 20.0


def deadline(flow: FlowConfig, config: Path) -> DeadlineAlert | None:
    """Return the deadline of a flow's runs; None when the file names no callback, or the schedule has no times.

    It passes when a run has not succeeded after the configured number of intervals. The ledger then shows whether
    another run has succeeded since (`late`).
    """
    settings, interval = flow.of(AlertSettings), shortest_interval(flow.airflow.schedule)
    if settings.callback is None or interval is None or not settings.late_intervals:
        return None
    return DeadlineAlert(
        reference=DeadlineReference.DAGRUN_QUEUED_AT,
        interval=settings.late_intervals * interval,
        callback=SyncCallback(f"{__name__}.{late.__name__}", kwargs={"config": str(config), "flow": str(flow.flow)}),
        name=f"{flow.flow} is late",
    )


def late(context: Mapping[str, Any], config: str, flow: str) -> None:
    """Send an alert if no run has succeeded in time; Airflow calls this when a run's deadline has passed.

    What prevents the look into the ledger, be it a connection of Airflow, is in the alert. Raises BadInput if the file
    itself cannot be read, because it names the callback.
    """
    from ferry.features.observe.rules.alerts import (  # noqa: PLC0415 - only where they are used
        RUNS_LOOKED_AT,
        Alert,
        AlertKind,
        late_alert,
    )
    from ferry.run.ledger.access import LedgerAccess  # noqa: PLC0415 - as above
    from ferry_airflow.cluster_settings import flow_of  # noqa: PLC0415 - as above

    found = load(Path(config)).flow(flow)  # for the callback: no connection is read
    run = str(context["dag_run"]["dag_run_id"])
    alert: Alert | None
    try:
        found = flow_of(Path(config), flow)
        with LedgerAccess(found, patience_s=_PATIENCE_S) as access:
            view = access.view_with_newest(found.lane, RUNS_LOOKED_AT)
        alert = late_alert(found, run, view, wall_ms())
    except Exception as error:  # an alert that does not go out would look like a run in time
        why = str(error)
        if not isinstance(error, FerryError):
            log.exception("the ledger of flow %s was not read", flow)
            why = f"{type(error).__name__}, see the log"  # the text of such an error may hold a secret
        sentence = f"run {run} of flow {flow} is late, and whether another has succeeded is not known: {why}"
        alert = Alert(kind=AlertKind.LATE, flow=flow, run=run, sentence=sentence)
    if alert is not None:
        tell(found, [alert], context)


def tell(flow: FlowConfig, alerts: Iterable[Any], context: Mapping[str, Any]) -> None:
    """Call the flow's callback for each alert. A callback that fails is logged: it does not undo a run that is done."""
    settings = flow.of(AlertSettings)
    if settings.callback is None:
        return
    for alert in alerts:
        log.warning("alert (%s): %s", alert.kind, alert.sentence)
        try:
            _call(settings.callback, dict(settings.arguments), alert, context)
        except Exception:
            log.exception("%s did not take the alert: correct ferry.alert.callback", settings.callback)


def _call(path: str, arguments: dict[str, Any], alert: Any, context: Mapping[str, Any]) -> None:
    module, _, name = path.rpartition(".")
    try:
        called = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise BadInput(
            f"ferry.alert.callback = {path} cannot be imported ({error}): correct it, or install it on every worker"
        ) from error
    if isinstance(called, type) and issubclass(called, BaseNotifier):
        called(**arguments)({**context, WORD: alert})
    else:
        called(alert, context, **arguments)
