"""Where a predecessor really stopped, by the end of its copy."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ferry.features.migrate.rules.seam import LOOKED_AT, Ends, Seam, SeamState, places_behind, seam
from ferry.model.content import ContentDigest


def content(offset: int, name: int, *, at: int | None = 0) -> ContentDigest:
    return ContentDigest(offset=offset, timestamp_ms=at, digest=str(name).encode(), leader_epoch=7)


def log(names: list[int], *, first: int = 0, step: int = 1) -> list[ContentDigest]:
    return [content(first + index * step, name) for index, name in enumerate(names)]


def met(source: list[ContentDigest], target: list[ContentDigest], position: int, *, empty: bool = False) -> Seam:
    return seam(Ends(source=source, target=target, source_whole=True, target_empty=empty), position)


def test_a_copy_that_ends_with_the_record_before_the_position_is_clean() -> None:
    source = log([1, 2, 3, 4, 5])
    assert met(source, log([1, 2, 3], first=90), 3) == Seam(
        state=SeamState.CLEAN, source_next=3, records=0, leader_epoch=7
    )


def test_markers_between_records_do_not_matter() -> None:
    source = log([1, 2, 3], step=2)  # at 0, 2, 4: a marker behind each
    assert met(source, log([1, 2], first=90, step=5), 4).state is SeamState.CLEAN
    assert met(source, log([1, 2], first=90), 3).state is SeamState.CLEAN


def test_a_copy_that_goes_on_behind_the_position_tells_how_many_would_be_doubled() -> None:
    found = met(log([1, 2, 3, 4, 5]), log([1, 2, 3, 4]), 2)
    assert (found.state, found.source_next, found.records) == (SeamState.AHEAD, 4, 2)


def test_a_copy_that_ends_before_the_position_lacks_records() -> None:
    found = met(log([1, 2, 3, 4, 5]), log([1, 2]), 4)
    assert (found.state, found.source_next, found.records) == (SeamState.BEHIND, 2, 2)
    found = met(log([1, 2, 3]), [], 2, empty=True)
    assert (found.state, found.source_next, found.records) == (SeamState.BEHIND, 0, 2)


def test_nothing_to_compare_is_not_known() -> None:
    assert met(log([1, 2]), [], 2).state is SeamState.UNKNOWN  # retention took the copy's records
    assert met(log([1, 2]), log([9]), 2).state is SeamState.UNKNOWN
    assert met([], log([9]), 2).state is SeamState.UNKNOWN


def test_records_that_are_all_alike_give_no_certain_place() -> None:
    found = met(log([1, 7, 7, 7, 7]), log([7]), 1)
    assert (found.state, found.source_next, found.records) == (SeamState.AHEAD, None, 4)


def test_records_alike_on_both_sides_of_the_position_may_be_doubled() -> None:
    found = met(log([1, 7, 7, 7, 8]), log([7]), 2)
    assert (found.state, found.source_next, found.records) == (SeamState.CLEAN, None, 2)


def test_the_longest_agreement_decides() -> None:
    assert places_behind(log([1, 2, 3, 1, 2]), log([3, 1, 2])) == [5]
    assert places_behind(log([1, 2, 3, 1, 2]), log([9, 1, 2])) == [2, 5]


def test_log_append_times_are_not_compared() -> None:
    assert content(0, 1, at=5).same_as(content(0, 1, at=None))
    assert not content(0, 1, at=5).same_as(content(0, 1, at=6))
    assert not content(0, 1).same_as(content(0, 2))


@given(
    names=st.lists(st.integers(0, 3), min_size=1, max_size=40),
    data=st.data(),
)
def test_no_answer_is_worse_than_the_truth(names: list[int], data: st.DataObject) -> None:
    """Whatever the records: `doubled` is at least what is doubled, a certain place is the true one."""
    source = log(names)
    position = data.draw(st.integers(1, len(names)))
    ends_at = data.draw(st.integers(position, len(names)))  # the copy holds so many: at-least-once
    found = met(source, log(names[:ends_at][-LOOKED_AT:], first=1_000), position)
    assert found.state in (SeamState.CLEAN, SeamState.AHEAD)
    assert found.records >= ends_at - position
    assert found.source_next in (None, ends_at)


@given(count=st.integers(1, 60), data=st.data())
def test_with_records_that_differ_the_place_is_always_found(count: int, data: st.DataObject) -> None:
    source = log(list(range(count)))
    position, ends_at = data.draw(st.integers(1, count)), data.draw(st.integers(1, count))
    found = met(source, log(list(range(ends_at)))[-LOOKED_AT:], position)
    assert found.source_next == ends_at
    assert found.records == abs(ends_at - position)
    state = {-1: SeamState.BEHIND, 0: SeamState.CLEAN, 1: SeamState.AHEAD}
    assert found.state is state[(ends_at > position) - (ends_at < position)]
