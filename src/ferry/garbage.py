"""Python's collector of reference cycles, kept from looking through what is known to live on."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def left_uncollected() -> Iterator[None]:
    """Leave garbage in cycles uncollected while the block makes hundreds of thousands of objects that live to its end.

    The collector would go through all of them again and again: of a pass over many groups it took up to two fifths.
    What has no cycle, which is nearly all, goes at once as ever; the rest goes after the block.
    """
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
