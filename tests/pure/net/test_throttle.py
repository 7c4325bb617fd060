"""Fetches that are held back, by a clock that the tests turn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.net.selector import NetworkSelector

from ferry.kafka.connect.cluster import event_loop
from ferry.kafka.fetch.throttle import LONGEST_PORTION_SECONDS, PORTION_SECONDS, SMALL_PORTION, Bucket, Throttle
from ferry.ledger.throttle import share

WHOLE = 1 << 40


@dataclass
class Clock:
    """Seconds, as far as the test has turned them."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Task:
    """One slot being copied: fetches its portion whenever it may."""

    clock: Clock
    left: int
    rate: float
    bucket: Bucket = field(init=False)

    def __post_init__(self) -> None:
        self.bucket = Bucket(self.rate, self.clock)

    def work(self, answer: int | None = None) -> int:
        """Fetch once if that is allowed; the bytes that came, which may be more than was asked for."""
        size = min(self.left, self.bucket.portion(WHOLE))
        if not size or self.bucket.pause(size):
            return 0
        came = size if answer is None else min(self.left, answer)
        self.bucket.take(came)
        self.left -= came
        return came


def copied(slots: list[int], at_once: int, rate: int, *, hears_after: float) -> tuple[float, float]:
    """How long a run of slots of so many bytes takes, and the most bytes by which it was ever ahead of its rate.

    As many tasks as may be at work take one slot after the other, and hear of each other's ends late.
    """
    clock, waiting = Clock(), list(slots)
    ends: list[float] = []
    total, ahead, tasks = 0, 0.0, [Task(clock, 0, 1.0) for _ in range(at_once)]
    while waiting or any(task.left for task in tasks):
        heard = sum(1 for end in ends if end <= clock.now - hears_after)
        part = share(rate, at_once, len(slots) - heard)
        for index, task in enumerate(tasks):
            if not task.left and waiting:
                tasks[index] = Task(clock, waiting.pop(0), part)
            elif task.left:
                task.bucket.change(part)
                total += task.work()
                if not task.left:
                    ends.append(clock.now)
        ahead = max(ahead, total - rate * clock.now)
        clock.now += 0.02
    return clock.now, ahead


@given(
    slots=st.lists(st.integers(1, 400_000), min_size=1, max_size=6),
    at_once=st.integers(1, 4),
    rate=st.integers(20_000, 400_000),
    hears_after=st.floats(0, 3),
)
def test_all_tasks_together_are_never_ahead_of_the_rate(
    slots: list[int], at_once: int, rate: int, hears_after: float
) -> None:
    _, ahead = copied(slots, min(at_once, len(slots)), rate, hears_after=hears_after)
    assert ahead <= 1e-3


@pytest.mark.parametrize(
    ("slots", "at_once"),
    [
        ([20_000_000], 1),
        ([10_000_000, 10_000_000], 2),
        ([18_000_000, 2_000_000], 2),  # one ends early
        ([4_000_000] * 5, 2),  # fewer cores than tasks, and an odd one at the end
        ([1_000_000] * 19 + [5_000_000], 4),
    ],
)
def test_a_run_of_some_seconds_keeps_within_a_tenth_of_the_rate(slots: list[int], at_once: int) -> None:
    seconds, _ = copied(slots, at_once, 1_000_000, hears_after=1.0)
    assert sum(slots) / 1_000_000 <= seconds <= 1.1 * sum(slots) / 1_000_000


def test_a_batch_larger_than_the_rate_is_waited_for_afterwards() -> None:
    clock = Clock()
    task = Task(clock, 10_000_000, 200_000)
    fetched_at: list[float] = []
    while len(fetched_at) < 3:
        if task.work(answer=1_000_000):
            fetched_at.append(clock.now)
        clock.now += 0.01
    assert [later - sooner for sooner, later in pairwise(fetched_at)] == pytest.approx([5.0, 5.0], abs=0.02)


def test_what_was_not_used_is_kept_for_a_second() -> None:
    clock = Clock()
    bucket = Bucket(1_000_000, clock)
    clock.now = 60.0
    assert bucket.pause(1_000_000) == 0
    bucket.take(1_000_000)
    assert bucket.pause(500_000) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("rate", "portion"),
    [
        (8_000_000, 8_000_000 * PORTION_SECONDS),
        (200_000, SMALL_PORTION),
        (1_024, 1_024 * LONGEST_PORTION_SECONDS),
        (0.3, 1),
    ],
)
def test_a_portion_is_small_in_time_but_not_below_some_batches(rate: float, portion: float) -> None:
    assert Bucket(rate, Clock()).portion(WHOLE) == portion
    assert Bucket(rate, Clock()).portion(1) == 1


@pytest.fixture
def loop() -> Iterator[NetworkSelector]:
    """An event loop of a test's own."""
    made = event_loop()
    yield made
    made.close()


def test_fetches_are_admitted_in_turn_and_the_waiting_is_counted(loop: NetworkSelector) -> None:
    throttle = Throttle(loop, 1_000_000)
    order: list[tuple[int, int]] = []

    async def fetch(number: int, wanted: bool) -> None:
        order.append((number, await throttle.admit(20_000, lambda: wanted)))

    async def work() -> None:
        for future in [loop.call_soon_with_future(fetch, number, number != 1) for number in range(3)]:
            await future

    loop.run(work)
    assert order == [(0, 20_000), (1, 0), (2, 20_000)], "who does not want any more keeps nobody waiting"
    assert throttle.waited_s > 0.02


def test_what_did_not_come_is_given_back(loop: NetworkSelector) -> None:
    clock = Clock()
    throttle = Throttle(loop, 1_000, clock)
    clock.now = 1.0

    async def work() -> int:
        admitted = await throttle.admit(1_000, lambda: True)
        throttle.settle(admitted, 400)
        return await throttle.admit(600, lambda: True)

    assert loop.run(work) == 600
    assert throttle.waited_s == 0
