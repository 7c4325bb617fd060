"""Keeps a task at its share of the flow's rate, which grows when other tasks of the run end."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass

from ferry.errors import FerryError
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.fetch.throttle import Throttle
from ferry.kafka.produce.ledger_topic import LedgerTopic
from ferry.ledger.throttle import Unfinished, share
from ferry.model import Plan

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
"""How often a task reads the ledger for slots that have ended: their share may be unused for this long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimit:
    """A flow's `ferry.throttle.bytes.per.second`, and the most tasks that share it at the same time."""

    bytes_per_second: int
    at_once: int


class RateLimiter:
    """A task's throttle, and what its share follows from. Lives on the target's event loop."""

    def __init__(self, source: Cluster, ledger: LedgerTopic, rate: RateLimit) -> None:
        # Bytes are saved up from now on: the time for fencing and reading the ledger makes room for the first fetch.
        self.throttle = Throttle(source.loop, share(rate.bytes_per_second, rate.at_once, rate.at_once))
        self._ledger = ledger
        self._rate = rate
        self._round = 0
        self._looking = 0

    def memory_bytes(self, most: int) -> int:
        """Return how much of `most` a reader may hold: two seconds of the flow's rate, at least 1 MiB.

        So a target that was stalled is not written to faster than that when it is back.
        """
        return min(most, max(1 << 20, 2 * self._rate.bytes_per_second))

    def begin(self, plan: Plan) -> None:
        """Follow the other slots of a plan from now on."""
        self.close()
        started, unfinished = self._round, Unfinished(plan)

        async def follow() -> None:
            cursor = plan.generation
            while started == self._round and len(unfinished) > 1:
                cursor = await self._look(unfinished, cursor)
                await self._ledger.cluster.loop.sleep(LOOK_SECONDS)

        if self._rate.at_once > 1:
            self._ledger.cluster.loop.call_soon(follow)

    def close(self) -> None:
        """Stop following the ledger."""
        self._round += 1

    async def end(self) -> None:
        """Stop following, and wait for a read in progress, which needs its connection."""
        self.close()
        until = time.monotonic() + LOOK_SECONDS
        while self._looking and time.monotonic() < until:
            await self._ledger.cluster.loop.sleep(0.005)

    async def _look(self, unfinished: Unfinished, cursor: int) -> int:
        """Set the share by what the ledger has from `cursor` on; return the offset to read on from."""
        self._looking += 1
        try:
            records, end = await self._ledger.read(cursor, None)
            first_open = unfinished.hear(records)
        except FerryError as error:  # the share is unchanged, which is never too large
            log.debug("the other slots' ends are not known at the moment: %s", error)
            return cursor
        finally:
            self._looking -= 1
        self.throttle.change(share(self._rate.bytes_per_second, self._rate.at_once, len(unfinished)))
        return end if first_open is None else first_open
