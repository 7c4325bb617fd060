"""A frame delivered without Spark, slot after slot; as a program, one that is killed before one of its requests.

```
python -m tests.kafka.run.deliverer {"bootstrap": ..., "topic": ..., "application": ..., "kill": 7}
```
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from kafka.protocol.producer import AddPartitionsToTxnRequest, EndTxnRequest, InitProducerIdRequest, ProduceRequest

from ferry.config.record_target import record_target
from ferry.features.sink.acts.driver import delivering
from ferry.features.sink.acts.ids import DeliverySpec, SlotSpec
from ferry.features.sink.acts.slot import write_slot
from ferry.kafka.connect.cluster import Cluster
from ferry.model import TopicPartition
from ferry.model.delivery import DeliveryReceipt, Due, Written
from tests.tiers import ANSWER_S

WRITES = (InitProducerIdRequest, ProduceRequest, AddPartitionsToTxnRequest, EndTxnRequest)
PARTITIONS = 4
RECORDS = 60
"""Of each partition."""

HEADERS = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))
TIME = 1_700_000_000_123


@dataclass(frozen=True)
class Given:
    """A record of a frame; its digest is as its number, which is enough to tell one from another here."""

    partition: int
    number: int
    text: str = "v"

    @property
    def digest(self) -> int:
        """Spread over 64 bits."""
        return hash_of(f"{self.partition}/{self.number}/{self.text}")

    @property
    def value(self) -> bytes:
        """A kilobyte, so that a transaction has few of them."""
        return f"{self.text}-{self.partition}-{self.number}".encode().ljust(1000, b".")


def hash_of(text: str) -> int:
    """The same in every process."""
    found = 1469598103934665603
    for byte in text.encode():
        found = (found ^ byte) * 1099511628211 % (1 << 64)
    return found


def frame(records: int = RECORDS, text: str = "v") -> list[Given]:
    """What is delivered."""
    return [Given(partition, number, text) for partition in range(PARTITIONS) for number in range(records)]


def due(topic: str, rows: Sequence[Given]) -> dict[TopicPartition, Due]:
    """What there is for each partition."""
    found: dict[TopicPartition, Due] = {}
    for row in rows:
        place = TopicPartition(topic, row.partition)
        before = found.get(place, Due(0, 0))
        found[place] = Due(before.records + 1, (before.digest + row.digest) % (1 << 64))
    return found


def batches(topic: str, rows: Sequence[Given]) -> Iterator[pa.RecordBatch]:
    """As Spark hands them to a slot, in batches of odd lengths."""
    for at in range(0, len(rows), 37):
        some = rows[at : at + 37]
        digests = [one.digest - (1 << 64) if one.digest >= 1 << 63 else one.digest for one in some]
        headers = [[{"key": "n", "value": str(one.number).encode()}, {"key": "n", "value": None}] for one in some]
        yield pa.RecordBatch.from_arrays(
            [
                pa.array([topic] * len(some), pa.string()),
                pa.array([one.partition for one in some], pa.int32()),
                pa.array([TIME + one.number for one in some], pa.int64()),
                pa.array([f"k{one.number}".encode() for one in some], pa.binary()),
                pa.array([one.value for one in some], pa.binary()),
                pa.array(headers, HEADERS),
                pa.array(digests, pa.int64()),
            ],
            names=["topic", "partition", "timestamp", "key", "value", "headers", "digest"],
        )


def spec_of(bootstrap: str, application: str, batch: int = 1) -> DeliverySpec:
    """A batch for a cluster."""
    target = record_target({"kafka.bootstrap.servers": bootstrap})
    return DeliverySpec(
        alias=target.alias, connection=target.connection, application=application, batch=batch, patience_s=ANSWER_S
    )


def slots_of(
    specs: Mapping[int, SlotSpec], topic: str, rows: Sequence[Given], chunk_bytes: int = 20_000
) -> Iterator[tuple[SlotSpec, list[pa.RecordBatch]]]:
    """What each slot writes, in transactions that are small, from which rows."""
    for _, spec in sorted(specs.items()):
        mine = [row for row in rows if TopicPartition(topic, row.partition) in spec.due]
        yield replace(spec, chunk_bytes=chunk_bytes), list(batches(topic, mine))


def deliver(
    spec: DeliverySpec,
    topic: str,
    rows: Sequence[Given],
    *,
    slots: int = 2,
    between: Callable[[], None] = lambda: None,
) -> Written:
    """All of it. `between` is called when an attempt is open, and settled."""
    with delivering(spec, [topic], slots) as delivery:
        told = delivery.settle(due(topic, rows))
        if told is not None:
            return told
        between()
        receipts: dict[TopicPartition, DeliveryReceipt] = {}
        for slot, mine in slots_of(delivery.slot_specs(), topic, rows):
            receipts |= {one.place: one for one in write_slot(slot, mine)}
        return delivery.close(receipts)


def kill_before(number: int) -> None:
    """Have this process killed before its request of this number that changes anything, counted from 1."""
    submit, count = Cluster.submit, 0

    async def counted(self: Cluster, request: Any, *args: Any, **options: Any) -> Any:
        nonlocal count
        if isinstance(request, WRITES):
            count += 1
            if count == number:
                os.kill(os.getpid(), signal.SIGKILL)
        return await submit(self, request, *args, **options)

    Cluster.submit = counted  # type: ignore[method-assign]  # of a process that ends here


if __name__ == "__main__":
    asked = json.loads(sys.argv[1])
    if asked["kill"]:
        kill_before(asked["kill"])
    deliver(spec_of(asked["bootstrap"], asked["application"]), asked["topic"], frame())
