"""Which offsets a window is: cases, and any history of appends and windows of one partition."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.errors import BadInput, Refused
from ferry.model import (
    LaneKind,
    OffsetWindow,
    TimeWindow,
    TopicWindows,
    Window,
    WindowRecord,
    check_lane,
    lane_kind,
    scratch_lane,
    scratch_topic,
)
from ferry.plan.rules.facts import Facts
from ferry.plan.rules.progress import next_offset
from ferry.plan.rules.windows import (
    Listed,
    WindowPart,
    check_window,
    narrowed,
    new_records,
    unserved,
    window_parts,
)
from tests.golden import Golden
from tests.pure.decide.values import FACTS, RECEIPT, facts_with, part, place, topic

LANE = "backfill-x"
ORDERS = frozenset({"orders"})


@dataclass
class Lane:
    """One partition: the times of its records, and what a lane has made of it."""

    log: list[int] = field(default_factory=list)
    copied: list[tuple[int, int]] = field(default_factory=list)
    recorded: list[WindowRecord] = field(default_factory=list)
    log_start: int = 0
    name: str = LANE

    @property
    def facts(self) -> Facts:
        found = topic("orders", part(log_start=self.log_start, end=len(self.log)))
        last = replace(RECEIPT, lane=self.name, source=place("orders"), end=self.copied[-1][1] if self.copied else 0)
        receipts = {last.target: last} if self.copied else {}
        return facts_with(
            FACTS,
            now_ms=1_000_000,
            source={"topics": {"orders": found}},
            lane={"receipts": receipts, "first_run": not receipts},
        )

    def _first(self, at_ms: int) -> int:
        kept = range(self.log_start, len(self.log))
        return next((offset for offset in kept if self.log[offset] >= at_ms), -1)

    def part(self, window: Window) -> WindowPart:
        listed = {}
        own = window.of("orders")
        if isinstance(own, TimeWindow):
            oldest = self.log[self.log_start] if self.log_start < len(self.log) else None
            start, end = self._first(own.from_ms), self._first(own.to_ms)
            listed[place("orders")] = Listed(start=start, end=end, oldest_ms=oldest)
        (found,) = window_parts(self.name, self.facts, window, ORDERS, listed, self.recorded)
        return found

    def run(self, window: Window, most: int = 1_000) -> tuple[int, int]:
        """Copy (at most so much) of a window as a plan of it would; the offsets."""
        found = self.part(window)
        facts = narrowed(self.facts, ORDERS, [found])
        narrow = facts.source.topics["orders"].partitions[0]
        start = next_offset(facts, place("orders"), narrow, next(iter(facts.lane.receipts.values()), None))
        end = min(max(start, narrow.end), start + most)
        for record in new_records(self.name, self.facts, window, [found], self.recorded, "r"):
            self.recorded = [one for one in self.recorded if one.window != record.window] + [record]
        if end > start:
            self.copied.append((start, end))
        return start, end


def hours(start: int, end: int, **more: bool) -> TimeWindow:
    return TimeWindow(from_ms=start * 10, to_ms=end * 10, **more)


def test_a_late_record_goes_with_the_window_that_touches() -> None:
    lane = Lane(log=[1, 2])
    assert lane.run(hours(0, 1)) == (0, 2)
    lane.log += [3, 11]  # the time 3 belongs to the window that was copied
    assert lane.run(hours(1, 2)) == (2, 4)


def test_a_window_takes_what_a_budget_left_of_the_one_before() -> None:
    lane = Lane(log=[1, 2, 3, 11])
    assert lane.run(hours(0, 1), most=1) == (0, 1)
    assert lane.run(hours(1, 2)) == (1, 4)
    assert lane.part(hours(0, 1)).left == 0


def test_an_unfinished_window_that_does_not_touch_is_to_be_finished_first(golden: Golden) -> None:
    lane = Lane(log=[1, 2, 3, 11, 21])
    lane.run(hours(0, 1), most=1)
    with pytest.raises(Refused) as caught:
        lane.run(hours(2, 3))
    golden(caught.value)
    assert lane.run(hours(0, 1)) == (1, 3)
    assert lane.run(hours(2, 3)) == (4, 5)


@pytest.mark.parametrize(
    "window",
    [
        pytest.param(OffsetWindow(ranges={place("orders"): (1, 3)}), id="by offsets"),
        pytest.param(hours(0, 2), id="by time"),
    ],
)
def test_a_window_before_the_log_start_is_refused(window: Window, golden: Golden) -> None:
    lane = Lane(log=[1, 11, 12, 13], log_start=2)
    with pytest.raises(Refused) as caught:
        lane.run(window)
    golden(caught.value)


def test_what_is_left_before_the_log_start_may_be_taken() -> None:
    assert Lane(log=[1, 11, 12, 13], log_start=2).run(hours(0, 2, allow_deleted=True)) == (2, 4)


def test_a_window_that_begins_at_the_oldest_record_is_whole() -> None:
    assert Lane(log=[1, 10, 12, 13], log_start=1).run(hours(1, 2)) == (1, 4)


def test_a_window_of_a_topic_is_the_same_whoever_names_the_topic() -> None:
    lane = Lane(log=[1, 2, 11])
    assert lane.run(TopicWindows(windows={"orders": hours(0, 1), "other": hours(1, 3)})) == (0, 2)
    assert lane.part(hours(0, 1)).left == 0
    assert lane.run(hours(1, 2)) == (2, 3)


def test_live_takes_no_history_behind_its_own_records(golden: Golden) -> None:
    lane = Lane(log=[1, 2, 11], name="live")
    assert lane.run(hours(0, 1)) == (0, 2)
    assert lane.run(hours(0, 1)) == (2, 2)
    with pytest.raises(Refused) as caught:
        lane.run(hours(1, 2))
    golden(caught.value)


@pytest.mark.parametrize(
    "window",
    [
        pytest.param(hours(0, 200_000), id="in the future"),
        pytest.param(
            TopicWindows(windows={"a": hours(0, 1), "b": hours(0, 200_000)}),
            id="one topic in the future",
        ),
        pytest.param(OffsetWindow(ranges={place("orders", 7): (0, 1)}), id="no such partition"),
        pytest.param(OffsetWindow(ranges={place("orders"): (0, 4)}), id="beyond the end"),
    ],
)
def test_a_window_of_what_is_not_there_is_bad_input(window: Window, golden: Golden) -> None:
    with pytest.raises(BadInput) as caught:
        check_window(Lane(log=[1, 2, 3]).facts, window, ORDERS)
    golden(caught.value)


def test_a_reversed_window_is_bad_input(golden: Golden) -> None:
    with pytest.raises(BadInput) as wrong:
        hours(2, 1)
    golden(wrong.value, "hours")
    with pytest.raises(BadInput) as wrong:
        OffsetWindow(ranges={place("orders"): (3, 3)})
    golden(wrong.value, "offsets")
    with pytest.raises(BadInput) as wrong:
        OffsetWindow(ranges={})
    golden(wrong.value, "no partition")


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(0, 60)),
        st.tuples(st.just("window"), st.tuples(st.integers(0, 5), st.integers(1, 3), st.integers(1, 5))),
    ),
    max_size=40,
)


@given(STEPS)
def test_any_windows_copy_each_offset_once_in_order_and_touching_ones_leave_nothing_between(
    steps: list[tuple[str, object]],
) -> None:
    lane = Lane()
    for what, given_with in steps:
        if what == "append":
            assert isinstance(given_with, int)
            lane.log.append(given_with)
            continue
        assert isinstance(given_with, tuple)
        hour, width, most = given_with
        window = hours(hour, hour + width)
        before = lane.copied[-1][1] if lane.copied else None
        touching = [one.ranges[0] for one in lane.recorded if one.to_ms == window.from_ms and one.window != window.id]
        known = any(one.window == window.id for one in lane.recorded)
        try:
            start, _ = lane.run(window, most)
        except Refused:
            assert (lane.copied[-1][1] if lane.copied else None) == before
            continue
        if before is not None:
            assert start >= before  # in order, nothing twice
        if touching and not known:
            assert start <= max(part[1] for part in touching) or start == before
        if lane.part(window).left == 0:
            again = lane.run(window)
            assert again[0] == again[1]


@given(st.lists(st.integers(0, 29), max_size=30), st.lists(st.integers(0, 29), max_size=10))
def test_windows_one_after_the_other_copy_the_whole_range(log: list[int], late: list[int]) -> None:
    lane = Lane(log=list(log))
    for hour in range(3):
        lane.run(hours(hour, hour + 1))
        lane.log += late[hour * 3 : hour * 3 + 3]
    lane.run(hours(3, 4))
    offsets = [offset for start, end in lane.copied for offset in range(start, end)]
    assert offsets == list(range(len(offsets)))
    beyond = [offset for offset, at in enumerate(lane.log) if at < 30 and offset >= len(offsets)]
    assert not beyond  # every record of these hours, late or not, is copied


def test_what_nobody_can_tell_of_is_not_taken_for_copied() -> None:
    lane = Lane(log=[1, 2, 11])
    lane.run(hours(0, 1))
    away = facts_with(lane.facts, source={"topics": {"orders": topic("orders", leaderless=(0,))}})
    assert unserved(away, hours(0, 1), ORDERS, lane.recorded) == (), "the ledger shows that it is copied"
    assert unserved(away, hours(1, 2), ORDERS, lane.recorded) == ("orders-0",)
    assert unserved(away, OffsetWindow(ranges={place("orders", 1): (0, 1)}), ORDERS, []) == ()
    assert unserved(away, hours(0, 1), ORDERS | {"gone"}, lane.recorded) == ("gone",)


def test_lane_names(golden: Golden) -> None:
    assert lane_kind("backfill-january") is LaneKind.BACKFILL
    assert lane_kind("drill-2026_q1") is LaneKind.DRILL
    assert [lane_kind(name) for name in ("live", "backfill", "backfill-", "backfill-a.b", "drills-a")] == [None] * 5
    name = scratch_topic("primary.orders", "backfill-january")
    assert (name, scratch_lane(name)) == ("primary.orders.backfill.backfill-january", "backfill-january")
    assert scratch_topic("primary.orders", "live") == "primary.orders"
    assert [scratch_lane(name) for name in ("orders.backfill.daily", "orders.drill.backfill-x", "orders")] == [None] * 3
    assert lane_kind("append-a") is LaneKind.APPEND
    assert scratch_topic("primary.orders", "append-a") == "primary.orders"
    with pytest.raises(BadInput) as wrong:
        check_lane("january", LaneKind.BACKFILL)
    golden(wrong.value)
