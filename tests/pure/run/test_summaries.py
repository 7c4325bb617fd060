"""A ledger opened from a summary and its tail says what the whole ledger says, whatever happened in between."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ferry.clock import wall_ms
from ferry.errors import BadInput
from ferry.features.groups.acts.offset_maps import load_maps, newest_receipts
from ferry.features.groups.acts.saved_offsets import with_saved
from ferry.features.groups.rules.codec import saved_groups
from ferry.features.groups.rules.offset_map import OffsetMap
from ferry.lane.summaries import open_ledger, write_summary
from ferry.ledger import summary
from ferry.ledger.codec import pause_record, resume_record
from ferry.ledger.ledger import LedgerView, gaps
from ferry.ledger.receipts import last_receipts, receipts
from ferry.ledger.summary import is_due
from ferry.model import LedgerRecord, Pause, TopicPartition
from tests.golden import Golden
from tests.pure.decide.values import LANE, place
from tests.pure.run.ledger_model import History, ModelLog, assert_same, now, small_windows
from tests.tiers import examples

Step = Callable[[History], object]
numbers = st.lists(st.integers(0, 2), min_size=1, max_size=3, unique=True)
sizes = st.lists(st.integers(1, 9), min_size=3, max_size=3)


def chunk(ones: Sequence[int], of: Sequence[int], commits: bool | None) -> Step:
    def step(history: History) -> None:
        transaction = history.chunk(ones, of[: len(ones)])
        if commits is not None:
            history.finish(transaction, commits=commits)

    return step


def new_run(history: History) -> None:
    history.finish_all()
    history.run()


def ending(commits: bool) -> Step:
    def step(history: History) -> None:
        for transaction in list(history.undecided)[:1]:
            history.finish(transaction, commits=commits)

    return step


def compaction(back: int, drop: bool) -> Step:
    return lambda history: history.log.compact(max(0, history.log.end - back), drop_tombstones=drop)


def deletion(history: History) -> None:
    history.finish_all()
    history.delete()


def going_back(number: int) -> Step:
    def step(history: History) -> None:
        new_run(history)
        history.go_back(number)

    return step


def saving(name: str, groups: Collection[str], offset: int) -> Step:
    return lambda history: history.save(name, sorted(groups), offset)


NAMES = ["app", 'q"1', "\u00e9"]
PAUSE = Pause(topic="orders", who="ann", why="upgrade", since_ms=1)
steps = st.one_of(
    st.builds(chunk, numbers, sizes, st.sampled_from([True, True, True, False, None])),
    st.just(new_run),
    st.builds(ending, st.booleans()),
    st.sampled_from([0, 1, 2, 3, None, None, None]).map(lambda appends: lambda history: history.summarise(appends)),
    st.builds(compaction, st.integers(0, 30), st.booleans()),
    st.just(lambda history: history.log.write(pause_record(PAUSE))),
    st.just(lambda history: history.log.write(resume_record("orders"))),
    st.just(deletion),
    st.builds(saving, st.sampled_from(NAMES), st.sets(st.sampled_from(NAMES)), st.integers(0, 99)),
    st.sampled_from(NAMES).map(lambda name: lambda history: history.drop(name)),
    st.builds(going_back, st.integers(0, 2)),
)
histories = st.integers(5, 30).flatmap(lambda size: st.lists(steps, min_size=size, max_size=size))


@pytest.fixture(scope="module", autouse=True)
def small() -> Iterator[None]:
    """Windows and blocks of a few records, so that short histories have many."""
    with pytest.MonkeyPatch.context() as patch:
        small_windows(patch)
        patch.setattr("ferry.features.groups.acts.offset_maps.WHOLE_BLOCKS", 1)
        yield


@settings(max_examples=examples(60))
@given(histories)
def test_summary_and_tail_say_what_the_whole_ledger_says(plan: list[Step]) -> None:
    history = History()
    history.run()
    for step in plan:
        step(history)
    log = history.log
    whole = log.whole()
    opened = now(open_ledger(log, log.end))
    assert_same(log, opened, whole)


@settings(max_examples=examples(60))
@given(histories, st.sets(st.integers(0, 120), max_size=6), st.booleans())
def test_a_lookup_by_blocks_is_a_lookup_in_the_whole_map(plan: list[Step], offsets: set[int], backward: bool) -> None:
    history = History()
    history.run()
    for step in plan:
        step(history)
    history.summarise()
    log = history.log
    whole = log.whole()
    opened = now(open_ledger(log, log.end))
    names = [place("a.orders" if backward else "orders", number) for number in range(3)]
    maps = now(load_maps(log, opened, LANE, dict.fromkeys(names, offsets), {}, backward=backward))
    by_place: dict[TopicPartition, list[Any]] = {}
    for receipt in receipts(whole):
        by_place.setdefault(receipt.target if backward else receipt.source, []).append(receipt)
    assert maps.keys() == by_place.keys()
    make = OffsetMap.backward if backward else OffsetMap.forward
    for name, ones in by_place.items():
        full = make(ones, gaps(whole, LANE))
        for offset in offsets:
            assert maps[name].translate(offset) == full.translate(offset), (name, offset)


@pytest.mark.parametrize("backward", [False, True])
@pytest.mark.parametrize("few", [0, 1, 9], ids=["all decoded", "by topic", "by partition"])
def test_the_newest_receipts_of_some_partitions_are_found_among_all(
    few: int, backward: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ferry.features.groups.acts.offset_maps.FEW", few)
    history = History()
    history.run()
    for _ in range(2):
        history.finish(history.chunk([0, 1, 2], [1, 2, 3]), commits=True)
    view = history.log.whole()
    asked = [place("a.orders" if backward else "orders", number) for number in (1, 2, 12)]
    found = newest_receipts(view, LANE, asked, backward=backward)
    every = last_receipts(view, LANE).values()
    by_place = {one.target if backward else one.source: one for one in every}
    assert found == {one: by_place[one] for one in asked[:2]}


def test_a_ledger_that_was_read_whole_is_summarised_however_little_lies_behind_its_last_portion(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(summary, "SUMMARISED_FROM", 20)
    history = History()
    history.run()
    for _ in range(12):
        history.finish(history.chunk([0, 1, 2], [1, 2, 3]), commits=True)
    log = history.log
    log.reads.clear()
    whole = now(open_ledger(log, log.end))
    assert len(log.reads) > 2, "read in portions"
    assert is_due(whole)
    history.summarise()
    then = now(open_ledger(log, log.end))
    assert not is_due(then)


class RowScope(list[LedgerRecord]):
    """Of which one can see whether somebody has it still."""


@dataclass
class WatchedLog(ModelLog):
    """Notes at each read how many of the portions before the last one are still held."""

    portions: list[weakref.ref[RowScope]] = field(default_factory=list)
    held: list[int] = field(default_factory=list)

    async def read(self, start: int | None = None, end: int | None = None) -> tuple[list[LedgerRecord], int]:
        self.held.append(sum(one() is not None for one in self.portions))
        records, upto = await super().read(start, end)
        portion = RowScope(records)
        self.portions.append(weakref.ref(portion))
        return portion, upto


def test_a_ledger_that_is_read_whole_holds_one_portion_at_a_time() -> None:
    log = WatchedLog()
    history = History(log=log)
    history.run()
    for _ in range(12):
        history.finish(history.chunk([0, 1, 2], [1, 2, 3]), commits=True)
    log.portions.clear()
    log.held.clear()
    now(open_ledger(log, log.end))
    assert len(log.held) > 2, "read in portions"
    assert set(log.held) == {0}


def test_a_summary_is_as_old_as_the_view_that_it_was_made_of() -> None:
    history = History(log=ModelLog(kept_ms=86_400_000))
    history.run()
    for _ in range(6):
        history.finish(history.chunk([0, 1, 2], [1, 2, 3]), commits=True)
    log = history.log
    view, read_ms = now(open_ledger(log, log.end)), wall_ms() - 50_000_000
    now(write_summary(log, view, history.generation, read_ms))
    log.write(pause_record(replace(PAUSE, who="0")), pause_record(replace(PAUSE, who="1")))
    log.taken.add(log.end - 2)
    assert now(open_ledger(log, log.end)).rolled.summarised == 0


@pytest.mark.parametrize(
    ("age_ms", "kept_ms", "counts"), [(0, 86_400_000, True), (50_000_000, 86_400_000, False), (0, 0, False)]
)
def test_a_summary_with_holes_behind_it_counts_only_while_tombstones_are_kept(
    age_ms: int, kept_ms: int, counts: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = History(log=ModelLog(kept_ms=kept_ms))
    history.run()
    for _ in range(6):
        history.finish(history.chunk([0, 1, 2], [1, 2, 3]), commits=True)
    history.summarise()
    log = history.log
    for number in range(2):
        log.write(pause_record(replace(PAUSE, who=str(number))))
    log.taken.add(log.end - 2)
    later = wall_ms() + age_ms
    monkeypatch.setattr("ferry.lane.summaries.wall_ms", lambda: later)
    opened = now(open_ledger(log, log.end))
    assert (opened.rolled.summarised > 0) is counts
    assert_same(log, opened, log.whole())


def snapshot_in_a_summary() -> tuple[History, LedgerView]:
    """A snapshot of two groups that the summary before the end leaves out."""
    history = History()
    history.run()
    history.save("s", ["app", "web"], 7)
    history.save("t", ["app"], 8)
    for _ in range(6):
        history.finish(history.chunk([0, 1, 2], [1, 2, 3]), commits=True)
    history.summarise()
    opened = now(open_ledger(history.log, history.log.end))
    assert opened.rolled.summarised > 0
    return history, opened


def test_saved_offsets_are_not_in_summaries_and_read_for_one_snapshot_alone(golden: Golden) -> None:
    history, opened = snapshot_in_a_summary()
    assert not list(opened.of_kind("offsets"))
    parts = b"".join(one.record.value or b"" for one in history.log.entries if b'"summary"' in one.record.key)
    assert b'"left"' in parts
    assert rb"\"kind\":\"snapshot\"" in parts
    assert rb"\"kind\":\"offsets\"" not in parts
    saved = now(with_saved(history.log, opened, LANE, "s"))
    assert [key[2:] for key, _ in saved.of_kind("offsets")] == [["s", "app"], ["s", "web"]]
    with pytest.raises(LookupError) as caught:
        saved_groups(saved, LANE, "t")
    golden(caught.value)


def test_a_snapshot_of_which_records_were_deleted_is_refused_by_name(golden: Golden) -> None:
    history, opened = snapshot_in_a_summary()
    (lost, *_) = [at for key, at in opened.rolled.left.items() if key.startswith('["offsets","live","s"')]
    history.log.taken.add(lost)
    with pytest.raises(BadInput) as wrong:
        now(with_saved(history.log, opened, LANE, "s"))
    golden(wrong.value)
    assert len(saved_groups(now(with_saved(history.log, opened, LANE, "t")), LANE, "t")) == 1
