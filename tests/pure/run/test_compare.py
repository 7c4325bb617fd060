"""Which ranges are read together."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ferry.features.verify.acts.compare import SMALL_RECORDS, TOGETHER, groups
from ferry.features.verify.rules.compare_ranges import CompareRange
from ferry.model import Segment, TopicPartition

sizes = st.lists(st.tuples(st.integers(0, 9), st.sampled_from([0, 1, SMALL_RECORDS, SMALL_RECORDS + 1])), max_size=40)


def span(partition: int, records: int, at: int) -> CompareRange:
    segment = Segment(source_start=at, target_start=at, count=records)
    return CompareRange(
        source=TopicPartition("t", partition),
        target=TopicPartition("a.t", partition),
        source_range=(at, at + records),
        target_range=(at, at + records),
        segments=(segment,) if records else (),
        covered_until=0,
    )


@given(sizes)
def test_small_stretches_of_different_partitions_go_together_and_large_ones_alone(found: list[tuple[int, int]]) -> None:
    every = [span(partition, records, 10_000 * index) for index, (partition, records) in enumerate(found)]
    made = list(groups(every))
    assert sorted((one for group in made for one in group), key=lambda one: one.source_range) == every
    for group in made:
        assert len({one.source for one in group}) == len(group), "a reader reads a partition once"
        assert len(group) == 1 or all(one.records <= SMALL_RECORDS for one in group)
        assert len(group) <= TOGETHER
