"""The ledger topic's answers to a broker that says no."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest
from kafka.protocol.producer import InitProducerIdRequest

from ferry.errors import Refused, Retryable, Unreachable
from ferry.kafka.connect import codes
from ferry.kafka.connect.cluster import Cluster, PartitionInfo, TopicInfo, event_loop
from ferry.kafka.produce.ledger_topic import LedgerTopic
from ferry.model import Record, TopicPartition
from ferry.protocol.names import ledger_topic
from tests.golden import Golden, brief
from tests.pure.net.answers import batch, part

pytestmark = pytest.mark.usefixtures("skipped_waits")


class Refusing:
    """As much of a cluster as an append asks for; answers every request with one error code, and repeats nothing."""

    alias = "backup"

    def __init__(self, code: int) -> None:
        self.topics = {ledger_topic("primary"): SimpleNamespace(topic_id=None)}
        self._code = code

    async def ask(self, *_: object) -> Any:
        return SimpleNamespace(error_code=self._code)

    async def retrying(self, action: Callable[[], Awaitable[Any]]) -> Any:
        return await action()


class Offline(Cluster):
    """A broker whose log directory with the ledger is offline: it answers, and can neither read nor write there."""

    def __init__(self) -> None:
        super().__init__(event_loop(), "backup", {"bootstrap_servers": "127.0.0.1:1"}, patience_s=0.2)
        only = PartitionInfo(partition=0, leader=1, leader_epoch=0, replicas=(1,), in_sync=(1,))
        name = ledger_topic("primary")
        self.topics = {name: TopicInfo(name=name, topic_id=None, partitions={0: only}, internal=False)}

    async def refresh(self, topics: Iterable[str] | None) -> dict[str, TopicInfo]:
        return self.topics

    async def ask(self, request: Any, node: int | None = None, *, timeout_ms: float | None = None) -> Any:
        if isinstance(request, InitProducerIdRequest):
            return SimpleNamespace(error_code=0, producer_id=1, producer_epoch=0)
        broken = part(TopicPartition(topic="", partition=0), error_code=codes.KAFKA_STORAGE_ERROR)
        topic = SimpleNamespace(topic=ledger_topic("primary"), partitions=[broken], partition_responses=[broken])
        return SimpleNamespace(error_code=0, responses=[topic])


class Telling(Offline):
    """A broker that answers each fetch of the ledger with the next of some parts: records, and its high watermark."""

    def __init__(self, *parts: tuple[bytes, int]) -> None:
        super().__init__()
        self.parts = list(parts)

    async def ask(self, request: Any, node: int | None = None, *, timeout_ms: float | None = None) -> Any:
        records, end = self.parts.pop(0)
        told = part(TopicPartition(topic="", partition=0), records, end=end)
        return SimpleNamespace(
            error_code=0, responses=[SimpleNamespace(topic=ledger_topic("primary"), partitions=[told])]
        )


@pytest.fixture
def told() -> Iterator[Callable[..., LedgerTopic]]:
    """Makes a ledger whose broker answers with these parts."""
    made: list[Telling] = []

    def make(*parts: tuple[bytes, int]) -> LedgerTopic:
        made.append(Telling(*parts))
        return LedgerTopic(made[-1], "primary")

    yield make
    for cluster in made:
        cluster.close()
        cluster.loop.close()


def test_a_leader_that_does_not_show_the_end_yet_is_asked_again(told: Callable[..., LedgerTopic]) -> None:
    ledger = told((b"", 1), (batch(1), 1), (b"", 1), (batch(1, 1), 2))
    records, end = ledger.cluster.loop.run(ledger.read, 0, 2)
    assert ([one.offset for one in records], end) == ([0, 1], 2)


def test_what_compaction_left_nothing_of_is_read_to_its_end(told: Callable[..., LedgerTopic]) -> None:
    ledger = told((batch(1), 3), (b"", 3))
    records, end = ledger.cluster.loop.run(ledger.read, 0, 3)
    assert ([one.offset for one in records], end) == ([0], 3)


def test_a_batch_that_ends_where_the_reading_begins_is_not_read(told: Callable[..., LedgerTopic]) -> None:
    ledger = told((batch(2) + batch(1, 2), 3))
    records, end = ledger.cluster.loop.run(ledger.read, 2, 3)
    assert ([one.offset for one in records], end) == ([2], 3)


@pytest.mark.parametrize(
    ("parts", "start", "is_gapless"),
    [((batch(2) + batch(2, 2)), 0, True), ((batch(2) + batch(2, 2)), 1, True), ((batch(2) + batch(1, 3)), 0, False)],
    ids=["whole", "from inside a batch", "one is missing"],
)
def test_one_record_that_compaction_took_is_noticed(
    told: Callable[..., LedgerTopic], parts: bytes, start: int, is_gapless: bool
) -> None:
    ledger = told((parts, 4))
    _, end, found = ledger.cluster.loop.run(ledger.read_gapless, start, 4)
    assert (end, found) == (4, is_gapless)


@pytest.mark.parametrize(
    "work",
    [lambda ledger: ledger.read(0, 5), lambda ledger: ledger.append([Record(key=b"k", value=b"v")])],
    ids=["read", "append"],
)
def test_a_broken_disk_is_named_with_its_ledger_and_cluster(
    work: Callable[[LedgerTopic], Awaitable[object]], golden: Golden
) -> None:
    cluster = Offline()
    try:
        with pytest.raises(Unreachable) as caught:
            cluster.loop.run(work, LedgerTopic(cluster, "primary"))
    finally:
        cluster.close()
        cluster.loop.close()
    golden(caught.value)


class Gone(Offline):
    """A cluster whose ledger was deleted after its metadata was read."""

    async def refresh(self, topics: Iterable[str] | None) -> dict[str, TopicInfo]:
        self.topics.clear()
        return {}


@pytest.mark.parametrize(
    "work",
    [lambda ledger: ledger.read(0, 5), lambda ledger: ledger.append([Record(key=b"k", value=b"v")])],
    ids=["read", "append"],
)
def test_a_ledger_that_was_deleted_meanwhile_is_named(
    work: Callable[[LedgerTopic], Awaitable[object]], golden: Golden
) -> None:
    cluster = Gone()
    try:
        with pytest.raises(Unreachable) as caught:
            cluster.loop.run(work, LedgerTopic(cluster, "primary"))
    finally:
        cluster.close()
        cluster.loop.close()
    golden(caught.value)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (codes.CLUSTER_AUTHORIZATION_FAILED, Refused),
        (codes.COORDINATOR_NOT_AVAILABLE, Retryable),
    ],
    ids=brief,
)
def test_a_writer_without_permission_is_refused_not_repeated(code: int, kind: type[Exception], golden: Golden) -> None:
    ledger = LedgerTopic(cast("Cluster", Refusing(code)), "primary")
    with pytest.raises(kind) as caught:
        asyncio.run(ledger.append([Record(key=b"k", value=b"v")]))
    golden(caught.value)


@pytest.mark.parametrize(("leaderless", "patience_s"), [(2, 5.0), (1_000, 0.2)], ids=["for a moment", "for good"])
def test_the_end_of_a_ledger_without_leader_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, leaderless: int, patience_s: float, golden: Golden
) -> None:
    loop = event_loop()
    cluster = Cluster(loop, "backup", {"bootstrap_servers": "127.0.0.1:1"}, patience_s=patience_s)
    ledger = LedgerTopic(cluster, "primary")
    cluster.topics[ledger.place.topic] = TopicInfo(
        name=ledger.place.topic, topic_id=None, partitions={}, internal=False
    )
    nowhere: dict[TopicPartition, int] = {}
    answers = iter([nowhere] * leaderless)

    known: list[bool] = []

    async def listed(
        _: Cluster, wanted: dict[TopicPartition, int], *, isolation: int, leaders_known: bool
    ) -> dict[TopicPartition, int]:
        known.append(leaders_known)
        return next(answers, dict.fromkeys(wanted, 7))

    monkeypatch.setattr("ferry.kafka.produce.ledger_topic.list_offsets", listed)
    try:
        if leaderless == 2:
            assert loop.run(partial(ledger.end, leader_known=True)) == 7
        else:
            with pytest.raises(Unreachable) as caught:
                loop.run(partial(ledger.end, leader_known=True))
            golden(caught.value)
        assert known[:2] == [True, False], "it looks again for a leader that was not there"
        assert not any(known[1:])
    finally:
        cluster.close()
        loop.close()
