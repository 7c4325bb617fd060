"""Segments melt where nothing lies between them on either side, and nowhere else."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.model import Segment, joined


def segment(source: int, target: int, count: int) -> Segment:
    return Segment(source_start=source, target_start=target, count=count)


@st.composite
def runs(draw: st.DrawFn) -> list[Segment]:
    """Segments in order, with or without holes at either side."""
    source = target = 0
    found = []
    for _ in range(draw(st.integers(0, 8))):
        source, target = source + draw(st.integers(0, 1)), target + draw(st.integers(0, 1))
        found.append(segment(source, target, draw(st.integers(1, 4))))
        source, target = found[-1].source_end, found[-1].target_end
    return found


def pairs(segments: tuple[Segment, ...] | list[Segment]) -> list[tuple[int, int]]:
    """Source and target offset of every record."""
    return [(each.source_start + index, each.target_start + index) for each in segments for index in range(each.count)]


@given(runs())
def test_joining_moves_no_record(segments: list[Segment]) -> None:
    assert pairs(joined(segments)) == pairs(segments)


@given(runs())
def test_what_is_joined_has_a_hole_between_any_two(segments: list[Segment]) -> None:
    done = joined(segments)
    assert joined(done) == done
    for left, right in itertools.pairwise(done):
        assert (left.source_end, left.target_end) != (right.source_start, right.target_start)


@pytest.mark.parametrize(
    ("segments", "result"),
    [
        ([], ()),
        ([segment(0, 0, 2), segment(2, 2, 3)], (segment(0, 0, 5),)),
        ([segment(0, 0, 2), segment(3, 2, 1)], (segment(0, 0, 2), segment(3, 2, 1))),  # a marker at the source
        ([segment(0, 0, 2), segment(2, 3, 1)], (segment(0, 0, 2), segment(2, 3, 1))),  # a marker at the target
        ([segment(0, 9, 1), segment(1, 10, 1), segment(2, 11, 1)], (segment(0, 9, 3),)),
    ],
)
def test_joined(segments: list[Segment], result: tuple[Segment, ...]) -> None:
    assert joined(segments) == result
