"""How fast offsets are passed by markers, aborted transactions, and a run's empty records: the figures of ADR 57.

    python -m tests.kafka.identical.passed_offsets 3.9.1 4.3.0

Each version gets a broker of its own in a temporary folder, and a second one as a source. No figure is compared with a
limit.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from kafka.protocol.consumer import ListOffsetsRequest
from kafka.protocol.producer import ProduceRequest

from ferry.clock import wall_ms
from ferry.dev import ClusterSpec, RunningCluster, down, up
from ferry.features.identical.rules.empty import cost_of
from ferry.kafka.connect.cluster import Cluster
from ferry.ledger.report import RunState
from ferry.model import Record
from ferry.wire.records import ProducerIdentity, build_batch
from tests.harness import create_topic, on_cluster
from tests.kafka.identical.test_passing import PASSES, begin_at
from tests.kafka.identical.test_run import lab
from tests.kafka.raw import Producer, Raw, empty_batch, empty_payload

TOPIC = "passed"
PARTITIONS = 100
COMMITS = 200
EACH, BATCHES = 1_000_000, 10


def measure(cluster: RunningCluster) -> None:
    """Print one line for each way."""
    create_topic(cluster, TOPIC, PARTITIONS)

    async def work(client: Cluster) -> None:
        raw = await Raw(client, TOPIC).open()
        who = await raw.init()

        async def timed(what: str, offsets: int, act: Callable[[], Awaitable[object]]) -> None:
            begun = time.monotonic()
            await act()
            took = time.monotonic() - begun
            print(f"{cluster.spec.version} {what}: {offsets} offsets, {took:.2f} s, {offsets / took:,.0f} a second")

        async def one_by_one() -> None:
            for _ in range(300):
                assert await raw.mark(who) == [0]

        async def in_many() -> None:
            for _ in range(20):
                assert set(await raw.mark(who, partitions=range(PARTITIONS))) == {0}

        async def in_one_request() -> None:
            assert set(await raw.mark(*[who] * 2_000)) == {0}

        for partitions in (range(1), range(8)):
            what = f"a record and a marker, one after the other, {len(partitions)} partitions: markers"
            await timed(what, COMMITS * len(partitions), partial(transactions, raw, partitions))
        for partitions in (range(1), range(8), range(PARTITIONS)):
            what = f"a record and a hole by turns, with two readings, {len(partitions)} partitions: holes"
            await timed(what, COMMITS * len(partitions), partial(sparse, raw, partitions))
        await timed("a marker for each request", 300, one_by_one)
        await timed(f"a marker for each of {PARTITIONS} partitions in a request", 20 * PARTITIONS, in_many)
        await timed("2,000 markers for a partition in a request", 2_000, in_one_request)
        begun, name = await raw.end(), f"slot-{TOPIC}"
        payload = empty_payload(EACH)
        slot = await raw.init(name)

        async def bulk() -> None:
            await raw.add(name, slot)
            for number in range(BATCHES):
                batch = empty_batch(slot, number * EACH, payload, EACH)
                assert (await raw.produce(slot, 0, 0, transactional_id=name, batch=batch))[0] == 0
            await raw.abort(name, slot, 1)
            await raw.end_becomes(begun + EACH * BATCHES + 1)

        print(f"{len(payload)} bytes for a batch of {EACH} empty records")
        await timed("an aborted transaction of empty records", EACH * BATCHES + 1, bulk)
        await timed("DeleteRecords", 1, lambda: raw.delete(begun + EACH * BATCHES + 1))

    on_cluster(cluster, work)


async def transactions(raw: Raw, partitions: range) -> None:
    """What small transactions of a source need: a record in each partition, and then their markers."""
    lane = await raw.init()
    for number in range(COMMITS):
        for partition in partitions:
            assert (await raw.produce(lane, number, 1, partition=partition))[0] == 0
        assert set(await raw.mark(lane, partitions=partitions)) == {0}


async def sparse(raw: Raw, partitions: range) -> None:
    """What a writer of compacted topics does: a request with the records of all partitions, one with their markers,
    and the readings after markers, as a consumer and as a replica."""
    lane = await raw.init()
    ends = await ends_of(raw, partitions, -1)
    for number in range(COMMITS):
        assert await produce_all(raw, lane, number, partitions) == {0}
        assert set(await raw.mark(lane, partitions=partitions)) == {0}
        ends = [end + 2 for end in ends]
        assert await ends_of(raw, partitions, -1) == await ends_of(raw, partitions, -2) == ends


async def produce_all(raw: Raw, who: Producer, sequence: int, partitions: range) -> set[int]:
    """One record for each partition in one request; the error codes."""
    identity = ProducerIdentity(producer_id=who.id, producer_epoch=who.epoch, sequence=sequence)
    batch = build_batch([Record(key=b"k", value=b"%d" % sequence)], wall_ms(), identity)
    topic = ProduceRequest.TopicProduceData
    parts = [topic.PartitionProduceData(index=number, records=batch) for number in partitions]
    data = topic(name=raw.topic, topic_id=raw.cluster.topics[raw.topic].topic_id, partition_data=parts)
    request = ProduceRequest(transactional_id=None, acks=-1, timeout_ms=30_000, topic_data=[data], max_version=11)
    answer = await raw.cluster.ask(request, raw.cluster.leader(raw.place(0)))
    return {part.error_code for part in answer.responses[0].partition_responses}


async def ends_of(raw: Raw, partitions: range, replica: int) -> list[int]:
    """ListOffsets of all partitions, as a consumer (-1) or as a replica (-2) asks."""
    topic = ListOffsetsRequest.ListOffsetsTopic
    parts = [
        topic.ListOffsetsPartition(partition_index=number, current_leader_epoch=-1, timestamp=-1)
        for number in partitions
    ]
    request = ListOffsetsRequest(
        replica_id=replica, isolation_level=0, topics=[topic(name=raw.topic, partitions=parts)], timeout_ms=30_000
    )
    answer = await raw.cluster.ask(request, raw.cluster.leader(raw.place(0)))
    found = sorted(answer.topics[0].partitions, key=lambda part: int(part.partition_index))
    return [int(part.offset) for part in found]


def measure_run(source: RunningCluster, target: RunningCluster, begins: int) -> None:
    """Print what a whole run takes whose source's log begins late: with its plan, and few records after them."""
    begin_at(source, TOPIC, begins)
    it = lab(source, target, TOPIC, **PASSES)
    begun = time.monotonic()
    assert it.micro_run().state is RunState.SUCCESS
    took = time.monotonic() - begun
    print(
        f"{target.spec.version} a run that begins with empty records: {begins} offsets, {took:.2f} s, "
        f"{begins / took:,.0f} a second; its plan says {cost_of([(begins, None)])}"
    )


def main(versions: list[str]) -> None:
    """Measure each version by itself."""
    for version in versions or [ClusterSpec(name=TOPIC).version]:
        with TemporaryDirectory() as folder:
            home = Path(folder)
            try:
                target = up(ClusterSpec(name=TOPIC, version=version), home=home)
                measure(target)
                measure_run(up(ClusterSpec(name="begins", version=version), home=home), target, 20 * EACH)
            finally:
                down(home, delete=True)


if __name__ == "__main__":
    main(sys.argv[1:])
