"""Offsets of many partitions: what fails for one is said of it, and the others are listed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from ferry.errors import Refused, Retryable, Unreachable
from ferry.kafka.connect import codes
from ferry.kafka.connect.cluster import Cluster, TopicInfo, event_loop
from ferry.kafka.fetch.offsets import EARLIEST, LATEST, ListedOffsets, group_offsets, list_offsets, listed_offsets
from ferry.kafka.fetch.requests import READ_UNCOMMITTED
from ferry.lane.log_ends import log_ends
from ferry.ledger.progress import LogEnd
from ferry.model import RefusalKind, TopicPartition
from tests.golden import Golden
from tests.pure.net.answers import lead

pytestmark = pytest.mark.usefixtures("skipped_waits")

GOOD, BAD = TopicPartition(topic="orders", partition=0), TopicPartition(topic="orders", partition=1)

Answer = Callable[[TopicPartition], tuple[int, int]]
"""What a broker says of a partition: error code and offset."""


class Scripted(Cluster):
    """Orders-0 is led by broker 1, orders-1 by broker 2; nothing is connected, `brokers_say` is what they answer."""

    def __init__(self) -> None:
        self.brokers_say: dict[int, Answer] = {1: well, 2: well}
        self.leaders = {GOOD: 1, BAD: 2}
        self.asked: Counter[int] = Counter()
        super().__init__(event_loop(), "primary", {"bootstrap_servers": "127.0.0.1:1"}, patience_s=0.3)

    async def refresh(self, topics: Iterable[str] | None) -> dict[str, TopicInfo]:
        lead(self, self.leaders)
        return self.topics

    async def ask(self, request: Any, node: int | None = None, *, timeout_ms: float | None = None) -> Any:
        assert node is not None
        self.asked[node] += 1
        topics = []
        for topic in request.topics:
            parts = []
            for part in topic.partitions:
                code, offset = self.brokers_say[node](TopicPartition(topic.name, part.partition_index))
                parts.append(SimpleNamespace(partition_index=part.partition_index, error_code=code, offset=offset))
            topics.append(SimpleNamespace(name=topic.name, partitions=parts))
        return SimpleNamespace(topics=topics)

    def list(self, *places: TopicPartition) -> ListedOffsets:
        """All at once, as a plan asks."""
        wanted = dict.fromkeys(places, LATEST)
        found: ListedOffsets = self.loop.run(partial(listed_offsets, self, wanted, isolation=READ_UNCOMMITTED))
        return found


def well(place: TopicPartition) -> tuple[int, int]:
    return codes.NONE, 100 + place.partition


def always(code: int) -> Answer:
    return lambda place: (code, -1)


def never(place: TopicPartition) -> tuple[int, int]:
    raise Retryable("cluster primary, broker 2: connection refused")


@pytest.fixture
def cluster() -> Iterator[Scripted]:
    scripted = Scripted()
    yield scripted
    scripted.close()
    scripted.loop.close()


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (always(codes.KAFKA_STORAGE_ERROR), RefusalKind.STORAGE),
        (always(codes.OFFSET_NOT_AVAILABLE), RefusalKind.NO_LEADER),
        (always(-1), RefusalKind.NO_LEADER),
        (always(codes.TOPIC_AUTHORIZATION_FAILED), RefusalKind.NOT_AUTHORIZED),
        (never, RefusalKind.NO_LEADER),
    ],
    ids=["storage", "offset not available", "unknown error", "no permission", "no connection"],
)
def test_what_lasts_is_said_of_its_partition_and_the_others_are_listed(
    cluster: Scripted, answer: Answer, kind: RefusalKind, golden: Golden
) -> None:
    cluster.brokers_say[2] = answer
    listed = cluster.list(GOOD, BAD)
    assert listed.found == {GOOD: 100}
    (unserved,) = listed.failed.values()
    assert (set(listed.failed), unserved.kind) == ({BAD}, kind)
    golden(unserved.why)
    assert cluster.asked[1] == 1, "who has answered is not asked again"
    assert (cluster.asked[2] > 1) is (kind is not RefusalKind.NOT_AUTHORIZED), "a permission is not waited for"


def test_what_passes_is_waited_for(cluster: Scripted) -> None:
    answers = iter([codes.OFFSET_NOT_AVAILABLE, codes.NOT_LEADER_OR_FOLLOWER])

    def settles(place: TopicPartition) -> tuple[int, int]:
        code = next(answers, codes.NONE)
        if code == codes.NOT_LEADER_OR_FOLLOWER:
            cluster.leaders[BAD] = 1
        return code, -1

    cluster.brokers_say[2] = settles
    assert cluster.list(GOOD, BAD) == ListedOffsets(found={GOOD: 100, BAD: 101}, failed={})
    assert cluster.asked == {1: 2, 2: 2}


def test_partitions_without_leader_or_that_vanish_are_neither_found_nor_failed(cluster: Scripted) -> None:
    cluster.leaders[BAD] = -1
    gone = TopicPartition(topic="orders", partition=9)
    assert cluster.list(GOOD, BAD, gone) == ListedOffsets(found={GOOD: 100}, failed={})


def test_a_cluster_none_of_whose_leaders_answers_is_unreachable(cluster: Scripted) -> None:
    cluster.brokers_say = {1: never, 2: never}
    with pytest.raises(Unreachable, match="refused"):
        cluster.list(GOOD, BAD)


@pytest.mark.parametrize(
    ("code", "kind"), [(codes.KAFKA_STORAGE_ERROR, Unreachable), (codes.TOPIC_AUTHORIZATION_FAILED, Refused)]
)
def test_who_needs_each_partition_hears_of_the_one_that_failed(
    cluster: Scripted, code: int, kind: type[Exception], golden: Golden
) -> None:
    cluster.brokers_say[2] = always(code)
    wanted = {GOOD: EARLIEST, BAD: EARLIEST}
    with pytest.raises(kind) as caught:
        cluster.loop.run(partial(list_offsets, cluster, wanted, isolation=READ_UNCOMMITTED))
    golden(caught.value)


class Coordinator(Scripted):
    """Where a group's offsets are asked: the first of orders-1 is in a transaction that is not decided."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[Any] = []

    async def coordinator(self, kind: int, key: str) -> int:
        return 1

    async def ask(self, request: Any, node: int | None = None, *, timeout_ms: float | None = None) -> Any:
        self.requests.append(request)
        undecided = len(self.requests) == 1
        told = [(0, 0, 0), (1, -1 if undecided else 7, codes.UNSTABLE_OFFSET_COMMIT if undecided else 0), (2, -1, 0)]
        parts = [
            SimpleNamespace(partition_index=number, committed_offset=offset, metadata=None, error_code=code)
            for number, offset, code in told
        ]
        return SimpleNamespace(error_code=0, topics=[SimpleNamespace(name="orders", partitions=parts)])


