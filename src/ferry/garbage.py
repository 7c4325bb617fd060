"""Python's collector of reference cycles, paused while objects are made that stay alive."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_blocks: list[bool] = []
"""For each block that is under way, whether the collector was on when the first of them began."""


@contextmanager
def left_uncollected() -> Iterator[None]:
    """Leave garbage in cycles uncollected while the block makes hundreds of thousands of objects that live to its end.

    The collector would check all of them again and again. It took up to two fifths of a pass over many groups, and no
    other thread of the process runs meanwhile. Objects without a cycle, which are nearly all, are freed at once. The
    rest is freed after the block, or after the last one where several threads have one.
    """
    with _lock:
        _blocks.append(_blocks[0] if _blocks else gc.isenabled())
        gc.disable()
    try:
        yield
    finally:
        with _lock:
            was = _blocks.pop()
            if was and not _blocks:
                gc.enable()
