"""The records of the scenarios, written by confluent-kafka."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

POOL = 4000
"""Different values. Together they are far larger than the window of any codec, so they compress as if all differed."""

COMPACTED = {"cleanup.policy": "compact", "segment.bytes": str(8 << 20), "min.cleanable.dirty.ratio": "0.01"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A topic's content: `records` of `size` bytes, `batch_records` in a batch (0: as many as the client chooses)."""

    topic: str
    partitions: int
    records: int
    size: int
    batch_records: int = 0
    hole_every: int = 0
    """One record of so many has the key of the one before it, which a log cleaner then removes; 0: none."""
    commit_every: int = 0
    """How many records a transaction has; 0: there are none."""


def write(bootstrap: str, shape: Shape) -> None:
    """Create the topic and fill it, evenly over the partitions; one with holes is compacted by the log cleaner."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    config = COMPACTED if shape.hole_every else {}
    admin.create_topics([NewTopic(shape.topic, shape.partitions, 1, config=config)])[shape.topic].result()
    write_more(bootstrap, shape)


def write_more(bootstrap: str, shape: Shape) -> None:
    """Write the records once more, into the existing topic."""
    pool = values(shape.size)
    run = max(1, shape.batch_records or 1000)
    send_all(
        bootstrap,
        shape,
        lambda number: {
            "value": pool[number % POOL],
            "key": b"%012d" % (number - _repeats(shape, number)),
            "partition": number // run % shape.partitions,
        },
    )


def send_all(bootstrap: str, shape: Shape, record: Callable[[int], Mapping[str, Any]]) -> None:
    """Write all records of a shape; `record` returns the arguments of confluent-kafka's `produce`, by number."""
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "compression.type": "lz4",
            "linger.ms": 100,
            "queue.buffering.max.messages": 500_000,
            "queue.buffering.max.kbytes": 512 << 10,
            "enable.idempotence": True,
            **({"batch.num.messages": shape.batch_records} if shape.batch_records else {}),
            **({"transactional.id": shape.topic} if shape.commit_every else {}),
        }
    )
    if shape.commit_every:
        producer.init_transactions()
    for number in range(shape.records):
        if shape.commit_every and number % shape.commit_every == 0:
            producer.begin_transaction()
        while True:
            try:
                producer.produce(shape.topic, **record(number))
                break
            except BufferError:
                producer.poll(0.1)
        if number % 10_000 == 0:
            producer.poll(0)
        if shape.commit_every and (number + 1) % shape.commit_every == 0:
            producer.commit_transaction()
    left = producer.flush(120)
    assert not left, f"{left} records of {shape.topic} were not written"


def _repeats(shape: Shape, number: int) -> bool:
    return shape.hole_every > 0 and number % shape.hole_every == shape.hole_every // 2


def values(size: int) -> list[bytes]:
    """Make JSON with words, numbers and an incompressible part: lz4 compresses it to about two thirds."""
    rng = random.Random(20)
    words = ["north", "harbour", "pending", "paid", "cancelled", "express", "standard", "fragile", "container", "bulk"]
    found = []
    for number in range(POOL):
        order: dict[str, object] = {"id": rng.getrandbits(60), "state": rng.choice(words), "weight_kg": number / 8}
        while len(json.dumps(order)) < size * 0.4:
            order[f"{rng.choice(words)}_{len(order)}"] = rng.choice(words)
        order["signature"] = ""
        padding = size - len(json.dumps(order))
        order["signature"] = "".join(
            rng.choices("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", k=padding)
        )
        found.append(json.dumps(order).encode())
    return found
