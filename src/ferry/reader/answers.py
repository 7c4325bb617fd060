"""Answers that a request does not wait for: the last answer is shown while a thread gets a newer one."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from ferry.clock import wall_ms
from ferry.reader.documents import Answer

WAIT_SECONDS = 0.2
"""How long a question waits for its answer; then the page, which waits a little longer, shows that it is on its way."""
BRIEF_SECONDS = 0.05
"""How long it waits if an older answer can be shown: the page fetches the newer one itself."""
MOST_WAITING = 4
"""How many questions wait at the same time, of all flows: each has a thread."""
KEPT_ANSWERS = 24
KEPT_SECONDS = 120.0
"""After this time an answer that is not asked for again is dropped: it may be a run of ten thousand receipts."""

_WAITING = threading.BoundedSemaphore(MOST_WAITING)

Key = tuple[Any, ...]
"""A question: its name, then its parameters."""
Ended = Callable[[Any, str], None]
"""Called with the outcome of a question: the answer, or a sentence of why there is none."""


class Answers:
    """The newest answers of one flow."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[Key, Answer] = {}

    def answer(
        self, key: Key, begin: Callable[[Ended], threading.Event], *, fresh_seconds: float, waits: bool = True
    ) -> Answer:
        """Return the last answer; if it is older than `fresh_seconds`, `begin` has a thread get a newer one.

        If it `waits`, that is for a moment, because most answers are there at once.
        """
        with self._lock:
            kept = self._kept.pop(key, None) or Answer()
            kept.asked_at = time.monotonic()
            self._kept[key] = kept  # the last one asked for is dropped last
            while len(self._kept) > KEPT_ANSWERS or self._oldest() < kept.asked_at - KEPT_SECONDS:
                self._kept.pop(next(iter(self._kept)))
            due = not kept.is_asked and wall_ms() - max(kept.at_ms, kept.failed_ms) > fresh_seconds * 1000
            kept.is_asked |= due
        if due:

            def ended(got: Any, error: str) -> None:
                now = wall_ms()
                if error:
                    kept.error, kept.failed_ms = error, now
                else:
                    kept.got, kept.at_ms, kept.error, kept.failed_ms = got, now, "", 0
                kept.is_asked = False

            done = begin(ended)
            if waits and _WAITING.acquire(blocking=False):
                try:
                    done.wait(WAIT_SECONDS if kept.waiting else BRIEF_SECONDS)
                finally:
                    _WAITING.release()
        return kept

    def _oldest(self) -> float:
        return next(iter(self._kept.values())).asked_at
