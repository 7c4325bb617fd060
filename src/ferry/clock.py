"""The wall clock, in the unit of Kafka's timestamps."""

from __future__ import annotations

import time


def wall_ms() -> int:
    """Return the milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def boot_ms() -> int:
    """Return the milliseconds since this machine started, with the time for which it slept (CLOCK_BOOTTIME)."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000


def skew(sent_ms: int, stamped_ms: int, answered_ms: int) -> int:
    """Return by how many ms this clock is at least ahead of a broker's; negative when the broker's is ahead.

    The broker stamped the record (LogAppendTime) at some moment between the request and its answer, both by this clock.
    So the answer is 0 when the stamp is between them.
    """
    return min(0, answered_ms - stamped_ms) or max(0, sent_ms - stamped_ms)
