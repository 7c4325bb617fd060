"""Ferry's metrics through Airflow's own: StatsD, Datadog or OpenTelemetry, as `[metrics]` sets it."""

from __future__ import annotations

from collections.abc import Collection

from airflow.sdk.configuration import conf
from airflow.sdk.observability import stats

from ferry.config.flow.flow import FlowConfig
from ferry.features.observe.rules import samples as m
from ferry.features.observe.rules.of_run import lag_gauges, run_counts, run_gauges
from ferry.features.observe.rules.samples import Labels
from ferry.ledger.report import Report, tripped
from ferry.plan.rules.lag import PartitionLag

PREFIX = "ferry."
_TOLD_ALREADY = frozenset({m.GUARD_COUNT})
"""Sent by `count_guards`, with the topic."""
_SWITCHES = ("statsd_on", "statsd_datadog_enabled", "otel_on")


def publish_stats(report: Report, *, per_partition: bool) -> None:
    """Send what a run did: `ferry.record-count`, `ferry.record-age-ms-max` and so on, with MirrorMaker 2's tags.

    Counters grow by what the run adds; one that it does not add to is not sent.
    """
    count_guards(report)
    for (metric, labels), value in run_counts(report, per_partition=per_partition).items():
        if value and metric not in _TOLD_ALREADY:
            stats.incr(PREFIX + metric.word, int(value), tags=dict(labels))
    for (metric, labels), value in run_gauges(report, per_partition=per_partition).items():
        stats.gauge(PREFIX + metric.word, value, tags=dict(labels))


def are_sent() -> bool:
    """Return whether Airflow sends metrics anywhere: without a receiver, both clusters are not read for them."""
    return any(conf.getboolean("metrics", key) for key in _SWITCHES)


def publish_lag(
    flow: FlowConfig, lags: Collection[PartitionLag], at_ms: int, before: Collection[Labels] = ()
) -> frozenset[Labels]:
    """Send a flow's lag: `ferry.lag-records`, `ferry.lag-bytes`, `ferry.lag-seconds` and so on; return the labels sent.

    `before`: the labels that this process has sent before. A gauge keeps its last value until the process ends, so one
    whose labels are gone is sent as 0 once.
    """
    gauges = lag_gauges(flow, lags, at_ms)
    now = frozenset(labels for _, labels in gauges)
    for labels in set(before) - now:
        for metric in (m.LAG_RECORDS, m.LAG_BYTES, m.LAG_SECONDS, m.LAG_UNKNOWN):
            stats.gauge(PREFIX + metric.word, 0, tags=dict(labels))
    for (metric, labels), value in gauges.items():
        stats.gauge(PREFIX + metric.word, value, tags=dict(labels))
    return now


def count_guards(report: Report) -> None:
    """Raise `ferry.guard.refused`, `.skipped` and `.restarted` by what the run's guards did."""
    flow, plan = report.plan.flow, report.plan
    for (guard, did, topic), count in sorted(tripped(report.refusals, plan.gaps, plan.lifted).items()):
        tags = {"source": flow.source, "target": flow.target, "guard": guard}
        stats.incr(f"ferry.guard.{did}", count, tags={**tags, "topic": topic} if topic else tags)
