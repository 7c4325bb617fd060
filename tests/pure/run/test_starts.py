"""A partition that cannot be asked at the first run begins as configured when it comes back; no broker is needed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from kafka.protocol.admin import CreatePartitionsRequest, CreateTopicsRequest
from kafka.protocol.consumer import ListOffsetsRequest

from ferry.config.settings import parse_settings
from ferry.errors import Retryable
from ferry.kafka.connect import codes
from ferry.kafka.connect.cluster import Cluster, PartitionInfo, TopicInfo, event_loop
from ferry.kafka.driver_port import KafkaDriver
from ferry.kafka.fetch.offsets import EARLIEST, LATEST
from ferry.kafka.produce.ledger_topic import LedgerTopic
from ferry.lane.ledger_cache import LedgerCaches
from ferry.lane.open_lane import OpenLane
from ferry.ledger.ledger import LedgerView, fold
from ferry.ledger.run_codec import run_record
from ferry.model import LedgerRecord, OpenedRun, Plan, Record, RefusalKind, RunRecord, TopicPartition
from ferry.plan import transform_digest, transforms
from ferry.plan.options import DEFAULT_RUN, RunOptions
from ferry.plan.plan_run import decide_and_change
from ferry.plan.preview import preview, refuses
from ferry.plan.rules.starts import LaneStarts, recorded_starts
from ferry.protocol.driver import Driver
from tests.pure.decide.values import FLOW, LANE, lying, run_of
from tests.said import of_code

pytestmark = pytest.mark.usefixtures("skipped_waits")

SERVED, AWAY = TopicPartition(topic="orders", partition=0), TopicPartition(topic="orders", partition=1)
LATER = TopicPartition(topic="orders", partition=2)
NOBODY, ALIVE, DEAD = -1, 1, 2
LONG_AGO, SOME_TIME = 1_000, 1_700_000_000_000
MASKED = "ferry.transforms = masked\nferry.transform.masked.topics = orders\nferry.transform.masked.where = TRUE\n"


class Scripted(Cluster):
    """Answers from `logs` (a record's timestamp per offset) and `leaders`; broker DEAD answers no question."""

    def __init__(self, loop: Any, alias: str, logs: dict[TopicPartition, list[int]]) -> None:
        self.logs = logs
        self.leaders = dict.fromkeys(logs, ALIVE)
        self.dies_when_asked_for_a_time = False
        self.while_dead: Callable[[], None] = lambda: None
        self.creates = codes.NONE
        super().__init__(loop, alias, {"bootstrap_servers": "127.0.0.1:1"}, patience_s=0.2)

    @property
    def brokers(self) -> tuple[int, ...]:
        return (ALIVE, DEAD)

    async def refresh(self, topics: Iterable[str] | None) -> dict[str, TopicInfo]:
        self.topics = {}
        for place, leader in self.leaders.items():
            info = self.topics.setdefault(
                place.topic, TopicInfo(name=place.topic, topic_id=None, partitions={}, internal=False)
            )
            info.partitions[place.partition] = PartitionInfo(
                partition=place.partition, leader=leader, leader_epoch=0, replicas=(1, 2), in_sync=(1, 2)
            )
        return self.topics

    async def ask(self, request: Any, node: int | None = None, *, timeout_ms: float | None = None) -> Any:
        if isinstance(request, ListOffsetsRequest):
            return self._list(request, node)
        if isinstance(request, CreateTopicsRequest):
            return SimpleNamespace(topics=[self._create(topic.name, topic.num_partitions) for topic in request.topics])
        if isinstance(request, CreatePartitionsRequest):
            return SimpleNamespace(results=[self._create(topic.name, topic.count) for topic in request.topics])
        # Of log directories, settings, quotas, users, ACLs and permissions.
        return SimpleNamespace(
            error_code=0,
            error_message=None,
            results=[],
            topics=[],
            entries=[],
            resources=[],
            authorized_operations=None,
        )

    def _create(self, topic: str, partitions: int) -> Any:
        if not self.creates:
            self.holds(topic, partitions)
        return SimpleNamespace(name=topic, error_code=self.creates, error_message="")

    def holds(self, topic: str, partitions: int) -> None:
        """From now on this cluster has the topic with at least so many partitions."""
        for place in (TopicPartition(topic=topic, partition=number) for number in range(partitions)):
            self.leaders.setdefault(place, ALIVE)
            self.logs.setdefault(place, [])

    def _list(self, request: Any, node: int | None) -> Any:
        topics = []
        for topic in request.topics:
            parts = []
            for part in topic.partitions:
                if node == DEAD:
                    self.while_dead()
                if node == DEAD or (part.timestamp >= 0 and self.dies_when_asked_for_a_time):
                    raise Retryable(f"broker {node}: connection refused")
                log = self.logs[TopicPartition(topic=topic.name, partition=part.partition_index)]
                offset = _listed(log, part.timestamp)
                parts.append(SimpleNamespace(partition_index=part.partition_index, error_code=0, offset=offset))
            topics.append(SimpleNamespace(name=topic.name, partitions=parts))
        return SimpleNamespace(topics=topics)


def _listed(log: list[int], timestamp: int) -> int:
    if timestamp in (EARLIEST, LATEST):
        return 0 if timestamp == EARLIEST else len(log)
    return next((offset for offset, at in enumerate(log) if at >= timestamp), -1)


class Written(LedgerTopic):
    """The ledger as the records appended to it."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster, "a")
        self.records: list[Record] = []

    async def append(self, records: Sequence[Record]) -> int:
        self.records += records
        return len(self.records) - 1

    async def read(self, start: int | None = None, end: int | None = None) -> tuple[list[LedgerRecord], int]:
        return lying(*self.records)[start or 0 :], len(self.records)


class Port(KafkaDriver):
    """The driver writer of a ledger that keeps what is appended."""

    def __init__(self, ledger: Written) -> None:
        super().__init__(ledger, FLOW, LANE, 60_000)
        self._written = ledger

    async def append_in(self, records: Sequence[Record]) -> frozenset[int]:
        last = await self._written.append(records)
        return frozenset(range(last + 1 - len(records), last + 1))

    async def commit(self) -> None:
        """Counts at once."""


class Lane:
    """A flow between two scripted clusters, run after run, with what its plans recorded."""

    def __init__(self, start: str) -> None:
        text = f"clusters = a, b\na.bootstrap.servers = x:1\nb.bootstrap.servers = y:1\na->b.enabled = true\n{start}"
        self.flow = parse_settings(text, "mm2.properties").flow("a->b")
        self.loop = event_loop()
        self.source = Scripted(self.loop, "a", {SERVED: [LONG_AGO] * 50, AWAY: [LONG_AGO] * 70})
        self.target = Scripted(self.loop, "b", {})
        self.ledger = Written(self.target)

    @property
    def view(self) -> LedgerView:
        """The ledger as it is now."""
        return fold(lying(*self.ledger.records), len(self.ledger.records))

    @property
    def opened(self) -> OpenLane:
        """Of a new process: it knows nothing but the ledger."""
        return OpenLane(
            flow=self.flow,
            name=LANE,
            source=self.source,
            target=self.target,
            ledger=self.ledger,
            ledgers=LedgerCaches(),
        )

    def opens(self, *transforms: Mapping[str, str]) -> Plan:
        """One run up to its plan: topics are created, starts and claims are recorded; nothing is copied."""
        return self.opened_by(self.opened, run_of("run"), DEFAULT_RUN, transforms or ({}, {}))

    def opened_by(
        self,
        opened: OpenLane,
        record: RunRecord,
        options: RunOptions,
        transforms: Sequence[Mapping[str, str]] = ({}, {}),
    ) -> Plan:
        """One run of a lane up to its plan, and what it decides in the ledger."""
        driver = Driver(Port(self.ledger), OpenedRun(record=record, generation=1), self.view)

        async def work() -> Plan:
            plan = await decide_and_change(opened, driver, options, *transforms)
            await driver.seal()
            return plan

        plan: Plan = self.loop.run(work)
        return plan

    def preview(self, *, here: bool = True) -> Plan:
        """The plan that a run would have."""
        plan: Plan = self.loop.run(partial(preview, self.opened, self.view, DEFAULT_RUN, here=here))
        return plan

    def plans(self) -> dict[TopicPartition, tuple[int, int]]:
        """The offsets that a run would copy, by partition."""
        return {piece.source: (piece.start, piece.end) for piece in self.opens().slices}


@contextmanager
def lane(start: str) -> Iterator[Lane]:
    made = Lane(start)
    try:
        yield made
    finally:
        made.source.close()
        made.target.close()
        made.loop.close()


def now_ms() -> int:
    return time.time_ns() // 1_000_000


@pytest.mark.parametrize("leader", [NOBODY, DEAD], ids=["leaderless", "unserved"])
@pytest.mark.parametrize(
    ("start", "served", "away"),
    [
        ("ferry.start = latest", (50, 55), (70, 75)),
        ("a.consumer.auto.offset.reset = latest", (50, 55), (70, 75)),
        (f"ferry.start = {SOME_TIME}", (50, 55), (70, 75)),
        ("ferry.start = orders:0:40,orders:1:60", (40, 55), (60, 75)),
        ("ferry.start = orders:0:40", (40, 55), (0, 75)),
        ("ferry.start = earliest", (0, 55), (0, 75)),
    ],
    ids=["latest", "consumer's latest", "a time", "offsets", "no offset given", "earliest"],
)
def test_a_partition_that_could_not_be_asked_at_the_first_run_begins_as_configured(
    start: str, served: tuple[int, int], away: tuple[int, int], leader: int
) -> None:
    with lane(start) as it:
        it.source.leaders[AWAY] = leader
        assert AWAY not in it.plans()
        it.source.leaders[AWAY] = ALIVE
        it.source.leaders[LATER], it.source.logs[LATER] = ALIVE, [LONG_AGO] * 9
        for place in (SERVED, AWAY):
            it.source.logs[place] += [now_ms()] * 5
        assert it.plans() == {SERVED: served, AWAY: away, LATER: (0, 9)}


def test_what_came_while_the_first_run_asked_is_copied() -> None:
    """`latest` counts from before the questions: a broker that does not answer is waited for, and may serve others."""
    with lane("ferry.start = latest") as it:
        it.source.leaders[AWAY] = DEAD
        it.source.while_dead = lambda: it.source.logs[AWAY].append(now_ms())
        it.plans()
        end = len(it.source.logs[AWAY])
        assert end > 71, "asked again and again"
        it.source.leaders[AWAY] = ALIVE
        assert it.plans() == {AWAY: (70, end)}


def test_a_partition_without_younger_records_begins_at_its_end_and_that_end_stays() -> None:
    with lane("ferry.start = latest") as it:
        it.source.leaders[AWAY] = NOBODY
        it.plans()
        assert it.plans() == {}, "still away"
        it.source.leaders[AWAY] = ALIVE
        assert it.plans() == {}
        it.source.logs[AWAY] += [LONG_AGO] * 3
        assert it.plans() == {AWAY: (70, 73)}, "what is appended with an old timestamp is not passed over"


def test_looking_settles_nothing() -> None:
    with lane("ferry.start = latest") as it:
        it.source.leaders[AWAY] = NOBODY
        it.plans()
        it.source.leaders[AWAY] = ALIVE
        it.source.logs[AWAY] += [now_ms()] * 2
        written = list(it.ledger.records)
        assert [(piece.start, piece.end) for piece in it.preview().slices] == [(70, 72)]
        assert it.ledger.records == written


def test_without_pyspark_a_plan_refuses_what_a_run_from_here_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transform_digest, "pyspark_version", lambda: "")
    monkeypatch.setattr(transforms, "pyspark_version", lambda: "")
    with lane(MASKED) as it:
        lost = transforms.transform_digests(it.flow)
        run, shown = it.opens(*lost), it.preview()
        assert {(one.topic, one.kind) for one in run.refusals} == {("orders", RefusalKind.TRANSFORM)}
        assert (shown.refusals, shown.slices) == (run.refusals, ())


def test_a_run_that_would_not_be_opened_is_a_refusal() -> None:
    with lane("ferry.deployment = green") as it:
        assert not refuses(it.preview())
        it.ledger.records.append(run_record(replace(run_of("run"), deployment="blue", config_digest="another")))
        shown = it.preview()
        assert (shown.refusals, len(of_code("run.would-be-refused", shown.notes))) == ((), 1)
        assert refuses(shown)


def test_a_plan_for_a_run_from_elsewhere_says_what_is_not_known_without_pyspark(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(transforms, "pyspark_version", lambda: "")
    with lane(MASKED) as it:
        shown = it.preview(here=False)
        assert (shown.refusals, len(shown.slices)) == ((), 2)
        assert of_code("transform.not-known", shown.notes)


def test_a_start_that_cannot_be_asked_for_is_a_refusal_of_its_partition_and_stays_pending() -> None:
    with lane("ferry.start = latest") as it:
        it.source.leaders[AWAY] = NOBODY
        it.plans()
        it.source.leaders[AWAY] = ALIVE
        it.source.dies_when_asked_for_a_time = True
        for place in (SERVED, AWAY):
            it.source.logs[place] += [now_ms()]
        plan = it.opens()
        assert [(piece.source, piece.start, piece.end) for piece in plan.slices] == [(SERVED, 50, 51)]
        (refusal,) = plan.refusals
        assert (refusal.partition, refusal.kind) == (AWAY.partition, RefusalKind.NO_LEADER)

        assert (refusal.code, "its start" in str(dict(refusal.facts)["why"])) == ("source.unserved", True)
        assert set(recorded_starts(it.view, LANE).pending) == {AWAY}
        it.source.dies_when_asked_for_a_time = False
        assert it.plans() == {SERVED: (50, 51), AWAY: (70, 71)}


def test_a_topic_whose_copy_cannot_be_created_at_the_first_run_begins_as_configured() -> None:
    with lane("ferry.start = latest") as it:
        it.target.creates = codes.TOPIC_AUTHORIZATION_FAILED
        it.source.leaders[AWAY] = NOBODY
        plan = it.opens()
        assert [(refusal.topic, refusal.kind) for refusal in plan.refusals] == [("orders", RefusalKind.NOT_AUTHORIZED)]
        it.source.leaders[AWAY], it.target.creates = ALIVE, codes.NONE
        for place in (SERVED, AWAY):
            it.source.logs[place] += [now_ms()]
        assert it.plans() == {SERVED: (50, 51), AWAY: (70, 71)}


def test_what_is_settled_is_recorded_once() -> None:
    with lane("ferry.start = latest") as it:
        it.source.leaders[AWAY] = NOBODY
        it.plans()
        it.source.leaders[AWAY] = ALIVE
        it.plans()
        assert recorded_starts(it.view, LANE) == LaneStarts(
            offsets={SERVED: 50, AWAY: 70}, passed={SERVED: (0, 50), AWAY: (0, 70)}
        )
        written = list(it.ledger.records)
        it.plans()
        assert it.ledger.records == written
