"""A clock that skips what an event loop would wait for, so that timeouts take no time."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from kafka.net.selector import NetworkSelector

from ferry.net.connect.transport import Selector


class Clock:
    """`time.monotonic`, ahead by what was skipped (seconds)."""

    def __init__(self) -> None:
        self.skipped = 0.0
        self._real = time.monotonic

    def now(self) -> float:
        """Seconds, as `time.monotonic`."""
        return self._real() + self.skipped

    @contextmanager
    def in_force(self) -> Iterator[None]:
        """`time.monotonic` is this clock."""
        with patch.object(time, "monotonic", self.now):
            yield

    def loop(self) -> NetworkSelector:
        """kafka-python's event loop, which skips the time until its next timer where no socket has anything."""
        return NetworkSelector(slow_task_threshold_secs=0, selector=lambda: _Skipping(self))


class _Skipping(Selector):
    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock

    def select(self, timeout: float | None = None) -> list[tuple[object, int]]:  # type: ignore[override]
        found = super().select(0)
        if not found:
            assert timeout is not None, "the loop waits, and nothing is scheduled"
            self._clock.skipped += max(0.0, timeout)
        return found  # type: ignore[return-value]
