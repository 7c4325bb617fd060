"""The records of the demo's source: topics with keys, headers, tombstones and every codec.

One producer is transactional.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from ferry.errors import Unreachable
from ferry.run.spark.blocking_call import Call

VALUE_BYTES = 1_024
TRANSACTION_RECORDS = 500
ABORT_EVERY = 5
"""Every fifth transaction is aborted: its records must not appear on the other side."""

TOMBSTONE_EVERY = 10
SECONDS = 60.0
TEXT = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoTopic:
    """A topic of the demo. `records` exist before the first run; `rate` is in records a second afterwards."""

    name: str
    partitions: int
    records: int
    rate: int
    codec: str
    headers: bool = False
    tombstones: bool = False
    transactional: bool = False
    configs: Mapping[str, str] = field(default_factory=dict)


TOPICS = (
    DemoTopic(name="orders", partitions=8, records=360_000, rate=400, codec="lz4", headers=True),
    DemoTopic(name="clicks", partitions=6, records=240_000, rate=400, codec="zstd"),
    DemoTopic(name="metrics", partitions=4, records=160_000, rate=200, codec="snappy"),
    DemoTopic(name="audit", partitions=2, records=80_000, rate=50, codec="gzip", headers=True),
    DemoTopic(name="images", partitions=2, records=80_000, rate=50, codec="none"),
    DemoTopic(name="customers", partitions=3, records=40_000, rate=50, codec="lz4", tombstones=True),
    DemoTopic(name="payments", partitions=3, records=40_000, rate=100, codec="lz4", headers=True, transactional=True),
)


GROUP = "billing"
"""A consumer group that has read half of the first topic when the first run begins."""


def let_group_stand(bootstrap: str) -> None:
    """Commit the group's offsets at half of every partition."""
    topic = TOPICS[0]
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": GROUP})
    try:
        places = [TopicPartition(topic.name, number) for number in range(topic.partitions)]
        for place in places:
            place.offset = consumer.get_watermark_offsets(place, timeout=SECONDS)[1] // 2
        consumer.commit(offsets=places, asynchronous=False)
    finally:
        consumer.close()


def group_offsets(bootstrap: str, topic: str) -> list[int]:
    """Return the group's offset in each partition of the first topic, or of its copy."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": GROUP})
    try:
        places = [TopicPartition(topic, number) for number in range(TOPICS[0].partitions)]
        return [int(place.offset) for place in consumer.committed(places, timeout=SECONDS)]
    finally:
        consumer.close()


def create_topics(bootstrap: str) -> None:
    """Create all topics."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    new = [
        NewTopic(topic.name, num_partitions=topic.partitions, replication_factor=1, config=dict(topic.configs))
        for topic in TOPICS
    ]
    for created in admin.create_topics(new).values():
        created.result(SECONDS)


def fill(bootstrap: str) -> int:
    """Produce the records that exist before the first run, all topics at the same time.

    Return how many records a reader then sees: acknowledged, and not of an aborted transaction. Raises Unreachable when
    one was not taken.
    """
    writers = [TopicWriter(bootstrap, topic) for topic in TOPICS]
    calls = [Call(partial(writer.write, writer.topic.records)) for writer in writers]
    for call in calls:
        call.result()
    return sum(writer.readable for writer in writers)


def feed(bootstrap: str, stopped: Callable[[], bool]) -> None:
    """Produce every topic at its rate until `stopped`; Unreachable when a record is not taken."""
    writers = [TopicWriter(bootstrap, topic) for topic in TOPICS]
    pause = threading.Event()
    while not stopped():
        begun = time.monotonic()
        for writer in writers:
            writer.write(writer.topic.rate)
        pause.wait(max(0.0, 1.0 - (time.monotonic() - begun)))


class TopicWriter:
    """Produces numbered records of one topic; values are cut from one random text, so that they compress a little."""

    def __init__(self, bootstrap: str, topic: DemoTopic) -> None:
        """`readable` counts the records that a reader sees by now: acknowledged and of no aborted transaction."""
        self.topic = topic
        self.readable = 0
        self._random = random.Random(topic.name)
        self._text = bytes(self._random.choices(range(32, 127), k=TEXT))
        self._number = 0
        self._acknowledged = 0
        self._failed: list[str] = []
        settings: dict[str, str | int | float | bool] = {
            "bootstrap.servers": bootstrap,
            "compression.type": topic.codec,
            "linger.ms": 20,
            "enable.idempotence": True,
            "log_level": 2,  # a starting broker is not news
            "queue.buffering.max.messages": 20_000,
        }
        if topic.transactional:
            settings["transactional.id"] = f"demo-{topic.name}"
        self._producer = Producer(settings)
        if topic.transactional:
            self._producer.init_transactions(SECONDS)

    def write(self, count: int) -> None:
        """Produce `count` records and wait until the broker has them; Unreachable when it does not take one."""
        if self.topic.transactional:
            for begin in range(0, count, TRANSACTION_RECORDS):
                self._transaction(min(TRANSACTION_RECORDS, count - begin))
        else:
            for _ in range(count):
                self._one()
            self.readable += self._acknowledge()

    def _transaction(self, count: int) -> None:
        self._producer.begin_transaction()
        for _ in range(count):
            self._one()
        acknowledged = self._acknowledge()
        if self._random.randrange(ABORT_EVERY):
            self._producer.commit_transaction(SECONDS)
            self.readable += acknowledged
        else:
            self._producer.abort_transaction(SECONDS)

    def _acknowledge(self) -> int:
        """Wait for the broker's answer to all that was produced; return how many records it took since last time."""
        left = self._producer.flush(SECONDS)
        failed = (
            f"{left} records are not acknowledged after {SECONDS:.0f} s" if left else next(iter(self._failed), None)
        )
        if failed is not None:
            raise Unreachable(f"the demo could not produce to {self.topic.name}: {failed}")
        acknowledged, self._acknowledged = self._acknowledged, 0
        return acknowledged

    def _one(self) -> None:
        number, topic = self._number, self.topic
        self._number += 1
        at = self._random.randrange(TEXT - VALUE_BYTES)
        tombstone = topic.tombstones and number % TOMBSTONE_EVERY == 0
        headers: list[tuple[str, str | bytes | None]] | None = None
        if topic.headers:
            headers = [("number", str(number).encode()), ("empty", None)]
        while True:
            try:
                self._producer.produce(
                    topic.name,
                    key=f"{topic.name}-{number % 10_000}",
                    value=None if tombstone else self._text[at : at + VALUE_BYTES],
                    headers=headers,
                    partition=number % topic.partitions,
                    on_delivery=self._delivered,
                )
            except BufferError:
                self._producer.poll(0.1)
            else:
                break
        self._producer.poll(0)

    def _delivered(self, error: object, _: object) -> None:
        if error is None:
            self._acknowledged += 1
        else:
            self._failed.append(str(error))
