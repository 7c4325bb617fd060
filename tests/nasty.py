"""Random topics that are hard to copy: a few producers write to all in turns, a real log cleaner compacts."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType
from kafka import KafkaProducer
from kafka.record.legacy_records import LegacyRecordBatchBuilder

from ferry.dev import RunningCluster
from ferry.wire.batch import Batch, batches, obstacle
from tests.harness import Message, Row, create_topics, producer, read_topics, send, wait_until
from tests.tiers import ANSWER_S

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
SEGMENT_MS = 60_000
"""Between the times of a compacted topic's batches: a segment rolls by the times of its records, not by the clock."""

FAR_FUTURE = 253_402_300_799_000  # the last second of the year 9999
FOR_EVER = str(2**63 - 1)
SMALL_BATCHES = 2_000
"""`max.message.bytes` of a target that takes less than its source has in a batch."""

LARGEST_VALUE = 15_000
HUGE_VALUE = 10_000_000
HUGE_BATCHES = 11_000_000
"""`max.message.bytes` of a topic with such values."""

OLD_RECORDS = 12
KINDS = ("compacted", "append_time", "small_target", "deletes_records", "old_formats", "plain")
LAST = b"last"
"""Key of records that only roll a segment."""


_HEADERS: tuple[tuple[tuple[str, bytes | None], ...], ...] = (
    (),
    (),
    (("h", b"1"), ("h", b"2"), ("null", None)),
    (("", b""), ("\u00fc", b"\xff")),
)
_COMMON = {"retention.ms": "-1", "message.timestamp.after.max.ms": FOR_EVER}
_COMPACTED = {
    "cleanup.policy": "compact",
    "segment.ms": "100",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "86400000",
}


@dataclass(slots=True, kw_only=True)
class Topic:
    """What is special about a topic. `clock` is the time of the next records of a compacted one."""

    name: str
    partitions: int
    compacted: bool
    append_time: bool
    small_target: bool
    deletes_records: bool
    old_formats: bool
    huge: bool
    clock: Iterator[int] = field(default_factory=lambda: iter(range(SEGMENT_MS, 10**15, SEGMENT_MS)))

    @property
    def is_plain(self) -> bool:
        """All of it can go as bytes."""
        return not (self.compacted or self.append_time or self.small_target or self.deletes_records or self.old_formats)

    @property
    def configs(self) -> dict[str, str]:
        """Its settings at the source."""
        stamped = {"message.timestamp.type": "LogAppendTime"} if self.append_time else {}
        sized = {"max.message.bytes": str(HUGE_BATCHES)} if self.huge else {}
        return {**_COMMON, **(_COMPACTED if self.compacted else {}), **stamped, **sized}

    @property
    def target_configs(self) -> dict[str, str]:
        """Its settings at the target, where it has to be there before the copy; none when Ferry creates it."""
        if self.small_target:
            return {**self.configs, "max.message.bytes": str(SMALL_BATCHES)}
        return self.configs if self.huge else {}


def topics(rng: random.Random, prefix: str, count: int) -> list[Topic]:
    """Topics of all kinds; the kinds go round, so that even a few have each. One plain topic has huge records."""
    return [
        Topic(
            name=f"{prefix}.{number:03}",
            partitions=rng.randint(1, 2),
            huge=number == len(KINDS) - 1,
            **{kind: KINDS[number % len(KINDS)] == kind for kind in KINDS[:-1]},  # type: ignore[arg-type]  # the kinds are fields that say yes or no
        )
        for number in range(count)
    ]


