"""Which offsets are read of each partition, and which task reads them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.config.flow.start import parse_start
from ferry.errors import BadInput, Refused
from ferry.features.records.rules.ranges import MOST_PIECES, Edges, ReadRange, distributed, settled
from ferry.model import Range, TopicPartition
from tests.golden import Golden, brief

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)
LOGS = {A0: Edges(10, 100), A1: Edges(0, 0)}


@pytest.mark.parametrize(
    ("begin", "end", "wanted"),
    [
        ("earliest", "latest", {A0: (10, 100), A1: (0, 0)}),
        ("latest", "latest", {A0: (100, 100), A1: (0, 0)}),
        ("a:0:20", "latest", {A0: (20, 100), A1: (0, 0)}),
        ("a:0:20", "a:0:30", {A0: (20, 30), A1: (0, 0)}),
        ("earliest", "a:0:10", {A0: (10, 10), A1: (0, 0)}),
        ("1000", "2000", {A0: (40, 60), A1: (0, 0)}),
        ("2000", "1000", {A0: (60, 60), A1: (0, 0)}),
    ],
)
def test_ranges(begin: str, end: str, wanted: dict[TopicPartition, Range]) -> None:
    at = {"1000": {A0: 40}, "2000": {A0: 60, A1: -1}}
    found = settled(
        LOGS, parse_start(begin), parse_start(end), first_at=at.get(begin, {}), end_at=at.get(end, {})
    )  # fmt: skip
    assert found == wanted


@pytest.mark.parametrize(
    ("begin", "end", "error"),
    [
        ("b:0:1", "latest", BadInput),
        ("earliest", "a:2:1", BadInput),
        ("a:0:9", "latest", Refused),
        ("earliest", "a:0:101", Refused),
        ("a:0:50", "a:0:20", BadInput),
    ],
    ids=brief,
)
def test_offsets_that_are_not_there_are_refused(begin: str, end: str, error: type[Exception], golden: Golden) -> None:
    with pytest.raises(error) as caught:
        settled(LOGS, parse_start(begin), parse_start(end), first_at={}, end_at={})
    golden(caught.value)


def test_a_log_that_was_cut_since_its_broker_told_a_time_is_read_from_its_start() -> None:
    found = settled(
        LOGS, parse_start("1000"), parse_start("latest"), first_at={A0: 3, A1: 500}, end_at={}
    )  # fmt: skip
    assert found == {A0: (10, 100), A1: (0, 0)}


RANGES = st.dictionaries(
    st.builds(TopicPartition, st.sampled_from("abc"), st.integers(0, 800)),
    st.tuples(st.integers(0, 1000), st.integers(0, 300)).map(lambda pair: (pair[0], pair[0] + pair[1])),
    max_size=40,
)


@given(ranges=RANGES, most=st.integers(1, 200))
def test_every_offset_is_read_once_in_tasks_of_bounded_size(ranges: dict[TopicPartition, Range], most: int) -> None:
    tasks = distributed(ranges, most)
    read = [(piece.place, offset) for task in tasks for piece in task for offset in range(piece.start, piece.end)]
    assert sorted(read) == sorted((place, at) for place, (start, end) in ranges.items() for at in range(start, end))
    for task in tasks:
        assert 0 < sum(piece.end - piece.start for piece in task) <= most
        assert all(piece.start < piece.end for piece in task)
        assert len({piece.place for piece in task}) == len(task) <= MOST_PIECES
    for place in ranges:
        mine = [piece for task in tasks for piece in task if piece.place == place]
        assert mine == sorted(mine)


def test_short_ranges_share_a_task_and_long_ones_are_cut() -> None:
    small = {TopicPartition("a", number): (0, 10) for number in range(1000)}
    assert [len(task) for task in distributed(small, 100_000)] == [500, 500]
    assert distributed({A0: (5, 30)}, 10) == [
        (ReadRange(A0, 5, 15),),
        (ReadRange(A0, 15, 25),),
        (ReadRange(A0, 25, 30),),
    ]
