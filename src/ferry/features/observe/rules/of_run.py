"""A run's report, a flow's lag and a comparison as metrics, and how a report changes the metrics from before it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from ferry.config.flow.flow import FlowConfig
from ferry.features.observe.rules import samples as m
from ferry.features.observe.rules.due import due_ms
from ferry.features.observe.rules.samples import Labels, Metric, Spread, Values, labelled
from ferry.features.observe.settings import AlertSettings
from ferry.ledger.report import GUARDS, Report, RunState, guard_counts, read_of
from ferry.model import AgeStats, Flow, Gap, Receipt, TopicPartition, Verified, VerifyMode, all_ages
from ferry.plan.rules.lag import PartitionLag

_MS = 1000
_OUTCOMES = ("refused", "skipped", "restarted")


def labels_of(flow: Flow, lane: str) -> Labels:
    """Return MirrorMaker 2's tags of a flow, and the lane."""
    return labelled((), source=flow.source, target=flow.target, lane=lane)


def of_place(common: Labels, place: TopicPartition, *, per_partition: bool) -> Labels:
    """Return MirrorMaker 2's tags of a target topic or, if `per_partition`, of its partition."""
    more = {"partition": str(place.partition)} if per_partition else {}
    return labelled(common, topic=place.topic, **more)


def run_counts(report: Report, *, per_partition: bool = False) -> dict[tuple[Metric, Labels], float]:
    """Return what a run adds to the counters.

    Guards are there with 0, too: one that appears with 1 shows no increase.
    """
    common = labels_of(report.plan.flow, report.plan.lane)
    counts: dict[tuple[Metric, Labels], float] = {
        (m.RUN_COUNT, common): 1,
        (m.SUCCESS_COUNT, common): float(report.state is RunState.SUCCESS),
        (m.UNFINISHED_COUNT, common): len(report.unfinished),
    }
    for receipt in report.kept:
        topic = of_place(common, receipt.target, per_partition=per_partition)
        for metric, value in (
            (m.RECORD_COUNT, receipt.records),
            (m.BYTE_COUNT, receipt.bytes),
            (m.BATCH_COUNT, receipt.batches),
            (m.TRANSCODED_BATCH_COUNT, receipt.transcoded),
            (m.MISSING_COUNT, receipt.missing or 0),
            (m.DEAD_LETTER_COUNT, receipt.dead_letters),
        ):
            counts[metric, topic] = counts.get((metric, topic), 0) + value
    for unit in report.dealt:
        topic = of_place(common, unit.target, per_partition=per_partition)
        for metric, value in (
            (m.RECORD_COUNT, unit.records),
            (m.BYTE_COUNT, unit.bytes),
            (m.BATCH_COUNT, unit.batches),
            (m.TRANSCODED_BATCH_COUNT, 0),
            (m.MISSING_COUNT, 0),
            (m.DEAD_LETTER_COUNT, unit.dead_letters),
        ):
            counts[metric, topic] = counts.get((metric, topic), 0) + value
    for name, sifted in report.sifted.items():
        source = labelled(common, source_topic=name)
        counts[m.SIFTED_READ, source] = sifted.read
        counts[m.SIFTED_LEFT_OUT, source] = sifted.left_out
    counts[m.SOURCE_RECORD_POLL, common] = sum(
        receipt.end - receipt.start - (receipt.missing or 0) for receipt in report.kept if not receipt.adopted
    ) + sum(read_of(report.dealt).values())
    counts[m.SOURCE_RECORD_WRITE, common] = report.records
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


