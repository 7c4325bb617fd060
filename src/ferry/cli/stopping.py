"""Ctrl-C and SIGTERM during a run: the first signal ends it in an orderly way, a second one stops it at once."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = (signal.SIGINT, signal.SIGTERM)

COPYING = frozenset({"run", "backfill"})
"""Commands that end in an orderly way on a signal."""

_Handler = Callable[[int, FrameType | None], object] | int | signal.Handlers | None


class Stopped(BaseException):
    """A run was asked to end where it can be broken off: before it is opened, or while Spark copies."""


class Stop:
    """Whether the user asked to end; calling it returns that."""

    def __init__(self) -> None:
        self.by = ""
        """The name of the signal that came first; empty: none came."""
        self._breaks = False
        self._before: dict[signal.Signals, _Handler] = {}

    def __call__(self) -> bool:
        """Return whether a signal came."""
        return bool(self.by)

    def take(self) -> None:
        """Receive both signals, also if another library has taken them meanwhile."""
        for number in _SIGNALS:
            before = signal.signal(number, self._handle)
            self._before.setdefault(number, before)

    def give_back(self) -> None:
        """Restore what the signals did before `take`."""
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before.clear()

    def check(self) -> None:
        """Raise Stopped when a signal came."""
        if self.by:
            raise Stopped(self.by)

    @contextmanager
    def breaking(self) -> Iterator[None]:
        """Raise Stopped in the block when the first signal comes, or at once if it has come."""
        self._breaks = True
        try:
            self.check()
            yield
        finally:
            self._breaks = False

    def _handle(self, number: int, _: FrameType | None) -> None:
        if self.by:
            raise KeyboardInterrupt
        self.by = signal.Signals(number).name
        # Written directly, because a handler may interrupt a print.
        sys.stderr.write(f"ferry: {self.by}: the run ends in order; a second signal stops it at once\n")
        if self._breaks:
            raise Stopped(self.by)


_held: list[Stop] = []


def hold_signals() -> None:
    """Remember signals from now on, until `stop_signals` asks for them or `release_signals` raises them again."""
    stop = Stop()
    stop.take()
    _held.append(stop)


def are_held() -> bool:
    """Return whether signals are remembered."""
    return bool(_held)


def release_signals() -> None:
    """Restore what the signals did before `hold_signals`; a signal that came is then raised in this process."""
    while _held:
        stop = _held.pop()
        stop.give_back()
        if stop.by:
            signal.raise_signal(signal.Signals[stop.by])


@contextmanager
def stop_signals() -> Iterator[Stop]:
    """Yield whether the user asked to stop, also before; a second signal raises KeyboardInterrupt.

    Within another `stop_signals`, or after `hold_signals`, it yields the Stop of that one.
    """
    if _held:
        _held[-1].take()
        yield _held[-1]
        return
    hold_signals()
    stop = _held[-1]
    try:
        yield stop
    finally:
        _held.remove(stop)
        stop.give_back()


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Let SIGTERM end the block as Ctrl-C does, by KeyboardInterrupt."""

    def handle(number: int, _: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
