"""Which target logs have to be asked whether they were cut; the answers themselves are in test_going_back."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import cast
from uuid import UUID

import pytest

from ferry.errors import Retryable
from ferry.kafka.connect.cluster import Cluster, PartitionInfo, TopicInfo
from ferry.kafka.fetch.epoch_check import Mark
from ferry.kafka.produce.kept import Cuts, cut_since, leader_epochs
from ferry.lane.target_cuts import target_cuts
from ferry.model import TopicPartition, topic_id_text
from tests.golden import Golden
from tests.pure.decide.values import RECEIPT

ID = UUID(int=7)
LAST = replace(RECEIPT, target_epoch=5, target_topic_id=topic_id_text(ID))
PLACE = LAST.target


class Loop:
    """Time that passes at once."""

    async def sleep(self, seconds: float) -> None:
        """Return."""


class Metadata:
    """What a cluster told of its topics; nobody can be asked."""

    alias = "backup"
    loop = Loop()

    def __init__(self, topic_id: UUID, epoch: int) -> None:
        part = PartitionInfo(partition=PLACE.partition, leader=1, leader_epoch=epoch, replicas=(1,), in_sync=(1,))
        parts = {part.partition: part}
        self.topics = {PLACE.topic: TopicInfo(name=PLACE.topic, topic_id=topic_id, partitions=parts, internal=False)}
        self.asked: list[TopicPartition] = []

    def leader(self, place: TopicPartition) -> int:
        self.asked.append(place)
        raise Retryable(f"{place} has no leader at the moment")

    async def refresh(self, topics: object) -> None:
        """Say the same again."""


@pytest.mark.parametrize(
    ("topic_id", "epoch", "written_in", "asked"),
    [
        (ID, 6, 5, True),
        (ID, 5, 5, False),  # the leader is the one of then
        (ID, 6, None, False),  # a receipt of an earlier Ferry
        (UUID(int=8), 6, 5, False),  # created again: its epochs are others
    ],
)
def test_a_log_is_asked_for_where_its_leader_has_changed(
    topic_id: UUID, epoch: int, written_in: int | None, asked: bool
) -> None:
    cluster = Metadata(topic_id, epoch)
    assert asyncio.run(target_cuts(cast("Cluster", cluster), [replace(LAST, target_epoch=written_in)])) == {}
    assert cluster.asked == [PLACE] * asked


def test_a_log_whose_new_leader_does_not_answer_is_not_taken_for_whole() -> None:
    cluster = cast("Cluster", Metadata(ID, 6))
    looked = asyncio.run(cut_since(cluster, [(PLACE, Mark(5, 40))]))
    assert looked == Cuts(found={}, unanswered=frozenset({PLACE}))


def test_what_no_leader_vouches_for_is_not_committed(golden: Golden) -> None:
    with pytest.raises(Retryable) as caught:
        asyncio.run(leader_epochs(cast("Cluster", Metadata(ID, 6)), {PLACE: 40}))
    golden(caught.value)


def test_brokers_that_tell_no_leader_epoch_are_not_asked() -> None:
    cluster = Metadata(ID, -1)
    assert asyncio.run(leader_epochs(cast("Cluster", cluster), {PLACE: 40})) == {PLACE: -1}
    assert cluster.asked == []
