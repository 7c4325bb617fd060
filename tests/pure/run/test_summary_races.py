"""Summaries that are not whole, or that two write at once: a reader takes none that says something else."""

from __future__ import annotations

import types
from collections.abc import Callable, Coroutine, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, repeat
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ferry.clock import wall_ms
from ferry.lane import summaries
from ferry.lane.summaries import open_ledger, write_summary
from ferry.ledger.ledger import LedgerView
from ferry.ledger.summary import seals, summary_parts
from ferry.model import Record
from tests.pure.run.ledger_model import History, ModelLog, assert_same, kinds, now, small_windows
from tests.tiers import examples

DAY_MS = 86_400_000


@pytest.fixture(scope="module", autouse=True)
def small() -> Iterator[None]:
    """Short windows and blocks, and summaries of several parts."""
    with pytest.MonkeyPatch.context() as patch:
        small_windows(patch)
        patch.setattr(summaries, "summary_parts", partial(summary_parts, part_bytes=600))
        yield


@types.coroutine
def others_turn() -> Generator[None, None, None]:
    """Whoever else is at work may go on now."""
    yield


@dataclass(slots=True)
class SharedLog(ModelLog):
    """A log to which several write: while `shared`, others may come before each record."""

    shared: bool = False

    async def append_each(self, records: Sequence[Record], *, batch_bytes: int = 0) -> list[int]:
        if not self.shared:
            return await ModelLog.append_each(self, records)
        offsets = []
        for record in records:
            await others_turn()
            offsets.append(self.write(record))
        return offsets


def side_by_side(
    works: Sequence[Coroutine[Any, Any, object]], order: Sequence[int], between: Callable[[], None]
) -> None:
    """All to their ends, in this order of turns; `between` two of them somebody looks."""
    waiting = list(works)
    for turn in chain(order, repeat(0)):
        if not waiting:
            return
        work = waiting[turn % len(waiting)]
        try:
            work.send(None)
        except StopIteration:
            waiting.remove(work)
        between()


def opened(log: ModelLog) -> LedgerView:
    return now(open_ledger(log, log.end))


def copy(history: History, chunks: int) -> None:
    for _ in range(chunks):
        history.finish(history.chunk([0, 1, 2], [1, 2, 3]), commits=True)


def with_two_summaries() -> tuple[History, LedgerView, LedgerView]:
    """A ledger with an older summary and a newer one, and what a reader knows who opens it from each."""
    history = History(log=ModelLog(kept_ms=DAY_MS))
    history.run()
    copy(history, 6)
    history.summarise()
    older = opened(history.log)
    history.run()
    copy(history, 6)
    history.summarise()
    newer = opened(history.log)
    assert 0 < older.rolled.summarised < newer.rolled.summarised
    return history, older, newer


def offsets_of(history: History, view: LedgerView) -> tuple[list[int], int]:
    """Where the parts and the seal of the summary lie from which a view was opened."""
    whole = history.log.seen(0, history.log.end, history.log.taken)
    (seal,) = [one for one in seals(whole) if one.upto == view.rolled.summarised]
    parts = range(seal.first, seal.at)
    assert len(parts) == seal.parts >= 3
    return list(parts), seal.at


@pytest.mark.slow
@pytest.mark.parametrize("which", [0, 1, -1])
def test_a_summary_without_one_of_its_parts_does_not_count(which: int) -> None:
    history, older, newer = with_two_summaries()
    for view, then in ((newer, older.rolled.summarised), (older, 0)):
        parts, _ = offsets_of(history, view)
        history.log.taken.add(parts[which])
        found = opened(history.log)
        assert found.rolled.summarised == then
        assert_same(history.log, found, history.log.whole())


def test_a_summary_with_a_part_of_another_does_not_count() -> None:
    history, older, newer = with_two_summaries()
    log = history.log
    at, of_another = offsets_of(history, newer)[0][1], offsets_of(history, older)[0][1]
    log.entries[at] = replace(
        log.entries[at], record=replace(log.entries[at].record, value=log.entries[of_another].record.value)
    )
    found = opened(log)
    assert found.rolled.summarised == older.rolled.summarised
    assert_same(log, found, log.whole())


def test_a_summary_whose_seal_was_lost_does_not_count() -> None:
    history, older, newer = with_two_summaries()
    for view, then in ((newer, older.rolled.summarised), (older, 0)):
        _, seal = offsets_of(history, view)
        history.log.taken.add(seal)
        found = opened(history.log)
        assert found.rolled.summarised == then
        assert_same(history.log, found, history.log.whole())


@pytest.mark.slow
def test_what_a_writer_leaves_who_dies_before_the_seal_is_nothing_and_goes() -> None:
    history, _, newer = with_two_summaries()
    history.run()
    copy(history, 6)
    dead = f",{history.generation},"
    history.summarise(appends=2)
    log = history.log
    left = {key for key in kinds(log.whole(), "map", "summary") if dead in key}
    assert {key.split(",")[0] for key in left} == {'["map"', '["summary"'}, "blocks and parts are there"
    found = opened(log)
    assert found.rolled.summarised == newer.rolled.summarised
    assert_same(log, found, log.whole())
    for _ in range(6):
        history.run()
        copy(history, 3)
        history.summarise()
        assert opened(log).rolled.summarised > found.rolled.summarised
        assert_same(log, opened(log), log.whole())
    assert not [key for key in kinds(log.whole(), "map", "summary") if dead in key]


@pytest.mark.slow
@settings(max_examples=examples(25))
@given(st.lists(st.integers(0, 1), min_size=20, max_size=30), st.integers(0, 4), st.booleans(), st.booleans())
def test_of_two_writers_at_once_each_is_right_or_does_not_count(
    order: list[int], behind: int, again: bool, earlier: bool
) -> None:
    log = SharedLog(kept_ms=DAY_MS)
    history = History(log=log)
    history.run()
    copy(history, 5)
    if earlier:
        history.summarise()
        history.run()
        copy(history, 4)
    first, generation = opened(log), history.generation
    history.run()
    copy(history, behind)
    second = opened(log)
    log.shared = True
    # The same writer twice is what must not be: then all that stands between a reader and a mixture is the digest.
    works = [
        write_summary(log, first, generation, wall_ms()),
        write_summary(log, second, generation if again else history.generation, wall_ms()),
    ]

    def look() -> None:
        assert_same(log, opened(log), log.whole())

    side_by_side(works, order, look)
    log.shared = False
    if not again:
        assert opened(log).rolled.summarised in (first.end, second.end), "whichever the reader meets first"
    for _ in range(3):
        history.run()
        copy(history, 2)
        history.summarise()
        if not again:
            log.compact(log.end, drop_tombstones=True)
        look()
