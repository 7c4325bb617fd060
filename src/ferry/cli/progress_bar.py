"""The progress of long work, on standard error: a bar at a terminal, log lines in a pipe, nothing when quiet."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

log = logging.getLogger(__name__)

LINE_SECONDS = 1.0
"""At most one log line in this time."""

DRAWN_SECONDS = 0.05
"""At most one change of a bar in this time: progress may be reported for every record."""


class ShowsProgress(Protocol):
    """Takes how much of the total is done, the sentence for it, and the total if it is known only now."""

    def __call__(self, done: int, said: str, total: int | None = None) -> None:
        """Report `done` of `total`."""


@contextmanager
def bar(total: int | None, sentence: str) -> Iterator[ShowsProgress]:
    """Show a bar that is gone when the block ends; without a `total` it only moves."""
    from rich.console import Console  # noqa: PLC0415 - only a terminal needs it
    from rich.markup import escape  # noqa: PLC0415 - as above
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415 - as above

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress, _lines_above():
        task = progress.add_task(escape(sentence), total=total)

        def show(done: int, said: str, total: int | None = None) -> None:
            progress.update(task, completed=done, description=escape(said), total=total)

        yield show


@contextmanager
def _lines_above() -> Iterator[None]:
    """Write log lines above the bar, to the present `sys.stderr`: a handler keeps the stream that it was made with."""
    ours = [
        one
        for one in logging.getLogger().handlers
        if isinstance(one, logging.StreamHandler) and one.stream is sys.__stderr__
    ]
    for one in ours:
        one.setStream(sys.stderr)
    try:
        yield
    finally:
        for one in ours:
            one.setStream(sys.__stderr__)


@contextmanager
def counted(total: int | None, sentence: str, *, quiet: bool) -> Iterator[ShowsProgress]:
    """Show how much of countable work is done; in a pipe one line in `LINE_SECONDS` at most."""
    if quiet:
        yield lambda done, said, total=None: None
        return
    if sys.stderr.isatty():
        with bar(total, sentence) as shown:
            drawn = 0.0

            def show(done: int, said: str, total: int | None = None) -> None:
                nonlocal drawn
                if time.monotonic() - drawn >= DRAWN_SECONDS:
                    drawn = time.monotonic()
                    shown(done, said, total)

            yield show
        return
    spoken = time.monotonic()

    def line(done: int, said: str, total: int | None = None) -> None:
        nonlocal spoken
        if time.monotonic() - spoken >= LINE_SECONDS:
            spoken = time.monotonic()
            log.info("%s", said)

    yield line


@contextmanager
def working(sentence: str, *, quiet: bool) -> Iterator[Callable[[str], None]]:
    """Show a bar that only moves, for work that cannot be counted; call the function with the present step.

    A pipe gets nothing.
    """
    if quiet or not sys.stderr.isatty():
        yield lambda said: None
    else:
        with bar(None, sentence) as show:
            yield lambda said: show(0, said)


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """Work in steps: `begin` takes the title of each, `end` its outcome."""

    begin: Callable[[str], None]
    end: Callable[[str], None]


@contextmanager
def steps(*, quiet: bool) -> Iterator[Steps]:
    """Print a line for each step and its end; at a terminal a bar below them shows the step and the time so far."""
    if quiet:
        yield Steps(begin=lambda title: None, end=lambda said: None)
    elif sys.stderr.isatty():
        with bar(None, "Beginning") as show:

            def begin(title: str) -> None:
                log.info("%s ...", title)
                show(0, title)

            yield Steps(begin=begin, end=lambda said: log.info("    %s", said))
    else:
        yield Steps(begin=lambda title: log.info("%s ...", title), end=lambda said: log.info("    %s", said))
