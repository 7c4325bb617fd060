"""The micro-runs of a backfill's window, and their common answer."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field

from ferry.cli.command import Context
from ferry.cli.identity import new_run
from ferry.cli.output import echo, print_error, print_table
from ferry.cli.stopping import Stop
from ferry.codec.form import F, Form, Json
from ferry.codec.kinds import SECONDS, many, typed
from ferry.commands.copying import finish_run
from ferry.errors import FerryError, Unreachable
from ferry.features.lanes.acts.backfill import Opened, copy_window
from ferry.ledger.codec import SOURCE
from ferry.ledger.report import Report, RunState
from ferry.ledger.run_codec import REFUSAL
from ferry.model import TimeWindow
from ferry.plan.options import RunOptions
from ferry.plan.rules.windows import WindowLook, WindowPart
from ferry.run.micro_run import MicroRuns, local_origin
from ferry.words import count_of, size

log = logging.getLogger(__name__)

PLANNED = "planned"
"""The state of a dry run."""


def answered(work: WindowWork, context: Context, *, dry_run: bool) -> int:
    """Print the outcome of a window; return the exit code."""
    context.answer(
        lambda: _json(work, dry_run=dry_run),
        lambda: _show(work, dry_run=dry_run),
        lambda: _show(work, dry_run=dry_run, parts=True),
    )
    if isinstance(work.failure, Unreachable) and not work.records:
        return work.failure.exit_code
    return 0 if (dry_run or work.is_done) and not work.stop() else 1


@dataclass(slots=True)
class WindowWork:
    """The micro-runs of one window."""

    runs: MicroRuns
    options: RunOptions
    stop: Stop
    quiet: bool = field(kw_only=True)
    look: WindowLook = field(init=False)
    """The window as it was last read; before the last run if an error came then."""
    reports: list[Report] = field(default_factory=list)
    failure: FerryError | None = None
    seconds: float = 0.0
    _begun: float = field(init=False)
    _looked_after: int = field(init=False)
    """How many runs had been reported when the window was last read."""

    def __post_init__(self) -> None:
        self._look()

    def copy(self) -> None:
        """Run after run, until the window is copied, a run makes no progress, or an error comes after records.

        An error before any record is raised.
        """
        self._begun = time.monotonic()
        if self.look.is_done:
            return
        try:
            copy_window(self._open, self._copied, lambda: self.left, self._say)
        except FerryError as error:
            if not self.records:
                raise
            self.failure = error
            print_error(f"{error}; the answer has what was copied before")

    def _open(self, _number: int) -> Opened:
        if not self.reports:
            self.stop.check()
        plan = self.runs.open_new(new_run("backfill"), local_origin(), self.options)
        return Opened(plan=plan, left=self.left)

    def _copied(self, run: Opened) -> bool:
        report, self.failure = finish_run(self.runs, run.plan, quiet=self.quiet, ahead=run.ahead)
        self.reports.append(report)
        self.seconds = time.monotonic() - self._begun
        self._look()
        return not report.unfinished and not self.stop()

    def _say(self, text: str) -> None:
        if self.left and not self.quiet:
            log.info("%s", text)

    def _look(self) -> None:
        self.look = self.runs.window(self.options)
        self._looked_after = len(self.reports)

    @property
    def left(self) -> int:
        """Source offsets of the window that are not copied."""
        return self.look.left

    @property
    def is_read_since(self) -> bool:
        """Whether the window was read after the last run; else less may be left."""
        return self._looked_after == len(self.reports)

    @property
    def records(self) -> int:
        return sum(report.records for report in self.reports)

    @property
    def bytes(self) -> int:
        return sum(report.bytes for report in self.reports)

    @property
    def is_done(self) -> bool:
        """Whether all of the window is copied, and the last run refused nothing."""
        return self.look.is_done and not (self.reports and self.reports[-1].refusals)


PART = Form(
    WindowPart,
    *SOURCE,
    F("start", says="first source offset of the window"),
    F("end", says="first source offset after it"),
    F("left", says="offsets of it that are not copied"),
)

WORK = Form(
    WindowWork,
    F(
        "runs",
        lambda work: [report.plan.run for report in work.reports],
        typed(list[str]),
        says="run ids in order; empty when nothing was left to copy",
    ),
    F("records"),
    F("bytes"),
    F("seconds", lambda work: round(work.seconds, 3), SECONDS),
    F("left", says="source offsets of the window that were not copied when it was last read"),
    F("parts", "look.parts", many(PART.kind)),
    F(
        "refusals",
        lambda work: work.reports[-1].refusals if work.reports else (),
        many(REFUSAL.kind),
        says="of the last run",
    ),
)
"""What the micro-runs of a window did."""


def _json(work: WindowWork, *, dry_run: bool) -> Json:
    window = work.options.window
    times = (window.from_ms, window.to_ms) if isinstance(window, TimeWindow) else (None, None)
    state = PLANNED if dry_run else _state(work).value
    return {
        "flow": str(work.runs.flow.flow),
        "lane": work.runs.lane,
        "from_ms": times[0],
        "to_ms": times[1],
        "state": state,
        **WORK.dump(work),
    }


def _state(work: WindowWork) -> RunState:
    return RunState.SUCCESS if work.is_done else RunState.PARTIAL if work.records else RunState.FAILED


def _show(work: WindowWork, *, dry_run: bool, parts: bool = False) -> None:
    if dry_run or parts:
        print_table(
            ["topic", "partition", "start", "end", "left"],
            ([*part.source, part.start, part.end, part.left] for part in work.look.parts),
            right=["partition", "start", "end", "left"],
        )
    last = work.reports[-1] if work.reports else None
    for name in () if last is None else last.plan.held_back:
        echo(f"paused: {name}")
    for note in () if last is None or work.is_done else last.notes:
        echo(f"note: {note}")
    for refusal in () if last is None else last.refusals:
        echo(f"refused: {refusal.message} [{refusal.kind}]")
    where = f"lane {work.runs.lane} of {work.runs.flow.flow}: {work.options.window}"
    if dry_run:
        echo(f"{where}: {count_of(work.left, 'offset')} would be copied")
        return
    left = count_of(work.left, "offset")
    state = "copied" if work.is_done else f"{left} left" if work.is_read_since else f"at most {left} left"
    echo(
        f"{where}: {state}; {count_of(work.records, 'record')}, {size(work.bytes)} in "
        f"{count_of(len(work.reports), 'run')}, {work.seconds:.1f} s"
    )
