"""Quotas of Kafka's brokers (KIP-546): requests wait, so a copy is at work as long as a test asks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial

from kafka.protocol.admin import AlterClientQuotasRequest

from ferry.dev import RunningCluster
from tests.harness import Lab, on_cluster

HELD_RATE = 5_000
"""Bytes a second. A broker gives those of the first eleven seconds at once."""


@contextmanager
def quota(cluster: RunningCluster, client: str, key: str, rate: float) -> Iterator[Callable[[], None]]:
    """A quota for a client id, until the block ends or what it gives is called."""
    _alter(cluster, client, key, rate)
    remove = partial(_alter, cluster, client, key, None)
    try:
        yield remove
    finally:
        remove()


def held(lab: Lab, rate: float = HELD_RATE) -> AbstractContextManager[Callable[[], None]]:
    """What the flow reads of the source's topics is held to a rate, until the block ends or what it gives is called."""
    return quota(lab.source, f"ferry.{lab.flow.flow}", "consumer_byte_rate", rate)


def _alter(cluster: RunningCluster, client: str, key: str, rate: float | None) -> None:
    entry = AlterClientQuotasRequest.EntryData
    request = AlterClientQuotasRequest(
        entries=[
            entry(
                entity=[entry.EntityData(entity_type="client-id", entity_name=client)],
                ops=[entry.OpData(key=key, value=float(rate or 0), remove=rate is None)],
            )
        ],
        validate_only=False,
    )
    answer = on_cluster(cluster, lambda client: client.ask(request))
    assert [each.error_code for each in answer.entries] == [0]
