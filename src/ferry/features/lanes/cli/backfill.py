"""`ferry backfill`: one window of history, in as many micro-runs as its budgets ask for."""

from __future__ import annotations

import logging
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated

import typer

from ferry.cli.commands.plan import MaxBytesOption, MaxRecordsOption, MaxSecondsOption
from ferry.cli.desk import (
    DEFAULT_PATIENCE,
    ConfigOption,
    Desk,
    FlowArgument,
    JsonOption,
    PatienceOption,
    QuietOption,
    TopicsOption,
    VerboseOption,
    only_topics,
)
from ferry.cli.output import print_json, print_table, size
from ferry.cli.person import new_run
from ferry.errors import BadInput, FerryError, Unreachable
from ferry.words import count_of

if TYPE_CHECKING:  # the command line starts light
    from ferry.cli.commands.stopping import Stop
    from ferry.features.lanes.acts.backfill import Opened
    from ferry.ledger.report import Report
    from ferry.plan.options import RunOptions
    from ferry.plan.rules.windows import WindowLook
    from ferry.run.micro_run import MicroRuns

log = logging.getLogger(__name__)


def backfill_command(
    ctx: typer.Context,
    flow: FlowArgument = None,
    lane: Annotated[
        str | None,
        typer.Option(
            "--lane", metavar="LANE", help="backfill-NAME: to scratch topics; append-NAME: behind the live records."
        ),
    ] = None,
    into_live: Annotated[
        bool,
        typer.Option("--into-live", help="Into the live topics, as a run of the live lane, which has nothing there."),
    ] = False,
    topic: TopicsOption = None,
    start: Annotated[
        str | None, typer.Option("--from", metavar="TIME", help="ISO 8601 with a zone, as 2026-01-31T06:00:00Z.")
    ] = None,
    end: Annotated[str | None, typer.Option("--to", metavar="TIME", help="The window ends before it.")] = None,
    times: Annotated[
        list[str] | None,
        typer.Option("--times", metavar="TOPIC=TIME/TIME", help="In place of both, for one topic; may be repeated."),
    ] = None,
    start_offset: Annotated[
        list[str] | None,
        typer.Option("--from-offset", metavar="TOPIC:PARTITION:OFFSET", help="In place of times; may be repeated."),
    ] = None,
    end_offset: Annotated[
        list[str] | None,
        typer.Option("--to-offset", metavar="TOPIC:PARTITION:OFFSET", help="The window ends before it."),
    ] = None,
    allow_deleted: Annotated[
        bool, typer.Option("--allow-deleted", help="Take what is left where the source may have deleted records.")
    ] = False,
    max_bytes: MaxBytesOption = None,
    max_records: MaxRecordsOption = None,
    max_seconds: MaxSecondsOption = None,
    take_over: Annotated[
        bool, typer.Option("--take-over", help="Take the lane from a deployment that has another configuration.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what the window is; write nothing.")] = False,
    patience: PatienceOption = DEFAULT_PATIENCE,
    config: ConfigOption = None,
    as_json: JsonOption = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
) -> int:
    """Copy a window of history once, by default to scratch topics of a lane of its own. Safe to repeat.

    Budgets are those of each of its micro-runs. Ctrl-C or SIGTERM ends the open chunks; the same command
    continues there.
    """
    # Imported here: the command line starts light.
    from ferry.cli.commands.stopping import stop_signals
    from ferry.config.flow.windows import parse_window
    from ferry.model import LaneKind, check_lane
    from ferry.plan.options import RunOptions
    from ferry.run.micro_run import MicroRuns

    desk = Desk.of(ctx, config=config, as_json=as_json, quiet=quiet, verbose=verbose)
    window = parse_window(start, end, start_offset or (), end_offset or (), times or (), allow_deleted=allow_deleted)
    if into_live == (lane is not None):
        raise BadInput("backfill copies to a lane of its own or into live: give --lane backfill-NAME, or --into-live")
    if lane is not None:
        check_lane(lane, LaneKind.BACKFILL, LaneKind.APPEND)
    if topic and window.topics is not None:
        raise BadInput("--topic narrows windows of two times; this window names its topics: leave --topic away")
    chosen = desk.flow(flow)
    only = only_topics(chosen, topic if window.topics is None else sorted(window.topics))
    options = RunOptions(
        only=only,
        window=window,
        max_bytes=max_bytes,
        max_records=max_records,
        max_seconds=max_seconds,
        take_over=take_over,
    )
    with stop_signals() as stop, ExitStack() as opened:
        with stop.breaking():
            runs = opened.enter_context(MicroRuns(chosen, lane=lane, patience_s=patience))
            work = _Work(runs, options, stop, quiet=desk.quiet)
        if not dry_run:
            work.copy()
        return _answered(work, desk, dry_run=dry_run)


