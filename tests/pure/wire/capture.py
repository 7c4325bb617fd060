"""Capture golden bytes from a real broker: `python -m tests.pure.wire.capture [TOPIC...]` in the checkout, when set up.

Each file of `golden/` holds one topic: the bytes that the broker answered to fetches (hex), its lists of aborted
transactions, and two other views of the same log to compare with: what Kafka's DumpLogSegments prints, and the records
that librdkafka (confluent-kafka) hands out. Tests read the files; nothing but this script writes them.
"""

import itertools
import json
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from ferry.config.flow.clients import kafka_python_options
from ferry.config.settings import parse_settings
from ferry.dev import ClusterSpec, RunningCluster, guard, up
from ferry.dev.jars import jars, java
from ferry.kafka.connect.cluster import Cluster, event_loop
from ferry.kafka.fetch.requests import READ_COMMITTED, READ_UNCOMMITTED, FetchedPartition, fetch_request, fetched
from ferry.lane.connections import manager_options
from ferry.model import TopicPartition as Place
from ferry.wire.batch import batches
from tests.kafka.mirror.mirror_oracle import ask, encoded

GOLDEN = Path(__file__).parent / "golden"
VERSION = "4.3.0"
OLD_VERSION = "3.9.1"
"""The last Kafka whose classes write the formats v0 and v1."""
SPEC = ClusterSpec(
    name="golden", version=VERSION, properties={"log.cleaner.backoff.ms": "100", "log.retention.ms": "-1"}
)
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
TIME_MS = 1_700_000_000_000
WAIT_SECONDS = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """A broker, and what the topics of the capture are written with."""

    cluster: RunningCluster

    def create(self, topic: str, **config: str) -> None:
        admin = AdminClient({"bootstrap.servers": self.cluster.bootstrap})
        settings = {name.replace("_", "."): value for name, value in config.items()}
        admin.create_topics([NewTopic(topic, 1, 1, config=settings)])[topic].result(30)

    def producer(self, **config: Any) -> Producer:
        settings = {name.replace("_", "."): value for name, value in config.items()}
        return Producer({"bootstrap.servers": self.cluster.bootstrap, "linger.ms": 200, **settings})


def write_batch(producer: Producer, topic: str, *pairs: tuple[str, str | None], time_ms: int = TIME_MS) -> None:
    """One batch of keys and values; its timestamps are a second apart."""
    for index, (key, value) in enumerate(pairs):
        producer.produce(topic, key=key, value=value, timestamp=time_ms + 1000 * index)
    assert producer.flush(30) == 0


def codec(bench: Bench, topic: str, name: str) -> None:
    """Keys, nulls, tombstones, headers with repeats and nulls, empty and large values; times go up and down."""
    bench.create(topic)
    producer = bench.producer(compression_type=name)
    rows: list[tuple[bytes | None, bytes | None, list[tuple[str, str | bytes | None]], int]] = [
        (b"key", b"value", [], 0),
        (None, b"no key", [("h", b"1"), ("h", b"2"), ("null", None)], 5),
        (b"tombstone", None, [], 3),
        (b"", b"", [("empty", b"")], 1_000_000_000),
        (b"\x00\xff", b"large " * 50, [("\u00fcber", b"\xff")], 7),
    ]
    for key, value, headers, late in rows:
        producer.produce(topic, key=key, value=value, headers=headers, timestamp=TIME_MS + late)
    assert producer.flush(30) == 0


def transactions(bench: Bench, topic: str) -> None:
    """Two transactional producers and a plain one: P aborts around Q's commit, then P commits, then Q aborts."""
    bench.create(topic)
    plain, first, second = (
        bench.producer(),
        bench.producer(transactional_id="first"),
        bench.producer(transactional_id="second"),
    )
    for producer in (first, second):
        producer.init_transactions(30)
    write_batch(plain, topic, ("plain", "0"))
    first.begin_transaction()
    write_batch(first, topic, ("first", "aborted 1"), ("first", "aborted 2"))
    second.begin_transaction()
    write_batch(second, topic, ("second", "committed"))
    write_batch(plain, topic, ("plain", "between"))
    second.commit_transaction(30)
    write_batch(first, topic, ("first", "aborted 3"))
    first.abort_transaction(30)
    first.begin_transaction()
    second.begin_transaction()
    write_batch(first, topic, ("first", "committed"))
    write_batch(second, topic, ("second", "aborted"))
    first.commit_transaction(30)
    second.abort_transaction(30)
    write_batch(plain, topic, ("plain", "last"))


