"""Delays fetches, so that a task takes no more bytes a second from the source than it may: a token bucket.

What is not fetched is not produced either. The reader's bounded memory keeps fetching from running ahead of producing.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from kafka.future import Future
from kafka.net.selector import NetworkSelector

PORTION_SECONDS = 0.25
"""A fetch asks for the bytes that the rate gives in this time."""

SMALL_PORTION = 128 << 10
"""The least that a fetch asks for, in bytes.

The batch that an answer cuts off at its end is fetched again, which costs half a batch each time.
"""

LONGEST_PORTION_SECONDS = 2.0
"""A slow rate lowers SMALL_PORTION to what it gives in this time."""

SAVED_SECONDS = 1.0
"""How long an unused rate is kept, so that a pause of the machine costs nothing."""

STEP_SECONDS = 0.1
"""How often a waiting fetch checks whether the rate has changed, or whether it is still wanted."""

Clock = Callable[[], float]


class Bucket:
    """The bytes that may be fetched now; empty at first.

    At any moment, no more was taken than the rate has given, except by answers that were larger than what was asked
    for. A broker answers with one whole batch at least (KIP-74). The next fetch waits until such a debt is paid.
    """

    def __init__(self, bytes_per_second: float, clock: Clock = time.monotonic) -> None:
        self._rate = bytes_per_second
        self._clock = clock
        self._level = 0.0
        self._at = clock()

    def change(self, bytes_per_second: float) -> None:
        """Use another rate from now on."""
        self._fill()
        self._rate = bytes_per_second

    def portion(self, most: int) -> int:
        """Return how many bytes to ask for at a time, when `most` would be asked for without a throttle."""
        small = min(SMALL_PORTION, self._rate * LONGEST_PORTION_SECONDS)
        return max(1, min(most, int(max(self._rate * PORTION_SECONDS, small))))

    def pause(self, size: int) -> float:
        """Return the seconds until `size` bytes may be taken; 0 is now."""
        self._fill()
        return max(0.0, (size - self._level) / self._rate)

    def take(self, size: int) -> None:
        """Take `size` bytes. More than there are leaves a debt; a negative size gives some back."""
        self._fill()
        self._level -= size

    def _fill(self) -> None:
        now = self._clock()
        room = max(self._rate * SAVED_SECONDS, 2.0 * self.portion(2**63))
        self._level = max(self._level, min(room, self._level + (now - self._at) * self._rate))
        self._at = now


class Throttle:
    """Admits fetches in the order in which they ask.

    Belongs to one event loop, and outlives the readers that it serves.
    """

    def __init__(self, loop: NetworkSelector, bytes_per_second: float, clock: Clock = time.monotonic) -> None:
        self.waited_s = 0.0
        """Seconds for which fetches waited."""
        self._loop = loop
        self._clock = clock
        self._bucket = Bucket(bytes_per_second, clock)
        self._queue: deque[Future] = deque()

    def change(self, bytes_per_second: float) -> None:
        """Use another rate from now on."""
        self._bucket.change(bytes_per_second)

    def portion(self, most: int) -> int:
        """Return how many bytes to ask for at a time, when `most` would be asked for without a throttle."""
        return self._bucket.portion(most)

    async def admit(self, most: int, wanted: Callable[[], bool]) -> int:
        """Wait for this fetch's turn, and return the bytes that it may ask for.

        They are at most `most`, and 0 once the fetch is not `wanted`. They count as taken until `settle` gets what
        came.
        """
        turn = Future()
        self._queue.append(turn)
        if self._queue[0] is not turn:
            await turn
        size = 0
        while wanted():
            size = self.portion(most)
            pause = self._bucket.pause(size)
            if not pause:
                self._bucket.take(size)
                break
            began = self._clock()
            await self._loop.sleep(min(pause, STEP_SECONDS))
            self.waited_s += self._clock() - began
            size = 0
        self._queue.popleft()
        if self._queue:
            self._queue[0].success(None)
        return size

    def settle(self, admitted: int, fetched: int) -> None:
        """End an admitted fetch, which brought `fetched` bytes of records."""
        self._bucket.take(fetched - admitted)
