"""How far a run has come, read from the end of its ledger while the tasks copy: correct for every kind of Spark."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from ferry.clock import wall_ms
from ferry.copy.task import TaskSpec
from ferry.errors import FerryError
from ferry.lane.connections import TargetConnection
from ferry.ledger.receipts import heard_receipts
from ferry.ledger.report import pieces_sentence
from ferry.ledger.unit_codec import heard_units
from ferry.model import LedgerRecord, Plan, Receipt, TopicPartition
from ferry.run.pace import span
from ferry.words import count_of

EVERY_SECONDS = 5.0
PATIENCE_SECONDS = 5.0
MEGABYTE = 1_000_000


@dataclass(slots=True, kw_only=True)
class Progress:
    """The sum of the committed receipts of one run."""

    plan: Plan
    since_ms: int = 0
    """Receipts before this time are of an earlier attempt, and do not count for the pace."""
    receipts: dict[tuple[TopicPartition, int], Receipt] = field(default_factory=dict)

    def add(self, records: Iterable[LedgerRecord]) -> int | None:
        """Add the records of a read; return the offset of the first undecided one, from which to read again."""
        records = list(records)
        found, first_open = heard_receipts(records, "receipt", self.plan.lane, self.plan.generation)
        for receipt in (*found, *heard_units(records, self.plan.lane, self.plan.generation)):
            self.receipts[receipt.target, receipt.start] = receipt
        return first_open

    def line(self, seconds: float) -> str:
        """Return one line for the log: slices, records, megabytes, the rate over `seconds`, and the remaining time."""
        ends: dict[TopicPartition, int] = {}
        written = self.receipts.values()
        for receipt in written:
            ends[receipt.target] = max(ends.get(receipt.target, -1), receipt.end)
        done = sum(ends.get(piece.target, -1) >= piece.end for piece in self.plan.slices)
        records = sum(receipt.records for receipt in written)
        size = sum(receipt.bytes for receipt in written) / MEGABYTE
        left = sum(max(0, piece.end - ends.get(piece.target, piece.start)) for piece in self.plan.slices)
        since = sum(one.end - one.start for one in written if one.at_ms >= self.since_ms)
        rest = (
            f", {count_of(left, 'offset')} left, about {span(seconds * left / since)} to go" if left and since else ""
        )
        return (
            f"{done} of {pieces_sentence(self.plan)}, {records} records, {size:.1f} MB, "
            f"{size / max(seconds, 0.001):.1f} MB/s{rest}"
        )


class ProgressLog:
    """Prints every few seconds how far the run has come. Use as a context manager around the copying."""

    def __init__(self, plan: Plan, spec: TaskSpec, say: Callable[[str], None]) -> None:
        """`spec` may be of any slot: it carries the target's connection."""
        self._progress = Progress(plan=plan, since_ms=wall_ms())
        self._cursor = spec.ref.generation
        self._spec = spec
        self._say = say
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="ferry-progress", daemon=True)
        self._started = time.monotonic()

    def __enter__(self) -> Self:
        self._started = time.monotonic()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        # After an error the caller must not wait; the thread is a daemon and holds nothing but a connection.
        self._thread.join(PATIENCE_SECONDS if error is None else 0)

    def _watch(self) -> None:
        while not self._over.wait(EVERY_SECONDS):
            try:
                with TargetConnection(
                    self._spec.ref.flow, self._spec.target, patience_s=PATIENCE_SECONDS
                ) as connection:
                    self._follow(connection)
            except FerryError as error:
                self._say(f"progress is not visible at the moment: {error}")

    def _follow(self, connection: TargetConnection) -> None:
        """Print how far the run is, until it is over or the ledger cannot be read."""
        while True:
            records, end = connection.run(lambda: connection.ledger.read(self._cursor, None))
            first_open = self._progress.add(records)
            self._cursor = end if first_open is None else first_open
            self._say(self._progress.line(time.monotonic() - self._started))
            if self._over.wait(EVERY_SECONDS):
                return