def log_append_time(bench: Bench, topic: str) -> None:
    """The broker's clock instead of the producer's."""
    bench.create(topic, message_timestamp_type="LogAppendTime")
    write_batch(bench.producer(), topic, ("a", "1"), ("b", "2"))


def compacted(bench: Bench, topic: str) -> None:
    """A batch with a hole, one with a hole and a delete horizon, one with only that, one left empty, one untouched."""
    bench.create(
        topic,
        cleanup_policy="compact",
        segment_ms="100",
        min_cleanable_dirty_ratio="0.01",
        delete_retention_ms="86400000",
    )
    one, two = bench.producer(enable_idempotence=True), bench.producer()
    write_batch(two, topic, ("a", "1"), ("b", "1"), ("a", "2"))
    write_batch(two, topic, ("c", "1"), ("c", None), ("d", "1"))
    write_batch(two, topic, ("e", None))
    write_batch(one, topic, ("f", "1"))
    write_batch(two, topic, ("f", "2"))

    times = itertools.count(TIME_MS, 60_000)

    def cleaned() -> bool:
        # A segment rolls by the times of its records, and the last one is never cleaned.
        write_batch(two, topic, ("g", "1"), time_ms=next(times))
        found = [batch for part in fetch(bench.cluster, topic) for batch in batches(part.records)]
        return any(batch.record_count == 0 for batch in found) and any(batch.attributes & 0x40 for batch in found)

    wait_until(cleaned)


