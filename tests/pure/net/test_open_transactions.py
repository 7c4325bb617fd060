"""Which transactions are open on a partition, as its leader reports."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from ferry.errors import Unreachable
from ferry.kafka.connect import codes
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.produce.open_transactions import open_transactions
from ferry.model import TopicPartition
from ferry.model.observed import OpenTransaction

HERE, THERE, DENIED = (TopicPartition(topic="orders", partition=number) for number in range(3))


class Leaders:
    """Two brokers, of which the second does not answer."""

    def leader(self, place: TopicPartition) -> int:
        return 2 if place == THERE else 1

    async def ask(self, _: object, node: int) -> Any:
        if node == 2:
            raise Unreachable("no answer")
        producers = [
            SimpleNamespace(producer_id=number, current_txn_start_offset=start, last_timestamp=9)
            for number, start in ((1, 40), (2, -1), (3, 0))
        ]
        parts = [
            SimpleNamespace(partition_index=HERE.partition, error_code=0, active_producers=producers),
            SimpleNamespace(
                partition_index=DENIED.partition,
                error_code=codes.TOPIC_AUTHORIZATION_FAILED,
                active_producers=producers,
            ),
        ]
        return SimpleNamespace(topics=[SimpleNamespace(name="orders", partitions=parts)])


def test_open_is_what_has_begun_also_at_the_first_offset_and_the_oldest_comes_first() -> None:
    found = asyncio.run(open_transactions(cast("Cluster", Leaders()), [HERE, THERE, DENIED]))
    assert found == {
        HERE: (
            OpenTransaction(producer_id=3, start=0, last_ms=9),
            OpenTransaction(producer_id=1, start=40, last_ms=9),
        )
    }
