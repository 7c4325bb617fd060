"""Flows on test clusters, and an independent reader (confluent-kafka) that compares both sides record by record."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka import Message as KafkaMessage
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic, OffsetSpec
from kafka.protocol.admin import DescribeTransactionsRequest, ListTransactionsRequest

from ferry.config.flow.clients import kafka_python_options
from ferry.config.flow.flow import FlowConfig
from ferry.config.settings import parse_settings
from ferry.copy.slot_end import end_of
from ferry.copy.task import run_slot
from ferry.dev import RunningCluster
from ferry.errors import FerryError
from ferry.features.groups.rules.offset_map import Exact, OffsetMap
from ferry.kafka.connect.cluster import Cluster, event_loop
from ferry.lane.connections import manager_options
from ferry.ledger.ledger import LedgerView, fold
from ferry.ledger.receipts import receipts
from ferry.ledger.report import Report
from ferry.model import Attempt, LedgerRecord, Plan, Receipt
from ferry.plan.options import RunOptions
from ferry.protocol.names import ledger_topic
from ferry.protocol.slot import SlotProgress
from ferry.run.micro_run import MicroRuns, local_origin
from tests.tiers import ANSWER_S, PATIENCE

TRY_S = 10 * PATIENCE
"""How long one client waits for an answer to a request that another client may repeat."""
NO_ANSWER = frozenset((KafkaError._TIMED_OUT, KafkaError._DESTROY_BROKER))
"""What librdkafka says where it is not known what became of a request: also when it gave up a broker meanwhile."""
FENCED = "are currently fenced"
"""In the controller's words for a new topic (ReplicationControlManager) when it has not heard of its brokers lately."""

Row = tuple[int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...], int]
"""Offset, key, value, headers and timestamp (ms)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lab:
    """A flow between two test clusters under aliases of its own, so that tests sharing brokers share no ledger."""

    source: RunningCluster
    target: RunningCluster
    alias: str
    topics: tuple[str, ...]
    settings: Mapping[str, str] = field(default_factory=dict)

    @property
    def target_alias(self) -> str:
        """Alias of the target cluster."""
        return f"t{self.alias}"

    @property
    def text(self) -> str:
        """The flow as a MirrorMaker 2 file."""
        lines = {
            "clusters": f"{self.alias}, {self.target_alias}",
            f"{self.alias}.bootstrap.servers": self.source.bootstrap,
            f"{self.target_alias}.bootstrap.servers": self.target.bootstrap,
            f"{self.alias}->{self.target_alias}.enabled": "true",
            "topics": ", ".join(self.topics),
            "heartbeats.replication.enabled": "false",
            "replication.factor": "1",
            "tasks.max": "2",
            **self.settings,
        }
        return "".join(f"{key} = {value}\n" for key, value in lines.items())

    def write(self, folder: Path) -> Path:
        """The file on disk."""
        path = folder / f"{self.alias}.properties"
        path.write_text(self.text)
        return path

    @property
    def flow(self) -> FlowConfig:
        """The flow's configuration."""
        return parse_settings(self.text, "lab.properties").flow(f"{self.alias}->{self.target_alias}")

    def runs(self, patience_s: float = ANSWER_S) -> MicroRuns:
        """Connections for micro-runs; a context manager."""
        return MicroRuns(self.flow, patience_s=patience_s)

    def target_topic(self, topic: str) -> str:
        """Name of a source topic's copy."""
        return f"{self.alias}.{topic}"

    def micro_run(self, options: RunOptions | None = None) -> Report:
        """Plan, copy every slot in this process, report."""
        with self.runs() as runs:
            plan = runs.open_run(f"run-{secrets.token_hex(4)}", local_origin(), options or RunOptions())
            return self.copy(runs, plan)

    def copy(self, runs: MicroRuns, plan: Plan) -> Report:
        """Copy every slot of a plan, record the outcome, report."""
        attempt = runs.begin(plan, local_origin())
        ends = [end_of(slot, self.copy_slot(runs, plan, slot, attempt)) for slot in plan.used_slots]
        runs.record_outcome(plan, attempt, ends)
        return runs.report(plan.run)

    def copy_slot(self, runs: MicroRuns, plan: Plan, slot: int, attempt: Attempt | None = None) -> SlotProgress:
        """Copy one slot in this process, in an attempt of its own unless one is given."""
        spec = runs.slot_task(plan, slot, attempt or runs.begin(plan, local_origin()))
        return run_slot(spec, lambda: False, lambda _: None)

    def receipts(self) -> list[Receipt]:
        """All committed receipts of the flow."""
        with self.runs() as runs:
            return list(receipts(settled(runs)))

    def assert_equal(
        self, *, upto: Mapping[tuple[str, int], int] | None = None, isolation: str = "read_committed"
    ) -> int:
        """Every source record (up to the copied ends) is on the target once, in order, where the ledger says.

        With `isolation` read_uncommitted those of aborted transactions are among them.

        The number of records compared.
        """
        ends: dict[tuple[str, int], int] = {}
        where: dict[tuple[str, int], dict[int, int]] = {}
        written: dict[tuple[str, int], list[Receipt]] = {}
        for receipt in self.receipts():
            place = receipt.source.topic, receipt.source.partition
            written.setdefault(place, []).append(receipt)
            assert ends.get(place, receipt.start) == receipt.start, (
                f"receipts of {place} leave a hole at {receipt.start}"
            )
            ends[place] = receipt.end
            for segment in receipt.segments:
                for index in range(segment.count):
                    where.setdefault(place, {})[segment.source_start + index] = segment.target_start + index
        compared = 0
        topics = sorted({topic for topic, _ in ends})
        sources = read_topics(self.source.bootstrap, topics, isolation=isolation)
        targets = read_topics(self.target.bootstrap, [self.target_topic(topic) for topic in topics])
        for topic in topics:
            target = targets[self.target_topic(topic)]
            for partition, rows in sources[topic].items():
                place = topic, partition
                end = (upto or {}).get(place, ends.get(place, 0))
                wanted = [row for row in rows if row[0] < end]
                got = target.get(partition, [])
                differ = next(((a, b) for a, b in zip(got, wanted, strict=False) if a[1:] != b[1:]), None)
                assert differ is None, f"{topic}-{partition} differs: {differ[0]!s:.200} for {differ[1]!s:.200}"
                assert len(got) == len(wanted), f"{topic}-{partition} differs: {len(got)} records for {len(wanted)}"
                places = where.get(place, {})
                assert [row[0] for row in got] == [places[row[0]] for row in wanted], (
                    f"segments of {topic}-{partition} lie"
                )
                assert len(places) == len(wanted), f"segments of {topic}-{partition} name records that are not there"
                if written.get(place):
                    there, back = OffsetMap.forward(written[place]), OffsetMap.backward(written[place])
                    assert all(there.translate(here) == Exact(offset=places[here]) for here in places)
                    assert all(back.translate(places[here]) == Exact(offset=here) for here in places)
                compared += len(wanted)
        return compared


