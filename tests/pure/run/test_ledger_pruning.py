"""What pruning takes from the ledger is what nobody can ask for, whatever happened before, and wherever it ended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ferry.features.groups.acts.offset_maps import PartitionMap, load_maps
from ferry.features.groups.rules.offset_map import Before, Exact, OffsetMap, Translated
from ferry.features.lanes.rules.listing import Lane, forgetting_lane, lane_of
from ferry.lane.map_entries import block_keys, rows_of
from ferry.lane.pruning import TOMBSTONES_A_RUN, sweep, tombstones_of, unswept_tombstones
from ferry.lane.summaries import open_ledger
from ferry.ledger.ledger import LedgerView, gaps
from ferry.ledger.pruning import LogStarts, candidates, given_up, pruned, pruned_at, pruned_record, unswept
from ferry.ledger.receipts import receipts
from ferry.ledger.window_codec import Dropped
from ferry.model import TopicPartition
from tests.pure.decide.values import LANE, RECEIPT, place
from tests.pure.run.ledger_model import History, assert_same, now, small_windows
from tests.pure.run.test_summaries import Step, steps
from tests.tiers import examples

shares = st.sampled_from([0.0, 0.3, 0.6, 1.0])
losses = st.builds(
    lambda number, source, target: lambda history: history.lose(number, source, target),
    st.integers(0, 2),
    shares,
    shares,
)
prunings = st.builds(
    lambda most, appends: lambda history: history.prune(most, appends),
    st.sampled_from([1, 4, 1_000]),
    st.sampled_from([None, None, None, 0, 1, 2]),
)


def rounds(some: Sequence[Step]) -> list[Step]:
    """Steps with what makes pruning do something between them: old runs, and full blocks."""

    def lived(history: History) -> None:
        for _ in range(4):
            history.finish_all()
            history.run()
            history.finish(history.chunk([0, 1, 2], [3, 4, 6]), commits=True)

    return [step for one in some for step in (lived, lambda history: history.summarise(), one)]


mixed = st.one_of(losses, losses, prunings, prunings, prunings, steps)
histories = st.lists(mixed, min_size=4, max_size=10).map(rounds)


@pytest.fixture(scope="module", autouse=True)
def small() -> Iterator[None]:
    """Windows and blocks of a few records, so that short histories have many."""
    with pytest.MonkeyPatch.context() as patch:
        small_windows(patch)
        patch.setattr("ferry.features.groups.acts.offset_maps.WHOLE_BLOCKS", 1)
        yield


def opened(history: History) -> LedgerView:
    return now(open_ledger(history.log, history.log.end))


def lived(plan: Sequence[Step]) -> History:
    history = History()
    history.run()
    for step in plan:
        step(history)
    return history


@pytest.mark.slow
@settings(max_examples=examples(30))
@given(histories)
def test_summary_tail_and_tombstones_say_what_the_whole_ledger_says(plan: list[Step]) -> None:
    history = lived(plan)
    assert_same(history.log, opened(history), history.log.whole())


@pytest.mark.slow
@settings(max_examples=examples(40))
@given(histories, st.booleans())
def test_every_offset_that_either_side_still_has_translates_as_before(plan: list[Step], backward: bool) -> None:
    history = lived(plan)
    by_place: dict[TopicPartition, list[Any]] = {}
    for receipt in receipts(history.unpruned()):
        by_place.setdefault(receipt.target if backward else receipt.source, []).append(receipt)
    make = OffsetMap.backward if backward else OffsetMap.forward
    for name, ones in by_place.items():
        full = make(ones, gaps(history.unpruned(), LANE))
        here, there = history.begins.get(name.partition, (0, 0))
        mine, other = (there, here) if backward else (here, there)
        offsets = range(full.end + 3)
        for asked in ([*offsets], [offsets[len(offsets) // 2]], [0]):
            found = now(load_maps(history.log, opened(history), LANE, {name: asked}, {}, backward=backward))[name]
            for offset in asked:
                _assert_kept(found, full, offset, offset >= mine, other)


def _assert_kept(found: PartitionMap, full: OffsetMap, offset: int, is_there: bool, other_start: int) -> None:
    was, is_now = full.translate(offset), found.translate(offset)
    if not _is_pruned(is_now):
        assert is_now == was or (isinstance(was, Before) and isinstance(is_now, Before))
        return
    assert not is_there, "the record is there, and its receipt was given up"
    assert not isinstance(was, Exact) or was.offset < other_start, "its copy is there, and the receipt was given up"
    assert isinstance(is_now, Before)
    assert is_now.pruned is not None
    assert is_now.pruned > offset
    assert is_now.offset == full.translate(is_now.pruned).offset


def _is_pruned(found: Translated) -> bool:
    return isinstance(found, Before) and found.pruned is not None


def with_old_blocks() -> History:
    """Three partitions with four blocks each, all of whose records retention has taken on both sides."""
    history = History()
    for _ in range(14):
        history.finish_all()
        history.run()
        history.finish(history.chunk([0, 1, 2], [3, 4, 6]), commits=True)
    history.summarise()
    for _ in range(5):  # the ledger lets go of all that copied: it keeps the newest, and two of each kind before it
        history.run()
    for number in range(3):
        history.lose(number, 1.0, 1.0)
    return history


@pytest.mark.slow
@pytest.mark.parametrize(
    ("source", "target", "goes"), [(1.0, 1.0, True), (1.0, 0.0, False), (0.0, 1.0, False)], ids=["both", "s", "t"]
)
def test_only_what_both_sides_have_lost_is_given_up(source: float, target: float, goes: bool) -> None:
    history = with_old_blocks()
    history.begins.clear()
    for number in range(3):
        history.lose(number, source, target)
    history.prune(1_000)
    assert bool(pruned(opened(history))) is goes


@pytest.mark.slow
@pytest.mark.parametrize(
    "other",
    [
        {"source_cluster_id": "another"},
        {"source_ids": {"orders": "another"}},
        {"source_ids": {}},
        {"target_ids": {"a.orders": "another"}},
    ],
    ids=lambda other: next(iter(other)),
)
def test_log_starts_of_other_topics_and_clusters_prune_nothing(other: dict[str, Any]) -> None:
    history = with_old_blocks()
    view = opened(history)
    starts = LogStarts(
        source_cluster_id=RECEIPT.source_cluster_id,
        source_ids={"orders": RECEIPT.source_topic_id},
        target_ids={"a.orders": RECEIPT.target_topic_id},
        source={place("orders", number): 10_000 for number in range(3)},
        target={place("a.orders", number): 10_000 for number in range(3)},
    )
    some = candidates(view, LANE)
    assert given_up(view, some, starts, run="r", at_ms=1)
    assert not given_up(view, some, replace(starts, **other), run="r", at_ms=1)


def test_receipts_of_runs_that_the_ledger_remembers_stay() -> None:
    history = with_old_blocks()
    before = opened(history)
    history.prune(1_000)
    view = opened(history)
    oldest = min(record.offset for _, record in view.of_kind("run"))
    marks = pruned(view).values()
    assert {one.copy.target.partition for one in marks} == {0, 1, 2}
    rows = now(rows_of(history.log, before, lambda _: True))
    for of, ones in rows.items():
        (mark,) = [one for one in marks if one.copy.target == of.target]
        assert all(row.generation < oldest for row in ones if row.end <= mark.end)
        assert any(row.end > mark.end for row in ones)


def test_another_lane_keeps_what_it_has() -> None:
    history = with_old_blocks()
    assert candidates(opened(history), LANE)
    assert not candidates(opened(history), "trial")


def test_the_work_of_a_run_is_bounded_and_comes_to_an_end() -> None:
    history = with_old_blocks()
    history.prune(0)
    took = []
    for _ in range(20):
        view = opened(history)
        if not unswept(view, LANE):
            break
        before = history.log.end
        now(sweep(history.log, view, LANE, 3, history.log.append_each))
        took.append(history.log.end - before)
        history.swept |= set(range(before, history.log.end))
    assert len(took) > 2, "not all at once"
    assert max(took) <= 3 + 3 + 2, "three receipts, those of one more block, the block, and how far it came"
    marks = pruned(opened(history)).values()
    assert all(one.done == one.end for one in marks)
    whole = history.log.whole()
    assert all(receipt.end > one.end for receipt in receipts(whole) for one in marks if one.source == receipt.source)
    assert not [key for key, _ in whole.of_kind("map") if key[3] in (0, 1, 2) and key not in _named(whole)]


def _named(view: LedgerView) -> list[list[Any]]:
    """The keys of blocks that are left: each holds something that is not given up."""
    ends = {one.copy.target.partition: one.end for one in pruned(view).values()}
    kept = []
    for key, record in view.of_kind("map"):
        assert record.value is not None
        if f'"end":{ends[key[3]]}' not in record.value.decode():
            kept.append(key)
    return kept


@pytest.mark.slow
@pytest.mark.parametrize("appends", range(4))
def test_who_died_with_tombstones_half_written_is_followed_by_one_who_writes_the_rest(appends: int) -> None:
    history = with_old_blocks()
    history.prune(1_000)
    history.prune(1_000, appends)
    history.log.compact(history.log.end, drop_tombstones=True)
    assert_same(history.log, opened(history), history.log.whole())
    history.prune(1_000)
    assert not unswept(opened(history), LANE)
    assert_same(history.log, opened(history), history.log.whole())
    history.summarise()
    assert_same(history.log, opened(history), history.log.whole())
    assert all(links.blocks for links in opened(history).rolled.chains.values())


@pytest.mark.slow
def test_blocks_that_were_taken_by_a_run_that_did_not_say_so_are_passed_over() -> None:
    history = with_old_blocks()
    history.prune(1_000)
    view = opened(history)
    ends = {one.copy.target: one.end for one in pruned(view).values()}
    for of, links in view.rolled.chains.items():
        history.log.taken |= {block.at for block in links.blocks if block.end <= ends[of.target]}
    history.prune(1_000)
    assert not unswept(opened(history), LANE)


def test_a_ledger_without_its_summary_is_swept_as_well() -> None:
    history = with_old_blocks()
    history.prune(1_000)
    for at, entry in enumerate(history.log.entries):
        if entry.record.key.startswith((b'["summary"', b'["map"')):
            history.log.taken.add(at)
    view = opened(history)
    assert view.rolled.summarised == 0
    assert_same(history.log, view, history.log.whole())
    history.prune(1_000)
    whole = history.log.whole()
    ends = {one.source: one.end for one in pruned(whole).values()}
    assert all(receipt.end > ends[receipt.source] for receipt in receipts(whole))


@pytest.mark.slow
def test_a_copy_that_comes_back_after_its_deletion_is_not_taken_for_pruned() -> None:
    history = with_old_blocks()
    history.prune(1_000)
    assert unswept(opened(history), LANE)
    history.delete()
    assert not pruned(opened(history))
    assert not list(receipts(history.log.whole()))
    history.run()
    history.finish(history.chunk([0], [3]), commits=True)
    maps = now(load_maps(history.log, opened(history), LANE, {place("orders", 0): None}, {}))
    assert maps[place("orders", 0)].translate(1) == Exact(offset=1)
    assert_same(history.log, opened(history), history.log.whole())


def test_a_lane_that_is_dropped_leaves_nothing_of_what_was_given_up() -> None:
    history = with_old_blocks()
    history.prune(1_000)
    history.log.write(pruned_record(replace(unswept(opened(history), LANE)[0], done=0)))
    log, view = history.log, opened(history)
    rows, blocks = now(rows_of(log, view, lambda _: True)), now(block_keys(log, view, lambda _: True))
    blocks += [record.key for record in now(unswept_tombstones(log, view, LANE))]
    word = Dropped(lane=LANE, who="ann", at_ms=1, topics=(), records=0)
    log.write(*forgetting_lane(view, word, rows, blocks))
    whole = log.whole()
    assert not [key for kind in ("receipt", "map", "pruned", "last") for key, _ in whole.of_kind(kind)]


def test_a_lane_says_of_how_many_offsets_it_cannot_count_the_records() -> None:
    history = with_old_blocks()

    def lane() -> Lane:
        view = opened(history)
        return lane_of(view, LANE, now(rows_of(history.log, view, lambda of: of.lane == LANE)))

    before = lane()
    assert (before.pruned, before.uncounted) == (0, "")
    history.prune(1_000)
    after = lane()
    assert [part.ranges for part in after.parts] == [part.ranges for part in before.parts]
    assert after.records < before.records
    marks = pruned(opened(history)).values()
    assert after.pruned == sum(mark.end - mark.start for mark in marks) > 0
    assert "whose receipts were pruned" in after.uncounted


def test_an_offset_that_is_given_up_is_named_with_the_run_that_did_it() -> None:
    history = with_old_blocks()
    history.prune(1_000)
    view = opened(history)
    (one,) = [mark for mark in pruned(view).values() if mark.source.partition == 1]
    assert pruned_at(view, LANE, "orders", 1, one.end - 1) == [one]
    assert pruned_at(view, LANE, "orders", 1, one.end) == []
    assert pruned_at(view, LANE, "orders", 0, one.end + 10_000) == []
    assert one.run == f"run-{history.runs}"


def test_a_run_of_many_partitions_takes_more_away_than_it_writes() -> None:
    assert tombstones_of(0) == TOMBSTONES_A_RUN
    assert tombstones_of(10_000) == 40_000
