"""One lane between two scripted clusters: the real driver opens its runs, the real slot copies them."""

from __future__ import annotations

import pickle
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from kafka.future import Future

from ferry.clock import wall_ms
from ferry.copy.kafka_slot import CopyLimits, KafkaSlot, SlotWiring, TargetSlot
from ferry.features.identical.rules.empty import of_markers
from ferry.features.identical.rules.planned import Found, stays_identical, with_identical
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.driver_port import KafkaDriver
from ferry.kafka.fetch.requests import READ_COMMITTED
from ferry.kafka.produce.ledger_topic import LedgerTopic
from ferry.ledger.ledger import UNREAD, LedgerView, fold
from ferry.ledger.map_rows import newer_rows
from ferry.ledger.producer_codec import first_offsets, lane_producer, markings, producer_record, sent_places
from ferry.ledger.receipts import last_receipts
from ferry.ledger.unit_codec import era_record, eras, last_units
from ferry.model import Attempt, LedgerRecord, Origin, Plan, Receipt, Record, RunRecord, TopicPartition, topic_id_text
from ferry.plan.rules.facts import Facts
from ferry.plan.rules.planning import decide_plan
from ferry.plan.rules.planning_rules import Transform
from ferry.protocol.driver import Driver, begin_attempt, fence_and_seal
from ferry.protocol.names import ledger_topic
from ferry.protocol.slot import SlotProgress, SlotRef, copy_slot
from ferry.wire.records import ProducerIdentity, build_batch
from tests.pure.decide import values
from tests.pure.protocol.world import FLOW, LANE, TOPIC, rules
from tests.pure.scripted.batches import led_in, row
from tests.pure.scripted.broker import Brokers
from tests.pure.scripted.wire import scripted

TIMEOUT_MS = 60_000
PortOf = Callable[[SlotWiring], TargetSlot]


