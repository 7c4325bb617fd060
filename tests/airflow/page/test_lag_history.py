"""The lag of partitions over time: within its memory, evenly over its time, and each partition with its own figures."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.reader import lag_history
from ferry.reader.lag_history import MOST_CELLS, Column, column_of, kept, points_of
from ferry.reader.lag_point import SPAN_MS
from ferry.reader.snapshot import by_topic
from tests.airflow.page.conftest import lag


def wide(at_ms: int, partitions: int, before: tuple[Column, ...] = ()) -> Column:
    return column_of(at_ms, by_topic(lag("orders", number, at_ms, 1.0) for number in range(partitions)), before)


def test_ten_thousand_partitions_over_a_day_stay_within_their_memory() -> None:
    columns: tuple[Column, ...] = ()
    first = wide(0, 10_000)
    for look in range(2_880):  # each half a minute
        like = Column(
            at_ms=look * 30_000, places=first.places, records=first.records, bytes=first.bytes, seconds=first.seconds
        )
        columns = kept(columns, like)
    assert sum(len(column.records) for column in columns) <= MOST_CELLS
    assert columns[-1].at_ms == 2_879 * 30_000, "the newest is there"
    assert len(columns) == 100
    gaps = [after.at_ms - before.at_ms for before, after in pairwise(columns)]
    assert sum(gaps) > 0.9 * SPAN_MS
    assert max(gaps) <= 4 * SPAN_MS / len(columns), "no part of the time is left empty"


@given(st.lists(st.tuples(st.integers(1, 10), st.integers(0, 30)), max_size=40))
def test_what_is_kept_is_in_order_and_bounded_whatever_partitions_come_and_go(looks: list[tuple[int, int]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lag_history, "MOST_CELLS", 100)
        patch.setattr(lag_history, "MOST_COLUMNS", 8)
        columns: tuple[Column, ...] = ()
        now = 0
        for wait, partitions in looks:
            now += wait
            columns = kept(columns, wide(now, partitions, columns))
            times = [column.at_ms for column in columns]
            assert times == sorted(times)
            assert times[-1] == now
            assert len(columns) <= 8
            assert len(columns) <= 2 or sum(len(column.records) for column in columns) <= 100


def test_a_partition_has_its_own_figures_and_a_topic_their_sums() -> None:
    first = (lag("clicks", 0, 4, 9.0), lag("orders", 0, 7, 3.0), lag("orders", 2, 5, 60.0), lag("orders", 3, None))
    columns = kept((), column_of(1_000, by_topic(first)))
    columns = kept(columns, column_of(2_000, by_topic(first), columns))
    assert columns[0].places is columns[1].places, "looks at the same partitions share what they are"
    columns = kept(columns, column_of(3_000, by_topic((lag("orders", 2, 0),)), columns))

    def told(topic: str, partition: int | None) -> list[tuple[int, int, int, float | None]]:
        return [(one.at_ms, one.records, one.bytes, one.seconds) for one in points_of(columns, topic, partition)]

    assert told("orders", 2) == [(1_000, 5, 500, 60.0), (2_000, 5, 500, 60.0), (3_000, 0, 0, 0.0)]
    assert told("orders", None) == [(1_000, 12, 1_200, 60.0), (2_000, 12, 1_200, 60.0), (3_000, 0, 0, 0.0)]
    assert told("orders", 0) == [(1_000, 7, 700, 3.0), (2_000, 7, 700, 3.0)]
    assert told("orders", 3) == [], "nobody knew"
    assert told("orders", 9) == told("others", None) == []
