"""A run's report, a flow's lag and a comparison as metrics; and how a report changes what was told before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from ferry.config.flow.flow import FlowConfig
from ferry.decide.ledger.report import GUARDS, Report, RunState, guard_counts
from ferry.decide.metrics import samples as m
from ferry.decide.metrics.due import due_ms
from ferry.decide.metrics.samples import Labels, Metric, Values, labelled, summed
from ferry.decide.plan.lag import PartitionLag
from ferry.model import Flow, Verified

_MS = 1000
_OUTCOMES = ("refused", "skipped", "restarted")


def labels_of(flow: Flow, lane: str) -> Labels:
    """MirrorMaker 2's tags of a flow, and the lane."""
    return labelled((), source=flow.source, target=flow.target, lane=lane)


def run_counts(report: Report) -> dict[tuple[Metric, Labels], float]:
    """What a run adds to the counters. Guards are there with 0, too: one that appears with 1 shows no increase."""
    common = labels_of(report.plan.flow, report.plan.lane)
    counts: dict[tuple[Metric, Labels], float] = {
        (m.RUN_COUNT, common): 1,
        (m.SUCCESS_COUNT, common): float(report.state is RunState.SUCCESS),
        (m.UNFINISHED_COUNT, common): len(report.unfinished),
    }
    for receipt in report.receipts:
        topic = labelled(common, topic=receipt.target.topic)
        for metric, value in (
            (m.RECORD_COUNT, receipt.records),
            (m.BYTE_COUNT, receipt.bytes),
            (m.BATCH_COUNT, receipt.batches),
            (m.TRANSCODED_BATCH_COUNT, receipt.transcoded),
            (m.MISSING_COUNT, receipt.missing or 0),
        ):
            counts[metric, topic] = counts.get((metric, topic), 0) + value
    throttled = report.throttled
    for by, ms in (("ferry", throttled.ferry), ("source", throttled.source), ("target", throttled.target)):
        counts[m.THROTTLE_MS, labelled(common, by=by)] = ms
    tripped = guard_counts(report.refusals, report.plan.gaps, report.plan.lifted)
    for guard in sorted(GUARDS | tripped.keys()):
        for outcome in _OUTCOMES:
            count = getattr(tripped[guard], outcome) if guard in tripped else 0
            counts[m.GUARD_COUNT, labelled(common, guard=guard, outcome=outcome)] = count
    for kind, count in Counter(refusal.kind.value for refusal in report.refusals).items():
        counts[m.REFUSAL_COUNT, labelled(common, kind=kind)] = count
    for kind, count in Counter(gap.why.value for gap in report.plan.gaps).items():
        counts[m.GAP_COUNT, labelled(common, kind=kind)] = count
    return counts


def ended_ms(report: Report) -> int:
    """When the run ended: its last receipt's time, or its own where it copied nothing."""
    return report.started_ms + int(report.seconds * _MS)


def after_run(before: Values, report: Report, flow: FlowConfig) -> dict[tuple[str, Labels], float]:
    """All metrics of a flow after a run, from those before it. Telling the same run again adds nothing twice.

    A run that was told before may have copied more since (`--resume`, a task that was cleared). One that is older than
    the last one told changes nothing.
    """
    common = labels_of(flow.flow, flow.lane)
    told = int(before.get((m.GENERATION.name, common), -1))
    if report.plan.generation < told:
        return dict(before)
    again = report.plan.generation == told
    twins = {metric.last_run for metric in m.COUNTERS}
    after = {key: value for key, value in before.items() if key[0] not in {*twins, m.LAST_RUN_STATE.name}}
    for (metric, labels), value in run_counts(report).items():
        earlier = before.get((metric.last_run, labels), 0) if again else 0
        after[metric.name, labels] = before.get((metric.name, labels), 0) + max(0, value - earlier)
        after[metric.last_run, labels] = max(value, earlier) if metric is m.SUCCESS_COUNT else value
    after |= {
        (m.GENERATION.name, common): report.plan.generation,
        (m.LAST_RUN_TIME.name, common): ended_ms(report) / _MS,
        (m.LAST_RUN_SECONDS.name, common): report.seconds,
    }
    for state in RunState:
        after[m.LAST_RUN_STATE.name, labelled(common, state=state.value)] = float(state is report.state)
    if report.state is RunState.SUCCESS:
        after[m.LAST_SUCCESS_TIME.name, common] = ended_ms(report) / _MS
    if report.verified is not None:
        found = report.verified
        count = len(found.differences) + found.more
        at_ms = found.at_ms or ended_ms(report)
        after |= _verified(common, "run", equal=found.equal, differences=count, at_ms=at_ms)
    _set(after, m.SUCCESS_DUE_TIME, common, _due_s(after, report, flow, common))
    _set(after, m.LAG_LIMIT, common, flow.rpo.seconds)
    return after


