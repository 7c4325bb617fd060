"""Which broker is asked for what while partitions move, are silent or are not served."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from kafka.future import Future

from ferry.errors import Retryable
from ferry.kafka.connect import codes
from ferry.kafka.connect.cluster import Cluster, TopicInfo, event_loop
from ferry.kafka.fetch import broker_fetcher, source
from ferry.kafka.fetch.fetch_buffer import FetchBuffer
from ferry.kafka.fetch.requests import READ_COMMITTED
from ferry.kafka.fetch.source import SourceReader
from ferry.model import RefusalKind, TopicPartition, code_of
from tests.golden import Golden
from tests.pure.net.answers import OTHER, PLACE, answer, batch, lead, part

END = 10_000
PATIENCE = 10.0

Script = Callable[[int, dict[TopicPartition, int]], Any]


class Brokers(Cluster):
    """Brokers that answer fetches by a script: node and wanted offsets in, an answer or a future of it out.

    Every request takes a second of the clock.
    """

    def __init__(self) -> None:
        super().__init__(event_loop(), "primary", {"bootstrap_servers": "127.0.0.1:1"}, patience_s=PATIENCE)
        self.now = 0.0
        self.asked: list[tuple[int, dict[TopicPartition, int]]] = []
        self.script: Script = lambda *_: answer()
        self.leaders = {PLACE: 1, OTHER: 1}

    async def ask(self, request: Any, node: int | None = None, *, timeout_ms: float | None = None) -> Any:
        assert node is not None
        wanted = {
            TopicPartition(topic=topic.topic, partition=asked.partition): asked.fetch_offset
            for topic in request.topics
            for asked in topic.partitions
        }
        self.now += 1
        self.asked.append((node, wanted))
        await self.loop.sleep(0)
        found = self.script(node, wanted)
        return await found if isinstance(found, Future) else found

    async def refresh(self, topics: Iterable[str] | None) -> dict[str, TopicInfo]:
        lead(self, self.leaders)
        return self.topics


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Brokers]:
    """Broker 1 leads both partitions; the clock is theirs."""
    made = Brokers()
    monkeypatch.setattr(broker_fetcher, "time", SimpleNamespace(monotonic=lambda: made.now))
    monkeypatch.setattr(broker_fetcher, "PAUSE_S", 0)
    yield made
    made.close()
    made.loop.close()


def read_until(brokers: Brokers, condition: Callable[[FetchBuffer], bool]) -> FetchBuffer:
    """Read both partitions until something is true."""
    ranges = {PLACE: (0, END), OTHER: (0, END)}
    reader = SourceReader(brokers, ranges, {}, isolation=READ_COMMITTED, memory_bytes=1 << 30)

    async def work() -> None:
        await reader.start()
        for _ in range(3_000):
            if condition(reader.buffer):
                return
            await brokers.loop.sleep(0)
        raise AssertionError(f"it never came true; asked: {brokers.asked[-20:]}")

    brokers.loop.run(work)
    reader.close()
    return reader.buffer


def served(place: TopicPartition, offset: int) -> SimpleNamespace:
    """Ten more records."""
    return part(place, batch(10, offset), end=END)


@pytest.fixture
def one_feeder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both partitions are in every request."""
    monkeypatch.setattr(source, "FEEDERS_PER_LEADER", [1])


NOT_SERVED = {
    "refused": lambda place: part(place, error_code=codes.NOT_LEADER_OR_FOLLOWER),
    "silent": lambda place: part(place, end=5),
}


@pytest.mark.usefixtures("one_feeder")
@pytest.mark.parametrize("how", NOT_SERVED)
def test_a_partition_that_is_never_served_fails_alone_and_in_time(brokers: Brokers, how: str, golden: Golden) -> None:
    brokers.script = lambda _, wanted: answer(
        *(NOT_SERVED[how](place) if place == PLACE else served(place, at) for place, at in wanted.items())
    )
    buffer = read_until(brokers, lambda buffer: PLACE in buffer.failures)
    assert brokers.now <= PATIENCE + 4, "its neighbour's records do not prolong it"
    assert buffer.failures[PLACE].kind is RefusalKind.NO_LEADER
    assert code_of(buffer.failures[PLACE].message) == "source.not-served"
    golden(buffer.failures[PLACE].message)
    assert OTHER not in buffer.failures
    assert len(buffer.queues[OTHER]) >= PATIENCE


@pytest.mark.usefixtures("one_feeder")
def test_partitions_that_are_served_now_and_then_do_not_use_up_each_others_patience(brokers: Brokers) -> None:
    def in_turn(_: int, wanted: dict[TopicPartition, int]) -> SimpleNamespace:
        refused = PLACE if len(brokers.asked) % 2 else OTHER
        return answer(
            *(NOT_SERVED["refused"](place) if place == refused else served(place, at) for place, at in wanted.items())
        )

    brokers.script = in_turn
    buffer = read_until(brokers, lambda _: brokers.now > 4 * PATIENCE)
    assert not buffer.failures


