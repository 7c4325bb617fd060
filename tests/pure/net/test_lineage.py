"""A log that was cut below what was read of it is not read on; others are (KIP-320)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ferry.errors import Retryable
from ferry.kafka.connect import codes
from ferry.kafka.connect.cluster import Cluster, TopicInfo, event_loop
from ferry.kafka.fetch.broker_fetcher import BrokerFetcher, NotServed
from ferry.kafka.fetch.epoch_check import Mark
from ferry.kafka.fetch.epochs import ends_of_epochs
from ferry.kafka.fetch.requests import READ_COMMITTED
from ferry.kafka.fetch.source import SourceReader
from ferry.model import RefusalKind, TopicPartition, code_of
from tests.golden import Golden
from tests.pure.net.answers import OTHER, PLACE, answer, batch, lead, part
from tests.said import facts_in


class Brokers(Cluster):
    """One broker, which leads both partitions in leader epoch `epoch` and tells of it when it is asked."""

    def __init__(self) -> None:
        super().__init__(event_loop(), "primary", {"bootstrap_servers": "127.0.0.1:1"})
        self.fetches: list[dict[TopicPartition, tuple[int, int]]] = []
        """Leader epoch and offset of each partition."""
        self.questions: list[dict[TopicPartition, tuple[int, int]]] = []
        """Current and wanted epoch of each partition."""
        self.ends: dict[TopicPartition, int] = {}
        self.error: Retryable | None = None
        self.tell(5)

    async def refresh(self, topics: Iterable[str] | None) -> dict[str, TopicInfo]:
        return self.topics

    def tell(self, epoch: int) -> None:
        """What the metadata say."""
        lead(self, {PLACE: 1, OTHER: 1}, epoch)

    async def ask(self, request: Any, node: int | None = None, *, timeout_ms: float | None = None) -> Any:
        await self.loop.sleep(0)
        asked = {
            TopicPartition(topic=topic.topic, partition=each.partition): each
            for topic in request.topics
            for each in topic.partitions
        }
        if type(request).__name__ == "FetchRequest":
            offsets = {place: (each.current_leader_epoch, each.fetch_offset) for place, each in asked.items()}
            self.fetches.append(offsets)
            return answer(*(part(place, batch(10, offset, 5)) for place, (_, offset) in offsets.items()))
        self.questions.append({place: (each.current_leader_epoch, each.leader_epoch) for place, each in asked.items()})
        if self.error is not None:
            raise self.error
        return SimpleNamespace(
            topics=[
                SimpleNamespace(
                    topic=place.topic,
                    partitions=[
                        SimpleNamespace(
                            partition=place.partition,
                            error_code=0 if place in self.ends else codes.FENCED_LEADER_EPOCH,
                            end_offset=self.ends.get(place, -1),
                        )
                    ],
                )
                for place in asked
            ]
        )


@pytest.fixture
def brokers() -> Iterator[Brokers]:
    """In leader epoch 5."""
    made = Brokers()
    yield made
    made.close()
    made.loop.close()


def feeder_of(brokers: Brokers, marks: Mapping[TopicPartition, Mark], start: int = 20) -> BrokerFetcher:
    """Of the one broker, for offsets up to 100 of both partitions."""
    ranges = {PLACE: (start, 100), OTHER: (start, 100)}
    reader = SourceReader(brokers, ranges, {}, isolation=READ_COMMITTED, memory_bytes=8 << 20, marks=marks)
    made = reader._fetcher(1)
    made.places = dict.fromkeys([PLACE, OTHER])
    return made


def test_a_fetch_names_the_leader_epoch_and_asks_nothing_while_it_is_the_one_that_was_read(brokers: Brokers) -> None:
    fetcher = feeder_of(brokers, {PLACE: Mark(5, 20)})
    brokers.loop.run(fetcher._fetch)
    brokers.loop.run(fetcher._fetch)
    assert brokers.fetches == [{PLACE: (5, 20), OTHER: (5, 20)}, {PLACE: (5, 30), OTHER: (5, 30)}]
    assert brokers.questions == []
    assert fetcher._buffer.marks == {PLACE: Mark(5, 40), OTHER: Mark(5, 40)}


@pytest.mark.parametrize(("end", "is_cut"), [(0, True), (19, True), (20, False), (25, False), (-1, False)])
def test_an_attempt_looks_at_the_log_before_its_first_fetch(
    brokers: Brokers, end: int, is_cut: bool, golden: Golden
) -> None:
    brokers.ends = {PLACE: end}
    fetcher = feeder_of(brokers, {PLACE: Mark(3, 20)})
    brokers.loop.run(fetcher._fetch)
    assert brokers.questions == [{PLACE: (5, 3)}]
    assert brokers.fetches == [{OTHER: (5, 20)} if is_cut else {PLACE: (5, 20), OTHER: (5, 20)}]
    assert list(fetcher._buffer.failures) == ([PLACE] if is_cut else [])
    if is_cut:
        failure = fetcher._buffer.failures[PLACE]
        assert (failure.kind, failure.offset) == (RefusalKind.SOURCE_TRUNCATED, 20)
        facts = {"source": str(PLACE), "cluster": "primary", "end": 20, "cut": end, "epoch": 3}
        assert (code_of(failure.message), facts_in(failure.message)) == ("source.truncated.read", facts)
        golden(failure.message)
        assert fetcher._buffer.arrived[0] == PLACE, "the writer hears of it"


def test_a_log_that_is_cut_in_the_middle_of_an_attempt_is_read_no_further(brokers: Brokers) -> None:
    fetcher = feeder_of(brokers, {}, start=0)
    brokers.loop.run(fetcher._fetch)
    brokers.tell(6)
    brokers.ends = {PLACE: 4, OTHER: 10}
    brokers.loop.run(fetcher._fetch)
    assert brokers.questions == [{PLACE: (6, 5), OTHER: (6, 5)}]
    assert brokers.fetches == [{PLACE: (5, 0), OTHER: (5, 0)}, {OTHER: (6, 10)}]
    assert fetcher._buffer.failures[PLACE].kind is RefusalKind.SOURCE_TRUNCATED
    assert len(fetcher._buffer.queues[PLACE]) == 1, "what came before it is copied"


@pytest.mark.parametrize("error", [None, Retryable("no answer")], ids=["not of this one", "no answer"])
def test_what_nobody_tells_of_is_not_read_and_keeps_no_other_from_it(
    brokers: Brokers, error: Retryable | None, golden: Golden
) -> None:
    brokers.error = error
    fetcher = feeder_of(brokers, {PLACE: Mark(3, 20)})
    with pytest.raises(NotServed) as caught:
        brokers.loop.run(fetcher._fetch)
    golden(caught.value)
    assert caught.value.places == [PLACE]
    assert brokers.fetches == [{OTHER: (5, 20)}]
    assert not fetcher._buffer.failures


def test_metadata_that_went_on_since_the_look_do_not_change_what_a_fetch_names(brokers: Brokers) -> None:
    fetcher = feeder_of(brokers, {})
    brokers.loop.run(fetcher._look_at_logs)
    request = fetcher._request({PLACE: 20}, 1 << 20)
    brokers.tell(6)
    assert request.topics[0].partitions[0].current_leader_epoch == 5
    assert fetcher._request({PLACE: 20}, 1 << 20).topics[0].partitions[0].current_leader_epoch == 5
    assert not fetcher._lineage.is_sound(PLACE)


def test_a_hole_at_the_end_is_vouched_for_by_what_lies_behind_it_or_by_the_leader(brokers: Brokers) -> None:
    fetcher = feeder_of(brokers, {PLACE: Mark(3, 20)})
    buffer = fetcher._buffer
    buffer.marks[OTHER] = Mark(4, 70)
    brokers.ends = {PLACE: 25, OTHER: 70}
    brokers.loop.run(fetcher._look_at_logs)
    request = fetcher._request({PLACE: 20}, 1 << 20)
    behind = answer(part(PLACE, batch(10, 100, 5), end=110))
    brokers.loop.run(lambda: fetcher._take_in(request, behind))
    assert (PLACE in buffer.finished, buffer.marks[PLACE]) == (True, Mark(5, 100))
    buffer.finish_empty(OTHER, fetcher._lineage.epoch(OTHER))
    assert (OTHER in buffer.finished, buffer.marks[OTHER]) == (True, Mark(5, 100))


def test_each_of_several_epochs_of_a_log_is_asked_about(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[TopicPartition, int]] = []

    async def told(_: object, epochs: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        asked.append(dict(epochs))
        return {place: 10 * epoch for place, epoch in epochs.items() if epoch != 3}

    monkeypatch.setattr("ferry.kafka.fetch.epochs.epoch_ends", told)
    wanted = [(PLACE, 1), (OTHER, 2), (PLACE, 3), (PLACE, 4)]
    found = asyncio.run(ends_of_epochs(cast("Cluster", None), wanted))
    assert found == {(PLACE, 1): 10, (OTHER, 2): 20, (PLACE, 4): 40}, "one has no answer"
    assert sorted(one for each in asked for one in each.items()) == sorted(wanted)
