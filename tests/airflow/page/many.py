"""A flow's thread of the page that has looked at 10,000 partitions, and what memory that takes at most.

A program: `python -m tests.airflow.page.many LOOKS` looks so often, and prints MB.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from copy import deepcopy
from typing import NoReturn

from ferry.errors import Unreachable
from ferry.ledger.history import PastRun, PastState
from ferry.ledger.ledger import UNREAD
from ferry.ledger.run_report import report_of
from ferry.model import OpenedRun, TopicPartition
from ferry.plan.rules.lag import PartitionLag
from ferry.reader.documents import RunDigest
from ferry.reader.lag_history import MOST_CELLS
from ferry.reader.snapshot import Snapshot, digest_of
from ferry.reader.watch import FlowPoll
from ferry.reader.watcher import MOST_RUNS, Watcher
from tests.memory import peak_mb
from tests.pure.decide.many import ALL, places, planned, receipt_of
from tests.pure.decide.values import LANE, run_of

LOOKS = 110
"""More than are kept of so many partitions."""


class Fed(Watcher):
    """Never looks: what was seen is given to it."""

    def __init__(self) -> None:
        super().__init__(self._nobody, "a", "b")

    @staticmethod
    def _nobody() -> NoReturn:
        raise Unreachable("nobody is there")

    def see(self, poll: FlowPoll, runs: tuple[RunDigest, ...]) -> None:
        """As if the thread had looked."""
        self._take(poll, runs, LANE)

    @property
    def last(self) -> Snapshot:
        """What was seen last."""
        return self._seen


def lags(look: int) -> Iterator[PartitionLag]:
    """How far all partitions are behind at a look."""
    for number, place in enumerate(places()):
        yield PartitionLag(
            source=place,
            target=TopicPartition(topic=f"a.{place.topic}", partition=place.partition),
            position=1_000 * look,
            source_end=1_000 * look + number,
            records=number,
            bytes=1_000 * number,
            seconds=number / 10,
        )


def digested() -> tuple[RunDigest, ...]:
    """As many runs as the page keeps, each of which copied something of every partition."""
    plan = planned()
    report = report_of(plan, 1_000, [receipt_of(place, 1) for place in places()], {}, None)
    opened = OpenedRun(record=run_of("wide"), generation=1)
    digest = digest_of(PastRun(opened=opened, state=PastState.SUCCESS, report=report))
    return tuple(deepcopy(digest) for _ in range(MOST_RUNS))


def main(looks: int) -> None:
    """Look so often, and print what it took at most."""
    before = peak_mb()
    runs, watcher = digested(), Fed()
    for look in range(looks):
        watcher.see(FlowPoll(view=UNREAD, lags=tuple(lags(look)), troubles={}), runs)
    seen = watcher.last
    assert sum(map(len, seen.lags.values())) == ALL
    assert (len(seen.runs), len(seen.columns)) == (MOST_RUNS, min(looks, MOST_CELLS // ALL))
    print(peak_mb() - before)


if __name__ == "__main__":
    main(int(sys.argv[1]))
