"""librdkafka, by confluent-kafka: an implementation of Kafka's protocol that shares no code with Ferry's own.

It reads logs for `ferry verify --independent`. It is the application of a switch's smoke test, and the one whose first
record a switch and a drill measure. It commits no offset.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, libversion
from confluent_kafka import TopicPartition as Place

from ferry.clock import wall_ms
from ferry.errors import Refused, Unreachable
from ferry.model import RefusalKind, TopicPartition

log = logging.getLogger(__name__)

Options = dict[str, str | int]
"""Options by librdkafka's names, made by `ferry.config.flow.librdkafka`."""

_GROUP = "ferry-independent"
"""Begins the name of the group that a consumer needs to have; it does not join it, and commits no offset."""

BEGINNING = -2
"""The offset that means the first one of a log."""


def librdkafka_name() -> str:
    """Return the name and version of the library, as answers have it."""

    return f"librdkafka {libversion()[0]}"


class Arrived(NamedTuple):
    """A record of a log, as librdkafka shows it.

    `kind` is the type of its timestamp (ms): 0 none, 1 CreateTime, 2 LogAppendTime.
    """

    place: TopicPartition
    offset: int
    kind: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


class Ended(NamedTuple):
    """A log has no more records for now: its readable end is `offset`."""

    place: TopicPartition
    offset: int


class Failed(NamedTuple):
    """A log cannot be read on; `kind` None: only `message` says why."""

    place: TopicPartition
    kind: RefusalKind | None
    message: str


Event = Arrived | Ended | Failed


class LogConsumer:
    """Reads partitions of one cluster from given offsets, without a group."""

    def __init__(self, alias: str, options: Options, *, committed: bool) -> None:
        """`committed`: records of aborted transactions are left out. Raises Refused for options that it cannot have."""
        self.alias = alias
        self._voice = _Voice()
        self._consumer = _client(
            Consumer,
            alias,
            {
                **options,
                "group.id": f"{_GROUP}-{secrets.token_hex(4)}",
                "enable.auto.commit": "false",
                "enable.partition.eof": "true",
                "auto.offset.reset": "error",
                "check.crcs": "true",
                "isolation.level": "read_committed" if committed else "read_uncommitted",
            },
            self._voice,
        )
        self._places: frozenset[TopicPartition] = frozenset()
        self._active: frozenset[TopicPartition] = frozenset()

    def close(self) -> None:
        """Close the connections."""
        self._consumer.close()

    @property
    def trouble(self) -> str:
        """Return what librdkafka reported last, as the end of a sentence; empty: nothing."""
        return self._voice.last

    def assign(self, starts: Mapping[TopicPartition, int]) -> None:
        """Read these partitions, each from an offset, and no others any more."""

        self.only(self._places)  # one that waits would still wait when it is assigned again
        self._consumer.assign([Place(one.topic, one.partition, offset) for one, offset in starts.items()])
        self._places = self._active = frozenset(starts)

    def only(self, places: Collection[TopicPartition]) -> None:
        """Read these of the assigned partitions, and let the others wait where they are."""

        wanted = self._places & frozenset(places)
        waiting, back = self._active - wanted, wanted - self._active
        for some, act in ((waiting, self._consumer.pause), (back, self._consumer.resume)):
            if some:
                act([Place(one.topic, one.partition) for one in some])
        self._active = wanted

    def take(self, most: int, seconds: float) -> list[Event]:
        """Return what has come, in order by partition; wait up to `seconds` if that is nothing."""
        messages = self._consumer.consume(most, 0)
        if not messages and seconds:
            messages = self._consumer.consume(1, seconds)
        found = [event_of(message) for message in messages]
        return [one for one in found if one is not None and one.place in self._places]


class FirstRecord(NamedTuple):
    """When a consumer of a group had its first record (ms). None: it had none.

    `records` are the `(key, value)` that it had until it left. `why`: the reason why it had none, or lacks wanted ones.
    """

    at_ms: int | None
    why: str = ""
    records: tuple[tuple[bytes | None, bytes | None], ...] = ()


def first_record(
    alias: str,
    options: Options,
    group: str,
    starts: Mapping[TopicPartition, int],
    *,
    seconds: float,
    wanted: Collection[tuple[bytes, bytes]] = (),
) -> FirstRecord:
    """Join a group, read from these offsets of the partitions that it gets, and leave it after the first record.

    With `wanted`, a key and value each, leave it when all of these have come, too. No offset is committed. Raises
    Refused for options that librdkafka does not take.
    """

    def assigned(consumer: Any, places: Sequence[Any]) -> None:
        mine = {TopicPartition(one.topic, one.partition) for one in places} & starts.keys()
        consumer.assign([Place(one.topic, one.partition, starts[one]) for one in mine])

    voice = _Voice()
    group_options: Options = {
        "group.id": group,
        "enable.auto.commit": "false",
        "auto.offset.reset": "earliest",
        "isolation.level": "read_committed",
    }
    consumer = _client(Consumer, alias, {**options, **group_options}, voice)
    why, until = "", time.monotonic() + seconds
    at_ms: int | None = None
    had: list[tuple[bytes | None, bytes | None]] = []
    missing = set(wanted)
    try:
        consumer.subscribe(sorted({one.topic for one in starts}), on_assign=assigned)
        while time.monotonic() < until:
            message = consumer.poll(0.1)
            if message is None:
                continue
            if message.error() is None:
                at_ms = at_ms or wall_ms()
                had.append((message.key(), message.value()))
                missing.discard(had[-1])
                if not missing:
                    return FirstRecord(at_ms, "", tuple(had))
                continue
            why = str(message.error().str())
            if message.error().code() in _denied():
                break
    except KafkaException as error:
        why = str(error)
    finally:
        consumer.close()
    why = why or voice.last
    said = f": {why}" if why else ""
    lacks = "no record" if at_ms is None else f"{len(set(wanted)) - len(missing)} of {len(set(wanted))} records"
    why = f"a consumer in group {group} had {lacks} of cluster {alias} within {seconds:g} s{said}"
    return FirstRecord(at_ms, why, tuple(had))


