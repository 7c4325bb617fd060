"""Records as librdkafka shows them: what is compared of them, and what is not."""

from __future__ import annotations

import confluent_kafka
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.features.verify.rules.by_records import RecordPair
from ferry.features.verify.rules.compare_ranges import CompareRange
from ferry.features.verify.rules.differences import SOURCE, TARGET
from ferry.features.verify.rules.received import (
    CREATE_TIME,
    LOG_APPEND_TIME,
    NO_TIME,
    Received,
    content_of,
    headers_bytes,
    shown_content,
)
from ferry.model import DifferenceKind, NotComparedKind, RecordContent, Segment, TopicPartition
from ferry.plan.rules.record_sample import record_samples
from ferry.wire.headers import parse_headers

SEE = record_samples(b"secret", values=False)
COUNT, AT = 1_200, 700
STRETCH = CompareRange(
    source=TopicPartition("t", 0),
    target=TopicPartition("a.t", 0),
    source_range=(0, COUNT),
    target_range=(5, COUNT + 5),
    segments=(Segment(source_start=0, target_start=5, count=COUNT),),
    covered_until=COUNT + 5,
)
Kind = DifferenceKind
Found = list[tuple[DifferenceKind, tuple[int, int], tuple[int, int]]]


def received(number: int, offset: int, **fields: object) -> Received:
    one = Received(offset, CREATE_TIME, 1_000 + number, b"k%d" % number, b"v%d" % number, [("h", b"x")])
    return one._replace(**fields)  # type: ignore[arg-type]


def row(side: int) -> list[Received]:
    return [received(number, number + (5 if side == TARGET else 0)) for number in range(COUNT)]


def compared(target: list[Received], *, span: CompareRange = STRETCH, most: int = 97) -> RecordPair:
    pair = RecordPair(span, SEE)
    rows = [content_of(one, SOURCE) for one in row(SOURCE)], [content_of(one, TARGET) for one in target]
    for start in range(0, max(map(len, rows)), most):
        for side, records in enumerate(rows):
            pair.take(side, records[start : start + most])
    pair.end(SOURCE)
    pair.end(TARGET)
    return pair


def found(pair: RecordPair) -> Found:
    return [(one.kind, one.source_range, one.target_range) for one in pair.comparison.differences]


def test_the_numbers_of_time_types_are_librdkafkas() -> None:
    theirs = confluent_kafka
    assert (NO_TIME, CREATE_TIME, LOG_APPEND_TIME) == (
        theirs.TIMESTAMP_NOT_AVAILABLE,
        theirs.TIMESTAMP_CREATE_TIME,
        theirs.TIMESTAMP_LOG_APPEND_TIME,
    )


@given(st.lists(st.tuples(st.text(), st.none() | st.binary(max_size=300)), max_size=80))
def test_headers_are_the_bytes_that_record_batches_have(headers: list[tuple[str, bytes | None]]) -> None:
    assert parse_headers(headers_bytes(headers)) == [(name.encode(), value) for name, value in headers]


def test_null_is_not_empty_in_keys_values_and_headers() -> None:
    one = received(0, 0, key=b"", value=b"", headers=[("h", b"")])
    others = [one._replace(key=None), one._replace(value=None), one._replace(headers=[("h", None)])]
    contents = {content_of(each, SOURCE)[1:] for each in [one, *others]}
    assert len(contents) == 4


@pytest.mark.parametrize(
    ("here", "there", "same"),
    [
        ((CREATE_TIME, 7), (CREATE_TIME, 7), True),
        ((CREATE_TIME, 7), (CREATE_TIME, 8), False),
        ((LOG_APPEND_TIME, 7), (CREATE_TIME, 7), True),
        ((CREATE_TIME, 7), (LOG_APPEND_TIME, 7), False),
        ((LOG_APPEND_TIME, 7), (LOG_APPEND_TIME, 7), False),
        ((NO_TIME, 0), (CREATE_TIME, -1), True),
        ((CREATE_TIME, 0), (CREATE_TIME, -1), False),
    ],
)
def test_times_are_compared_with_their_types(here: tuple[int, int], there: tuple[int, int], same: bool) -> None:
    source = content_of(received(0, 0, kind=here[0], timestamp=here[1]), SOURCE)
    target = content_of(received(0, 0, kind=there[0], timestamp=there[1]), TARGET)
    assert (source == target) is same
    assert shown_content(target).timestamp == there[1]


