"""Conditions that narrow what is read, against what they mean record by record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.features.records.rules.filters import Condition, Operator, narrowed
from ferry.model import TopicPartition

TOPICS = ("", "a", "ab", "abc", "b")
NUMBERS = st.integers(-3, 12)
MEANING: Mapping[Operator, Callable[[Any, Any], bool]] = {
    Operator.EQUAL: lambda found, value: found == value,
    Operator.LESS: lambda found, value: found < value,
    Operator.AT_MOST: lambda found, value: found <= value,
    Operator.MORE: lambda found, value: found > value,
    Operator.AT_LEAST: lambda found, value: found >= value,
    Operator.ONE_OF: lambda found, value: found in value,
    Operator.BEGINS_WITH: lambda found, value: found.startswith(value),
    Operator.IS_THERE: lambda found, value: True,
}
ORDERED = [Operator.EQUAL, Operator.LESS, Operator.AT_MOST, Operator.MORE, Operator.AT_LEAST]

CONDITIONS = st.one_of(
    st.builds(
        Condition, st.sampled_from(["partition", "offset", "timestamp"]), st.sampled_from(ORDERED), NUMBERS
    ),
    st.builds(
        Condition,
        st.sampled_from(["partition", "offset", "timestamp"]),
        st.just(Operator.ONE_OF),
        st.lists(NUMBERS, max_size=3).map(tuple),
    ),
    st.builds(
        Condition,
        st.just("topic"),
        st.sampled_from([Operator.EQUAL, Operator.BEGINS_WITH]),
        st.sampled_from(TOPICS),
    ),
    st.builds(
        Condition, st.just("topic"), st.just(Operator.ONE_OF), st.lists(st.sampled_from(TOPICS), max_size=3).map(tuple)
    ),
)  # fmt: skip
RECORDS: list[dict[str, Any]] = [
    {"topic": topic, "partition": partition, "offset": offset, "timestamp": (offset * 7) % 11 - 1}
    for topic in TOPICS
    for partition in range(3)
    for offset in range(10)
]
RANGES = {TopicPartition(topic, partition): (0, 10) for topic in TOPICS for partition in range(3)}


@given(conditions=st.lists(CONDITIONS, max_size=5))
def test_just_the_records_for_which_all_conditions_hold_are_read(conditions: list[Condition]) -> None:
    where, rest = narrowed(conditions)
    assert not rest
    wanted = [
        one for one in RECORDS if all(MEANING[c.operator](one[c.column], c.value) for c in conditions)
    ]  # fmt: skip
    ranges = where.cut(RANGES)
    found = [
        one
        for one in RECORDS
        if (place := TopicPartition(one["topic"], one["partition"])) in ranges
        and ranges[place][0] <= one["offset"] < ranges[place][1]
        and where.admits(one["topic"], one["partition"], one["offset"], one["timestamp"])
    ]
    assert found == wanted
    assert all(start < end for start, end in ranges.values())


@given(conditions=st.lists(CONDITIONS, max_size=4), more=st.lists(CONDITIONS, max_size=4))
def test_conditions_may_come_in_parts(conditions: list[Condition], more: list[Condition]) -> None:
    assert narrowed(more, narrowed(conditions)[0])[0].cut(RANGES) == narrowed([*conditions, *more])[0].cut(RANGES)


@pytest.mark.parametrize(
    "condition",
    [
        Condition("value", Operator.EQUAL, b"x"),
        Condition("timestampType", Operator.EQUAL, 1),
        Condition("key", Operator.IS_THERE, None),
        Condition("offset", Operator.EQUAL, 1.5),
        Condition("offset", Operator.EQUAL, None),
        Condition("offset", Operator.EQUAL, True),
        Condition("offset", Operator.ONE_OF, (1, None)),
        Condition("topic", Operator.LESS, "b"),
        Condition("topic", Operator.ONE_OF, ("a", None)),
        Condition("topic", Operator.EQUAL, None),
    ],
)
def test_what_is_not_understood_is_left_to_spark(condition: Condition) -> None:
    where, rest = narrowed([condition])
    assert list(rest) == [condition]
    assert where.cut(RANGES) == RANGES


def test_what_is_always_true_narrows_nothing() -> None:
    where, rest = narrowed([Condition("offset", Operator.IS_THERE, None)])
    assert (where.cut(RANGES), list(rest)) == (RANGES, [])


def test_ranges_that_are_narrowed_to_nothing_are_not_read() -> None:
    where, _ = narrowed([Condition("partition", Operator.EQUAL, 1), Condition("offset", Operator.AT_LEAST, 7)])
    assert where.cut(RANGES) == {TopicPartition(topic, 1): (7, 10) for topic in TOPICS}
    assert narrowed([Condition("offset", Operator.MORE, 9)])[0].cut(RANGES) == {}
