"""What is done after a run for monitoring: metrics are written to the file, and alerts are returned."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from ferry.clock import wall_ms
from ferry.config.flow.flow import FlowConfig
from ferry.errors import FerryError
from ferry.features.observe.acts.textfile import update
from ferry.features.observe.rules.alerts import Alert, alerts_of, wants_lag
from ferry.features.observe.rules.of_run import after_run, with_lag, with_skip, with_verification
from ferry.features.observe.rules.samples import Values
from ferry.ledger.report import Report
from ferry.model import Gap, Verified
from ferry.plan.lag import measure_lag
from ferry.plan.rules.lag import PartitionLag

log = logging.getLogger(__name__)


PATIENCE_S = 20.0
"""How long a cluster is tried for the lag (s): the run itself is over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """The result after a run: its alerts, and the lag after it; None where it was not measured."""

    alerts: Sequence[Alert] = ()
    lags: Sequence[PartitionLag] | None = None
    at_ms: int = 0


def publish_run(
    flow: FlowConfig, report: Report, *, patience_s: float = PATIENCE_S, lag: bool = False, in_airflow: bool = False
) -> Published:
    """Write the flow's metrics after a run, with its lag, and return its alerts.

    The lag is measured if the file has a use for it, or the caller asks for it (`lag`). If it cannot be measured, that
    is a warning, and an alert if the file sets a limit. The metrics keep the old lag with its time, so that its age
    shows. A run in another lane changes nothing. `in_airflow`: whether Airflow's schedule counts (`after_run`).
    """
    if report.plan.lane != flow.lane:
        return Published()
    lags, failure = None, ""
    if lag or wants_lag(flow):
        try:
            lags = measure_lag(flow, patience_s=patience_s)
        except FerryError as error:
            failure = str(error)
            log.warning("the lag is not known: %s", failure)
    at_ms = wall_ms()

    def changed(before: Values) -> Values:
        after = after_run(before, report, flow, in_airflow=in_airflow)
        return after if lags is None else with_lag(after, flow, lags, at_ms)

    update(flow, changed)
    return Published(alerts=alerts_of(flow, report, lags, failure), lags=lags, at_ms=at_ms)


def publish_skip(flow: FlowConfig, gap: Gap) -> None:
    """Count a gap that an operator made by hand in the flow's metrics."""
    update(flow, lambda before: with_skip(before, flow, gap))


def publish_verification(flow: FlowConfig, result: Verified, *, narrow: bool) -> None:
    """Write the result of a comparison to the flow's metrics; `narrow`: it was of a part of the flow only.

    If that part is equal, nothing is written, because another part may have differences.
    """
    if result.is_equal and narrow:
        return
    at_ms = wall_ms()
    update(flow, lambda before: with_verification(before, result, at_ms))
