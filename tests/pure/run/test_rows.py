"""The rows of a slot: given again since the last commit, in order, and never at their end when they broke off."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.errors import Refused, Retryable
from ferry.features.records.acts.rows import COLUMNS, Rows
from ferry.features.records.spark.row_tasks import LAST_TOPIC, whole_rows

PAIRS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
KINDS = [pa.string(), pa.int32(), pa.int32(), pa.int64(), pa.int64(), pa.binary(), pa.binary(), PAIRS]
PLACES = st.lists(
    st.tuples(st.sampled_from("ab"), st.integers(0, 2), st.integers(0, 2), st.integers(0, 9), st.sampled_from("...rl")),
    unique_by=lambda row: row[:4],
).map(sorted)
Place = tuple[str, int, int, int, str]


def batch(places: list[Place]) -> pa.RecordBatch:
    rows: list[tuple[object, ...]] = [
        (*place[:4], 7, b"k", None, [], "no" if place[4] == "r" else None, "dead" if place[4] == "l" else None)
        for place in places
    ]
    columns = zip(*rows, strict=True)
    kinds = [*KINDS, pa.string(), pa.string()]
    return pa.RecordBatch.from_arrays(
        [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)], names=list(COLUMNS)
    )


def cut(places: list[Place], sizes: list[int]) -> list[pa.RecordBatch]:
    found, at = [], 0
    for size in [*sizes, len(places)]:
        if places[at : at + size]:
            found.append(batch(places[at : at + size]))
        at += size
    return found


@given(places=PLACES, sizes=st.lists(st.integers(1, 5)), verbs=st.lists(st.integers(-2, 3)))
def test_all_come_once_between_settlements(places: list[Place], sizes: list[int], verbs: list[int]) -> None:
    rows = Rows(cut(places, sizes))
    settled: list[Place] = []
    taken: list[Place] = []
    for verb in [*verbs, *[99] * (2 * len(places) + 1)]:
        if verb == -1:
            rows.settle()
            settled, taken = settled + taken, []
        elif verb == -2:
            rows.rewind()
            taken = []
        elif (row_batch := rows.next()) is not None:
            mine = rows.take(min(max(verb, 1), row_batch.size))
            sign = "r" if mine.refusal else "l" if mine.letter else "."
            assert sign == "." or mine.size == 1
            taken += [
                (*mine.target, int(partition), int(offset), sign)
                for partition, offset in zip(mine.partitions, mine.offsets, strict=True)
            ]
            assert mine.row()[:2] == taken[-mine.size][2:4]
    assert settled + taken == places
    assert rows.next() is None


@pytest.mark.slow
@given(places=PLACES.filter(lambda rows: len(rows) > 1), sizes=st.lists(st.integers(1, 5)), data=st.data())
def test_what_is_out_of_order_is_refused(places: list[Place], sizes: list[int], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(places) - 2))
    places[at], places[at + 1] = places[at + 1], places[at]
    rows = Rows(cut(places, sizes))
    with pytest.raises(Refused):
        taken_whole(rows)


@pytest.mark.parametrize("sizes", [[], [1]], ids=["in one Arrow batch", "at the edge of two"])
@pytest.mark.parametrize(
    "second",
    [("b", 1, 1, 5), ("b", 1, 1, 4), ("b", 1, 0, 6), ("b", 0, 2, 6), ("a", 2, 2, 6)],
    ids=["the same row", "a lower offset", "a lower source partition", "a lower target partition", "a lower topic"],
)
def test_a_row_that_is_not_after_the_one_before_it_is_refused(
    second: tuple[str, int, int, int], sizes: list[int]
) -> None:
    rows = Rows(cut([("b", 1, 1, 5, "."), (*second, ".")], sizes))
    with pytest.raises(Refused):
        taken_whole(rows)


def taken_whole(rows: Rows) -> None:
    while (row_batch := rows.next()) is not None:
        rows.take(row_batch.size)


@given(places=PLACES, sizes=st.lists(st.integers(1, 5)), is_whole=st.booleans())
def test_rows_of_spark_are_whole_when_their_last_row_has_come(
    places: list[Place], sizes: list[int], is_whole: bool
) -> None:
    last: Place = (LAST_TOPIC, -1, 0, 0, ".")
    found = cut([*places, last] if is_whole else places, sizes)
    rows = Rows(whole_rows(found))
    taken_all = taken_whole if is_whole else breaking
    taken_all(rows)
    assert sum(one.num_rows for one in rows._kept) == len(places)


def breaking(rows: Rows) -> None:
    with pytest.raises(Retryable):
        taken_whole(rows)


def test_what_broke_off_is_never_at_its_end() -> None:
    def broken() -> Iterator[pa.RecordBatch]:
        yield batch([("a", 0, 0, 1, ".")])
        raise Retryable("gone")

    rows = Rows(broken())
    assert rows.next() is not None
    rows.take(1)
    for _ in range(2):
        with pytest.raises(Retryable, match="gone"):
            rows.next()
        rows.rewind()
        assert rows.next() is not None
        rows.take(1)
