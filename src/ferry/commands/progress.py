"""The progress of a copy on standard error: a bar on a terminal, log lines elsewhere."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ferry.cli.progress_bar import LINE_SECONDS, bar
from ferry.model import Plan, Receipt, TopicPartition
from ferry.run.pace import span
from ferry.words import count_of, size

log = logging.getLogger(__name__)


@contextmanager
def shown_progress(plan: Plan, *, quiet: bool, ahead: int = 0) -> Iterator[Callable[[list[Receipt]], None]]:
    """Yield a function to call with every committed chunk; `ahead`: offsets to be copied after this plan."""
    tally = _Tally(plan, ahead)
    if quiet or not plan.kept:
        yield tally.add
    elif sys.stderr.isatty():
        with bar(tally.total, tally.sentence) as shown:

            def show(receipts: list[Receipt]) -> None:
                tally.add(receipts)
                shown(tally.offsets, tally.sentence)

            yield show
    else:
        with _lines(tally) as spoken:
            yield spoken


class _Tally:
    """What has been committed so far of the plan."""

    def __init__(self, plan: Plan, ahead: int) -> None:
        self.run = plan.run
        self._ahead = ahead
        self.total = sum(piece.offsets for piece in plan.kept)
        self.slices = len(plan.kept)
        self.offsets = 0
        self.finished = 0
        self.bytes = 0
        self._ends = {piece.source: piece.end for piece in plan.kept}
        self._at: dict[TopicPartition, int] = {piece.source: piece.start for piece in plan.kept}
        self._begun = time.monotonic()

    def add(self, receipts: list[Receipt]) -> None:
        """Add a chunk that was committed."""
        for receipt in receipts:
            before, end = self._at[receipt.source], self._ends[receipt.source]
            after = max(before, min(receipt.end, end))
            self.offsets += after - before
            self.finished += before < end <= after
            self.bytes += receipt.bytes
            self._at[receipt.source] = after

    @property
    def sentence(self) -> str:
        """Slices, bytes, rate and about how long the rest takes at the pace so far."""
        seconds = max(1e-3, time.monotonic() - self._begun)
        left = self.total - self.offsets + self._ahead
        rest = f", about {span(seconds * left / self.offsets)} left" if self.offsets and left else ""
        done = f"{self.finished} of {count_of(self.slices, 'slice')}, {size(self.bytes)}"
        return f"{done}, {size(int(self.bytes / seconds))}/s{rest}"


@contextmanager
def _lines(tally: _Tally) -> Iterator[Callable[[list[Receipt]], None]]:
    spoken = time.monotonic()

    def show(receipts: list[Receipt]) -> None:
        nonlocal spoken
        tally.add(receipts)
        if time.monotonic() - spoken >= LINE_SECONDS:
            spoken = time.monotonic()
            log.info("run %s: %s", tally.run, tally.sentence)

    yield show
    log.info("run %s: %s", tally.run, tally.sentence)
