"""A thread that transcodes batches while the event loop fetches and sends others.

Codecs release Python's interpreter lock.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from typing import TypeVar

from kafka.net.selector import NetworkSelector

T = TypeVar("T")

THREAD = "ferry-transcode"
"""How the name of the thread begins."""


class TranscodePool:
    """One thread for all slots of the process: with more, those that read a batch's records would wait for each other.

    Source of the figures: `make bench ARGS="--scenario holes"`.
    """

    def __init__(self, loop: NetworkSelector) -> None:
        self._loop = loop

    def begin(self, work: Callable[[], T], done: Callable[[], None]) -> Future[T]:
        """Start `work`; `done` is called on the event loop afterwards, unless that is closed meanwhile."""

        def on_the_loop() -> None:  # the loop takes functions only, no other callables
            done()

        def tell(_: object) -> None:
            with suppress(RuntimeError):  # the loop is closed: no caller waits any more
                self._loop.call_soon_threadsafe(on_the_loop)

        future = _thread().submit(work)
        future.add_done_callback(tell)
        return future


def at_once(work: Callable[[], T]) -> Future[T]:
    """Return the outcome of work that is done in this thread, because it is too small for the other one."""
    future: Future[T] = Future()
    try:
        future.set_result(work())
    except Exception as error:  # the caller that asks for the result gets it, as from the thread
        future.set_exception(error)
    return future


@cache
def _thread() -> ThreadPoolExecutor:
    # Started with the first batch, in the process that needs it: Spark forks its workers.
    return ThreadPoolExecutor(max_workers=1, thread_name_prefix=THREAD)
