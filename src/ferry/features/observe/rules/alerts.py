"""The alerts after a run, in one sentence each."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from ferry.config.flow.flow import FlowConfig
from ferry.features.observe.rules.due import due_ms
from ferry.features.observe.rules.of_run import ended_ms
from ferry.features.observe.settings import AlertSettings
from ferry.ledger.history import PastRun, PastState, past_runs
from ferry.ledger.ledger import LedgerView
from ferry.ledger.report import Report, guard_counts
from ferry.plan.rules.lag import PartitionLag, is_behind, total_of
from ferry.words import agreeing, count_of, several

THROTTLED_SHARE = 0.5
"""The share of a run's wall time.

If brokers' quotas held its tasks back longer, summed over tasks, that is an alert.
"""
RUNS_LOOKED_AT = 20
"""How many of a lane's newest runs are read to decide whether a run is late."""
_NAMED = 3


class AlertKind(StrEnum):
    """The kind of an alert."""

    LAG = "lag"
    LATE = "late"
    GUARD = "guard"
    VERIFICATION = "verification"
    THROTTLED = "throttled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """One alert. `flow` is `source->target`."""

    kind: AlertKind
    flow: str
    run: str
    sentence: str


def wants_lag(flow: FlowConfig) -> bool:
    """Return whether the lag is measured after a run: for metrics, or for an alert about a passed limit."""
    settings, limited = flow.of(AlertSettings), flow.rpo.seconds is not None or flow.rpo.records is not None
    return settings.metrics_folder is not None or (settings.callback is not None and limited)


def alerts_of(
    flow: FlowConfig, report: Report, lags: Collection[PartitionLag] | None, failure: str = ""
) -> list[Alert]:
    """Return the alerts of a run's report and of the lag after it.

    `lags` is None if it was not measured; `failure` is why, if it was to be.
    """
    found: list[tuple[AlertKind, str]] = []
    if late := _unmeasured(flow, failure) if lags is None else _lag_sentence(flow, lags):
        found.append((AlertKind.LAG, late))
    tripped = guard_counts(report.refusals, report.plan.gaps, report.plan.lifted)
    if tripped:
        counts = ", ".join(
            f"{guard} {count} {outcome}"
            for guard, one in tripped.items()
            for outcome, count in (("refused", one.refused), ("skipped", one.skipped), ("restarted", one.restarted))
            if count
        )
        first = next((f"; first: {refusal.message}" for refusal in report.refusals if refusal.kind in tripped), "")
        found.append((AlertKind.GUARD, f"guards of flow {flow.flow} tripped: {counts}{first}"))
    if report.verified is not None and not report.verified.equal:
        why = "; ".join(report.verified.complaints[:_NAMED])
        found.append((AlertKind.VERIFICATION, f"run {report.plan.run} of flow {flow.flow} did not verify: {why}"))
    quota_s = (report.throttled.source + report.throttled.target) / 1000
    if report.seconds and quota_s > THROTTLED_SHARE * report.seconds:
        held_back = (
            f"quotas of brokers held the tasks of flow {flow.flow} back for {quota_s:.1f} s, added up, in a run of "
            f"{report.seconds:.1f} s: raise the quotas of its principals, or set ferry.throttle.bytes.per.second"
        )
        found.append((AlertKind.THROTTLED, held_back))
    return [Alert(kind=kind, flow=str(flow.flow), run=report.plan.run, sentence=text) for kind, text in found]


def _unmeasured(flow: FlowConfig, failure: str) -> str | None:
    """Return the sentence on a lag of which nothing could be measured; None without `failure`, or without a limit."""
    values = {"seconds": flow.rpo.seconds, "records": flow.rpo.records}
    limits = [f"ferry.rpo.{name} = {limit}" for name, limit in values.items() if limit is not None]
    if not failure or not limits:
        return None
    allow = "allow" if len(limits) > 1 else "allows"
    return f"the lag of flow {flow.flow} is not known, and may be above what {' and '.join(limits)} {allow}: {failure}"


def _lag_sentence(flow: FlowConfig, lags: Collection[PartitionLag]) -> str | None:
    rpo = flow.rpo
    behind = [lag for lag in lags if is_behind(lag, max_records=rpo.records, max_seconds=rpo.seconds)]
    if not behind:
        return None
    limits = (("seconds", rpo.seconds, None, rpo.seconds), ("records", rpo.records, rpo.records, None))
    passed = " and ".join(
        f"ferry.rpo.{name} = {limit}"
        for name, limit, records, seconds in limits
        if any(is_behind(lag, max_records=records, max_seconds=seconds) for lag in behind)
    )
    allow = "allow" if " and " in passed else "allows"
    known = [lag for lag in behind if lag.records is not None]
    silent = [str(lag.source) for lag in behind if lag.records is None]
    parts = []
    if known:
        total = total_of(known)
        unaged = total.unknown or total.seconds is None
        oldest = "of an age that is not known" if unaged else f"up to {total.seconds:.0f} s old"
        are = agreeing(total.records, f"record {oldest} is", f"records {oldest} are")
        parts.append(f"{are} not on {flow.flow.target} yet ({several([str(lag.source) for lag in known])})")
    if silent:
        parts.append(f"the lag of {count_of(len(silent), 'partition')} is not known ({several(silent)})")
    how = "is above" if known else "is not known, and may be above"
    return f"the lag of flow {flow.flow} {how} what {passed} {allow}: {'; '.join(parts)}"


def is_late(flow: FlowConfig, succeeded_ms: int, now_ms: int) -> bool | None:
    """Return whether `ferry.alert.late.intervals` times of the schedule have passed since the last success.

    It is None without a schedule, and where these intervals are 0.
    """
    due = due_ms(flow.airflow.schedule, succeeded_ms, flow.of(AlertSettings).late_intervals)
    return None if due is None else now_ms >= due


def is_late_by(flow: FlowConfig, past: Sequence[PastRun], now_ms: int) -> bool | None:
    """Return whether the last success of a lane is too long ago, by its RUNS_LOOKED_AT newest runs, oldest first.

    If none of them succeeded, none has since the oldest one began. The result is None as in `is_late`, without a run,
    and if a run before these may have succeeded in time.
    """
    if not past:
        return None
    succeeded_ms = _last_success_ms(past)
    if succeeded_ms is not None:
        return is_late(flow, succeeded_ms, now_ms)
    late = is_late(flow, past[0].opened.record.started_ms, now_ms)
    return None if len(past) >= RUNS_LOOKED_AT and not late else late


def _last_success_ms(past: Iterable[PastRun]) -> int | None:
    """Return when the last of these runs that succeeded ended; None if none did."""
    ends = (ended_ms(one.report) for one in past if one.report is not None and one.state is PastState.SUCCESS)
    return max(ends, default=None)


def late_alert(flow: FlowConfig, run: str, view: LedgerView, now_ms: int) -> Alert | None:
    """Return the alert about a run that was not done in time.

    It is None if another has succeeded since, or may still succeed.
    """
    past = past_runs(view, flow.lane, RUNS_LOOKED_AT)
    succeeded_ms = _last_success_ms(past)
    intervals = flow.of(AlertSettings).late_intervals
    if succeeded_ms is not None:
        if not is_late(flow, succeeded_ms, now_ms):
            return None
        since = f"the last one ended {(now_ms - succeeded_ms) / 1000:.0f} s ago"
    else:
        since = f"none of the newest {count_of(len(past), 'run')} in the ledger did"
        if len(past) == RUNS_LOOKED_AT:
            oldest = min(one.opened.record.started_ms for one in past)
            if is_late(flow, oldest, now_ms) is False:  # an earlier run may have succeeded in time
                sentence = (
                    f"run {run} of flow {flow.flow} is late, and {since}; whether one has succeeded since {intervals} "
                    f"intervals of {flow.airflow.schedule} was not checked"
                )
                return Alert(kind=AlertKind.LATE, flow=str(flow.flow), run=run, sentence=sentence)
    sentence = (
        f"no run of flow {flow.flow} has succeeded for {intervals} intervals of {flow.airflow.schedule}: {since}; "
        f"look at run {run}"
    )
    return Alert(kind=AlertKind.LATE, flow=str(flow.flow), run=run, sentence=sentence)
