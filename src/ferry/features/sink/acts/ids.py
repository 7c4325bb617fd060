"""What an application's attempts need on a cluster, and the names that they use.

It is pickled to tasks, and its secrets are never shown as text.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ferry.config.client_options import ConnectionOptions
from ferry.model import Compression, TopicPartition
from ferry.model.delivery import DeliveryReceipt, Due

CHUNK_BYTES = 48 << 20
"""A transaction of a slot ends at this many bytes of records, before the part that would exceed them."""

CHUNK_SECONDS = 20.0
"""A transaction of a slot ends after this many seconds, or after a third of its timeout if that is less."""

DRIVER = "driver"
"""Used in place of a slot's number: the writer of the attempt's own records."""


def delivery_ledger(application: str) -> str:
    """Return the name of an application's ledger topic."""
    return f"ferry-delivery.{application}.internal"


def delivery_writer(application: str, slot: int | str) -> str:
    """Return the transactional id of a slot.

    It has no batch or attempt, so a later attempt's writer fences an earlier one's.
    """
    return f"ferry-delivery.{application}.{slot}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliverySpec:
    """A batch of an application, and the cluster to which it is written."""

    alias: str
    connection: ConnectionOptions = field(repr=False)
    application: str
    batch: int
    compression: Compression | None = None
    ledger_replicas: int = 3
    transaction_timeout_ms: int = 60_000
    patience_s: float = 60.0

    @property
    def chunk_seconds(self) -> float:
        """The seconds after which a slot's transaction is committed before more is sent."""
        return min(CHUNK_SECONDS, self.transaction_timeout_ms / 3000)

    def __str__(self) -> str:
        return f"batch {self.batch} of application {self.application}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotSpec:
    """What one slot writes in one attempt: all of `due`, of which `receipts` are written already."""

    delivery: DeliverySpec
    slot: int
    generation: int
    due: Mapping[TopicPartition, Due]
    receipts: Mapping[TopicPartition, DeliveryReceipt]
    chunk_bytes: int = CHUNK_BYTES
    chunk_seconds: float = CHUNK_SECONDS
