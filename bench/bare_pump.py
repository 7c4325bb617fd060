"""The least that copying can cost: fetch and produce the same bytes, with nothing else.

No transaction, no checksum, no guard, no receipt: base offsets are set to 0, as the broker requires. That is all. It
uses Ferry's connections, so that the difference to the engine is what the engine does in addition.

    python bench/bare_pump.py SOURCE TARGET TOPIC TARGET_TOPIC      copies when a line arrives on standard input

It answers with one line of JSON, which is `null` if a request has no answer: the target topic is of no use then.
"""

from __future__ import annotations

import json
import struct
import sys
from collections import deque
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from kafka.protocol.consumer import FetchRequest, ListOffsetsRequest
from kafka.protocol.metadata import MetadataRequest
from usage import Stopwatch

from ferry.kafka.connect.cluster import event_loop
from ferry.kafka.connect.frames import produce_request
from ferry.kafka.connect.manager import ConnectionManager

FETCH_BYTES = 8 << 20
QUEUE_BYTES = 8 << 20
REQUEST_BYTES = 8 << 20
IN_FLIGHT = 5
PATIENCE_S = 600
PAUSE_S = 0.002
SIZE = struct.Struct(">i")


class Unanswered(Exception):
    """A request has no answer. Batches that it was to write may be written or not."""


class Side:
    """One cluster with one broker."""

    def __init__(self, loop: Any, bootstrap: str, topic: str) -> None:
        self._loop = loop
        self.topic = topic
        self.topic_id: Any = None
        self.partitions: list[int] = []
        self._manager = ConnectionManager(
            loop,
            bootstrap_servers=[bootstrap],
            receive_message_max_bytes=1 << 30,
            max_in_flight_requests_per_connection=64,
            request_timeout_ms=PATIENCE_S * 1000,
        )

    async def open(self) -> None:
        """Connect, and read the topic's metadata."""
        await self._manager.bootstrap_async(timeout_ms=PATIENCE_S * 1000)
        wanted = MetadataRequest.MetadataRequestTopic(topic_id=None, name=self.topic)
        while True:
            request = MetadataRequest(topics=[wanted], allow_auto_topic_creation=False)
            (found,) = (await self._manager.send(request)).topics
            if found.partitions and all(part.leader_id >= 0 for part in found.partitions):
                break
            await self._loop.sleep(0.05)
        self.topic_id, self.partitions = found.topic_id, [part.partition_index for part in found.partitions]
        self._node = found.partitions[0].leader_id

    async def submit(self, request: Any) -> Any:
        """Send a request to the one broker; return the future of its answer."""
        connection = self._manager.get_connection(self._node)
        if connection.initializing:
            await connection
        # As many requests as allowed are in flight; one more would fail at once. A lost connection stays paused.
        while connection.paused and connection.connected:
            await self._loop.sleep(PAUSE_S)
        return connection.send_request(request)

    async def ends(self) -> dict[int, int]:
        """Return the end offset of each partition. Raises Unanswered."""
        asked = ListOffsetsRequest.ListOffsetsTopic
        topic = asked(
            name=self.topic,
            partitions=[
                asked.ListOffsetsPartition(partition_index=number, current_leader_epoch=-1, timestamp=-1)
                for number in self.partitions
            ],
        )
        request = ListOffsetsRequest(replica_id=-1, isolation_level=0, topics=[topic], timeout_ms=30_000)
        answer = await answer_to(await self.submit(request))
        if answer is None:
            raise Unanswered
        return {part.partition_index: part.offset for part in answer.topics[0].partitions}


def batches(buffer: Any) -> Any:
    """Iterate over the whole batches of a fetched buffer, with the offset after each."""
    view, at = memoryview(buffer), 0
    while at + 61 <= len(view):
        size = 12 + SIZE.unpack_from(view, at + 8)[0]
        if at + size > len(view):
            return
        base, delta = struct.unpack_from(">q", view, at)[0], SIZE.unpack_from(view, at + 23)[0]
        yield view[at : at + size], base + delta + 1
        at += size