def run_gauges(report: Report, *, per_partition: bool = False) -> dict[tuple[Metric, Labels], float]:
    """Return the gauges of a run: its rates, and the age of its records. A topic without records has no ages.

    A run whose receipts the ledger has deleted in part has no rates.
    """
    common = labels_of(report.plan.flow, report.plan.lane)
    gauges: dict[tuple[Metric, Labels], float] = {}
    counts = run_counts(report, per_partition=per_partition)
    rates = (
        (m.RECORD_RATE, m.RECORD_COUNT),
        (m.BYTE_RATE, m.BYTE_COUNT),
        (m.SOURCE_RECORD_POLL_RATE, m.SOURCE_RECORD_POLL),
        (m.SOURCE_RECORD_WRITE_RATE, m.SOURCE_RECORD_WRITE),
    )
    for rate, counter in () if report.uncounted else rates:
        for (metric, labels), value in counts.items():
            if metric is counter:
                gauges[rate, labels] = value / report.seconds if report.seconds else 0.0
    topics: dict[Labels, list[Receipt]] = {}
    for receipt in report.kept:
        topics.setdefault(of_place(common, receipt.target, per_partition=per_partition), []).append(receipt)
    for labels, receipts in topics.items():
        newest = max((one for one in receipts if one.ages), key=lambda one: one.at_ms, default=None)
        if newest is not None and newest.ages is not None and newest.latency is not None:
            gauges |= _spread(m.RECORD_AGE_MS, labels, all_ages(one.ages for one in receipts), newest.ages.min)
            latency = all_ages(one.latency for one in receipts)
            gauges |= _spread(m.REPLICATION_LATENCY_MS, labels, latency, newest.latency.min)
    groups = report.groups
    if groups is not None and groups.latency is not None:
        gauges |= _spread(m.CHECKPOINT_LATENCY_MS, common, groups.latency, groups.latency.mean)
    return gauges


def _spread(of: Spread, labels: Labels, ages: AgeStats | None, last: int) -> dict[tuple[Metric, Labels], float]:
    if ages is None:
        return {}
    values = ((of.last, last), (of.min, ages.min), (of.max, ages.max), (of.avg, ages.mean))
    return {(metric, labels): value for metric, value in values}


def ended_ms(report: Report) -> int:
    """Return when the run ended (ms): the time of its last receipt, or its start if it copied nothing."""
    return report.started_ms + int(report.seconds * _MS)


def after_run(
    before: Values, report: Report, flow: FlowConfig, *, in_airflow: bool = False
) -> dict[tuple[str, Labels], float]:
    """Return all metrics of a flow after a run, from those before it. The same run is never counted twice.

    A run that was counted before may have copied more since (`--resume`, a task that was cleared). A run that is older
    than the last one that was counted changes nothing. A ledger that was rebuilt, or begun again, has lower generations
    than before: there a run is later if it started later. `in_airflow`: whether Airflow reports it. A schedule that no
    line of the file sets is Airflow's alone, so without it no success is due.
    """
    common, per_partition = labels_of(flow.flow, flow.lane), flow.of(AlertSettings).metrics_per_partition
    before = _of_shape(before, per_partition=per_partition)
    generation, started_ms = _counted(before, common)
    again = (report.plan.generation, report.started_ms) == (generation, started_ms)
    if not again and report.plan.generation <= generation and report.started_ms <= started_ms:
        return dict(before)
    of_last = {metric.last_run for metric in m.COUNTERS} | {metric.name for metric in m.OF_LAST_RUN}
    after = {key: value for key, value in before.items() if key[0] not in {*of_last, m.LAST_RUN_STATE.name}}
    after |= {
        (metric.name, labels): value
        for (metric, labels), value in run_gauges(report, per_partition=per_partition).items()
    }
    for (metric, labels), value in run_counts(report, per_partition=per_partition).items():
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
    found = report.verified
    if found is not None and (found.records or not found.equal):  # a comparison of nothing has no result
        count = len(found.differences) + found.more
        at_ms = found.at_ms or ended_ms(report)
        after |= _verified(common, "run", equal=found.equal, differences=count, at_ms=at_ms)
    elif flow.verification.mode is VerifyMode.OFF:
        after = {key: value for key, value in after.items() if ("by", "run") not in key[1]}
    after.setdefault((m.FIRST_RUN_TIME.name, common), report.started_ms / _MS)
    _set(after, m.SUCCESS_DUE_TIME, common, _due_s(after, flow, common, in_airflow=in_airflow))
    _set(after, m.LAG_LIMIT, common, flow.rpo.seconds)
    _set(after, m.LAG_LIMIT_RECORDS, common, flow.rpo.records)
    return after


def _counted(before: Values, common: Labels) -> tuple[int, int]:
    """Return the generation and the start (ms) of the last run that was counted; -1 if there is none."""
    generation = before.get((m.GENERATION.name, common))
    if generation is None:
        return -1, -1
    seconds = before.get((m.LAST_RUN_SECONDS.name, common), 0.0)
    started_ms = round(before.get((m.LAST_RUN_TIME.name, common), 0.0) * _MS) - int(seconds * _MS)  # as `ended_ms` adds
    return int(generation), started_ms


def _of_shape(values: Values, *, per_partition: bool) -> Values:
    """Remove metrics per topic if they are per partition now, or the other way round: those begin again."""
    return {
        key: value
        for key, value in values.items()
        if (names := {name for name, _ in key[1]}) and ("topic" not in names or ("partition" in names) is per_partition)
    }