def ledger_records(runs: MicroRuns) -> tuple[list[LedgerRecord], int]:
    """All records of the ledger, and the offset up to which was read; BadInput when the flow never ran."""

    async def work() -> tuple[list[LedgerRecord], int]:
        await runs.ledger_topic.find()
        return await runs.ledger_topic.read()

    return runs.wait_for(work)


def whole_ledger(runs: MicroRuns) -> LedgerView:
    """The whole ledger, with all receipts; BadInput when the flow never ran."""
    return fold(*ledger_records(runs))


def settled(runs: MicroRuns) -> LedgerView:
    """The ledger, once the markers of what was committed or aborted before this call have arrived.

    A transaction of a writer that is at work, or dead, may be open in it. BadInput when the flow never ran.
    """
    left: set[str] = set()

    def over() -> bool:
        left.clear()
        left.update(closing(runs))
        return not left

    wait_until(over, lambda: f"the markers of {', '.join(sorted(left))}")
    return whole_ledger(runs)


def closing(runs: MicroRuns) -> set[str]:
    """The writers of whose last transaction the end is decided, and the marker in the ledger is still missing.

    Those that a broker coordinates which does not answer are left out.
    """

    async def work() -> set[str]:
        lane = runs.open_lane
        source, ledger = lane.flow.flow.source, ledger_topic(lane.flow.flow.source)
        request = ListTransactionsRequest(state_filters=["PrepareCommit", "PrepareAbort"], producer_id_filters=[])
        found: set[str] = set()
        for node in lane.target.brokers:
            with suppress(FerryError):
                listed = await lane.target.ask(request, node)
                names = {one.transactional_id for one in listed.transaction_states}
                some = sorted(name for name in names if name.startswith(f"ferry.{source}->"))
                if not some:
                    continue
                # A coordinator forgets each partition whose leader has the marker.
                shown = await lane.target.ask(DescribeTransactionsRequest(transactional_ids=some), node)
                for one in shown.transaction_states:
                    if any(topic.topic == ledger for topic in one.topics):
                        found.add(one.transactional_id)
        return found

    return runs.wait_for(work)


def on_cluster(cluster: RunningCluster, work: Callable[[Cluster], Any]) -> Any:
    """Run a coroutine function on a connection of its own."""
    loop = event_loop()
    options = manager_options(kafka_python_options({"bootstrap.servers": cluster.bootstrap}))
    client = Cluster(loop, cluster.name, options, patience_s=ANSWER_S)

    async def act() -> Any:
        await client.open()
        return await work(client)

    try:
        return loop.run(act)
    finally:
        client.close()
        loop.close()


