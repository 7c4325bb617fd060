"""What of a run one Spark job takes: bounded, fair, and in the end all of it, each offset once."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from ferry.model import Slice
from ferry.plan.rules.portions import RECORD_BYTES, fits_one_portion, portion_of
from tests.pure.decide.values import piece

work = st.lists(
    st.builds(
        lambda start, length, size: (start, start + length, size),
        st.integers(0, 10**6),
        st.integers(1, 10**5),
        st.integers(0, 10**8),
    ),
    min_size=1,
    max_size=12,
)


def slices_of(given_: list[tuple[int, int, int]]) -> list[Slice]:
    return [
        replace(piece(partition=number, start=start, end=end), bytes_estimate=size)
        for number, (start, end, size) in enumerate(given_)
    ]


@given(work, st.integers(10**5, 10**8))
def test_portion_by_portion_each_offset_comes_once(given_: list[tuple[int, int, int]], most: int) -> None:
    slices = slices_of(given_)
    at = {one.source: one.start for one in slices}
    left = slices
    rounds = 0
    while left:
        portion = portion_of(left, at, most)
        assert portion.keys() == {one.source for one in left}, "a slice waits for others"
        cost = sum(
            (portion[one.source][1] - portion[one.source][0]) * (one.bytes_estimate // one.offsets + RECORD_BYTES)
            for one in left
        )
        slack = sum(one.bytes_estimate // one.offsets + RECORD_BYTES for one in left)
        assert cost <= most + slack
        for place, (start, end) in portion.items():
            assert start == at[place] < end
            at[place] = end
        left = [one for one in left if at[one.source] < one.end]
        rounds += 1
        assert rounds > 1 or not left or not fits_one_portion(slices, {one.source: one.start for one in slices}, most)
    assert at == {one.source: one.end for one in slices}


def test_what_is_done_has_no_part() -> None:
    one, other = slices_of([(0, 10, 100), (5, 25, 100)])
    assert portion_of([one, other], {one.source: 10, other.source: 7}, 10**6) == {other.source: (7, 25)}
