"""The writer of records with identical offsets: idempotent, in no transaction, under the lane's producer id."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping

from kafka.future import Future

from ferry.clock import boot_ms
from ferry.errors import Retryable
from ferry.features.identical.rules.planned import LEASE_MS
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.produce.writer import Writer
from ferry.model import TopicPartition


class Lease:
    """How long a writer may begin requests: until LEASE_MS after it asked the ledger for a newer run and found none."""

    def __init__(self, look: Callable[[], Awaitable[None]], now: Callable[[], int] = boot_ms) -> None:
        """`look` reads the ledger, and raises Superseded if there is a newer run or attempt."""
        self._look = look
        self._now = now
        self._asked: int | None = None

    async def confirm(self) -> None:
        """Read the ledger. Raises Superseded."""
        asked = self._now()
        await self._look()
        self._asked = asked

    async def keep(self) -> None:
        """Read the ledger if more than half of the lease is over. Raises Superseded."""
        if self._asked is None or self._now() >= self._asked + LEASE_MS // 2:
            await self.confirm()

    def check(self) -> None:
        """Raise Retryable if the lease is over: a process that slept must read the ledger before it writes."""
        if self._asked is None or self._now() >= self._asked + LEASE_MS:
            raise Retryable("the time to write is over since the ledger was read: it is read again")


class DataWriter(Writer):
    """A producer id of its own, with epoch 0; a batch's first sequence number is its first record's offset."""

    def __init__(self, cluster: Cluster, producer_id: int, lease: Lease, timeout_ms: int) -> None:
        """`timeout_ms` bounds how long a first request is repeated."""
        super().__init__(cluster, f"producer id {producer_id}", timeout_ms)
        self.producer_id = producer_id
        self.producer_epoch = 0
        self._lease = lease

    async def join(self, places: Iterable[TopicPartition]) -> None:
        """Do nothing: the records are in no transaction."""

    async def produce(self, node: int, batches: Mapping[TopicPartition, bytes | memoryview]) -> Future:
        """Send one batch per partition to their leader, within the lease; return the future answer.

        Raises Superseded if a newer run or attempt took over, and Retryable if the lease ended before the connection
        was there.
        """
        await self._lease.keep()
        request = self.produced(None, batches, None)
        return await self.cluster.submit(request, node, before=self._lease.check)

    def raise_for(self, code: int, what: str, *, may_be_fenced: bool = True) -> None:
        """Raise the error that a code calls for; nothing for 0. Each is Retryable, but a missing permission.

        The broker compared the batch with its log and did not append it, or its answer is not known: the log is read.
        """
        super().raise_for(code, what, may_be_fenced=False)
