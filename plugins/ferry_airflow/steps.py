"""What the tasks do, apart from Airflow: open a run or keep it, and tell how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ferry.config.flow import FlowConfig
from ferry.decide.report import Report
from ferry.model import Origin, Plan
from ferry.run.micro_run import MicroRuns
from ferry.run.planner import RunOptions

LISTED = 20
"""How many refusals a failing report names in its sentence; its log has all."""


def options_of(params: Mapping[str, Any]) -> RunOptions:
    """The trigger form as options of a run."""
    topics = params.get("topics")
    return RunOptions(
        only=frozenset(topics) if topics else None,
        max_bytes=params.get("max_bytes"),
        max_records=params.get("max_records"),
        max_seconds=params.get("max_seconds"),
        take_over=bool(params.get("take_over")),
    )


def preview(flow: FlowConfig, options: RunOptions) -> Plan:
    """What a run would do now; writes nothing."""
    with MicroRuns(flow) as runs:
        return runs.preview(options)


def open_plan(flow: FlowConfig, run: str, origin: Origin, options: RunOptions) -> Plan:
    """The sealed plan of a run: the one that the ledger has already, else a new one.

    Raises Superseded when a newer run owns the lane and has what this one left.
    """
    with MicroRuns(flow) as runs:
        return runs.open_or_keep(run, origin, options)


def nothing_left(flow: FlowConfig, run: str) -> bool:
    """Whether `copy` may end without Spark; Superseded when a newer run has what is left of this one."""
    with MicroRuns(flow) as runs:
        return not runs.left(runs.opened(run))


def report_of(flow: FlowConfig, run: str) -> tuple[Report, str | None]:
    """The report of a run, and the newer run that owns the lane by now, if there is one."""
    with MicroRuns(flow) as runs:
        report = runs.report(run)
        return report, runs.superseded(report.plan)


def complaint(report: Report, newer: str | None) -> str | None:
    """Why the run must not look green, in one sentence; None when all that was planned is copied, by whichever run."""
    wrong = [refusal.message for refusal in report.refusals]
    wrong += [f"{piece.source} is not copied up to {piece.end}" for piece in report.unfinished]
    if not wrong:
        return None
    run = f"run {report.plan.run} of {report.plan.flow}"
    taken = f" (superseded by {newer})" if newer and report.unfinished else ""
    more = f"; and {len(wrong) - LISTED} more, see above" if len(wrong) > LISTED else ""
    return f"{len(wrong)} not copied in {run}{taken}: {'; '.join(wrong[:LISTED])}{more}"
