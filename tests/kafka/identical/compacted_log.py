"""Logs of compacted topics on real brokers, whose cleaner may touch what is there when a test says so."""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from crc32c import crc32c
from kafka.protocol.admin import AlterPartitionReassignmentsRequest

from ferry.clock import wall_ms
from ferry.dev import RunningCluster
from ferry.kafka.connect import codes
from ferry.kafka.connect.cluster import Cluster
from ferry.model import Record
from ferry.wire.batch import Batch, batches
from ferry.wire.records import ProducerIdentity, build_batch
from tests.clusters import repair
from tests.harness import awaited, create_topic, on_cluster, read_topic
from tests.kafka.raw import Producer, Raw
from tests.tiers import ANSWER_S

HOUR_MS = 3600 * 1000
DAY_MS = 24 * HOUR_MS
YEAR_MS = 365 * DAY_MS
DELETE_HORIZON = 0x40
LOG_APPEND_TIME = 0x08
NO_ONE = Producer(-1, -1)
BUSY = {"log.cleaner.backoff.ms": "100", "producer.id.expiration.check.interval.ms": "500"}
COMPACTED = {
    "cleanup.policy": "compact",
    "segment.ms": str(HOUR_MS),
    "min.cleanable.dirty.ratio": "0",
    "delete.retention.ms": "0",
    "message.timestamp.after.max.ms": str(2**63 - 1),
}


@dataclass(slots=True)
class Log:
    """A compacted partition, which rolls when a test says so."""

    raw: Raw
    at_ms: int

    async def write(
        self, keys: str, who: Producer = NO_ONE, sequence: int = -1, at_ms: int | None = None
    ) -> tuple[int, int]:
        """Produce a batch with a record for each key, a capital one for a tombstone; error code and base offset."""
        batch = keyed(keys, who, sequence, wall_ms() if at_ms is None else at_ms)
        return await self.raw.produce(who, sequence, len(keys), batch=batch)

    async def roll(self) -> int:
        """Write a record in a segment of its own: the cleaner may touch all before it. Its offset."""
        self.at_ms += 2 * HOUR_MS
        code, offset = await self.write("_", at_ms=self.at_ms)
        assert code == 0, code
        return offset

    async def batches(self, begin: int = 0) -> list[Batch]:
        """All batches from an offset on."""
        found: list[Batch] = []
        at = begin
        while True:
            part = await self.raw.fetched(at)
            assert part.error_code == 0, part
            some = [one for one in batches(part.records) if one.next_offset > at]
            if not some:
                return found
            found += some
            at = some[-1].next_offset

    async def shape(self, upto: int = 1 << 60) -> list[tuple[int, int, int]]:
        """First offset, last offset and number of records of each batch before an offset."""
        return [
            (one.base_offset, one.next_offset - 1, one.record_count)
            for one in await self.batches()
            if one.base_offset < upto
        ]

    async def becomes(self, *wanted: tuple[int, int, int]) -> None:
        """Wait until the log begins with these batches, and has no others before the last roll."""
        seen: list[object] = []

        async def there() -> bool:
            upto = wanted[-1][1] + 1 if wanted else 0
            seen[:] = await self.shape(upto)
            return seen == list(wanted)

        try:
            await awaited(self.raw.cluster.loop, there, f"batches {wanted}", 20)
        except AssertionError as error:
            raise AssertionError(f"{error}; there are {await self.shape()}") from error


def keyed(keys: str, who: Producer, sequence: int, at_ms: int) -> bytes:
    """A batch with a record for each key; a capital one is a tombstone."""
    identity = ProducerIdentity(producer_id=who.id, producer_epoch=who.epoch, sequence=sequence)
    records = [
        Record(key=key.lower().encode(), value=None if key.isupper() else b"%d" % at) for at, key in enumerate(keys)
    ]
    return build_batch(records, at_ms, identity)


def without_last_key(batch: bytes) -> bytes:
    """The batch of two records with no key for the second one, whose key was empty."""
    place = batch.rindex(b"\0\0\2\0") + 3
    checked = batch[21:place] + b"\1" + batch[place + 1 :]
    return batch[:17] + struct.pack(">I", crc32c(checked)) + checked


def at(
    cluster: RunningCluster,
    topic: str,
    work: Callable[[Log], Awaitable[Any]],
    *,
    config: dict[str, str] | None = None,
    partitions: int = 1,
    replicas: int = 1,
) -> Any:
    """Make a compacted topic, and send it requests one by one."""
    create_topic(cluster, topic, partitions, {**COMPACTED, **(config or {})}, replicas=replicas)
    return again(cluster, topic, work)


def again(cluster: RunningCluster, topic: str, work: Callable[[Log], Awaitable[Any]]) -> Any:
    """Send requests one by one, on a new connection."""

    async def act(client: Cluster) -> Any:
        return await work(Log(await Raw(client, topic).open(), wall_ms()))

    return on_cluster(cluster, act)


def offsets(cluster: RunningCluster, topic: str, kind: str) -> list[int]:
    """What librdkafka reads."""
    return [row[0] for row in read_topic(cluster.bootstrap, topic, isolation=kind)[0]]


