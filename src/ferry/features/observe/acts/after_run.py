"""What a run's end tells those who watch: metrics into the file, and the findings that somebody should hear of."""

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
from ferry.ledger.report import Report
from ferry.model import Gap, Verified
from ferry.plan.lag import measure_lag
from ferry.plan.rules.lag import PartitionLag

log = logging.getLogger(__name__)


PATIENCE_S = 20.0
"""How long a cluster is tried for the lag: the run itself is over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a run's end came to: what calls for somebody, and the lag behind the run; None where nobody measured it."""

    alerts: Sequence[Alert] = ()
    lags: Sequence[PartitionLag] | None = None
    at_ms: int = 0


def tell_run(flow: FlowConfig, report: Report, *, patience_s: float = PATIENCE_S, lag: bool = False) -> Told:
    """Write the flow's metrics after a run, with its lag, and answer what calls for somebody.

    The lag is measured where the file has a use for it, or the caller (`lag`). One that cannot be measured is a
    warning; the metrics keep the old one with its time, so that its age shows.
    """
    if report.plan.lane != flow.lane:
        return Told()
    lags = _measured(flow, patience_s) if lag or wants_lag(flow) else None
    at_ms = wall_ms()
    update(
        flow,
        lambda before: (
            after_run(before, report, flow)
            if lags is None
            else with_lag(after_run(before, report, flow), flow, lags, at_ms)
        ),
    )
    return Told(alerts=alerts_of(flow, report, lags), lags=lags, at_ms=at_ms)


def tell_skip(flow: FlowConfig, gap: Gap) -> None:
    """Count a place that somebody passed by hand in the flow's metrics."""
    update(flow, lambda before: with_skip(before, flow, gap))


def tell_verification(flow: FlowConfig, result: Verified, *, narrow: bool) -> None:
    """Write the result of a comparison into the flow's metrics; `narrow`: of a part of the flow only.

    Agreement of a part does not take back what was found in another: it is not written.
    """
    if result.is_equal and narrow:
        return
    at_ms = wall_ms()
    update(flow, lambda before: with_verification(before, result, at_ms))


def _measured(flow: FlowConfig, patience_s: float) -> list[PartitionLag] | None:
    try:
        return measure_lag(flow, patience_s=patience_s)
    except FerryError as error:
        log.warning("the lag is not known: %s", error)
        return None