def fetch_request(source: Side, position: dict[int, int]) -> FetchRequest:
    """Make a request for the next piece of some partitions."""
    part = FetchRequest.FetchTopic.FetchPartition
    parts = [
        part(
            partition=number,
            current_leader_epoch=-1,
            fetch_offset=at,
            last_fetched_epoch=-1,
            log_start_offset=-1,
            partition_max_bytes=FETCH_BYTES,
        )
        for number, at in position.items()
    ]
    return FetchRequest(
        replica_id=-1,
        max_wait_ms=500,
        min_bytes=1,
        max_bytes=FETCH_BYTES,
        isolation_level=0,
        session_id=0,
        session_epoch=-1,
        topics=[FetchRequest.FetchTopic(topic=source.topic, topic_id=source.topic_id, partitions=parts)],
        forgotten_topics_data=[],
        rack_id="",
    )


def next_request(queues: dict[int, deque[Any]]) -> list[tuple[int, Any]]:
    """Return one batch of each partition that has one, up to the request's limit, with base offsets set to 0."""
    parts, filled = [], 0
    for number, queue in queues.items():
        if queue and (not filled or filled + len(queue[0]) <= REQUEST_BYTES):
            batch = queue.popleft()
            batch[:8] = bytes(8)  # in place: the connection passes views that can be written
            parts.append((number, batch))
            filled += len(batch)
    return parts


async def answer_to(sent: Any) -> Any:
    """Wait for the answer to a request; None if there is none.

    kafka-python's future returns None to a waiter that is woken before the answer has come: it waits again.
    """
    answer = await sent
    while not sent.is_done:
        answer = await sent
    return answer


async def topics_of(sent: Any) -> Any:
    """Wait for the answer to a request; return its topics, which are empty if there is no answer."""
    answer = await answer_to(sent)
    return () if answer is None else answer.responses or ()


async def settle(flying: deque[Any]) -> None:
    """Wait for the oldest answer. Raises Unanswered if there is none."""
    topics = await topics_of(flying.popleft())
    if not topics:
        raise Unanswered
    for part in topics[0].partition_responses:
        assert part.error_code == 0, part


async def copy(source: Side, target: Side) -> int:
    """Copy everything; return the bytes copied. Each partition has a fetch in flight while too little is queued.

    Raises Unanswered if the end offsets or a produce request have no answer.
    """
    position = dict.fromkeys(source.partitions, 0)
    ends = await source.ends()
    queues: dict[int, deque[Any]] = {number: deque() for number in source.partitions}
    ahead: dict[int, Any] = {}
    flying: deque[Any] = deque()
    copied = 0

    async def take_in(number: int) -> None:
        topics = await topics_of(ahead.pop(number))  # awaited, so that a failure is raised
        for part in topics[0].partitions if topics else ():  # without an answer the same fetch is sent again
            for batch, following in batches(part.records or b""):
                queues[number].append(batch)
                position[number] = following

    while any(queues.values()) or any(at < ends[number] for number, at in position.items()):
        for number in [number for number, answer in ahead.items() if answer.is_done]:
            await take_in(number)
        for number, at in position.items():
            if number not in ahead and at < ends[number] and sum(map(len, queues[number])) < QUEUE_BYTES:
                ahead[number] = await source.submit(fetch_request(source, {number: at}))
        parts = next_request(queues)
        if parts:
            while len(flying) >= IN_FLIGHT:
                await settle(flying)
            request = produce_request(None, [(target.topic, target.topic_id, parts)], max_version=None)
            flying.append(await target.submit(request))
            copied += sum(len(batch) for _, batch in parts)
        elif ahead:
            await next(iter(ahead.values()))
    while flying:
        await settle(flying)
    return copied


def main(source_address: str, target_address: str, topic: str, target_topic: str) -> None:
    """Connect, wait for the line, copy."""
    loop = event_loop()
    source, target = Side(loop, source_address, topic), Side(loop, target_address, target_topic)
    loop.run(source.open)
    loop.run(target.open)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    watch = Stopwatch()
    answer: dict[str, Any] | None = None
    with suppress(Unanswered):
        copied = loop.run(copy, source, target)
        answer = {"usage": asdict(watch.usage()), "bytes": copied}
    sys.stdout.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
