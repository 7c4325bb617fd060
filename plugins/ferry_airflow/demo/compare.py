"""Compares two clusters record by record, to both ends, by another client than Ferry's: librdkafka, read_committed."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar, cast

from confluent_kafka import Consumer, IsolationLevel, KafkaError, Message, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from ferry.errors import Unreachable

T = TypeVar("T")
Place = tuple[str, int]
"""Topic and partition."""

Headers = Sequence[tuple[str, bytes | str | None]]
Digests = Mapping[Place, Sequence[bytes]]
"""Digests of the records of every partition, in order."""

DIGEST_BYTES = 12
BATCH = 10_000
PATIENCE_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One source topic: how many records it has, and a sentence for each partition that differs."""

    topic: str
    partitions: int
    records: int
    differences: tuple[str, ...]


def compare(source: str, target: str, copies: Mapping[str, str]) -> tuple[Compared, ...]:
    """Compare all partitions of topics with their copies, from first to last record of both sides.

    `source` and `target` are bootstrap addresses, `copies` the target's name of each source topic. No client may write
    to either meanwhile. Raises Unreachable when a partition cannot be read up to its end.
    """
    return differences(digests(source, copies.keys()), digests(target, copies.values()), copies)


def differences(wanted: Digests, got: Digests, copies: Mapping[str, str]) -> tuple[Compared, ...]:
    """Return what differs between source (`wanted`) and target (`got`), by source topic.

    `copies` has the target's name of each source topic.
    """
    return tuple(_topic(topic, wanted, got, copies[topic]) for topic in sorted(copies))


def _topic(topic: str, wanted: Digests, got: Digests, copy: str) -> Compared:
    there = sorted(partition for name, partition in wanted if name == topic)
    copied = sorted(partition for name, partition in got if name == copy)
    found = [
        f"{topic}-{partition}: {sentence}"
        for partition in sorted({*there, *copied})
        if (sentence := _difference(wanted.get((topic, partition)), got.get((copy, partition)))) is not None
    ]
    if not there:
        found.insert(0, f"{topic}: the source has no such topic")
    return Compared(
        topic=topic,
        partitions=len(there),
        records=sum(len(wanted[topic, partition]) for partition in there),
        differences=tuple(found),
    )


def _difference(wanted: Sequence[bytes] | None, got: Sequence[bytes] | None) -> str | None:
    """Return how the copy of a partition differs, in half a sentence; None for equal ones.

    A None argument: no partition.
    """
    if got is None:
        return f"the target has no such partition, the source has {len(wanted or ())} records in it"
    if wanted is None:
        return f"the source has no such partition, the target has {len(got)} records in it"
    at = next((number for number, pair in enumerate(zip(wanted, got, strict=False)) if pair[0] != pair[1]), None)
    if at is not None:
        return f"{len(wanted)} and {len(got)} records, number {at} (from 0) differs"
    if len(wanted) > len(got):
        return f"the target lacks the last {len(wanted) - len(got)} of {len(wanted)} records"
    if len(wanted) < len(got):
        return f"the target has {len(got) - len(wanted)} records after the {len(wanted)} of the source"
    return None


def digests(bootstrap: str, topics: Collection[str]) -> dict[Place, list[bytes]]:
    """Return digests of all committed records of every partition of the topics; a topic that does not exist has none.

    Raises Unreachable when one cannot be read up to its first known end: a transaction is still open there.
    """
    return _read(bootstrap, topics, _digest)


def records_by_offset(bootstrap: str, topic: str) -> dict[int, list[tuple[int, bytes]]]:
    """Return offset and digest of all committed records of a topic, by partition, in order. Raises as `digests`."""
    found = _read(bootstrap, [topic], lambda message: (message.offset() or 0, _digest(message)))
    return {partition: records for (_, partition), records in found.items()}


def _digest(message: Message) -> bytes:
    headers = cast("Headers | None", message.headers())
    return digest(message.key(), message.value(), headers, message.timestamp())


def _read(bootstrap: str, topics: Collection[str], of: Callable[[Message], T]) -> dict[Place, list[T]]:
    """Return what `of` makes of all committed records of every partition of the topics. Raises as `digests`."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"compare-{secrets.token_hex(4)}",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
        }
    )
    try:
        known = consumer.list_topics(timeout=PATIENCE_SECONDS).topics
        places = [
            (topic, partition) for topic in sorted(topics) if topic in known for partition in known[topic].partitions
        ]
        ends = _ends(bootstrap, places)
        found: dict[Place, list[T]] = {place: [] for place in places}
        consumer.assign([TopicPartition(topic, partition, 0) for topic, partition in places])
        waiting = set(places)
        until = time.monotonic() + PATIENCE_SECONDS
        while waiting:
            messages = consumer.consume(BATCH, timeout=0.5)
            if messages:
                until = time.monotonic() + PATIENCE_SECONDS
            elif time.monotonic() > until:
                topic, partition = min(waiting)
                raise Unreachable(
                    f"{topic}-{partition} of {bootstrap} cannot be read up to offset {ends[topic, partition]}: "
                    "a transaction is still open there"
                )
            _take(messages, ends, waiting, lambda place, message: found[place].append(of(message)))
    finally:
        consumer.close()
    return found


def _ends(bootstrap: str, places: Sequence[Place]) -> dict[Place, int]:
    """Return the offset after the last record of each partition, open transactions included."""
    if not places:
        return {}
    admin = AdminClient({"bootstrap.servers": bootstrap})  # kept in a variable: its answers die with it
    asked = admin.list_offsets(
        {TopicPartition(*place): OffsetSpec.latest() for place in places},
        isolation_level=IsolationLevel.READ_UNCOMMITTED,
        request_timeout=PATIENCE_SECONDS,
    )
    return {(place.topic, place.partition): answer.result(PATIENCE_SECONDS).offset for place, answer in asked.items()}


def _take(
    messages: Iterable[Message],
    ends: Mapping[Place, int],
    waiting: set[Place],
    found: Callable[[Place, Message], None],
) -> None:
    for message in messages:
        topic, partition = message.topic(), message.partition()
        error = message.error()
        if topic is None or partition is None:
            raise Unreachable(f"a consumer failed: {error}")
        place = topic, partition
        if error is None:
            found(place, message)
        elif error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001 - librdkafka's public name for it
            raise Unreachable(f"{topic}-{partition} cannot be read: {error}")
        elif (message.offset() or 0) >= ends[place]:
            waiting.discard(place)


def digest(
    key: bytes | str | None, value: bytes | str | None, headers: Headers | None, timestamp: tuple[int, int]
) -> bytes:
    """Return a digest of a record's key, value, headers and timestamp (kind, ms).

    Each part has its length before it, so that no two run together.
    """
    state = hashlib.blake2b(digest_size=DIGEST_BYTES)
    for part in (key, value, *(part for header in headers or () for part in header)):
        content = part.encode() if isinstance(part, str) else part
        state.update(b"-" if content is None else b"%d:" % len(content))
        state.update(content or b"")
    state.update(str(timestamp).encode())
    return state.digest()
