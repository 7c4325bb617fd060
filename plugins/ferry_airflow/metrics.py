"""What a run's report tells through Airflow's own metrics: StatsD, Datadog or OpenTelemetry, as `[metrics]` says."""

from __future__ import annotations

from airflow.sdk.observability import stats

from ferry.decide.ledger.report import Report, tripped


def count_guards(report: Report) -> None:
    """Raise `ferry.guard.refused`, `.skipped` and `.restarted` by what the run's guards did."""
    flow, plan = report.plan.flow, report.plan
    for (guard, did, topic), count in sorted(tripped(report.refusals, plan.gaps, plan.lifted).items()):
        tags = {"source": flow.source, "target": flow.target, "guard": guard}
        stats.incr(f"ferry.guard.{did}", count, tags={**tags, "topic": topic} if topic else tags)
