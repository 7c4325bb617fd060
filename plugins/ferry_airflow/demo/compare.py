"""Compares two clusters with another client than Ferry's: librdkafka, read_committed, record by record."""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from ferry.errors import Unreachable

Place = tuple[str, int]
"""Topic and partition."""

DIGEST_BYTES = 12
BATCH = 10_000
PATIENCE_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One source topic: how many records were equal, and the first difference of each partition that has one."""

    topic: str
    partitions: int
    records: int
    differences: tuple[str, ...]


def compare(
    source: str, target: str, ends: Mapping[Place, int], copies: Mapping[Place, tuple[Place, int]]
) -> tuple[Compared, ...]:
    """Compare source records below `ends` with their copies: same keys, values, headers, times, and order.

    `copies` tell by source partition which target partition it is, and the target offset behind the last copy.
    """
    wanted = digests(source, ends)
    got = digests(target, dict(copies.values()))
    topics = sorted({topic for topic, _ in ends})
    return tuple(_topic(topic, {p: wanted[p] for p in ends if p[0] == topic}, got, copies) for topic in topics)


def _topic(
    topic: str,
    wanted: Mapping[Place, list[bytes]],
    got: Mapping[Place, list[bytes]],
    copies: Mapping[Place, tuple[Place, int]],
) -> Compared:
    differences = []
    for place, records in sorted(wanted.items()):
        copied = got[copies[place][0]]
        if records != copied:
            at = next((i for i, pair in enumerate(zip(records, copied, strict=False)) if pair[0] != pair[1]), None)
            where = f"record {at} differs" if at is not None else "one side has more"
            differences.append(f"{place[0]}-{place[1]}: {len(records)} and {len(copied)} records, {where}")
    return Compared(
        topic=topic,
        partitions=len(wanted),
        records=sum(map(len, wanted.values())),
        differences=tuple(differences),
    )


def digests(bootstrap: str, ends: Mapping[Place, int]) -> dict[Place, list[bytes]]:
    """Digests of the committed records of each partition in order, below its end."""
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
    found: dict[Place, list[bytes]] = {place: [] for place in ends}
    try:
        consumer.assign([TopicPartition(topic, partition, 0) for topic, partition in ends])
        waiting = set(ends)
        until = time.monotonic() + PATIENCE_SECONDS
        while waiting:
            messages = consumer.consume(BATCH, timeout=0.5)
            if messages:
                until = time.monotonic() + PATIENCE_SECONDS
            elif time.monotonic() > until:
                raise Unreachable(f"{bootstrap} gives no end of {sorted(waiting)[:3]}")
            _take(messages, ends, found, waiting)
    finally:
        consumer.close()
    return found


def _take(
    messages: Iterable[Message], ends: Mapping[Place, int], found: dict[Place, list[bytes]], waiting: set[Place]
) -> None:
    for message in messages:
        topic, partition = message.topic(), message.partition()
        error = message.error()
        if topic is None or partition is None:
            raise Unreachable(f"a consumer failed: {error}")
        place = topic, partition
        if error is not None:
            if error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001 - librdkafka's public name for it
                raise Unreachable(f"{topic}-{partition} cannot be read: {error}")
            waiting.discard(place)
            continue
        end, offset = ends[place], message.offset()
        if offset is not None and offset >= end:
            waiting.discard(place)
            continue
        found[place].append(digest(message))


def digest(message: Message) -> bytes:
    """Of key, value, headers and timestamp, with their lengths, so that nothing runs into its neighbour."""
    state = hashlib.blake2b(digest_size=DIGEST_BYTES)
    parts: list[bytes | str | None] = [message.key(), message.value()]
    for header in message.headers() or ():
        parts += [header[0], header[1]]
    for part in parts:
        content = part.encode() if isinstance(part, str) else part
        state.update(b"-" if content is None else b"%d:" % len(content))
        state.update(content or b"")
    state.update(str(message.timestamp()).encode())
    return state.digest()
