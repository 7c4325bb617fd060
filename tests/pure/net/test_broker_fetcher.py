"""What a feeder makes of fetch answers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest
from kafka.protocol.consumer import FetchRequest

from ferry.config.client_options import FetchOptions
from ferry.errors import Retryable, Unreachable
from ferry.kafka.connect import codes
from ferry.kafka.connect.cluster import Cluster, event_loop
from ferry.kafka.fetch.broker_fetcher import BrokerFetcher, NotServed
from ferry.kafka.fetch.fetch_buffer import ReadFailure
from ferry.kafka.fetch.offsets import ListedOffsets
from ferry.kafka.fetch.out_of_range import lost_range
from ferry.kafka.fetch.requests import READ_COMMITTED
from ferry.kafka.fetch.source import SourceReader
from ferry.model import Fact, RefusalKind, TopicPartition, code_of
from ferry.model.observed import Unavailable
from tests.golden import Golden
from tests.pure.net.answers import OTHER, PLACE, answer, batch, lead, part
from tests.said import facts_in

UNSERVED = Unavailable(kind=RefusalKind.NO_LEADER, why="its broker answers nonsense")


@pytest.fixture
def fetcher() -> Iterator[BrokerFetcher]:
    """A feeder of broker 1 for offsets 0 to 100 of two partitions, not connected: answers are handed to it."""
    loop = event_loop()
    cluster = Cluster(loop, "primary", {"bootstrap_servers": "127.0.0.1:1"})
    lead(cluster, {PLACE: 1, OTHER: 1})
    ranges = {PLACE: (0, 100), OTHER: (0, 100)}
    made = SourceReader(cluster, ranges, {}, isolation=READ_COMMITTED, memory_bytes=1 << 20)._fetcher(1)
    made.places = dict.fromkeys([PLACE, OTHER])
    yield made
    cluster.close()
    loop.close()


def take_in(fetcher: BrokerFetcher, *parts: SimpleNamespace) -> None:
    """An answer to a request for all its partitions."""
    request = fetcher._request(dict.fromkeys(fetcher.places, 0), 1 << 20)
    fetcher._cluster.loop.run(partial(fetcher._take_in, request, answer(*parts)))


def test_a_partition_that_is_not_served_keeps_no_other_from_its_batches(fetcher: BrokerFetcher) -> None:
    refused = part(OTHER, error_code=codes.NOT_LEADER_OR_FOLLOWER)
    with pytest.raises(Retryable, match="NotLeader"):
        take_in(fetcher, refused, part(PLACE, batch(10)))
    assert len(fetcher._buffer.queues[PLACE]) == 1
    assert not fetcher._buffer.failures


def test_what_was_given_up_or_handed_over_takes_nothing_more(fetcher: BrokerFetcher) -> None:
    failure = ReadFailure(kind=RefusalKind.NEEDS_TRANSCODING, message="why", offset=0)
    fetcher._buffer.give_up(PLACE, failure)
    del fetcher.places[OTHER]
    take_in(fetcher, part(PLACE, batch(10)), part(OTHER, batch(10)))
    assert not any(fetcher._buffer.queues.values())


def edges(begin: int, end: int, failed: Mapping[TopicPartition, Unavailable] | None = None) -> Callable[..., Any]:
    """Every log begins and ends there."""

    async def log_edges(cluster: Cluster, places: Iterable[TopicPartition]) -> tuple[ListedOffsets, ListedOffsets]:
        found = [place for place in places if place not in (failed or {})]
        begins = ListedOffsets(found=dict.fromkeys(found, begin), failed=dict(failed or {}))
        return begins, ListedOffsets(found=dict.fromkeys(found, end), failed={})

    return log_edges


def test_a_nearer_replica_is_read_until_it_fails(fetcher: BrokerFetcher, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ferry.kafka.fetch.broker_fetcher.log_edges", edges(0, 5))
    fetcher._buffer.positions[PLACE] = 6
    handed: list[TopicPartition] = []
    fetcher._hand_over = handed.extend
    take_in(fetcher, part(PLACE, nearer=2), part(OTHER, batch(10)))
    assert not fetcher._buffer.finished, "an answer without records is no end of the range when it names a replica"
    assert (handed, list(fetcher.places)) == ([PLACE], [OTHER])
    routes = fetcher._routes
    assert routes.node(PLACE) == 2
    fetcher.node, fetcher.places = 2, {PLACE: None}
    behind = part(PLACE, error_code=codes.OFFSET_OUT_OF_RANGE)
    with pytest.raises(Retryable, match="OffsetOutOfRange"):  # the follower lags: its leader decides
        take_in(fetcher, behind)
    assert not fetcher._buffer.failures
    routes.back_to_leader([PLACE])
    assert (routes.node(PLACE), routes.prefer({PLACE: 2})) == (1, []), "it is not tried again"
    take_in(fetcher, behind)
    assert fetcher._buffer.failures[PLACE].kind is RefusalKind.SOURCE_TRUNCATED


@pytest.mark.parametrize(
    ("begin", "end", "kind", "code", "facts"),
    [
        (61, 200, RefusalKind.RETENTION_PASSED, "source.retention-passed.since-plan", {"log_start": 61, "last": 60}),
        (21, 200, RefusalKind.RETENTION_PASSED, "source.retention-passed.since-plan.one", {"log_start": 21}),
        (300, 300, RefusalKind.RETENTION_PASSED, "source.retention-passed.since-plan", {"log_start": 300, "last": 99}),
        (0, 19, RefusalKind.SOURCE_TRUNCATED, "source.shorter.since-plan", {"log_end": 19, "last": 99}),
    ],
    ids=["some deleted", "one deleted", "all deleted", "cut"],
)
def test_what_is_out_of_range_was_deleted_or_cut_off_as_the_logs_edges_tell(
    fetcher: BrokerFetcher,
    monkeypatch: pytest.MonkeyPatch,
    begin: int,
    end: int,
    kind: RefusalKind,
    code: str,
    facts: dict[str, Fact],
    golden: Golden,
) -> None:
    """The answer itself has -1 for its high watermark and its log's start."""
    monkeypatch.setattr("ferry.kafka.fetch.broker_fetcher.log_edges", edges(begin, end))
    fetcher._buffer.positions[PLACE] = 20
    take_in(fetcher, part(PLACE, error_code=codes.OFFSET_OUT_OF_RANGE), part(OTHER, batch(10)))
    failure = fetcher._buffer.failures[PLACE]
    assert (failure.kind, failure.offset) == (kind, 20)
    assert code_of(failure.message) == code
    assert facts_in(failure.message) == {"source": str(PLACE), "cluster": "primary", "start": 20, **facts}
    golden(failure.message)
    assert len(fetcher._buffer.queues[OTHER]) == 1


