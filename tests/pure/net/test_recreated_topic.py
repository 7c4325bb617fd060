"""A source topic that is created again while it is read: nothing of the new one is taken for the old one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from ferry.kafka.connect import codes
from ferry.kafka.connect.cluster import Cluster, TopicInfo, event_loop
from ferry.kafka.fetch import broker_fetcher, source
from ferry.kafka.fetch.offsets import ListedOffsets
from ferry.kafka.fetch.requests import READ_COMMITTED, fetch_request, fetched
from ferry.kafka.fetch.source import SourceReader
from ferry.model import RefusalKind, TopicPartition, code_of
from ferry.model.topic_id import topic_id_text
from tests.pure.net.answers import OTHER, PLACE, batch, lead, part

OLD, NEW = UUID(int=1), UUID(int=2)
END = 10_000


class Source(Cluster):
    """One broker with a topic of two partitions; `by_name`: it knows no topic ids in fetches (before Kafka 3.1).

    A fetch of the topic of now gets ten records for each partition; one of another id gets an error.
    """

    def __init__(self, topic_id: UUID | None = OLD, *, by_name: bool = False) -> None:
        super().__init__(event_loop(), "primary", {"bootstrap_servers": "127.0.0.1:1"}, patience_s=5.0)
        self.topic_id = topic_id
        self.by_name = by_name
        self.is_there = True
        self.given: dict[TopicPartition, list[UUID | None]] = {PLACE: [], OTHER: []}
        """Of which topic each answer with records was."""
        self.on_fetch: Callable[[int], None] = lambda _: None
        """Hears the number of each fetch before it is answered."""
        self.fetches = 0

    async def ask(self, request: Any, node: int | None = None, *, timeout_ms: float | None = None) -> Any:
        await self.loop.sleep(0)
        self.fetches += 1
        self.on_fetch(self.fetches)
        return SimpleNamespace(error_code=0, responses=[self._answered(topic) for topic in request.topics])

    def _answered(self, topic: Any) -> SimpleNamespace:
        name, topic_id = (topic.topic, None) if self.by_name else ("", topic.topic_id)
        code = codes.UNKNOWN_TOPIC_OR_PARTITION if self.by_name else codes.UNKNOWN_TOPIC_ID
        served = self.is_there and (self.by_name or topic_id == self.topic_id)
        parts = []
        for asked in topic.partitions:
            place = TopicPartition(topic=topic.topic, partition=asked.partition)
            if served:
                self.given[place].append(self.topic_id)
                parts.append(part(place, batch(10, asked.fetch_offset), end=END))
            else:
                parts.append(part(place, error_code=code))
        return SimpleNamespace(topic=name, topic_id=topic_id, partitions=parts)

    async def refresh(self, topics: Iterable[str] | None) -> dict[str, TopicInfo]:
        await self.loop.sleep(0)
        self.tell()
        return self.topics

    def tell(self) -> None:
        """What any request for the metadata brings."""
        if not self.is_there:
            self.topics.clear()
            return
        lead(self, {PLACE: 1, OTHER: 1})
        self.topics[PLACE.topic] = replace(self.topics[PLACE.topic], topic_id=self.topic_id)


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(broker_fetcher, "PAUSE_S", 0)


Open = Callable[[Source], Source]


@pytest.fixture
def made() -> Iterator[Open]:
    """Closes each source that it is given."""
    sources: list[Source] = []

    def keep(one: Source) -> Source:
        sources.append(one)
        return one

    yield keep
    for one in sources:
        one.close()
        one.loop.close()


def read(brokers: Source, planned: UUID | None = OLD) -> SourceReader:
    """Read both partitions until they end or fail."""
    ids = {} if planned is None else {PLACE.topic: topic_id_text(planned)}
    ranges = {PLACE: (0, END), OTHER: (0, END)}
    reader = SourceReader(brokers, ranges, ids, isolation=READ_COMMITTED, memory_bytes=1 << 30)

    async def work() -> None:
        await reader.start()
        for _ in range(20_000):
            if len(reader.buffer.failures) + len(reader.buffer.finished) == len(ranges):
                return
            await brokers.loop.sleep(0)
        raise AssertionError(f"they neither end nor fail: {reader.buffer.positions}")

    brokers.loop.run(work)
    reader.close()
    return reader


def taken(reader: SourceReader) -> dict[TopicPartition, int]:
    """How many answers with records were taken in of each partition."""
    return {place: len(queue) for place, queue in reader.buffer.queues.items()}


def kinds(reader: SourceReader) -> dict[TopicPartition, RefusalKind]:
    return {place: failure.kind for place, failure in reader.buffer.failures.items()}


@pytest.mark.parametrize("planned", [OLD, None], ids=["by the plan's id", "by the id at the start"])
@pytest.mark.parametrize("told", [True, False], ids=["metadata known at once", "metadata old"])
def test_only_the_topic_that_was_planned_is_read(made: Open, planned: UUID | None, told: bool) -> None:
    brokers = made(Source())

    def again(number: int) -> None:
        if number == 7:
            brokers.topic_id = NEW
            if told:  # by any feeder, or by anything else that uses the connection
                brokers.tell()

    brokers.on_fetch = again
    reader = read(brokers, planned)
    assert kinds(reader) == dict.fromkeys([PLACE, OTHER], RefusalKind.TOPIC_RECREATED)
    assert {one for given in brokers.given.values() for one in given} == {OLD}, "nothing of the new topic was asked for"
    assert {code_of(one.message) for one in reader.buffer.failures.values()} == {"source.recreated.since-plan"}


def test_brokers_that_know_no_ids_in_fetches_are_asked_what_an_answer_was_of(made: Open) -> None:
    brokers = made(Source(by_name=True))

    def again(number: int) -> None:
        if number == 7:
            brokers.topic_id = NEW

    brokers.on_fetch = again
    reader = read(brokers)
    assert kinds(reader) == dict.fromkeys([PLACE, OTHER], RefusalKind.TOPIC_RECREATED)
    of_the_old = {place: sum(one == OLD for one in given) for place, given in brokers.given.items()}
    assert NEW in brokers.given[PLACE] + brokers.given[OTHER], "the broker answers for the name"
    assert all(count <= of_the_old[place] for place, count in taken(reader).items())


def test_without_topic_ids_a_topic_that_was_seen_to_be_gone_does_not_come_back(made: Open) -> None:
    brokers = made(Source(None, by_name=True))
    refresh = brokers.refresh

    async def once_gone(topics: Iterable[str] | None) -> dict[str, TopicInfo]:
        await refresh(topics)
        brokers.is_there = True  # it is made again after the look
        return brokers.topics

    def again(number: int) -> None:
        if number == 7:
            brokers.is_there = False
        elif number > 7 and brokers.is_there:
            brokers.tell()

    brokers.refresh = once_gone  # type: ignore[method-assign]
    brokers.on_fetch = again
    reader = read(brokers, None)
    assert kinds(reader) == dict.fromkeys([PLACE, OTHER], RefusalKind.TOPIC_GONE)


def test_a_log_that_ends_early_is_not_called_cut_where_the_topic_was_created_again(
    made: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    brokers = made(Source())

    async def edges(cluster: Cluster, places: Iterable[TopicPartition]) -> tuple[ListedOffsets, ListedOffsets]:
        brokers.topic_id = NEW
        await cluster.refresh(None)  # a request for offsets begins with one for the metadata, and goes by names
        found = list(places)
        return (
            ListedOffsets(found=dict.fromkeys(found, 0), failed={}),
            ListedOffsets(found=dict.fromkeys(found, 1), failed={}),
        )

    monkeypatch.setattr(broker_fetcher, "log_edges", edges)
    answered = brokers._answered

    def outside(topic: Any) -> SimpleNamespace:
        found = answered(topic)
        if brokers.fetches > 4 and brokers.topic_id == OLD:
            for one in found.partitions:
                one.error_code, one.records = codes.OFFSET_OUT_OF_RANGE, b""
        return found

    monkeypatch.setattr(brokers, "_answered", outside)
    assert kinds(read(brokers)) == dict.fromkeys([PLACE, OTHER], RefusalKind.TOPIC_RECREATED)


def test_an_answer_is_resolved_by_the_ids_of_its_request(made: Open) -> None:
    brokers = made(Source())
    brokers.tell()
    request = fetch_request(
        brokers, {PLACE: 0}, isolation=READ_COMMITTED, max_bytes=1, partition_bytes=1, max_wait_ms=0
    )
    brokers.topic_id = NEW
    brokers.tell()
    late = SimpleNamespace(
        responses=[SimpleNamespace(topic="", topic_id=OLD, partitions=[part(PLACE, error_code=codes.UNKNOWN_TOPIC_ID)])]
    )
    (found,) = fetched(request, late)
    assert (found.place, found.error_code) == (PLACE, codes.UNKNOWN_TOPIC_ID)


def test_one_feeder_reads_what_is_left_of_another_topic(made: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "FEEDERS_PER_LEADER", [1])
    brokers = made(Source())
    brokers.on_fetch = lambda number: setattr(brokers, "topic_id", NEW) if number == 3 else None
    reader = read(brokers)
    assert taken(reader) == {PLACE: 2, OTHER: 2}, "what came before is the old topic's"