def test_equal_sides_are_equal() -> None:
    pair = compared(row(TARGET))
    assert (pair.is_done, pair.comparison.records, found(pair), pair.left) == (True, COUNT, [], [])


@pytest.mark.slow
def test_planted_differences_are_found_where_they_are() -> None:
    good, at = row(TARGET), AT
    altered: dict[str, tuple[dict[str, object], DifferenceKind]] = {
        "value": ({"value": b"other"}, Kind.VALUE),
        "key": ({"key": None}, Kind.KEY),
        "header": ({"headers": [("h", None)]}, Kind.HEADERS),
        "time": ({"timestamp": 1}, Kind.TIMESTAMP),
        "type": ({"kind": LOG_APPEND_TIME}, Kind.TIMESTAMP),
    }
    for change, kind in altered.values():
        bad = [*good[:at], good[at]._replace(**change), *good[at + 1 :]]  # type: ignore[arg-type]
        assert found(compared(bad)) == [(kind, (at, at + 1), (at + 5, at + 6))]
    assert found(compared([*good[:at], *good[at + 1 :]])) == [(Kind.MISSING, (at, at + 1), (at + 5, at + 5))]
    doubled = [*good[:at], *(one._replace(offset=one.offset + 1) for one in [good[at - 1], *good[at:-1]])]
    kinds = [kind for kind, _, _ in found(compared(doubled))]
    assert kinds[0] is Kind.EXTRA
    assert set(kinds[1:]) <= {Kind.DISPLACED, Kind.MISSING}


def test_a_record_that_a_client_returns_again_counts_once() -> None:
    pair = RecordPair(STRETCH, SEE)
    for side in (SOURCE, TARGET):
        rows = [content_of(one, side) for one in row(side)]
        for start in range(0, COUNT, 100):
            pair.take(side, rows[max(0, start - 30) : start + 100])
        pair.end(side)
    assert (pair.is_done, pair.comparison.records, found(pair)) == (True, COUNT, [])


def test_what_comes_beyond_a_range_ends_the_side_and_is_not_compared() -> None:
    pair = RecordPair(STRETCH, SEE)
    for side in (SOURCE, TARGET):
        pair.take(side, [content_of(one, side) for one in row(side)])
        last = COUNT + (5 if side == TARGET else 0)
        pair.take(side, [content_of(received(9, last), side), content_of(received(9, last + 1), side)])
        assert pair.is_over(side)
    assert (pair.is_done, pair.comparison.records, found(pair)) == (True, COUNT, [])


def test_the_rest_of_a_stretch_that_cannot_be_read_is_not_compared() -> None:
    pair = RecordPair(STRETCH, SEE)
    for side in (SOURCE, TARGET):
        pair.take(side, [content_of(one, side) for one in row(side)[:AT]])
    pair.give_up("a broker is away: look at it")
    (left,) = pair.left
    assert (pair.is_done, left.start, left.end, left.why) == (True, AT, COUNT, NotComparedKind.UNREADABLE)


def test_what_waits_is_counted_and_a_full_side_lacks_nothing() -> None:
    pair = RecordPair(STRETCH, SEE)
    assert (pair.lacks(SOURCE), pair.lacks(TARGET), pair.held_bytes(SOURCE)) == (True, True, 0)
    pair.take(SOURCE, [RecordContent(number, 0, None, b"x" * 1_000, b"\0") for number in range(COUNT)])
    assert (pair.lacks(SOURCE), pair.lacks(TARGET), pair.held_bytes(SOURCE)) == (False, True, COUNT * 1_001)