@pytest.mark.parametrize(
    ("edges_now", "kind"),
    [
        ((20, 200), None),
        ((21, 200), RefusalKind.RETENTION_PASSED),
        ((0, 20), None),  # the next record is the one that is due
        ((0, 19), RefusalKind.SOURCE_TRUNCATED),
    ],
)
def test_an_offset_at_an_edge_of_its_log_is_not_lost(edges_now: tuple[int, int], kind: RefusalKind | None) -> None:
    found = lost_range(PLACE, "primary", (20, 100), edges_now)
    assert (None if found is None else found[0]) is kind


@pytest.mark.parametrize("answers", [True, False], ids=["its log answers", "its log does not answer"])
def test_an_offset_that_its_log_has_after_all_is_asked_for_again(
    fetcher: BrokerFetcher, monkeypatch: pytest.MonkeyPatch, answers: bool, golden: Golden
) -> None:
    monkeypatch.setattr(
        "ferry.kafka.fetch.broker_fetcher.log_edges", edges(0, 200, None if answers else {PLACE: UNSERVED})
    )
    with pytest.raises(NotServed) as caught:
        take_in(fetcher, part(PLACE, error_code=codes.OFFSET_OUT_OF_RANGE), part(OTHER, batch(10)))
    golden(caught.value)
    assert caught.value.places == [PLACE]
    assert not fetcher._buffer.failures


def test_the_files_bounds_of_a_fetch_are_kept(fetcher: BrokerFetcher) -> None:
    fetcher._options = FetchOptions(max_bytes=70_000, partition_max_bytes=9_000, min_bytes=5, max_wait_ms=7, rack="r")
    request = fetcher._request({PLACE: 0}, 1 << 20)
    (asked,) = request.topics[0].partitions
    assert (request.max_bytes, asked.partition_max_bytes) == (70_000, 9_000)
    assert (request.min_bytes, request.max_wait_ms, request.rack_id) == (5, 7, "r")
    fetcher._buffer._needs[PLACE] = 80_000  # a larger batch comes all the same, as in Java (KIP-74)
    request = fetcher._request({PLACE: 0}, 1 << 20)
    assert (request.max_bytes, request.topics[0].partitions[0].partition_max_bytes) == (80_000, 80_000)