def _answered(work: _Work, desk: Desk, *, dry_run: bool) -> int:
    """Show what became of a window; the exit code."""
    if desk.as_json:
        print_json(_json(work, dry_run=dry_run))
    else:
        _show(work, dry_run=dry_run)
    if isinstance(work.failure, Unreachable) and not work.records:
        return work.failure.exit_code
    return 0 if (dry_run or work.is_done) and not work.stop() else 1


@dataclass(slots=True)
class _Work:
    """The micro-runs of one window."""

    runs: MicroRuns
    options: RunOptions
    stop: Stop
    quiet: bool = field(kw_only=True)
    look: WindowLook = field(init=False)
    reports: list[Report] = field(default_factory=list)
    failure: FerryError | None = None
    seconds: float = 0.0
    _begun: float = field(init=False)

    def __post_init__(self) -> None:
        self._look()

    def copy(self) -> None:
        """Run after run, until the window is copied or a run gets no further."""
        # Imported here: the command line starts light.
        from ferry.features.lanes.acts.backfill import copy_window

        self._begun = time.monotonic()
        if not self.look.is_done:
            copy_window(self._open, self._copied, lambda: self.left, self._say)

    def _open(self, _number: int) -> Opened:
        # Imported here: the command line starts light.
        from ferry.features.lanes.acts.backfill import Opened
        from ferry.run.micro_run import local_origin

        if not self.reports:
            self.stop.check()
        plan = self.runs.open_new(new_run("backfill"), local_origin(), self.options)
        return Opened(plan=plan, left=self.left)

    def _copied(self, run: Opened) -> bool:
        # Imported here: the command line starts light.
        from ferry.cli.commands.run import copied

        report, self.failure = copied(self.runs, run.plan, quiet=self.quiet, ahead=run.ahead)
        self.reports.append(report)
        self.seconds = time.monotonic() - self._begun
        self._look()
        return not report.unfinished and not self.stop()

    def _say(self, text: str) -> None:
        if self.left and not self.quiet:
            log.info("%s", text)

    def _look(self) -> None:
        self.look = self.runs.window(self.options)

    @property
    def left(self) -> int:
        """Source offsets of the window that are not copied."""
        return self.look.left

    @property
    def records(self) -> int:
        return sum(report.records for report in self.reports)

    @property
    def bytes(self) -> int:
        return sum(report.bytes for report in self.reports)

    @property
    def is_done(self) -> bool:
        """Whether all of the window is copied, and nothing was refused at last."""
        return self.look.is_done and not (self.reports and self.reports[-1].refusals)


def _json(work: _Work, *, dry_run: bool) -> dict[str, object]:
    # Imported here: the command line starts light.
    from ferry.ledger.run_codec import refusal_json
    from ferry.model import TimeWindow

    window = work.options.window
    times = (window.from_ms, window.to_ms) if isinstance(window, TimeWindow) else (None, None)
    state = "planned" if dry_run else "success" if work.is_done else "partial" if work.records else "failed"
    last = work.reports[-1] if work.reports else None
    return {
        "flow": str(work.runs.flow.flow),
        "lane": work.runs.lane,
        "from_ms": times[0],
        "to_ms": times[1],
        "state": state,
        "runs": [report.plan.run for report in work.reports],
        "records": work.records,
        "bytes": work.bytes,
        "seconds": round(work.seconds, 3),
        "left": work.left,
        "parts": [
            {
                "topic": part.source.topic,
                "partition": part.source.partition,
                "start": part.start,
                "end": part.end,
                "left": part.left,
            }
            for part in work.look.parts
        ],
        "refusals": [] if last is None else [refusal_json(refusal) for refusal in last.refusals],
    }


def _show(work: _Work, *, dry_run: bool) -> None:
    if dry_run:
        print_table(
            ["topic", "partition", "start", "end", "left"],
            ([*part.source, part.start, part.end, part.left] for part in work.look.parts),
            right=["partition", "start", "end", "left"],
        )
    last = work.reports[-1] if work.reports else None
    for topic in () if last is None else last.plan.paused:
        print(f"paused: {topic}")
    for note in () if last is None or work.is_done else last.notes:
        print(f"note: {note}")
    for refusal in () if last is None else last.refusals:
        print(f"refused: {refusal.message} [{refusal.kind}]")
    where = f"lane {work.runs.lane} of {work.runs.flow.flow}: {work.options.window}"
    if dry_run:
        print(f"{where}: {count_of(work.left, 'offset')} would be copied")
        return
    state = "copied" if work.is_done else f"{count_of(work.left, 'offset')} left"
    print(
        f"{where}: {state}; {count_of(work.records, 'record')}, {size(work.bytes)} in "
        f"{count_of(len(work.reports), 'run')}, {work.seconds:.1f} s"
    )
