"""The first record that fails is found, in few tries; one that fails no more is not made up."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ferry.features.records.rules.locating import Ranges, located
from ferry.model import Range, TopicPartition

RANGES = st.dictionaries(
    st.builds(TopicPartition, st.sampled_from("ab"), st.integers(0, 3)),
    st.tuples(st.integers(0, 50), st.integers(1, 40)).map(lambda pair: (pair[0], sum(pair))),
    min_size=1,
)


@given(RANGES, st.data())
def test_the_first_failing_offset_of_a_partition_is_found(
    ranges: dict[TopicPartition, Range], data: st.DataObject
) -> None:
    offsets = [(place, at) for place, (start, end) in ranges.items() for at in range(start, end)]
    bad = data.draw(st.sets(st.sampled_from(offsets), min_size=1, max_size=4))
    tries = 0

    def fails(some: Ranges) -> bool:
        nonlocal tries
        tries += 1
        return any(place in some and some[place][0] <= at < some[place][1] for place, at in bad)

    found = located(ranges, fails, lambda: True)
    assert found is not None
    ((place, (start, end)),) = found.items()
    assert (place, start) == (place, min(at for where, at in bad if where == place))
    assert end == start + 1
    assert tries <= len(offsets).bit_length() + len(ranges).bit_length() + 2


@given(RANGES)
def test_what_fails_no_more_has_no_place(ranges: dict[TopicPartition, Range]) -> None:
    assert located(ranges, lambda _: False, lambda: True) is None


@given(RANGES)
def test_without_time_all_that_may_be_it_is_named(ranges: dict[TopicPartition, Range]) -> None:
    assert located(ranges, lambda _: True, lambda: False) == ranges
