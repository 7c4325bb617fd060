"""Coroutines that go one request at a time: whoever drives a Task decides what becomes of each request."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from typing import Any

from ferry.errors import FerryError, Retryable

Act = Callable[[], Any]


class Call:
    """One request. Awaiting it hands it to the driver; `act` is what the broker does when it arrives.

    `behind` is set by the driver before a read of the ledger's end: how many records a stale leader does not show.
    """

    __slots__ = ("act", "behind", "label", "lost", "writes")

    def __init__(self, label: str, act: Act, *, writes: bool = False, lost: type[FerryError] = Retryable) -> None:
        self.label = label
        self.act = act
        self.writes = writes
        self.lost = lost
        self.behind = 0

    def __await__(self) -> Generator[Call, Any, Any]:
        return (yield self)


class Task:
    """A coroutine under way, with the request that it waits for."""

    running: Task | None = None
    """The task whose code runs at this moment; mutations of the protocol look here."""

    def __init__(self, name: str, coroutine: Coroutine[Call, Any, Any], *, attempt: int = 0) -> None:
        self.name = name
        self.attempt = attempt
        self.pending: Call | None = None
        self.result: Any = None
        self.error: FerryError | None = None
        self._coroutine = coroutine
        self._resume(lambda: coroutine.send(None))

    @property
    def done(self) -> bool:
        """Whether the coroutine ended, well or badly."""
        return self.pending is None

    @property
    def label(self) -> str:
        """The request that it waits for, or how it ended."""
        if self.pending is not None:
            return self.pending.label
        return f"ended: {self.error}" if self.error else "ended"

    def answer(self, behind: int = 0) -> None:
        """The request arrives and the answer comes back."""
        call = self._call()
        call.behind = behind
        try:
            value = call.act()
        except Exception as error:
            failure = error
            self._resume(lambda: self._coroutine.throw(failure))
        else:
            self._resume(lambda: self._coroutine.send(value))

    def lose(self, error: Exception | None = None) -> None:
        """The answer never comes; `error` is what the client makes of that when it repeats no more."""
        call = self._call()
        told = error or call.lost(f"no answer to {call.label}")
        self._resume(lambda: self._coroutine.throw(told))

    def crash(self) -> None:
        """The process dies."""
        self._coroutine.close()
        self.pending = None

    def _call(self) -> Call:
        assert self.pending is not None, f"{self.name} has ended"
        return self.pending

    def _resume(self, go: Callable[[], Call]) -> None:
        before, Task.running = Task.running, self
        try:
            self.pending = go()
        except StopIteration as end:
            self.pending, self.result = None, end.value
        except FerryError as error:
            self.pending, self.error = None, error
        finally:
            Task.running = before