def _due_s(after: Values, report: Report, flow: FlowConfig, common: Labels) -> float | None:
    """When a success is overdue: counted from the last one, or from the first run that was told."""
    since_s = after.get((m.LAST_SUCCESS_TIME.name, common))
    if since_s is None:
        kept = after.get((m.SUCCESS_DUE_TIME.name, common))
        if kept is not None:
            return kept
        since_s = report.started_ms / _MS
    due = due_ms(flow.schedule, int(since_s * _MS), flow.alerts.late_intervals)
    return None if due is None else due / _MS


def _set(values: dict[tuple[str, Labels], float], metric: Metric, labels: Labels, value: float | None) -> None:
    if value is None:
        values.pop((metric.name, labels), None)
    else:
        values[metric.name, labels] = value


def with_lag(
    before: Values, flow: FlowConfig, lags: Collection[PartitionLag], at_ms: int
) -> dict[tuple[str, Labels], float]:
    """The same with a flow's lag, per topic: sums, and the age of the oldest record."""
    common = labels_of(flow.flow, flow.lane)
    names = {metric.name for metric in (m.LAG_RECORDS, m.LAG_BYTES, m.LAG_SECONDS, m.LAG_UNKNOWN)}
    after = {key: value for key, value in before.items() if key[0] not in names}
    topics = [(labelled(common, topic=lag.target.topic), lag) for lag in lags]
    after |= summed(((labels, lag.records or 0) for labels, lag in topics), m.LAG_RECORDS.name)
    after |= summed(((labels, lag.bytes or 0) for labels, lag in topics), m.LAG_BYTES.name)
    unknown = ((labels, float(lag.records is None or lag.seconds is None)) for labels, lag in topics)
    after |= summed(unknown, m.LAG_UNKNOWN.name)
    for labels, lag in topics:
        if lag.seconds is not None:
            key = m.LAG_SECONDS.name, labels
            after[key] = max(after.get(key, 0), lag.seconds)
    after[m.LAG_TIME.name, common] = at_ms / _MS
    return after


def with_verification(before: Values, result: Verified, at_ms: int) -> dict[tuple[str, Labels], float]:
    """The same with the result of a comparison of both clusters."""
    common, count = labels_of(result.flow, result.lane), len(result.differences) + result.more
    return {**before, **_verified(common, "verify", equal=result.is_equal, differences=count, at_ms=at_ms)}


def _verified(common: Labels, by: str, *, equal: bool, differences: int, at_ms: int) -> dict[tuple[str, Labels], float]:
    labels = labelled(common, by=by)
    return {
        (m.VERIFIED_TIME.name, labels): at_ms / _MS,
        (m.VERIFIED_EQUAL.name, labels): float(equal),
        (m.VERIFIED_DIFFERENCES.name, labels): differences,
    }


def only_of(values: Values, flow: FlowConfig) -> Mapping[tuple[str, Labels], float]:
    """The metrics of one flow: whatever else stands in its file is not carried on."""
    common = set(labels_of(flow.flow, flow.lane))
    return {key: value for key, value in values.items() if common <= set(key[1])}
