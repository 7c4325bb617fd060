"""What a run's report tells through Airflow's own metrics: StatsD, Datadog or OpenTelemetry, as `[metrics]` says."""

from __future__ import annotations

from airflow.sdk.observability import stats

from ferry.decide.ledger.report import Report, tripped
from ferry.decide.metrics import samples as m
from ferry.decide.metrics.of_run import run_counts, run_gauges

PREFIX = "ferry."
_TOLD_ALREADY = frozenset({m.GUARD_COUNT})
"""By `count_guards`, with the topic."""


def tell_stats(report: Report, *, per_partition: bool) -> None:
    """Tell what a run did: `ferry.record-count`, `ferry.record-age-ms-max` and so on, with MirrorMaker 2's tags.

    Counters grow by what the run adds; one that it does not add to is not sent.
    """
    count_guards(report)
    for (metric, labels), value in run_counts(report, per_partition=per_partition).items():
        if value and metric not in _TOLD_ALREADY:
            stats.incr(PREFIX + metric.word, int(value), tags=dict(labels))
    for (metric, labels), value in run_gauges(report, per_partition=per_partition).items():
        stats.gauge(PREFIX + metric.word, value, tags=dict(labels))


def count_guards(report: Report) -> None:
    """Raise `ferry.guard.refused`, `.skipped` and `.restarted` by what the run's guards did."""
    flow, plan = report.plan.flow, report.plan
    for (guard, did, topic), count in sorted(tripped(report.refusals, plan.gaps, plan.lifted).items()):
        tags = {"source": flow.source, "target": flow.target, "guard": guard}
        stats.incr(f"ferry.guard.{did}", count, tags={**tags, "topic": topic} if topic else tags)