class Lane:
    """Topic `orders` at the source, its copy of the same name at the target, and a ledger."""

    at_ms = 0
    """The time of the source's transactional records."""

    def __init__(self, partitions: Sequence[Sequence[int]], *, version: int = 2, nodes: tuple[int, ...] = (1,)) -> None:
        """`partitions`: batch sizes in records for each partition; `version`: of transactions at the target.

        `nodes`: the brokers of each cluster.
        """
        self.source = Brokers(alias=FLOW.source, nodes=nodes)
        self.target = Brokers(alias=FLOW.target, version=version, nodes=nodes)
        for brokers in (self.source, self.target):
            brokers.settings = {"max.message.bytes": "1048588"}
            brokers.topic(TOPIC, len(partitions))
        self.target.topic(ledger_topic(FLOW.source), ledger=True)
        self.sizes = partitions
        self.port: PortOf = KafkaSlot
        self.found: Found | None = None
        """What a plan with identical offsets is compared with; None: offsets are translated."""
        self.most_records: int | None = None
        """How many a run may copy."""
        self.transform: Transform | None = None
        """By what the topic is repartitioned; None: records keep their partition."""
        self.plan: Plan | None = None
        """Of the run that was opened last."""
        self.memory_bytes = 1 << 20
        for number, sizes in enumerate(partitions):
            for size in sizes:
                self.produce(number, size)

    def kept(self) -> bytes:
        """What the clusters have, and the plan of the last run, for `restore`; no requests and no connections."""
        for brokers in (self.source, self.target):
            brokers.asked.clear()
        return pickle.dumps((self.source, self.target, self.plan))

    def restore(self, kept: bytes) -> None:
        """Put back what another lane of this kind kept, before anything is connected."""
        self.source, self.target, self.plan = pickle.loads(kept)

    def produce(self, partition: int, records: int) -> None:
        """A batch at the source; keys are partitions, values offsets."""
        base = self.source.log(TOPIC, partition).end
        rows = [Record(key=b"%d" % partition, value=b"%d" % (base + at)) for at in range(records)]
        batch = led_in(build_batch(rows, 0, ProducerIdentity()), self.source.epochs[place(partition)])
        self.source.append(TOPIC, batch, partition)

    def produce_aborted(self, partition: int, records: int) -> None:
        """A batch of a transaction that is aborted, and its marker, at the source."""
        self._produce_in(partition, records, committed=False)

    def _produce_in(self, partition: int, records: int, *, committed: bool) -> None:
        base, txns = self.source.log(TOPIC, partition).end, self.source.target
        producer, epoch = txns.init_producer("producer")
        rows = [Record(key=b"%d" % partition, value=b"%d" % (base + at)) for at in range(records)]
        identity = ProducerIdentity(producer_id=producer, producer_epoch=epoch, sequence=0, transactional=True)
        self.source.write_in("producer", place(partition), build_batch(rows, self.at_ms, identity))
        txns.end_txn("producer", epoch, committed=committed)
        self.source.deliver_markers()

    def produce_committed(self, partition: int, records: int) -> None:
        """A batch of a transaction that is committed, and its marker, at the source."""
        self._produce_in(partition, records, committed=True)

    def connect(self, clusters: Sequence[Cluster]) -> None:
        """Work over these connections, to source and target."""
        self.clusters = tuple(clusters)
        self._source, self._target = clusters
        self._ledger = LedgerTopic(self._target, FLOW.source)
        for one in clusters:
            one.loop.run(one.refresh, None)

    def view(self) -> LedgerView:
        """The ledger as it is now, read from its log."""
        log = self.target.log(ledger_topic(FLOW.source))
        records = []
        for offset, fate in log.fates(0, log.end).items():
            _, key, value = row(log.entries[offset].payload)
            records.append(
                LedgerRecord(offset=offset, key=key, value=value, fate=fate, producer_id=log.entries[offset].producer)
            )
        return fold(records, log.end)

    def open(self, run: str, slots: int = 1) -> Plan:
        """Open a run of the lane."""
        return self._target.loop.run(self.opening(run, slots, self._target))  # type: ignore[no-any-return]

    def opening(
        self, run: str, slots: int, target: Cluster, known: LedgerView = UNREAD
    ) -> Callable[[], Awaitable[Plan]]:
        """What opens a run over a connection to the target, which has all topics' metadata.

        `known` is the part of the ledger that was read before.
        """
        record = RunRecord(flow=FLOW, lane=LANE, run=run, slots=slots, config_digest="", started_ms=0, origin=Origin())

        async def decide(driver: Driver) -> Plan:
            given = replace(rules(slots, self.most_records), transform_of=lambda _: self.transform)
            plan = decide_plan(given, self._facts(driver.view), run, driver.opened.generation)
            driver.keep(era_record(LANE, era) for era in plan.eras if era.since == plan.generation)
            if self.found is None:
                return stays_identical(plan, sent_places(driver.view, LANE))
            return self._identical(driver, plan, self.found)

        async def work() -> Plan:
            port = KafkaDriver(LedgerTopic(target, FLOW.source), FLOW, LANE, TIMEOUT_MS)
            self.plan = (await fence_and_seal(port, record, decide, known)).plan
            return self.plan

        return work

    def _identical(self, driver: Driver, plan: Plan, found: Found) -> Plan:
        producer = lane_producer(driver.view, LANE) or 9000
        driver.keep([producer_record(LANE, producer_id=producer, run=plan.run, at_ms=0)])
        receipts, sent = last_receipts(driver.view, LANE), first_offsets(driver.view, LANE)
        marked = markings(driver.view, LANE)
        received = of_markers(newer_rows(driver.view, lambda of: of.lane == LANE))
        begins = dict(self.target.begins)
        known = replace(found, receipts=receipts, sent=sent, marked=marked, begins=begins, received=received)
        return with_identical(plan, known, producer)

    def begin(self, plan: Plan) -> Attempt:
        """A copy step of a run begins."""
        return self._target.loop.run(begin_attempt, self._ledger, plan, Origin(), wall_ms())  # type: ignore[no-any-return]

    def copy(self, attempt: Attempt, slot: int = 0, **options: Any) -> SlotProgress:
        """Copy a slot of the plan; `options` as of `start`. Raises as copy_slot."""
        return self._target.loop.run(self.copying(attempt, slot, **options))  # type: ignore[no-any-return]

    def start(self, attempt: Attempt, slot: int = 0, **options: Any) -> Future:
        """Begin to copy a slot, beside what else the loop does; the future result of copy_slot."""
        return self._target.loop.call_soon_with_future(self.copying(attempt, slot, **options))

    def run_until(self, condition: Callable[[], bool]) -> None:
        """Let what was started go on until a condition holds."""

        async def wait() -> None:
            while not condition():
                await self._target.loop.sleep(0.001)

        self._target.loop.run(wait)

    def copying(
        self,
        attempt: Attempt,
        slot: int,
        *,
        chunk_bytes: int = 1 << 20,
        stop: Callable[[], bool] = lambda: False,
        request_bytes: int | None = None,
        result: SlotProgress | None = None,
        committed: Callable[[list[Receipt]], None] = lambda _: None,
        source: Cluster | None = None,
        target: Cluster | None = None,
    ) -> Callable[[], Awaitable[SlotProgress]]:
        """What copies a slot of the plan; by default over the lane's own connections."""
        ref = SlotRef(
            flow=FLOW, lane=LANE, run=attempt.run, generation=attempt.generation, attempt=attempt.number, slot=slot
        )
        limits = CopyLimits(
            memory_bytes=self.memory_bytes,
            chunk_bytes=chunk_bytes,
            chunk_seconds=30,
            transaction_timeout_ms=TIMEOUT_MS,
            isolation=READ_COMMITTED,
            request_bytes=request_bytes,
        )
        port = self.port(
            SlotWiring(
                source=source or self._source,
                target=target or self._target,
                ledger=LedgerTopic(target, FLOW.source) if target else self._ledger,
                ref=ref,
                limits=limits,
                origin=Origin(),
                began_ms=attempt.started_ms,
                stop=stop,
            )
        )

        async def work() -> SlotProgress:
            try:
                return await copy_slot(port, ref, stop, committed, result)
            finally:
                await port.end()

        return work

    def copied(self, partition: int) -> list[int]:
        """The source offsets of what a read_committed consumer gets of the copy, in its order."""
        return [int(row(payload)[2] or b"") for _, payload in self.target.log(TOPIC, partition).committed()]

    def ends(self) -> dict[TopicPartition, int]:
        """Up to which source offset the receipts of the lane say that each partition is copied."""
        return {one.source: one.end for one in last_receipts(self.view(), LANE).values()}

    def is_whole(self) -> bool:
        """Whether each record is in the copy once, in order."""
        return all(self.copied(number) == list(range(sum(sizes))) for number, sizes in enumerate(self.sizes))

    def _facts(self, view: LedgerView) -> Facts:
        def ends(brokers: Brokers) -> list[int]:
            return [brokers.log(TOPIC, number).end for number in range(len(self.sizes))]

        parts = (
            values.part(size_bytes=None, end=end, log_start=self.source.begins.get(place(number), 0))
            for number, end in enumerate(ends(self.source))
        )

        ids = [topic_id_text(brokers.ids[TOPIC]) for brokers in (self.source, self.target)]
        receipts = last_receipts(view, LANE)
        return values.facts_with(
            values.FACTS,
            now_ms=0,
            source={"topics": {TOPIC: values.topic(TOPIC, *parts, topic_id=ids[0])}},
            target={"topics": {TOPIC: values.target(TOPIC, *ends(self.target), topic_id=ids[1])}},
            lane={
                "receipts": receipts,
                "positions": dict.fromkeys(receipts),
                "first_run": True,
                "units": last_units(view, LANE),
                "eras": eras(view, LANE),
            },
        )


@contextmanager
def at_work(lane: Lane) -> Iterator[Lane]:
    """The lane with connections."""
    with scripted(lane.source, lane.target) as (_, clusters):
        lane.connect(clusters)
        yield lane


def place(partition: int = 0) -> TopicPartition:
    """A partition of the topic."""
    return TopicPartition(topic=TOPIC, partition=partition)
