"""What sensors wait for: a lane that is caught up to a time, and a lag below limits; what is not known is neither."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ferry.model import TopicPartition
from ferry.plan.rules.lag import LagLook, PartitionLag, awaited, is_below, is_caught_up
from tests.pure.decide.values import place

T0, T1 = place("t", 0), place("t", 1)


def lag(
    source: TopicPartition, position: int | None, *, records: int | None = 0, seconds: float | None = 0.0
) -> PartitionLag:
    return PartitionLag(
        source=source,
        target=place("a.t", source.partition),
        position=position,
        source_end=None if records is None or position is None else position + records,
        records=records,
        bytes=records,
        seconds=seconds,
    )


@pytest.mark.parametrize(
    ("position", "end", "waits"),
    [(9, 10, True), (10, 10, False), (11, 10, False), (None, 10, True), (9, None, True), (0, 0, False)],
    ids=["before it", "at it", "after it", "position not known", "end not known", "empty"],
)
def test_a_partition_is_awaited_until_its_position_is_at_its_end(
    position: int | None, end: int | None, waits: bool
) -> None:
    ends = {T1: 5} if end is None else {T0: end, T1: 5}
    look = LagLook(lags=[lag(T0, position), lag(T1, 5)], ends=ends)
    assert [(one.source, one.position, one.end) for one in awaited(look)] == [(T0, position, end)] * waits
    assert is_caught_up(look) is not waits


CAUGHT_UP = LagLook(lags=[lag(T0, 5)], ends={T0: 5})


@pytest.mark.parametrize(
    "look",
    [
        replace(CAUGHT_UP, begun=False),
        replace(CAUGHT_UP, hidden=frozenset({"u"})),
        LagLook(lags=[]),
        LagLook(lags=[lag(T0, 5), lag(T1, 5, records=None, seconds=None)], ends={T0: 5}),
    ],
    ids=["no run yet", "a topic is not shown", "nothing there", "a partition without a leader"],
)
def test_what_is_not_known_is_neither_caught_up_nor_below_a_limit(look: LagLook) -> None:
    assert is_caught_up(CAUGHT_UP)
    assert is_below(CAUGHT_UP, records=1, seconds=1)
    assert not is_caught_up(look)
    assert not is_below(look, records=1_000_000, seconds=None)
    assert not is_below(look, records=None, seconds=1_000_000)


@pytest.mark.parametrize(
    ("records", "seconds", "below"),
    [(30, None, False), (31, None, True), (None, 60, False), (None, 61, True), (31, 60, False), (30, 61, False)],
)
def test_a_lag_is_below_every_limit_that_is_given(records: int | None, seconds: float | None, below: bool) -> None:
    look = LagLook(lags=[lag(T0, 0, records=10, seconds=60), lag(T1, 0, records=20, seconds=3)])
    assert is_below(look, records=records, seconds=seconds) is below


def test_an_age_that_is_not_known_counts_only_where_the_age_is_asked_for() -> None:
    look = LagLook(lags=[lag(T0, 0, records=10, seconds=None)])
    assert is_below(look, records=11, seconds=None)
    assert not is_below(look, records=11, seconds=1_000_000)