@pytest.mark.parametrize("local_start", [0, 40])
@pytest.mark.parametrize("neighbour", [b"", batch(10)], ids=["nothing at all", "nothing at the front"])
def test_nothing_is_all_there_is_only_where_the_leader_has_the_log_itself(
    fetcher: BrokerFetcher, monkeypatch: pytest.MonkeyPatch, local_start: int, neighbour: bytes, golden: Golden
) -> None:
    async def listed(cluster: Cluster, wanted: dict[TopicPartition, int], *, isolation: int) -> object:
        return ListedOffsets(found=dict.fromkeys(wanted, local_start), failed={})

    monkeypatch.setattr("ferry.kafka.fetch.broker_fetcher.listed_offsets", listed)
    del fetcher.places[OTHER]
    fetcher.places[OTHER] = None
    taking = partial(take_in, fetcher, part(PLACE), part(OTHER, neighbour))
    if local_start:
        with pytest.raises(Retryable) as caught:
            taking()
        golden(caught.value)
        assert PLACE not in fetcher._buffer.finished
    else:
        taking()
        assert PLACE in fetcher._buffer.finished


@pytest.mark.parametrize(
    "said",
    [
        ListedOffsets(found={OTHER: 0}, failed={PLACE: UNSERVED}),
        ListedOffsets(found={OTHER: 0}, failed={}),
        Unreachable("no answer within 60 s"),
    ],
    ids=["its log does not answer", "its log is not in the answer", "no answer"],
)
def test_a_log_whose_start_cannot_be_learned_stops_nothing_else(
    fetcher: BrokerFetcher, monkeypatch: pytest.MonkeyPatch, said: ListedOffsets | Unreachable, golden: Golden
) -> None:
    async def listed(*_: object, **__: object) -> ListedOffsets:
        if isinstance(said, Unreachable):
            raise said
        return said

    monkeypatch.setattr("ferry.kafka.fetch.broker_fetcher.listed_offsets", listed)
    with pytest.raises(NotServed) as caught:
        take_in(fetcher, part(PLACE), part(OTHER))
    golden(caught.value)
    assert PLACE in caught.value.places
    assert not fetcher._buffer.closed
    assert fetcher._buffer.finished == (set() if isinstance(said, Unreachable) else {OTHER})


def test_nothing_behind_others_records_means_nothing(fetcher: BrokerFetcher) -> None:
    take_in(fetcher, part(PLACE, batch(10)), part(OTHER))
    assert not fetcher._buffer.finished


class Gate:
    """A throttle that says what the test says, and remembers what it was told."""

    def __init__(self, admits: int) -> None:
        self.admits = admits
        self.settled: list[tuple[int, int]] = []

    def portion(self, most: int) -> int:
        return most // 2

    async def admit(self, most: int, wanted: Callable[[], bool]) -> int:
        assert most == 1 << 19
        return self.admits if wanted() else 0

    def settle(self, admitted: int, fetched: int) -> None:
        self.settled.append((admitted, fetched))


def test_a_fetch_asks_for_what_the_throttle_admits_and_tells_what_came(
    fetcher: BrokerFetcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, asked = batch(10), []

    async def ask(request: FetchRequest, node: int) -> SimpleNamespace:
        asked.append((request.max_bytes, node))
        return answer(part(PLACE, data + data[:30]))

    monkeypatch.setattr(fetcher._cluster, "ask", ask)
    fetcher._throttle = gate = cast("Any", Gate(5_000))
    fetcher._cluster.loop.run(fetcher._fetch)
    assert asked == [(5_000, 1)]
    assert gate.settled == [(5_000, len(data) + 30)], "what is cut off at the end travels, too"
    assert (len(fetcher._buffer.queues[PLACE]), fetcher._buffer._asked) == (1, 0)


def test_a_fetch_that_is_not_admitted_is_not_sent(fetcher: BrokerFetcher, monkeypatch: pytest.MonkeyPatch) -> None:
    async def ask(*_: object) -> None:
        raise AssertionError("it was sent")

    monkeypatch.setattr(fetcher._cluster, "ask", ask)
    fetcher._throttle = gate = cast("Any", Gate(5_000))
    fetcher._buffer.close()
    fetcher._cluster.loop.run(fetcher._fetch)
    assert gate.settled == [(0, 0)]
