"""Where logs end, for all readers and for those of committed records alone."""

from __future__ import annotations

from collections.abc import Collection

from ferry.errors import FerryError
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.fetch.offsets import LATEST, listed_offsets
from ferry.kafka.fetch.requests import READ_COMMITTED, READ_UNCOMMITTED
from ferry.ledger.progress import LogEnd
from ferry.model import TopicPartition


async def log_ends(cluster: Cluster, places: Collection[TopicPartition]) -> dict[TopicPartition, LogEnd]:
    """Return the ends of partitions, without those that the cluster does not show now."""
    if not places:
        return {}
    try:
        stable = await listed_offsets(cluster, dict.fromkeys(places, LATEST), isolation=READ_COMMITTED)
        ends = await listed_offsets(cluster, dict.fromkeys(stable.found, LATEST), isolation=READ_UNCOMMITTED)
    except FerryError:
        return {}
    return {place: LogEnd(stable.found[place], end) for place, end in ends.found.items()}
