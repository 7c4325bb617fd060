"""What the tasks of a backfill's DAG do, apart from Airflow: which window, its micro-runs, and how they ended."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import count
from typing import Any

from ferry.config.flow.flow import FlowConfig
from ferry.config.flow.windows import parse_window
from ferry.errors import BadInput, Superseded
from ferry.features.lanes.acts.backfill import Opened
from ferry.features.lanes.acts.backfill import copy_window as run_by_run
from ferry.ledger.report import Report
from ferry.ledger.topic_ranges import TopicRanges, topic_ranges
from ferry.model import LaneKind, Origin, Plan, TimeWindow, Window, check_lane
from ferry.plan.options import RunOptions
from ferry.plan.rules.windows import WindowLook
from ferry.run.micro_run import MicroRuns
from ferry_airflow.measures import flag_of
from ferry_airflow.steps import LISTED, options_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Backfill:
    """One window of a flow, for a lane (None: the live one), as micro-runs whose ids begin with `run`."""

    flow: FlowConfig
    lane: str | None
    run: str
    options: RunOptions

    @property
    def lane_name(self) -> str:
        """The name of the lane that the window goes to."""
        return self.lane or self.flow.lane

    def run_id(self, number: int) -> str:
        """Return the id of the window's micro-run of this number, from 1."""
        return self.run if number == 1 else f"{self.run}~{number}"

    def is_own(self, run: str) -> bool:
        """Return whether a run is one of the window's micro-runs, by its id."""
        return run == self.run or re.fullmatch("~[0-9]+", run.removeprefix(self.run)) is not None

    def session(self) -> MicroRuns:
        """Return connections for its micro-runs; a context manager."""
        return MicroRuns(self.flow, lane=self.lane)


def backfill_of(
    flow: FlowConfig, run: str, params: Mapping[str, Any], partition: tuple[datetime, datetime] | None
) -> Backfill:
    """Return what a run of the DAG is for: `partition` is the window of its partition, if it has one.

    Raises BadInput for an invalid window or lane, and if the form and the partition both name a window.
    """
    window = _window(params, partition)
    into_live = flag_of(params, "into_live")
    lane = None if into_live else check_lane(str(params.get("lane") or ""), LaneKind.BACKFILL, LaneKind.APPEND)
    options = options_of(params)
    if options.only is not None and window.topics is not None:
        raise BadInput("topics narrows windows of two times; this window names its topics: leave topics empty")
    return Backfill(
        flow=flow,
        lane=lane,
        run=run,
        options=replace(options, window=window),
    )


def _window(params: Mapping[str, Any], partition: tuple[datetime, datetime] | None) -> Window:
    allowed = flag_of(params, "allow_deleted")
    given = [params.get(name) for name in ("from", "to", "from_offsets", "to_offsets", "times")]
    if partition is None:
        start, end, starts, ends, times = given
        return parse_window(start or None, end or None, starts or (), ends or (), times or (), allow_deleted=allowed)
    if any(given):
        raise BadInput("the window is given by the partition key and in the form as well: omit one of the two")
    start_ms, end_ms = (int(moment.timestamp() * 1000) for moment in partition)
    return TimeWindow(from_ms=start_ms, to_ms=end_ms, allow_deleted=allowed)


def preview(backfill: Backfill) -> Plan:
    """Return what its first run would do now; writes nothing."""
    with backfill.session() as runs:
        return runs.preview(backfill.options)


def open_first(backfill: Backfill, origin: Origin) -> tuple[Plan, WindowLook]:
    """Return the plan of the window's first micro-run that may copy, kept or new, and what the window is in offsets."""
    with backfill.session() as runs:
        plans = (_plan(runs, backfill, number, origin) for number in count(1))
        return next(plan for plan in plans if plan is not None), runs.window(backfill.options)


def _plan(runs: MicroRuns, backfill: Backfill, number: int, origin: Origin) -> Plan | None:
    """Return the plan of the window's micro-run of a number, kept or new.

    None if another window's run has the lane since, and this one left something. An error of a run that is opened is
    raised: the run of the next number would meet it again.
    """
    run = backfill.run_id(number)
    try:
        kept = runs.kept(run)
    except Superseded:
        return None
    return runs.open_run(run, origin, backfill.options) if kept is None else kept


def copy_window(backfill: Backfill, origin: Origin, copy: Callable[[str], None], say: Callable[[str], None]) -> None:
    """Have `copy` copy each of the window's micro-runs, one after the other.

    It ends when the window is copied, or when a run makes no progress. Repeated, it continues where it stopped. Airflow
    may plan several windows before it copies one. If another window's run took the lane meanwhile, a new micro-run
    takes it back: the flow's pool lets one task run at a time.
    """

    def open_run(number: int) -> Opened | None:
        with backfill.session() as runs:
            plan = _plan(runs, backfill, number, origin)
            if plan is None:
                return None
            is_done = not runs.unfinished_slices(plan)
            return Opened(plan=plan, left=runs.window(backfill.options).left, is_done=is_done)

    def copied(run: Opened) -> bool:
        copy(run.plan.run)
        return True

    def left() -> int:
        with backfill.session() as runs:
            return runs.window(backfill.options).left

    run_by_run(open_run, copied, left, say)


def reports_of(backfill: Backfill) -> tuple[list[Report], WindowLook]:
    """Return the reports of the window's micro-runs with a plan, and how far the window is copied."""
    with backfill.session() as runs:
        return [runs.report(run) for run in runs.planned(backfill.is_own)], runs.window(backfill.options)


def copied_topics(reports: Iterable[Report]) -> list[TopicRanges]:
    """Return what the window's micro-runs have copied of each topic."""
    return topic_ranges(receipt for report in reports for receipt in report.receipts)


def complaint(backfill: Backfill, reports: Sequence[Report], look: WindowLook) -> str | None:
    """Return why the run must not look green, in one sentence; None when the window is copied."""
    last = reports[-1] if reports else None
    wrong = [] if last is None else [refusal.message for refusal in last.refusals]
    if last is not None and last.plan.paused:
        wrong.append("the flow, or topics of it, are paused: ferry resume")
    wrong += [f"{part.left} offsets of {part.source} before {part.end} are left" for part in look.parts if part.left]
    wrong += [f"{name} could not be asked, and is not known to be copied" for name in look.unserved]
    if not wrong:
        return None
    more = f"; and {len(wrong) - LISTED} more: the log of this task has all" if len(wrong) > LISTED else ""
    what = "; ".join(wrong[:LISTED])
    return f"the window {backfill.options.window} is not copied: {what}{more}; clear this run to continue"
