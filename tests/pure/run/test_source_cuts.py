"""Which source logs have to be asked whether they were cut; the answers themselves are in test_going_back."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest

from ferry.errors import Retryable
from ferry.kafka.connect.cluster import Cluster, PartitionInfo, TopicInfo
from ferry.lane.source_cuts import SourceCuts, source_cuts
from ferry.ledger.source_reads import Read
from ferry.model import TopicPartition
from tests.pure.decide.values import RECEIPT

LAST = replace(RECEIPT, source_epoch=5)


class Metadata:
    """What a cluster told of its topics; nobody can be asked."""

    def __init__(self, topic_id: UUID | None, epoch: int) -> None:
        part = PartitionInfo(partition=LAST.source.partition, leader=1, leader_epoch=epoch, replicas=(1,), in_sync=(1,))
        name = LAST.source.topic
        self.topics = {name: TopicInfo(name=name, topic_id=topic_id, partitions={part.partition: part}, internal=False)}

    def leader(self, place: TopicPartition) -> int:
        raise Retryable(f"{place} has no leader at the moment")


@pytest.mark.parametrize(
    ("topic_id", "epoch", "read_under", "unreported"),
    [
        (UUID(int=7), 5, 5, False),
        (UUID(int=7), 5, None, True),
        (None, 5, 5, True),  # a topic that was created again begins with the same epochs
    ],
)
def test_the_end_of_a_log_is_looked_at_where_leader_epochs_tell_nothing(
    topic_id: UUID | None, epoch: int, read_under: int | None, unreported: bool
) -> None:
    cluster = cast("Cluster", Metadata(topic_id, epoch))
    found = asyncio.run(source_cuts(cluster, [replace(LAST, source_epoch=read_under)]))
    assert found == SourceCuts(unreported=frozenset({LAST.source} if unreported else ()))


def test_a_log_whose_new_leader_does_not_answer_is_not_taken_for_whole() -> None:
    cluster = cast("Cluster", Metadata(UUID(int=7), 6))
    assert asyncio.run(source_cuts(cluster, [LAST])) == SourceCuts(silent=frozenset({LAST.source}))


def test_a_partition_that_the_metadata_lack_is_left_out() -> None:
    cluster = cast("Cluster", Metadata(UUID(int=7), 5))
    cluster.topics.clear()
    assert asyncio.run(source_cuts(cluster, [LAST])) == SourceCuts()


class Answering(Metadata):
    """Its log was cut to 20 when leader epoch 6 began."""

    def leader(self, place: TopicPartition) -> int:
        return 1

    async def ask(self, request: Any, _: int) -> Any:
        (topic,) = request.topics
        parts = [
            SimpleNamespace(partition=one.partition, error_code=0, end_offset=20 if one.leader_epoch < 6 else 90)
            for one in topic.partitions
        ]
        return SimpleNamespace(topics=[SimpleNamespace(topic=topic.topic, partitions=parts)])


def test_of_what_many_units_have_read_of_a_log_each_leader_epoch_is_asked_for() -> None:
    cluster = cast("Cluster", Answering(UUID(int=7), 7))
    reads = [Read(LAST.source, 5, 30), Read(LAST.source, 4, 25), Read(LAST.source, 6, 80)]
    assert asyncio.run(source_cuts(cluster, reads)) == SourceCuts(at={LAST.source: 20})
    assert asyncio.run(source_cuts(cluster, reads[2:])) == SourceCuts()