def new_alias() -> str:
    """A cluster alias that no other test uses."""
    return f"c{secrets.token_hex(4)}"


def create_topic(
    cluster: RunningCluster, topic: str, partitions: int = 1, config: Mapping[str, str] | None = None, replicas: int = 1
) -> None:
    """Create a topic and wait until the leaders of all its partitions serve them.

    Brokers list a topic after the controller has confirmed it, and lead its partitions a moment later still.
    """
    create_topics(cluster, [NewTopic(topic, partitions, replicas, config=dict(config or {}))])
    _wait_served(cluster, topic, partitions)


def create_topics(cluster: RunningCluster, topics: Sequence[NewTopic]) -> None:
    """Create topics in one request, again as long as the controller has not heard of a broker for too long."""
    missing = {one.topic: one for one in topics}
    unknown: set[str] = set()

    def created() -> bool:
        # A client for each try: one that got no answer may wait for longer than a test does.
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        for name, answer in admin.create_topics(list(missing.values()), request_timeout=TRY_S).items():
            try:
                answer.result(ANSWER_S)
            except KafkaException as error:
                code, words = error.args[0].code(), error.args[0].str()
                if code in NO_ANSWER:
                    unknown.add(name)
                    continue
                if code == KafkaError.INVALID_REPLICATION_FACTOR and FENCED in words:
                    continue
                if not (name in unknown and code == KafkaError.TOPIC_ALREADY_EXISTS):
                    raise
            del missing[name]
        return not missing

    wait_until(created, "topics that the controller creates")


def _wait_served(cluster: RunningCluster, topic: str, partitions: int) -> None:
    """Until then librdkafka gives one of many errors, of its own or of a broker."""
    wanted = {TopicPartition(topic, number): OffsetSpec.latest() for number in range(partitions)}

    def served() -> bool:
        # A client for each try: one keeps for minutes what a broker said that did not know all partitions yet.
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        try:
            return all(answer.result(ANSWER_S) for answer in admin.list_offsets(wanted).values())
        except KafkaException:
            return False

    wait_until(served, "leaders of all partitions")


def grow_topic(cluster: RunningCluster, topic: str, partitions: int) -> None:
    """Raise a topic's number of partitions."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.create_partitions([NewPartitions(topic, partitions)])[topic].result(ANSWER_S)
    _wait_served(cluster, topic, partitions)


def delete_topic(cluster: RunningCluster, topic: str) -> None:
    """Delete a topic."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})  # held: its answers die with it
    admin.delete_topics([topic])[topic].result(ANSWER_S)