def _due_s(after: Values, flow: FlowConfig, common: Labels, *, in_airflow: bool) -> float | None:
    """Return when a success is overdue (s): counted from the last success, else from the first run in the metrics.

    None: the file, as it is now, expects no success at any time.
    """
    if not (in_airflow or flow.airflow.has_schedule_line):
        return None
    since_s = after.get((m.LAST_SUCCESS_TIME.name, common), after[m.FIRST_RUN_TIME.name, common])
    due = due_ms(flow.airflow.schedule, int(since_s * _MS), flow.of(AlertSettings).late_intervals)
    return None if due is None else due / _MS


def _set(values: dict[tuple[str, Labels], float], metric: Metric, labels: Labels, value: float | None) -> None:
    if value is None:
        values.pop((metric.name, labels), None)
    else:
        values[metric.name, labels] = value


def with_lag(
    before: Values, flow: FlowConfig, lags: Collection[PartitionLag], at_ms: int
) -> dict[tuple[str, Labels], float]:
    """Add a flow's lag to the metrics, per topic or partition: sums, and the age of the oldest record."""
    measured = (m.LAG_RECORDS, m.LAG_BYTES, m.LAG_SECONDS, m.LAG_UNKNOWN, m.LAG_MOST_RECORDS)
    names = {metric.name for metric in measured}
    after = {key: value for key, value in before.items() if key[0] not in names}
    after |= {(metric.name, labels): value for (metric, labels), value in lag_gauges(flow, lags, at_ms).items()}
    return after


def lag_gauges(flow: FlowConfig, lags: Collection[PartitionLag], at_ms: int) -> dict[tuple[Metric, Labels], float]:
    """Return a flow's lag as measured at `at_ms`, per topic or partition, and the limits that the file sets.

    A sum is that of the partitions whose lag is known; `ferry_lag_unknown_partitions` counts the others. Where none is
    known, there is no sum, no age and no largest lag, because 0 would look healthy.
    """
    common, per_partition = labels_of(flow.flow, flow.lane), flow.of(AlertSettings).metrics_per_partition
    topics = [(of_place(common, lag.target, per_partition=per_partition), lag) for lag in lags]
    gauges: dict[tuple[Metric, Labels], float] = {}
    for labels, lag in topics:
        for metric, value in (
            (m.LAG_RECORDS, lag.records),
            (m.LAG_BYTES, lag.bytes),
            (m.LAG_UNKNOWN, int(lag.records is None or lag.seconds is None)),
        ):
            if value is not None:
                gauges[metric, labels] = gauges.get((metric, labels), 0) + value
        if lag.seconds is not None:
            gauges[m.LAG_SECONDS, labels] = max(gauges.get((m.LAG_SECONDS, labels), 0.0), lag.seconds)
    known = [lag.records for lag in lags if lag.records is not None]
    if known or not lags:
        gauges[m.LAG_MOST_RECORDS, common] = max(known, default=0)
    gauges[m.LAG_TIME, common] = at_ms / _MS
    for metric, limit in ((m.LAG_LIMIT, flow.rpo.seconds), (m.LAG_LIMIT_RECORDS, flow.rpo.records)):
        if limit is not None:
            gauges[metric, common] = limit
    return gauges


def with_skip(before: Values, flow: FlowConfig, gap: Gap) -> dict[tuple[str, Labels], float]:
    """Add a gap that an operator made by hand to the metrics.

    What the last run added does not change, because alerts use it, and the operator knows of the gap.
    """
    common, kind = labels_of(flow.flow, flow.lane), gap.why.value
    after = dict(before)
    for metric, labels in (
        (m.GUARD_COUNT, labelled(common, guard=kind, outcome="skipped")),
        (m.GAP_COUNT, labelled(common, kind=kind)),
    ):
        after[metric.name, labels] = before.get((metric.name, labels), 0) + 1
    return after


def with_verification(before: Values, result: Verified, at_ms: int) -> dict[tuple[str, Labels], float]:
    """Add the result of a comparison of both clusters to the metrics; one that compared nothing changes nothing."""
    if result.is_nothing:
        return dict(before)
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
    """Return the metrics of one flow; others in its file are dropped."""
    common = set(labels_of(flow.flow, flow.lane))
    return {key: value for key, value in values.items() if common <= set(key[1])}
