"""Very many partitions: 100 topics of 100 partitions, with one record in each."""

from __future__ import annotations

import time
from collections.abc import Sequence

from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from usage import Stopwatch, Usage

TOPICS = 100
PARTITIONS = 100
PATTERN = "wide-.*"
_NAMES = tuple(f"wide-{number:03}" for number in range(TOPICS))


def created_alone(bootstrap: str, prefix: str) -> Usage:
    """Measure how long a plain client takes to create as many topics and partitions, until all have a leader."""
    watch = Stopwatch()
    admin = AdminClient({"bootstrap.servers": bootstrap})
    _create(admin, [f"{prefix}{name}" for name in _NAMES])
    while _led(admin, prefix) < TOPICS * PARTITIONS:
        time.sleep(0.2)
    return watch.usage()


def _create(admin: AdminClient, names: Sequence[str]) -> None:
    for at in range(0, len(names), 10):  # a controller refuses a request for too many partitions
        futures = admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in names[at : at + 10]])
        for future in futures.values():
            future.result()


def _led(admin: AdminClient, prefix: str) -> int:
    """Count the partitions of topics with this prefix that have a leader."""
    topics = [topic for name, topic in admin.list_topics(timeout=60).topics.items() if name.startswith(prefix)]
    return sum(part.leader >= 0 for topic in topics for part in topic.partitions.values())


def write_wide(bootstrap: str) -> None:
    """Create the topics, some at a time, and write the records."""
    _create(AdminClient({"bootstrap.servers": bootstrap}), _NAMES)
    write_round(bootstrap)


def create(bootstrap: str, names: Sequence[str]) -> None:
    """Create topics of as many partitions."""
    _create(AdminClient({"bootstrap.servers": bootstrap}), names)


def write_round(bootstrap: str, names: Sequence[str] = _NAMES) -> None:
    """Write one record into every partition of these topics."""
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 100, "message.timeout.ms": 120_000})
    failed: list[KafkaError] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            failed.append(error)

    for name in names:
        for partition in range(PARTITIONS):
            producer.produce(name, b"one", partition=partition, on_delivery=delivered)
        producer.flush(120)
    assert not failed, f"{len(failed)} records were not written: {failed[0]}"
