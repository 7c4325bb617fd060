"""The wall clock, in the unit in which Kafka keeps times."""

from __future__ import annotations

import time


def wall_ms() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def skew(sent_ms: int, stamped_ms: int, answered_ms: int) -> int:
    """By how many ms this clock is at least ahead of a broker's (negative: behind).

    The broker stamped the record (LogAppendTime) at some moment between the request and its answer, both by this
    clock; so 0 is all that can be said when the stamp lies between them.
    """
    return min(0, answered_ms - stamped_ms) or max(0, sent_ms - stamped_ms)