def wait_until(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_SECONDS
    while not done():
        assert time.monotonic() < deadline, "the broker did not get there in time"
        time.sleep(0.2)


def fetch(cluster: RunningCluster, topic: str, isolation: int = READ_UNCOMMITTED) -> list[FetchedPartition]:
    """The whole partition 0 by Ferry's own requests: an answer ends with a log segment."""
    text = f"clusters=g,h\ng.bootstrap.servers={cluster.bootstrap}\nh.bootstrap.servers=x:1\ng->h.enabled=true\n"
    options = kafka_python_options(parse_settings(text, "capture").flow("g->h").client("source", "consumer"))
    place, size = Place(topic=topic, partition=0), 1 << 20
    loop = event_loop()
    with closing(loop), closing(Cluster(loop, "g", manager_options(options))) as source:

        async def work() -> list[FetchedPartition]:
            await source.open()
            await source.refresh([topic])
            answers: list[FetchedPartition] = []
            offset, end = 0, 1
            while offset < end:
                request = fetch_request(
                    source, {place: offset}, isolation=isolation, max_bytes=size, partition_bytes=size, max_wait_ms=500
                )
                (part,) = fetched(request, await source.ask(request, source.leader(place)))
                assert part.error_code == 0
                answers.append(part)
                offset, end = list(batches(part.records))[-1].next_offset, part.high_watermark
            return answers

        found: list[FetchedPartition] = loop.run(work)
        return found


def dumped(cluster: RunningCluster, topic: str) -> list[str]:
    """The lines of DumpLogSegments about batches and control records; it reads the broker's files."""
    segments = sorted(str(path) for path in (cluster.brokers[0].data / f"{topic}-0").glob("*.log"))
    tool = ["org.apache.kafka.tools.DumpLogSegments", "--print-data-log", "--files", ",".join(segments)]
    command = [java(), "-XX:TieredStopAtLevel=1", "-cp", f"{jars(VERSION)}/*", *tool]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [line for line in out.splitlines() if line.startswith("baseOffset:") or "endTxnMarker:" in line]


def consumed(cluster: RunningCluster, topic: str, isolation: str) -> Iterator[list[Any]]:
    """Offset, timestamp, key, value and headers (bytes as hex) of every record, by librdkafka."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": "golden",
            "isolation.level": isolation,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    while True:
        message = consumer.poll(30)
        assert message is not None
        if (error := message.error()) is not None:
            assert error.code() == KafkaError._PARTITION_EOF, error
            break
        pairs = cast("list[tuple[str, bytes | None]]", message.headers() or [])  # what is read is never a dict
        headers = [[name, _hex(value)] for name, value in pairs]
        yield [message.offset(), message.timestamp()[1], _hex(message.key()), _hex(message.value()), headers]
    consumer.close()


def _hex(value: bytes | None) -> str | None:
    return None if value is None else value.hex()


def capture(bench: Bench, topic: str, made_by: Callable[..., None], *arguments: str) -> None:
    """Write the topic, look at it from all sides, keep it."""
    made_by(bench, topic, *arguments)
    golden = {
        "broker": VERSION,
        "made_by": " ".join([f"tests.pure.wire.capture.{made_by.__name__}", *arguments]),
        "dumped": dumped(bench.cluster, topic),
        "committed": list(consumed(bench.cluster, topic, "read_committed")),
        "uncommitted": list(consumed(bench.cluster, topic, "read_uncommitted")),
        "answers": [
            {"aborted": part.aborted, "bytes": textwrap.wrap(bytes(part.records).hex(), 96)}
            for part in fetch(bench.cluster, topic, READ_COMMITTED)
        ],
    }
    (GOLDEN / f"{topic}.json").write_text(json.dumps(golden, indent=1) + "\n")


OLD_FORMATS = "old-formats"
MIRROR_RECORDS = "mirror-records"
CASES: dict[str, tuple[Callable[..., None], tuple[str, ...]]] = {
    **{f"codec-{name}": (codec, (name,)) for name in CODECS},
    "transactions": (transactions, ()),
    "log-append-time": (log_append_time, ()),
    "compacted": (compacted, ()),
}


def old_formats() -> None:
    """Message sets of the formats v0 and v1: no broker writes them any more, but Kafka's classes did until 3.9."""
    program = Path(__file__).with_name("OldFormats.java")
    command = [java(), "-cp", f"{jars(OLD_VERSION)}/*", str(program)]
    out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    sets = [json.loads(line) for line in out.splitlines()]
    for found in sets:
        found["bytes"] = textwrap.wrap(found["bytes"], 96)
    (GOLDEN / f"{OLD_FORMATS}.json").write_text(json.dumps({"classes": OLD_VERSION, "sets": sets}, indent=1) + "\n")


def mirror_records() -> None:
    """Records of MirrorMaker 2's internal topics, as its own classes write them."""
    rows: list[tuple[str, list[object]]] = [
        row
        for text in ("", "orders", "größe-注文-🚢", "long" * 100)
        for offset in (0, 1, 2**32, 2**63 - 1)
        for row in (
            ("checkpoint", [text, "orders", min(offset, 2**31 - 1), offset, offset // 2, text]),
            ("heartbeat", ["primary", text, offset]),
            ("sync", [text, min(offset, 2**31 - 1), offset, -1]),
        )
    ]
    words = [[encoded(field) if isinstance(field, str) else str(field) for field in fields] for _, fields in rows]
    answers = ask([" ".join(["write", kind, *fields]) for (kind, _), fields in zip(rows, words, strict=True)])
    records = [
        dict(zip(("kind", "fields", "key", "value"), (*row, *answer.split(" ")), strict=True))
        for row, answer in zip(rows, answers, strict=True)
    ]
    body = {"classes": "4.3.0", "records": records}
    (GOLDEN / f"{MIRROR_RECORDS}.json").write_text(json.dumps(body, indent=1, ensure_ascii=False) + "\n")


WITHOUT_BROKER = {OLD_FORMATS: old_formats, MIRROR_RECORDS: mirror_records}


def main(topics: list[str]) -> None:
    """Capture these topics anew; all, and what Kafka's classes alone write, when none is named."""
    wanted = topics or [*WITHOUT_BROKER, *CASES]
    for name in WITHOUT_BROKER.keys() & set(wanted):
        WITHOUT_BROKER[name]()
    if not CASES.keys() & set(wanted):
        return
    with tempfile.TemporaryDirectory() as folder, guard(Path(folder)):
        bench = Bench(cluster=up(SPEC, home=Path(folder)))
        for topic in CASES.keys() & set(wanted):
            made_by, arguments = CASES[topic]
            capture(bench, topic, made_by, *arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
