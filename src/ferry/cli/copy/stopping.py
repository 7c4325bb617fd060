"""Ctrl-C and SIGTERM while a run copies: the first asks to stop, the second stops."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def stop_signals() -> Iterator[Callable[[], bool]]:
    """A function that tells whether the user asked to stop; a second signal raises KeyboardInterrupt."""
    asked = False

    def handle(number: int, _: FrameType | None) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True
        # Raw, for a handler may interrupt a print.
        sys.stderr.write(f"ferry: {signal.Signals(number).name}: ending the open chunks, a second one stops at once\n")

    before = {number: signal.signal(number, handle) for number in _SIGNALS}
    try:
        yield lambda: asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """SIGTERM ends what is done as Ctrl-C does, by KeyboardInterrupt."""

    def handle(number: int, _: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
