"""The lag of partitions over time: within its memory, evenly over its time, and each partition with its own figures."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.ledger.ledger import UNREAD
from ferry.plan.rules.lag import total_of
from ferry.reader import lag_history
from ferry.reader.documents import TopicRow
from ferry.reader.lag_history import MOST_CELLS, Column, column_of, kept, points_of
from ferry.reader.lag_point import SPAN_MS, LagPoint
from ferry.reader.questions import OfTopics
from ferry.reader.snapshot import Snapshot, by_topic
from ferry.reader.status import MOST_LATELY, topics_of
from ferry.reader.watch import FlowPoll
from ferry_airflow.page.sparkline import HEIGHT, WIDTH, sparklines
from tests.airflow.page.conftest import HERE, Desk, lag


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


def row(topic: str, *lately: tuple[int, int] | None) -> TopicRow:
    return TopicRow(topic=topic, target="", total=total_of(()), paused=None, lately=lately)


def test_a_list_of_topics_has_a_few_points_of_each_with_the_newest_and_the_gaps() -> None:
    columns: tuple[Column, ...] = ()
    times = [*range(0, 600_000, 5_000), *range(3_600_000, 4_200_000, 5_000)]
    for at_ms in times:
        lags = by_topic((lag("orders", 0, at_ms // 1_000, 1.0), lag("orders", 1, 1, 1.0), lag("new", 0, None)))
        columns = kept(columns, column_of(at_ms, lags, columns))
    points = tuple(LagPoint(at_ms=at_ms, records=0, bytes=0, seconds=0.0) for at_ms in times)
    rows = tuple(row(topic) for topic in ("orders", "new"))
    seen = Snapshot(history=points, columns=columns, topics=rows)
    orders, new = topics_of(seen, OfTopics(sort="partitions")).rows[::-1]
    assert (orders.topic, new.lately) == ("orders", ())
    assert orders.lately.count(None) == 1
    before, after = orders.lately[: (gap := orders.lately.index(None))], orders.lately[gap + 1 :]
    assert (before[-1], after[-1]) == ((595_000, 596), (4_195_000, 4_196))
    assert MOST_LATELY <= len(before) + len(after) <= MOST_LATELY + 2


def test_the_lines_of_a_page_share_one_axis_of_time_and_each_has_its_own_height() -> None:
    high = row("high", (0, 1_000), (50, 0), (100, 500))
    found = sparklines((high, row("low", (50, 2), None, (100, 1)), row("none")))
    assert set(found) == {"high", "low"}
    assert (found["high"].first, found["high"].most, found["high"].last) == (1_000, 1_000, 500)

    def spots(path: str) -> list[tuple[str, float, float]]:
        return [(how, float(x), float(y)) for how, x, y in re.findall(r"([ML])([\d.]+),([\d.]+)", path)]

    (_, first_x, top), (_, middle_x, bottom), (_, last_x, middle) = spots(found["high"].path)
    assert (first_x + last_x, middle_x) == (WIDTH, WIDTH / 2)
    assert (top + bottom, middle) == (HEIGHT, HEIGHT / 2)
    assert spots(found["low"].path) == [("M", middle_x, top), ("M", last_x, middle)], "a gap is no line"
    assert found["low"].path.count("h0") == 2, "a point alone is a dot"
    flat = sparklines((row("flat", (7, 0)),))["flat"]
    assert spots(flat.path) == [("M", first_x, bottom)]


def test_topics_show_their_lag_over_time_in_words_too(desk: Desk) -> None:
    lags = (lag("orders", 0, 30, 9.0), lag("x", 0, None))
    desk.watcher.see(FlowPoll(view=UNREAD, lags=lags, troubles={}))
    now = desk.watcher.last.lag_ms
    earlier = ((now - back, (lag("orders", 0, records, 9.0), lags[1])) for back, records in ((9, 1_200), (5, 5_000)))
    columns = tuple(column_of(at_ms, by_topic(then)) for at_ms, then in earlier)
    desk.watcher.amend(columns=(*columns, *desk.watcher.last.columns))
    for path, name in (("topics", "topic"), ("", "worst")):
        page = desk.page(f"{HERE}/{path}")
        its, other = (page[page.index(f'<tr id="{name}:{topic}"') :].partition("</tr>")[0] for topic in ("orders", "x"))
        drawn = re.findall(r'<svg class="spark" [^>]*role="img"><title>([^<]*)</title><path d="M[^"]*"/></svg>', its)
        assert [re.findall(r"[\d\u202f]+ (?:records|at most|last)", text) for text in drawn] == [
            ["1\u202f200 records", "5\u202f000 at most", "30 last"]
        ]
        assert "<svg" not in other
        assert "not measured yet" in other