@pytest.mark.parametrize("wait", [True, False])
def test_where_a_group_stands_is_what_is_decided_and_nowhere_is_not_the_first_offset(wait: bool) -> None:
    nowhere = TopicPartition(topic="orders", partition=2)
    cluster = Coordinator()
    try:
        found = cluster.loop.run(lambda: group_offsets(cluster, "g", [GOOD, BAD, nowhere], wait=wait)).found
    finally:
        cluster.close()
        cluster.loop.close()
    assert found == {GOOD: (0, ""), nowhere: None} | ({BAD: (7, "")} if wait else {})
    assert all(one.require_stable for one in cluster.requests)


def test_the_ends_of_logs_are_those_that_the_cluster_shows(cluster: Scripted) -> None:
    cluster.brokers_say[2] = never
    found = cluster.loop.run(partial(log_ends, cluster, [GOOD, BAD]))
    assert found == {GOOD: LogEnd(stable=100, end=100)}
    cluster.brokers_say[1] = never
    assert cluster.loop.run(partial(log_ends, cluster, [GOOD, BAD])) == {}
    asked = cluster.asked.total()
    assert cluster.loop.run(partial(log_ends, cluster, [])) == {}
    assert cluster.asked.total() == asked


class Hiding(Coordinator):
    """Where the login may not see topic `secret`."""

    async def ask(self, request: Any, node: int | None = None, *, timeout_ms: float | None = None) -> Any:
        topics = [
            SimpleNamespace(
                name=one.name,
                partitions=[
                    SimpleNamespace(
                        partition_index=number,
                        committed_offset=7,
                        metadata=None,
                        error_code=codes.TOPIC_AUTHORIZATION_FAILED if one.name == "secret" else 0,
                    )
                    for number in one.partition_indexes
                ],
            )
            for one in request.topics
        ]
        return SimpleNamespace(error_code=0, topics=topics)


def test_offsets_of_a_hidden_topic_are_not_known_and_the_others_are() -> None:
    cluster = Hiding()
    try:
        read = cluster.loop.run(lambda: group_offsets(cluster, "g", [GOOD, TopicPartition("secret", 0)]))
    finally:
        cluster.close()
        cluster.loop.close()
    assert (read.found, read.denied) == ({GOOD: (7, "")}, {"secret"})
    with pytest.raises(Refused, match="secret"):
        read.refuse_denied("backup")
