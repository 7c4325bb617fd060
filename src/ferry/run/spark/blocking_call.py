"""A blocking call on a thread of its own, so that a signal can end the wait for it.

Each thread has its own connection to the JVM. A signal handler that raises during a call leaves the thread's connection
waiting for the answer. The next call on it waits, too, even the one that would cancel the job.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Call(Generic[T]):
    """`work` running on a daemon thread from now on."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._results: list[T] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="ferry-call", daemon=True)
        self._thread.start()

    def is_over(self, wait_s: float | None) -> bool:
        """Wait for so many seconds at most, and return whether `work` has ended; None waits until then."""
        self._thread.join(wait_s)
        return not self._thread.is_alive()

    def result(self) -> T:
        """Wait for what `work` returns or raises; a signal handler's exception ends the wait, not the work."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._results[0]

    def _run(self) -> None:
        try:
            self._results.append(self._work())
        except BaseException as error:  # `result` raises it again
            self._error = error
