"""Long work of a thread that has to let requests go first: they have the same interpreter."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from ferry.garbage import left_uncollected

HAND_OVER_SECONDS = 0.0005
"""A tenth of Python's own: a request asks for the interpreter again after each of its many small waits (for a socket, a
lock, a row of Airflow's database), and has to wait so long each time that a computing thread has it."""

_lock = threading.Lock()
_before: list[float] = []
"""Of each block that is under way, the interval when the first of them began."""


@contextmanager
def behind_requests() -> Iterator[None]:
    """While the block computes, others get the interpreter soon, and no collection of garbage stops them.

    Where several threads have a block, the last one to end puts all back.
    """
    with _lock:
        _before.append(_before[0] if _before else sys.getswitchinterval())
        sys.setswitchinterval(min(HAND_OVER_SECONDS, _before[0]))
    try:
        with left_uncollected():
            yield
    finally:
        with _lock:
            was = _before.pop()
            if not _before:
                sys.setswitchinterval(was)


_settled = threading.Event()


def settle() -> None:
    """Once in this process: take what is there by now for what stays, so that no full collection goes through it again.

    An API server of Airflow has a million objects before it answers anything. A full collection goes through all of
    them, stops every request for as long, and comes each time that a few hundred thousand objects of a ledger have
    been replaced by newer ones.
    """
    if not _settled.is_set():
        _settled.set()
        gc.collect()
        gc.freeze()