class Writers:
    """Producers of each codec without transactions, and two with them, for all topics together."""

    def __init__(self, cluster: RunningCluster, rng: random.Random, found: Sequence[Topic]) -> None:
        self._cluster = cluster
        self._rng = rng
        self._topics = found
        self._plain = [
            producer(cluster, compression_type=codec, linger_ms=1000, message_max_bytes=HUGE_BATCHES)
            for codec in CODECS
        ]
        self._old_times = KafkaProducer(bootstrap_servers=cluster.bootstrap, linger_ms=1000, compression_type="lz4")
        self._in_transactions = [
            producer(cluster, compression_type=codec, linger_ms=1000, transactional_id=f"{found[0].name}-{codec}")
            for codec in rng.sample(CODECS, 2)
        ]
        for client in self._in_transactions:
            client.init_transactions(ANSWER_S)

    def write(self, rounds: int) -> None:
        """Batches and transactions, committed and aborted, side by side."""
        for _ in range(rounds):
            for client in self._in_transactions:
                client.begin_transaction()
            for client in [*self._in_transactions, *self._plain, *self._in_transactions]:
                self._batches(client)
            self._without_time()
            self._huge()
            for client in self._in_transactions:
                if self._rng.random() < 0.5:
                    client.commit_transaction(ANSWER_S)
                else:
                    client.abort_transaction(ANSWER_S)

    @contextmanager
    def open_transaction(self) -> Iterator[None]:
        """Records of a transaction that is committed in the end only."""
        client = self._in_transactions[0]
        client.begin_transaction()
        self._batches(client)
        yield
        client.commit_transaction(ANSWER_S)

    def close(self) -> None:
        """No more is written."""
        self._old_times.close(timeout=ANSWER_S)

    def _batches(self, client: Producer) -> None:
        """One batch for each partition of a third of the topics."""
        for topic in self._rng.sample(self._topics, -(-len(self._topics) // 3)):
            for message in self._messages(topic):
                client.produce(
                    topic.name,
                    value=message.value,
                    key=message.key,
                    partition=message.partition,
                    headers=list(message.headers),
                    timestamp=message.timestamp,
                )
        assert client.flush(ANSWER_S) == 0

    def _messages(self, topic: Topic) -> Iterator[Message]:
        rng = self._rng
        time = next(topic.clock)
        for _ in range(rng.choice((1, 2, 5, 30, 100))):
            keys = [b"%d" % rng.randrange(30)] if topic.compacted else [None, b"", b"%d" % rng.randrange(100)]
            size = rng.choice(
                (0, 1, 10, 100, 100, 1_000, 50 if topic.small_target or rng.random() < 0.9 else LARGEST_VALUE)
            )
            yield Message(
                key=rng.choice(keys),
                value=rng.choice((None, rng.randbytes(size), b"x" * size, b"x" * size)),
                partition=rng.randrange(topic.partitions),
                headers=rng.choice(
                    ((), (), (("h", b"1"), ("h", b"2"), ("null", None)), (("", b""), ("\u00fc", b"\xff")))
                ),
                timestamp=time if topic.compacted else rng.choice((0, 1, 1_500_000_000_000, FAR_FUTURE)),
            )

    def _huge(self) -> None:
        """A record of ten megabytes, half of it incompressible."""
        client = self._rng.choice(self._plain)
        value = self._rng.randbytes(HUGE_VALUE // 2).ljust(HUGE_VALUE, b"x")
        for topic in self._topics:
            if topic.huge:
                send(client, topic.name, [Message(value=value, partition=self._rng.randrange(topic.partitions))])

    def _without_time(self) -> None:
        """librdkafka cannot say -1."""
        for topic in self._topics:
            if not topic.compacted and not topic.append_time and self._rng.random() < 0.3:
                for number in range(5):
                    value = b"no time %d" % number
                    self._old_times.send(topic.name, value=value, partition=0, timestamp_ms=-1)
        self._old_times.flush(ANSWER_S)


def create(cluster: RunningCluster, wanted: Mapping[str, tuple[int, Mapping[str, str]]]) -> None:
    """Create topics in one request: partitions and settings by name."""
    create_topics(
        cluster, [NewTopic(name, count, 1, config=dict(configs)) for name, (count, configs) in wanted.items()]
    )


def write_old_formats(cluster: RunningCluster, rng: random.Random, found: Sequence[Topic]) -> None:
    """Begin logs with messages of the formats v0 and v1, as a log has that was written long ago.

    Brokers from 4.0 on read them and write them no more (KIP-724). So as many records are written, and what the file
    then holds is overwritten; it is too short for an entry in the log's index.
    """
    client = producer(cluster, linger_ms=500)
    for topic in found:
        if not topic.old_formats:
            continue
        send(client, topic.name, [Message(value=bytes(100))] * OLD_RECORDS)
        path = cluster.brokers[0].data / f"{topic.name}-0" / f"{0:020}.log"
        size = path.stat().st_size
        with path.open("r+b") as file:
            file.write(_old_messages(rng, size))
        assert path.stat().st_size == size < 4_096


def _old_messages(rng: random.Random, size: int) -> bytes:
    """As many records in messages of both formats, compressed and not; the last one makes them `size` bytes long."""
    offsets = iter(range(OLD_RECORDS - 1))
    out = bytearray()
    while several := list(islice(offsets, rng.randint(1, 4))):
        magic, codec = rng.choice(((0, "none"), (0, "gzip"), (1, "none"), (1, "gzip"), (1, "lz4")))
        builder = LegacyRecordBatchBuilder(magic, CODECS.index(codec), 1 << 20)
        for index, offset in enumerate(several):
            key, value = rng.choice((None, b"", b"key")), rng.choice((None, b"", b"old " * rng.randint(1, 9)))
            relative = magic == 1 and codec != "none"
            builder.append(index if relative else offset, rng.choice((-1, 1, 1_400_000_000_000)), key, value)
        made = builder.build()
        if codec != "none":  # its own offset is that of the last one in it
            struct.pack_into(">q", made, 0, several[-1])
        out += made
    last = LegacyRecordBatchBuilder(1, 0, 1 << 20)
    last.append(OLD_RECORDS - 1, 1_400_000_000_000, None, b"")
    rest = size - len(out) - len(last.build())
    assert rest >= 0
    last = LegacyRecordBatchBuilder(1, 0, 1 << 20)
    last.append(OLD_RECORDS - 1, 1_400_000_000_000, None, bytes(rest))
    return bytes(out + last.build())


def delete_records(cluster: RunningCluster, rng: random.Random, found: Sequence[Topic]) -> None:
    """Move the beginnings of some logs, mostly into a batch."""
    ends = {
        (topic.name, number): rows[-1][0]
        for topic in found
        if topic.deletes_records
        for number, rows in read_topics(cluster.bootstrap, [topic.name])[topic.name].items()
        if rows
    }
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    places = [TopicPartition(name, number, rng.randint(0, end)) for (name, number), end in ends.items()]
    if places:
        for future in admin.delete_records(places).values():
            future.result(ANSWER_S)


def compact(cluster: RunningCluster, found: Sequence[Topic]) -> None:
    """Let the log cleaner work until most compacted topics have lost records, and stop it for good.

    Until there is a delete horizon, too: a batch with a tombstone or a marker gets one when it is cleaned first.
    """
    names = [topic.name for topic in found if topic.compacted]
    if not names:
        return
    client = producer(cluster)

    def rows() -> dict[str, dict[int, list[Row]]]:
        return read_topics(cluster.bootstrap, names)

    def lengths(found: dict[str, dict[int, list[Row]]]) -> dict[str, int]:
        return {name: sum(row[1] != LAST for part in found[name].values() for row in part) for name in names}

    first = lengths(rows())

    def has_holes() -> bool:
        for topic in found:
            if topic.compacted:  # rolls the segment before it, which the cleaner then may touch
                time = next(topic.clock)
                roll = [Message(key=LAST, value=b"", partition=at, timestamp=time) for at in range(topic.partitions)]
                send(client, topic.name, roll)
        now = lengths(rows())
        return 2 * sum(now[name] < first[name] for name in names) > len(names) and any(
            obstacle(batch) == HORIZON for batch in stored(cluster, names)
        )

    with busy_cleaner(cluster):
        wait_until(has_holes, "holes in most logs")
        alter(cluster, ResourceType.TOPIC, names, "min.compaction.lag.ms", FOR_EVER)
        before: list[dict[str, dict[int, list[Row]]]] = [{}]

        def is_still() -> bool:
            before.append(rows())
            return before[-1] == before[-2]

        wait_until(is_still, "logs that the cleaner leaves alone")


HORIZON = "its base timestamp is a delete horizon"
"""What stands against copying a batch that the cleaner left a tombstone or a marker in."""


def stored(cluster: RunningCluster, names: Iterable[str]) -> Iterator[Batch]:
    """The batches of these topics in the broker's files."""
    for name in names:
        for path in cluster.brokers[0].data.glob(f"{name}-[0-9]/*.log"):
            try:
                data = path.read_bytes()
            except FileNotFoundError:  # the cleaner has put another one in its place
                continue
            yield from batches(data)


@contextmanager
def busy_cleaner(cluster: RunningCluster) -> Iterator[None]:
    """The log cleaner rests a tenth of a second between its rounds instead of 15 s."""
    broker = [str(cluster.brokers[0].node_id)]
    alter(cluster, ResourceType.BROKER, broker, "log.cleaner.backoff.ms", "100")
    try:
        yield
    finally:
        alter(cluster, ResourceType.BROKER, broker, "log.cleaner.backoff.ms", None)


def alter(cluster: RunningCluster, kind: ResourceType, names: Sequence[str], setting: str, value: str | None) -> None:
    """Set a setting of topics or brokers; None takes it away."""
    operation = AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET
    entry = ConfigEntry(setting, value or "", incremental_operation=operation)
    resources = [ConfigResource(kind, name, incremental_configs=[entry]) for name in names]
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})  # held: its answers die with it
    for future in admin.incremental_alter_configs(resources).values():
        future.result(ANSWER_S)