def write_records(
    alias: str, options: Options, place: TopicPartition, records: Sequence[tuple[bytes, bytes]], *, seconds: float
) -> None:
    """Write `(key, value)` in order; return when all replicas in sync have all of them.

    A record is there twice if its acknowledgement was lost. Raises Refused for options that librdkafka does not take,
    Unreachable if a record is not acknowledged in time: it may be there all the same.
    """
    failed: list[str] = []

    def delivered(error: Any, _: Any) -> None:
        if error is not None:
            failed.append(str(error.str()))

    voice = _Voice()
    most: Options = {"acks": "all", "message.timeout.ms": int(seconds * 1000), "max.in.flight": 1}
    producer = _client(Producer, alias, {**options, **most}, voice)
    for key, value in records:
        producer.produce(place.topic, value, key, place.partition, on_delivery=delivered)
    waiting = producer.flush(seconds)
    if failed or waiting:
        why = next(iter(failed), voice.last or "no acknowledgement came")
        count = len(failed) + waiting
        raise Unreachable(
            f"{count} of {len(records)} records that librdkafka wrote to {place} of cluster {alias} were not "
            f"acknowledged within {seconds:g} s ({why}): look at its brokers"
        )


def _denied() -> tuple[int, ...]:

    return (KafkaError.GROUP_AUTHORIZATION_FAILED, KafkaError.TOPIC_AUTHORIZATION_FAILED)


class _Voice:
    """Keeps what librdkafka says last. It says it at a lower level: a broker that is away for a moment is not news."""

    def __init__(self) -> None:
        self.last = ""

    def log(self, level: int, *parts: Any) -> None:
        """Take a line of librdkafka's log."""
        log.debug(*parts)

    def error(self, error: Any) -> None:
        """Take an error of the whole client, as librdkafka's `error_cb`."""
        self.last = str(error.str())


def _client(kind: Any, alias: str, options: Options, voice: _Voice) -> Any:
    """Make a client. Raises Refused for options that it does not take."""
    try:
        return kind({**options, "error_cb": voice.error}, logger=voice)
    except (KafkaException, ValueError, TypeError) as error:
        raise Refused(
            f"cluster {alias}: librdkafka does not take the options of this flow ({error}): correct them, or use "
            "another listener of the cluster"
        ) from None


def event_of(message: Any) -> Event | None:
    """Return what a message of librdkafka means; None for an error that is of no partition, or passes by itself."""
    topic, partition, error = message.topic(), message.partition(), message.error()
    if topic is None or partition is None or partition < 0:
        return None
    place = TopicPartition(topic, partition)
    if error is not None:
        return _failure(place, message.offset(), error)
    kind, at = message.timestamp()
    try:
        headers = tuple(message.headers() or ())
    except UnicodeDecodeError:
        why = f"the name of a header at offset {message.offset()} is not UTF-8: compare it without --independent"
        return Failed(place, None, why)
    return Arrived(place, message.offset(), kind, at, message.key(), message.value(), headers)


def _failure(place: TopicPartition, offset: int, error: Any) -> Event | None:

    code = error.code()
    if code == KafkaError._PARTITION_EOF:  # noqa: SLF001 - its public name
        return Ended(place, offset)
    kinds = {
        KafkaError._AUTO_OFFSET_RESET: RefusalKind.RETENTION_PASSED,  # noqa: SLF001 - as above
        KafkaError.OFFSET_OUT_OF_RANGE: RefusalKind.RETENTION_PASSED,
        KafkaError.UNKNOWN_TOPIC_OR_PART: RefusalKind.TOPIC_GONE,
        KafkaError._UNKNOWN_TOPIC: RefusalKind.TOPIC_GONE,  # noqa: SLF001 - as above
        KafkaError._UNKNOWN_PARTITION: RefusalKind.TOPIC_GONE,  # noqa: SLF001 - as above
        KafkaError.TOPIC_AUTHORIZATION_FAILED: RefusalKind.NOT_AUTHORIZED,
        KafkaError._BAD_MSG: RefusalKind.CORRUPT,  # noqa: SLF001 - as above
    }
    if code == KafkaError._BAD_COMPRESSION:  # noqa: SLF001 - as above
        why = f"librdkafka cannot decompress the batch at offset {offset}: it is damaged, or longer than the limit"
        return Failed(place, None, f"{why}; compare it without --independent")
    return Failed(place, kinds.get(code), f"librdkafka reports {error.str()}: look at its brokers, then verify again")
