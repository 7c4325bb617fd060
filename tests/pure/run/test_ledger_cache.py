"""A process that lives for long holds of a ledger what a new process would read, however many runs wrote to it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import cast

import pytest

from ferry.config.settings import parse_settings
from ferry.kafka.produce.ledger_topic import LedgerTopic
from ferry.lane.ledger_cache import LedgerCache
from ferry.lane.session import LaneSession
from ferry.ledger.ledger import LedgerView
from ferry.ledger.map_rows import newer_rows
from ferry.model import LedgerRecord
from tests.pure.run.ledger_model import History, ModelLog, assert_same, now, small_windows

FILE = "clusters = S, T\nS.bootstrap.servers = s:1\nT.bootstrap.servers = t:1\nS->T.enabled = true\n"
RUNS, EACH = 40, 4
"""Runs, and the chunks of one partition in each; every fifth run writes a summary."""


@dataclass
class Topic:
    """A ledger in memory as LedgerCache takes it."""

    log: ModelLog
    topic_id: str = "id"

    async def find(self) -> None:
        pass

    async def end(self, *, leader_known: bool) -> int:
        return self.log.end

    async def start(self) -> int:
        return await self.log.start()

    async def read(self, start: int | None = None, end: int | None = None) -> tuple[list[LedgerRecord], int]:
        return await self.log.read(start, end)

    async def read_gapless(self, start: int, end: int) -> tuple[list[LedgerRecord], int, bool]:
        return await self.log.read_gapless(start, end)

    async def read_untransacted(self, start: int, end: int) -> list[LedgerRecord]:
        return await self.log.read_untransacted(start, end)

    async def read_at(self, offsets: Collection[int]) -> dict[int, LedgerRecord]:
        return await self.log.read_at(offsets)

    async def tombstones_kept_ms(self) -> int:
        return await self.log.tombstones_kept_ms()


@pytest.fixture(autouse=True)
def small() -> Iterator[None]:
    """Windows and blocks of a few records."""
    with pytest.MonkeyPatch.context() as patch:
        small_windows(patch)
        yield


def cache_of(log: ModelLog) -> LedgerCache:
    return LedgerCache(cast("LedgerTopic", Topic(log)))


def run(history: History) -> None:
    history.run()
    for _ in range(EACH):
        history.finish(history.chunk([0], [3]), commits=True)


def visited(view: LedgerView) -> int:
    """How many receipts a question about offsets passes over that are in no block."""
    return len(view.keys("receipt")) + sum(map(len, newer_rows(view, lambda _: False).values()))


@pytest.mark.slow
def test_what_another_process_wrote_in_short_is_held_in_short() -> None:
    history = History()
    known, most = cache_of(history.log), 0
    for number in range(RUNS):
        run(history)
        if number % 5 == 4:
            history.summarise()  # as another process or another connection does it
        view = now(known.view())
        most = max(most, visited(view))
        assert_same(history.log, view, history.log.whole())
    assert most <= 5 * EACH, "no more than since the newest summary"


def test_a_summary_that_cannot_be_read_is_tried_once() -> None:
    history = History()
    known = cache_of(history.log)
    run(history)
    now(known.view())
    for _ in range(3):
        run(history)
    history.summarise()
    (part, *_) = [at for at, one in enumerate(history.log.entries) if one.record.key.startswith(b'["summary"')]
    history.log.taken.add(part)
    history.log.reads.clear()
    for _ in range(4):
        run(history)
        assert_same(history.log, now(known.view()), history.log.whole())
    assert [begin for begin, _ in history.log.reads].count(0) == 1


def test_the_connections_of_a_lane_and_its_runs_read_the_ledger_once() -> None:
    session = LaneSession(parse_settings(FILE, "f").flow("S->T"))
    try:
        assert session.open_lane.cache is session.connections.cache
    finally:
        session.close()