def java_offsets(cluster: RunningCluster, topic: str, kind: str, count: int) -> list[int]:
    """What a Java consumer reads first."""
    command = cluster.brokers[0].java_command(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *("--bootstrap-server", cluster.bootstrap, "--topic", topic, "--from-beginning", "--isolation-level", kind),
        *("--max-messages", str(count), "--timeout-ms", str(int(1_000 * ANSWER_S)), "--property", "print.offset=true"),
    )
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=2 * ANSWER_S)
    found = [line for line in done.stdout.splitlines() if line.startswith("Offset:")]
    assert len(found) == count, done.stdout + done.stderr
    return [int(line.split("\t")[0].removeprefix("Offset:")) for line in found]


def read_by_both(cluster: RunningCluster, topic: str, wanted: list[int]) -> None:
    """Both kinds of consumers read these offsets, committed and uncommitted."""
    for kind in ("read_committed", "read_uncommitted"):
        assert offsets(cluster, topic, kind) == wanted
        assert java_offsets(cluster, topic, kind, len(wanted)) == wanted


def again_and_again(cluster: RunningCluster, topic: str, lane: Producer, numbers: tuple[int, int], base: int) -> None:
    """A batch is taken for one of the other numbering, however often it is sent; a longer one is appended.

    `numbers` are the next one, and where the log ends; `base` is the offset of the older batch.
    """

    async def work(log: Log) -> None:
        number, end = numbers
        state = await log.raw.state(lane)
        assert (state.producer_epoch, state.last_sequence) == (0, number - 1)
        for _ in range(3):
            assert await log.write("c", lane, number) == (0, base)
            assert (await log.raw.end(), await log.raw.end(replica=-2)) == (end, end)
        assert await log.write("c", Producer(lane.id, lane.epoch + 1), number) == (
            codes.OUT_OF_ORDER_SEQUENCE_NUMBER,
            -1,
        )
        assert await log.write("cd", lane, number) == (0, end)
        assert await log.write("c", Producer(lane.id, lane.epoch + 1), 0) == (0, end + 2)

    again(cluster, topic, work)


async def two_numberings(log: Log, lane: Producer, at_ms: int) -> None:
    """Batches 0..2 and 3, a state that expires, a marker, and a batch 0..2 again."""
    assert await log.write("abc", lane, 0, at_ms) == (0, 0)
    assert await log.write("a", lane, 3, at_ms) == (0, 3)

    async def expired() -> bool:
        return await log.raw.state(lane) is None

    await awaited(log.raw.cluster.loop, expired, "a broker that drops the producer state")
    assert await log.raw.mark(lane) == [0]
    assert (await log.raw.state(lane)).last_sequence == -1
    assert await log.write("abc", lane, 0) == (0, 5)  # the leader has no older batch


async def moved(raw: Raw, *replicas: int) -> None:
    """Give the partition other replicas, and wait until these are in sync, one leads, and the others are gone."""
    await reassigned(raw, *replicas)

    async def there() -> bool:
        found = await described(raw)
        if not ({*found.replicas} == {*found.in_sync} == {*replicas} and found.leader in replicas):
            return False
        return (await raw.listed())[0] == 0  # brokers lead a moment after they say so

    await awaited(raw.cluster.loop, there, f"replicas {replicas} in sync")


async def reassigned(raw: Raw, *replicas: int) -> None:
    """Ask for other replicas."""
    topic = AlterPartitionReassignmentsRequest.ReassignableTopic
    part = topic.ReassignablePartition(partition_index=0, replicas=list(replicas))
    request = AlterPartitionReassignmentsRequest(
        timeout_ms=30_000, topics=[topic(name=raw.topic, partitions=[part])], max_version=0
    )
    answer = await raw.cluster.ask(request)
    assert (answer.error_code, answer.responses[0].partitions[0].error_code) == (0, 0), answer


async def described(raw: Raw) -> Any:
    """The partition's leader and replicas, by the metadata of now."""
    await raw.open()
    return raw.cluster.topics[raw.topic].partitions[0]


async def tombstone_alone(log: Log) -> int:
    """A log of a tombstone that may go, and a record after it in a segment of its own; the leader's id."""
    old = log.at_ms = wall_ms() - YEAR_MS
    assert await log.write("a", at_ms=old) == (0, 0)
    assert await log.write("A", at_ms=old) == (0, 1)
    assert await log.roll() == 2

    async def may_go() -> bool:
        return [one.attributes & DELETE_HORIZON for one in await log.batches()][:-1] == [DELETE_HORIZON]

    await awaited(log.raw.cluster.loop, may_go, "a tombstone alone")
    return int((await described(log.raw)).leader)


def lose_the_newest_segment(cluster: RunningCluster, node: int, topic: str) -> None:
    """Kill a broker, take what its newest segment had, and let it clean the partition from its beginning again.

    So a crash leaves it, after a roll, when the old segments were on the disk and the new one was not.
    """
    one = cluster.broker(node)
    one.kill()
    folder = one.data / f"{topic}-0"
    newest = max(folder.glob("*.log"))
    assert newest.name == "00000000000000000002.log"
    newest.write_bytes(b"")
    for index in (*folder.glob("00000000000000000002.*index"), *folder.glob("00000000000000000002.snapshot")):
        index.unlink()
    kept = one.data / "cleaner-offset-checkpoint"
    lines = [line for line in kept.read_text().splitlines()[2:] if not line.startswith(f"{topic} ")]
    kept.write_text("".join(f"{line}\n" for line in ["0", str(len(lines)), *lines]))
    repair(cluster)
