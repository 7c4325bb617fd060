"""Gaps of merged topics: one partition that cannot be read keeps no other from being judged."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from ferry.errors import Retryable, Unreachable
from ferry.kafka.connect import codes
from ferry.kafka.connect.cluster import Cluster, TopicInfo, event_loop
from ferry.kafka.fetch.foreign_records import ForeignRecords, first_foreign_records
from ferry.model import Range, Record, RefusalKind, TopicPartition
from ferry.wire.records import ProducerIdentity, build_batch
from tests.golden import Golden
from tests.pure.net.answers import lead, listed
from tests.pure.wire.logs import marker

pytestmark = pytest.mark.usefixtures("skipped_waits")

FIRST, SECOND = TopicPartition(topic="orders", partition=0), TopicPartition(topic="orders", partition=1)
OPEN: dict[TopicPartition, list[Range]] = {FIRST: [(0, 10)], SECOND: [(0, 10)]}
RECORDS = build_batch([Record(key=b"k", value=b"v")] * 10, 1, ProducerIdentity())

Answer = Callable[[], tuple[int, bytes]]


class Scripted(Cluster):
    """Broker 1 leads both partitions, unless `leaders` say else; nothing is connected."""

    def __init__(self, answers: dict[TopicPartition, Answer]) -> None:
        self.answers = answers
        self.leaders = {FIRST: 1, SECOND: 1}
        self.begins = {FIRST: 10, SECOND: 0}
        self.aborted: list[SimpleNamespace] = []
        super().__init__(event_loop(), "backup", {"bootstrap_servers": "127.0.0.1:1"}, patience_s=0.2)

    async def refresh(self, topics: Iterable[str] | None) -> dict[str, TopicInfo]:
        lead(self, self.leaders)
        return self.topics

    async def ask(self, request: Any, node: int | None = None, *, timeout_ms: float | None = None) -> Any:
        if type(request).__name__ == "ListOffsetsRequest":
            asked = [TopicPartition("orders", each.partition_index) for each in request.topics[0].partitions]
            return listed({place: self.begins[place] for place in asked})
        parts = []
        for part in request.topics[0].partitions:
            code, records = self.answers[TopicPartition("orders", part.partition)]()
            parts.append(
                SimpleNamespace(
                    partition_index=part.partition,
                    error_code=code,
                    high_watermark=-1 if code else 10,
                    last_stable_offset=-1 if code else 10,
                    log_start_offset=-1 if code else 0,
                    aborted_transactions=self.aborted,
                    preferred_read_replica=-1,
                    records=records,
                )
            )
        return SimpleNamespace(responses=[SimpleNamespace(topic="orders", partitions=parts)])


def records() -> tuple[int, bytes]:
    return codes.NONE, RECORDS


def nothing() -> tuple[int, bytes]:
    return codes.NONE, b""


def error(code: int) -> Answer:
    return lambda: (code, b"")


def silence() -> tuple[int, bytes]:
    raise Retryable("cluster backup, broker 2: connection refused")


@pytest.fixture
def judge() -> Iterator[Callable[..., ForeignRecords]]:
    """Look into both gaps of a cluster whose brokers answer so; the first partition has this leader."""
    used: list[Scripted] = []

    def judge(first: Answer, second: Answer, leader: int = 1, begin: int = 10) -> ForeignRecords:
        cluster = Scripted({FIRST: first, SECOND: second})
        cluster.begins[FIRST] = begin
        used.append(cluster)
        cluster.leaders[FIRST] = leader
        cluster.loop.run(partial(cluster.refresh, None))
        found: ForeignRecords = cluster.loop.run(partial(first_foreign_records, cluster, OPEN))
        return found

    yield judge
    for cluster in used:
        cluster.close()
        cluster.loop.close()


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (error(codes.KAFKA_STORAGE_ERROR), RefusalKind.NO_LEADER),
        (nothing, RefusalKind.NO_LEADER),
        (error(codes.TOPIC_AUTHORIZATION_FAILED), RefusalKind.NOT_AUTHORIZED),
    ],
    ids=["error", "nothing", "no permission"],
)
def test_what_lasts_is_said_of_its_partition(
    judge: Callable[..., ForeignRecords], answer: Answer, kind: RefusalKind, golden: Golden
) -> None:
    judged = judge(answer, records)
    assert judged.found == {SECOND: 0}
    ((place, unserved),) = judged.failed.items()
    assert (place, unserved.kind) == (FIRST, kind)
    golden(unserved.why)


def test_a_marker_between_two_gaps_ends_its_transaction() -> None:
    """A transaction was aborted by a marker that is in no gap; the next one of the same producer is a stranger's."""
    writer = ProducerIdentity(producer_id=7, producer_epoch=0, sequence=0, transactional=True)

    def at(offset: int, count: int) -> bytes:
        return struct.pack(">q", offset) + build_batch([Record(key=b"k", value=b"v")] * count, 1, writer)[8:]

    cluster = Scripted({FIRST: lambda: (codes.NONE, at(0, 1) + bytes(marker(1, 7, commits=False).data) + at(2, 8))})
    cluster.aborted = [SimpleNamespace(producer_id=7, first_offset=0)]
    cluster.loop.run(partial(cluster.refresh, None))
    try:
        found = cluster.loop.run(partial(first_foreign_records, cluster, {FIRST: [(0, 1), (2, 10)]}))
    finally:
        cluster.close()
        cluster.loop.close()
    assert found == ForeignRecords(found={FIRST: 2}, failed={})


@pytest.mark.parametrize("leader", [-1, 2], ids=["no leader", "a leader that does not answer"])
def test_a_partition_that_nobody_serves_is_failed(judge: Callable[..., ForeignRecords], leader: int) -> None:
    judged = judge(silence, records, leader)
    assert (judged.found, set(judged.failed)) == ({SECOND: 0}, {FIRST})


def test_what_retention_took_is_no_strangers(judge: Callable[..., ForeignRecords]) -> None:
    assert judge(error(codes.OFFSET_OUT_OF_RANGE), records) == ForeignRecords(found={SECOND: 0}, failed={})


@pytest.mark.parametrize("begin", [0, -1], ids=["the log begins before it", "nobody tells where the log begins"])
def test_what_is_out_of_range_though_retention_took_nothing_is_failed(
    judge: Callable[..., ForeignRecords], begin: int
) -> None:
    judged = judge(error(codes.OFFSET_OUT_OF_RANGE), records, begin=begin)
    assert (judged.found, set(judged.failed)) == ({SECOND: 0}, {FIRST})


def test_metadata_that_cannot_be_had_is_the_clusters_business(
    judge: Callable[..., ForeignRecords], monkeypatch: pytest.MonkeyPatch
) -> None:
    unreachable = Unreachable("cluster backup does not answer")

    async def gone(self: Cluster, topics: Iterable[str] | None) -> dict[str, TopicInfo]:
        raise unreachable

    async def work() -> ForeignRecords:
        return await first_foreign_records(cluster, OPEN)

    cluster = Scripted({FIRST: silence, SECOND: silence})
    cluster.loop.run(partial(cluster.refresh, None))
    monkeypatch.setattr(Scripted, "refresh", gone)
    try:
        with pytest.raises(Unreachable) as caught:
            cluster.loop.run(work)
        assert caught.value is unreachable
    finally:
        cluster.close()
        cluster.loop.close()
