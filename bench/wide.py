"""Very many partitions: 100 topics of 100 partitions, with one record in each."""

from __future__ import annotations

from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic

TOPICS = 100
PARTITIONS = 100
PATTERN = "wide-.*"


def write_wide(bootstrap: str) -> None:
    """Create the topics, some at a time, and write the records."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    names = [f"wide-{number:03}" for number in range(TOPICS)]
    for at in range(0, TOPICS, 10):
        futures = admin.create_topics([NewTopic(name, PARTITIONS, 1) for name in names[at : at + 10]])
        for future in futures.values():
            future.result()
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
