"""A clock that skips what an event loop would wait for, so that timeouts take no time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from kafka.net.selector import NetworkSelector

from ferry.kafka.connect.manager import Selector

TICK = 1e-5
"""Seconds that pass with each look at the clock: less than any timeout, and a loop that only looks comes to its end."""


class Clock:
    """A `time.monotonic` that knows no real time, so that a busy machine changes nothing: seconds that were skipped."""

    def __init__(self, tick: float = TICK) -> None:
        self.skipped = 0.0
        self._tick = tick

    def now(self) -> float:
        """Seconds, as `time.monotonic`."""
        self.skipped += self._tick
        return self.skipped

    @contextmanager
    def in_force(self) -> Iterator[None]:
        """`time.monotonic` is this clock."""
        with patch.object(time, "monotonic", self.now):
            yield

    def loop(self) -> NetworkSelector:
        """kafka-python's event loop, which skips the time until its next timer where no socket has anything."""
        return NetworkSelector(slow_task_threshold_secs=0, selector=lambda: Skipping(self))


class Skipping(Selector):
    """The selector of such a loop."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock

    def select(self, timeout: float | None = None) -> list[tuple[object, int]]:  # type: ignore[override]
        if timeout == 0:  # tasks are ready; the only socket is that which wakes a loop that waits
            return []
        found = super().select(0)
        if not found:
            assert timeout is not None, "the loop waits, and nothing is scheduled"
            self._clock.skipped += max(0.0, timeout)
        return found  # type: ignore[return-value]