def producer(cluster: RunningCluster, **settings: str | int | bool) -> Producer:
    """A librdkafka producer; underscores in setting names stand for dots."""
    return Producer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "linger.ms": 5,
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A record to produce; timestamp 0 is now."""

    value: bytes | None
    key: bytes | None = None
    partition: int = 0
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp: int = 0


def send(client: Producer, topic: str, messages: Iterable[Message]) -> None:
    """Produce and wait for all acknowledgements."""
    failures: list[KafkaError] = []
    # Messages of a topic not heard of wait elsewhere, and a flush sends the first of them before the rest has moved.
    client.list_topics(topic, timeout=ANSWER_S)

    def delivered(error: KafkaError | None, _: object) -> None:
        if error is not None:
            failures.append(error)

    for message in messages:
        while True:
            try:
                client.produce(
                    topic,
                    value=message.value,
                    key=message.key,
                    partition=message.partition,
                    headers=list(message.headers),
                    timestamp=message.timestamp,
                    on_delivery=delivered,
                )
            except BufferError:
                client.poll(0.1)
            else:
                break
        client.poll(0)
    assert client.flush(6 * ANSWER_S) == 0
    assert not failures, failures[:3]


def read_topic(bootstrap: str, topic: str, *, isolation: str = "read_committed") -> dict[int, list[Row]]:
    """All records of a topic per partition, by librdkafka, up to what is committed now."""
    return read_topics(bootstrap, [topic], isolation=isolation)[topic]


def read_topics(
    bootstrap: str, topics: Sequence[str], *, isolation: str = "read_committed"
) -> dict[str, dict[int, list[Row]]]:
    """The same of several topics at once."""
    if not topics:
        return {}
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"reader-{secrets.token_hex(4)}",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": isolation,
            "auto.offset.reset": "error",
            "fetch.wait.max.ms": 10,  # the end of a partition is an answer without records
        }
    )
    try:
        rows: dict[str, dict[int, list[Row]]] = {}
        for topic in topics:
            metadata = consumer.list_topics(topic, timeout=ANSWER_S).topics[topic]
            assert metadata.error is None, metadata.error
            rows[topic] = {number: [] for number in metadata.partitions}
        places = [(topic, number) for topic in topics for number in rows[topic]]
        consumer.assign([TopicPartition(topic, number, _begin(consumer, topic, number)) for topic, number in places])
        waiting = set(places)
        patience = time.monotonic() + 60 * PATIENCE
        while waiting:
            # With a timeout, consume() waits for all of so many messages.
            first = consumer.poll(0.2)
            messages = [] if first is None else [first, *consumer.consume(10_000, timeout=0)]
            assert messages or time.monotonic() < patience, f"{bootstrap}: no end of partitions {waiting}"
            for message in messages:
                error = message.error()
                if error is not None:
                    assert error.code() == KafkaError._PARTITION_EOF, error
                    waiting.discard((message.topic(), message.partition()))
                    continue
                topic, number, row = _row(message)
                rows[topic][number].append(row)
        return rows
    finally:
        consumer.close()


def commit_offsets(
    cluster: RunningCluster, group: str, offsets: Mapping[tuple[str, int], int], *, metadata: str = ""
) -> None:
    """Commit a group's offsets from outside, as an operator's tool does; the group must have no members."""
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": group})
    try:
        places = [TopicPartition(*place, offset, metadata=metadata) for place, offset in offsets.items()]
        consumer.commit(offsets=places, asynchronous=False)
    finally:
        consumer.close()


def committed_offsets(cluster: RunningCluster, group: str, topic: str, partitions: int) -> dict[int, int]:
    """Where a group stands, by partition; without those where it has no offset."""
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": group})
    try:
        found = consumer.committed([TopicPartition(topic, number) for number in range(partitions)], timeout=ANSWER_S)
    finally:
        consumer.close()
    return {place.partition: place.offset for place in found if place.offset >= 0}


def watermark(cluster: RunningCluster, topic: str, partition: int) -> int:
    """Where a partition ends now."""
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "nobody"})
    try:
        return int(consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=ANSWER_S)[1])
    finally:
        consumer.close()


def wait_until(condition: Callable[[], bool], what: str | Callable[[], str], seconds: float = 60) -> None:
    """Poll a condition; fail when it does not come true within `seconds` times FERRY_PATIENCE.

    The failure says `what` it waited for; a function is called then.
    """
    until = time.monotonic() + seconds * PATIENCE
    while not condition():
        said = what if isinstance(what, str) else what()
        assert time.monotonic() < until, f"not within {seconds * PATIENCE:g} s: {said}"
        time.sleep(0.05)


async def awaited(
    loop: Any, condition: Callable[[], Awaitable[bool]], what: str, seconds: float = 60, every_s: float = 0.05
) -> None:
    """As `wait_until`, on the event loop of a connection; the failure says `what` it waited for."""
    until = time.monotonic() + seconds * PATIENCE
    while not await condition():
        assert time.monotonic() < until, f"not within {seconds * PATIENCE:g} s: {what}"
        await loop.sleep(every_s)


def _row(message: KafkaMessage) -> tuple[str, int, Row]:
    """Topic, partition and row of a message that is no error."""
    topic, partition, offset = message.topic(), message.partition(), message.offset()
    assert topic is not None
    assert partition is not None
    assert offset is not None
    headers = cast("list[tuple[str, bytes | None]]", message.headers() or [])  # what is read is never a dict
    return topic, partition, (offset, message.key(), message.value(), tuple(headers), _time(message))


def _time(message: KafkaMessage) -> int:
    """librdkafka says 0 where there is none, as in format v0 (and of 0 in v1), and Kafka's own classes -1."""
    kind, at = message.timestamp()
    return -1 if kind == TIMESTAMP_NOT_AVAILABLE else int(at)


def _begin(consumer: Consumer, topic: str, partition: int) -> int:
    low: int = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=ANSWER_S)[0]
    return low


def numbered(count: int, *, partitions: int = 1, size: int = 100, start: int = 0) -> Sequence[Message]:
    """Records whose value tells their number, spread over partitions in turn."""
    return [
        Message(
            key=f"k{number % 97}".encode(),
            value=f"{number}:".encode().ljust(size, b"x"),
            partition=number % partitions,
        )
        for number in range(start, start + count)
    ]


class Feeder:
    """Produces in the background until it is stopped: a source that never rests."""

    def __init__(self, cluster: RunningCluster, topic: str, *, partitions: int, rate: int = 500) -> None:
        """`rate` is records a second."""
        self._stop = threading.Event()
        self._thread = threading.Thread(
            target=self._feed, args=(producer(cluster), topic, partitions, rate), daemon=True
        )

    def __enter__(self) -> Feeder:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(2 * ANSWER_S)

    def _feed(self, client: Producer, topic: str, partitions: int, rate: int) -> None:
        number = 0
        while not self._stop.wait(0.1):
            send(client, topic, numbered(rate // 10, partitions=partitions, start=number))
            number += rate // 10