def test_only_what_has_moved_is_asked_for_anew(brokers: Brokers) -> None:
    waiting = Future()

    def script(node: int, wanted: dict[TopicPartition, int]) -> Any:
        (place, at), *_ = wanted.items()
        if place == OTHER:
            return waiting if at == 0 else answer(part(OTHER, end=END))
        if node == 1:
            brokers.leaders = {PLACE: 2, OTHER: 1}
            return answer(NOT_SERVED["refused"](place))
        if not waiting.is_done:
            waiting.success(answer(served(OTHER, 0)))
        return answer(served(place, at))

    brokers.script = script
    buffer = read_until(brokers, lambda buffer: bool(buffer.queues[PLACE] and buffer.queues[OTHER]))
    assert not buffer.failures
    assert [node for node, wanted in brokers.asked if PLACE in wanted][:2] == [1, 2]
    assert sum(wanted.get(OTHER) == 0 for _, wanted in brokers.asked) == 1, "what was on its way is taken"


@pytest.mark.usefixtures("one_feeder")
def test_a_late_answer_of_the_old_leader_is_dropped(brokers: Brokers) -> None:
    late = Future()

    def script(node: int, wanted: dict[TopicPartition, int]) -> Any:
        if node == 1 and not late.is_done:
            return late
        if not late.is_done:
            late.success(answer(served(PLACE, 0), served(OTHER, 0)))
        return Future()

    brokers.script = script
    ranges = {PLACE: (0, END), OTHER: (0, END)}
    reader = SourceReader(brokers, ranges, {}, isolation=READ_COMMITTED, memory_bytes=1 << 30)

    async def work() -> None:
        await reader.start()
        while not brokers.asked:
            await brokers.loop.sleep(0)
        brokers.leaders = {PLACE: 2, OTHER: 1}
        await brokers.refresh(None)
        reader._fetchers[0]._move([PLACE])
        while not reader.buffer.queues[OTHER]:
            await brokers.loop.sleep(0)

    brokers.loop.run(work)
    reader.close()
    assert not reader.buffer.queues[PLACE]


def test_partitions_that_move_join_the_feeders_that_are_there(brokers: Brokers) -> None:
    brokers.script = lambda *_: Future()
    places = [TopicPartition(topic=PLACE.topic, partition=number) for number in range(9)]
    brokers.leaders = dict.fromkeys(places, 1)
    reader = SourceReader(brokers, dict.fromkeys(places, (0, END)), {}, isolation=READ_COMMITTED, memory_bytes=1 << 30)

    async def work() -> None:
        await reader.start()
        for place in places[:6]:
            brokers.leaders[place] = 2
            await brokers.refresh(None)
            next(fetcher for fetcher in reader._fetchers if place in fetcher.places)._move([place])

    brokers.loop.run(work)
    reader.close()
    assert [(fetcher.node, len(fetcher.places)) for fetcher in reader._fetchers] == [
        *[(1, 1)] * 3,
        (2, 2),
        *[(2, 1)] * 4,
    ]


@pytest.mark.parametrize(
    ("partitions", "fetchers"), [(1, 3), (2, 3), (3, 3), (4, 4), (5, 5), (6, 3), (7, 4), (8, 4), (10, 5), (1_000, 4)]
)
def test_partitions_are_dealt_evenly(partitions: int, fetchers: int) -> None:
    """With one feeder that has two and two that have one, half of the reading would be done by one fetch at a time."""
    assert source.feeders_for(partitions) == fetchers


def test_the_fewer_are_left_the_more_is_asked_for_at_once(brokers: Brokers) -> None:
    brokers.script = lambda *_: Future()
    reader = SourceReader(
        brokers, {PLACE: (0, END), OTHER: (0, END)}, {}, isolation=READ_COMMITTED, memory_bytes=12 << 20
    )
    brokers.loop.run(reader.start)
    assert reader._fetch_bytes() == 3 << 20
    reader._fetchers[0].places.clear()
    assert reader._fetch_bytes() == 6 << 20
    reader.close()


def test_whatever_ends_a_feeder_is_told(brokers: Brokers, golden: Golden) -> None:
    def broken(*_: object) -> Any:
        raise ValueError("not even an answer")

    brokers.script = broken
    ranges = {PLACE: (0, END)}
    reader = SourceReader(brokers, ranges, {}, isolation=READ_COMMITTED, memory_bytes=1 << 30)

    async def work() -> None:
        await reader.start()
        await reader.buffer.news(60)

    with pytest.raises(Retryable) as caught:
        brokers.loop.run(work)
    golden(caught.value)
