"""The port through which a run is opened, on brokers."""

from __future__ import annotations

import random
import time
from collections.abc import Collection, Sequence
from typing import NoReturn

from ferry.errors import FerryError, Refused, Unreachable
from ferry.kafka.admin.topics import transaction_state
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.produce.ledger_topic import LedgerTopic
from ferry.kafka.produce.writer import Writer
from ferry.model import Fate, Flow, LedgerRecord, Record
from ferry.protocol.names import DRIVER, transactional_id

SETTLE_SECONDS = 5.0
"""How long a driver waits for its commit markers, which follow an acknowledged commit within milliseconds."""


async def back_off(cluster: Cluster, failures: int) -> None:
    """Wait longer after each failure in a row, five seconds at most."""
    await cluster.loop.sleep(min(5.0, 0.05 * 2**failures) * random.uniform(0.5, 1.0))


class KafkaDriver:
    """`DriverPort` on brokers: what opens a run of a lane, and its driver writer."""

    def __init__(self, ledger: LedgerTopic, flow: Flow, lane: str, transaction_timeout_ms: int) -> None:
        self._ledger = ledger
        self._flow = flow
        self._lane = lane
        self._timeout_ms = transaction_timeout_ms
        self._driver = Writer(ledger.cluster, transactional_id(flow, lane, DRIVER), transaction_timeout_ms)

    async def append(self, records: Sequence[Record]) -> int:
        """Write records to the ledger durably; return the offset of the last one."""
        return await self._ledger.append(records)

    async def read(self, start: int | None, end: int | None) -> tuple[list[LedgerRecord], int]:
        """Return the ledger's records in `[start, end)` with their fates, and the offset that was read up to."""
        return await self._ledger.read(start, end)

    async def fence(self, slots: int, flows: Collection[Flow] = ()) -> None:
        """Send InitProducerId for slots 0..slots-1 of every flow, and for the drivers of flows that are not this one.

        Raises Unreachable when a writer stays unfenced; it names the writer, and its transaction's state and
        partitions. Raises Refused when the cluster does not permit it, or not with this transaction timeout.
        """
        cluster = self._ledger.cluster
        others = sorted((flow for flow in flows if flow != self._flow), key=str)
        names = [transactional_id(flow, self._lane, slot) for flow in (self._flow, *others) for slot in range(slots)]
        names += [transactional_id(flow, self._lane, DRIVER) for flow in others]
        waiting = [
            (name, cluster.loop.call_soon_with_future(Writer(cluster, name, self._timeout_ms).initialise))
            for name in names
        ]
        for name, future in waiting:
            try:
                await future
            except FerryError as error:
                await self._raise_unfenced(name, error)

    async def _raise_unfenced(self, name: str, error: FerryError) -> NoReturn:
        own = name.startswith(transactional_id(self._flow, self._lane, ""))
        if isinstance(error, Refused):  # a permission, or a setting: no other writer blocks the slot
            why = ""
            if not own:
                why = f", which earlier runs of lane {self._lane} wrote with when the flow was not named {self._flow}"
            raise Refused(f"writer {name} could not be fenced{why}: {error}") from error
        state = await transaction_state(self._ledger.cluster, name)
        raise Unreachable(f"writer {name} could not be fenced ({error}); {state}: nothing was planned") from error

    async def initialise(self) -> None:
        """Send InitProducerId for the driver writer.

        Raises Unreachable when it stays unfenced, Refused when the cluster does not permit it.
        """
        try:
            await self._driver.initialise()
        except FerryError as error:
            await self._raise_unfenced(self._driver.transactional_id, error)

    async def append_in(self, records: Sequence[Record]) -> frozenset[int]:
        """Write records in the driver's transaction; return their offsets. Raises Fenced."""
        return await self._ledger.append_in(self._driver, records)

    async def commit(self) -> None:
        """Send EndTxn(commit). Raises Fenced, and OutcomeUnknown when it is not known whether the commit happened."""
        await self._driver.commit()

    async def leave(self) -> None:
        """End the own open transaction unless it is fenced, so that no reader waits for its timeout; raise nothing."""
        await self._driver.leave()

    async def back_off(self, failures: int) -> None:
        """Wait before the next try; longer after more failures in a row, five seconds at most."""
        await back_off(self._ledger.cluster, failures)

    async def settle(self, offset: int) -> None:
        """Wait, SETTLE_SECONDS at most, until the ledger shows the fate of this driver's record at an offset."""
        until = time.monotonic() + SETTLE_SECONDS
        while time.monotonic() < until:
            found, _ = await self._ledger.read(offset, None)
            if found and not any(record.offset == offset and record.fate is Fate.OPEN for record in found):
                return
            await self._ledger.cluster.loop.sleep(0.005)
