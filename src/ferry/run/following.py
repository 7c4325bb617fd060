"""Follows an active run, for its log and its bar: the same for every kind of Spark and for processes."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from types import TracebackType
from typing import Self

from ferry.clock import wall_ms
from ferry.copy.task import SlotTask
from ferry.errors import FerryError
from ferry.lane.connections import TargetConnection
from ferry.lane.log_ends import log_ends
from ferry.ledger.progress import (
    LogEnd,
    Paced,
    RunProgress,
    committed,
    progress_before,
    progress_of,
    unfinished,
)
from ferry.ledger.receipts import heard_receipts
from ferry.ledger.unit_codec import heard_units
from ferry.model import LedgerRecord, Plan, Receipt, TopicPartition
from ferry.run.pace import Milestones, progress_line

log = logging.getLogger(__name__)

PATIENCE_SECONDS = 5.0
LINE_SECONDS = 5.0
REST = 10
"""The pause between two measurements is at least as many times as long as a measurement took."""


class Heard:
    """What was heard of one run: its receipts, and the ends of the target's logs. Safe for threads."""

    def __init__(self, plan: Plan, since_ms: int, since_s: float) -> None:
        """Begin when the attempt does: by the wall clock, and by the clock of `progress`."""
        self._plan = plan
        self._since_ms = since_ms
        self._since_s = since_s
        self._lock = threading.Lock()
        self._receipts: dict[tuple[TopicPartition, int], Receipt] = {}
        self._ends: dict[TopicPartition, LogEnd] = {}
        self._has_read = False
        self._begin(())

    def _begin(self, before: Iterable[Receipt]) -> None:
        """Begin the pace with what earlier attempts had committed."""
        self._paced = Paced()
        self._paced.add(self._since_s, progress_before(self._plan, committed(before)))

    def hear(self, receipts: Collection[Receipt]) -> None:
        """Take in committed receipts, however often they are heard."""
        with self._lock:
            self._receipts |= {(one.target, one.start): one for one in receipts}

    def read(self, records: Iterable[LedgerRecord]) -> int | None:
        """Take in a part of the ledger; return the offset of the first undecided record, from which to read again.

        The first part has the receipts of earlier attempts, which are not of this one's pace. Later, a receipt with an
        early time comes from a machine whose clock is late.
        """
        records = list(records)
        lane, generation = self._plan.lane, self._plan.generation
        found, first_open = heard_receipts(records, "receipt", lane, generation)
        found += heard_units(records, lane, generation)
        self.hear(found)
        if not self._has_read:
            self._has_read = True
            before = [one for one in found if one.at_ms < self._since_ms]
            with self._lock:
                self._begin(before)
        return first_open

    def see(self, ends: dict[TopicPartition, LogEnd]) -> None:
        """Take in the ends of the target's logs."""
        with self._lock:
            self._ends = ends

    @property
    def unfinished(self) -> list[TopicPartition]:
        """The target partitions of which something is not committed."""
        with self._lock:
            return unfinished(self._plan, committed(self._receipts.values()))

    def progress(self, now_s: float) -> RunProgress:
        """Return how far the run has come."""
        with self._lock:
            found = progress_of(self._plan, committed(self._receipts.values()), self._ends)
            return self._paced.add(now_s, found)


class Following:
    """Measures every few seconds how far a run has come. Use as a context manager around the copying.

    A thread does it over a connection of its own, which it opens after the first few seconds.
    """

    def __init__(
        self,
        plan: Plan,
        spec: SlotTask,
        *,
        every_s: float,
        show: Callable[[RunProgress], None],
        say: Callable[[str], None],
    ) -> None:
        """`spec` may be of any slot: it carries the target's connection. `say` gets why nothing can be measured."""
        self._heard = Heard(plan, wall_ms(), time.monotonic())
        self._cursor = spec.ref.generation
        self._spec = spec
        self._every_s = every_s
        self._show = show
        self._say = say
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="ferry-progress", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        # After an error the caller must not wait; the thread is a daemon and holds nothing but a connection.
        self._thread.join(PATIENCE_SECONDS if error is None else 0)

    def hear(self, receipts: Collection[Receipt]) -> None:
        """Take in receipts of a chunk that this process committed, before the ledger shows them."""
        self._heard.hear(receipts)

    @property
    def now(self) -> RunProgress:
        """How far the run has come, by what was heard of it."""
        return self._heard.progress(time.monotonic())

    def _watch(self) -> None:
        while not self._over.wait(self._every_s):
            try:
                with TargetConnection(
                    self._spec.ref.flow, self._spec.target, patience_s=PATIENCE_SECONDS
                ) as connection:
                    self._follow(connection)
            except FerryError as error:
                self._heard.see({})
                self._say(f"progress is not visible at the moment: {error}")

    def _follow(self, connection: TargetConnection) -> None:
        """Measure until it is over or the ledger cannot be read."""
        while True:
            began = time.monotonic()
            places = self._heard.unfinished
            self._heard.see(connection.run(partial(log_ends, connection.target, places)))
            records, end = connection.run(lambda: connection.ledger.read(self._cursor, None))
            first_open = self._heard.read(records)
            self._cursor = end if first_open is None else first_open
            if self._over.is_set():
                return
            self._show(self.now)
            if self._over.wait(max(self._every_s, REST * (time.monotonic() - began))):
                return


@contextmanager
def logged_progress(
    plan: Plan, spec: SlotTask, *, every_s: float = LINE_SECONDS
) -> Iterator[Callable[[Collection[Receipt]], None]]:
    """Log every few seconds how far a run has come, the longer it takes the more seldom, and at the end.

    Yields a function to call with the receipts of each committed chunk. `spec` may be of any slot: it carries the
    target's connection.
    """
    began, milestones = time.monotonic(), Milestones()

    def show(progress: RunProgress) -> None:
        line = progress_line(plan, progress)
        if milestones.has(line, time.monotonic() - began):
            log.info("run %s: %s", plan.run, line)

    with Following(plan, spec, every_s=every_s, show=show, say=log.info) as following:
        yield following.hear
    log.info("run %s: %s", plan.run, progress_line(plan, following.now, has_ended=True))
