"""What verification needs to know of logs: their readable ends, which are compacted, and how large records are.

The end of a log counts once readers see all that the ledger has.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping

from ferry.kafka.admin.disks import log_sizes
from ferry.kafka.admin.topic_settings import topic_settings
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.fetch.offsets import EARLIEST, LATEST, ListedOffsets, listed_offsets
from ferry.kafka.fetch.requests import READ_COMMITTED, READ_UNCOMMITTED
from ferry.lane.connections import FlowConnections
from ferry.model import TopicPartition

SETTLE_SECONDS = 10.0
"""Seconds that committed chunks may take until readers of the target see all of them: markers are sent one by one."""

_LOOK_SECONDS = 0.1
_CLEANUP = "cleanup.policy"


async def settled(connections: FlowConnections, due: Mapping[TopicPartition, int]) -> ListedOffsets:
    """Return the target's last stable offsets once they have reached what is `due`, or when the time is over."""
    until = time.monotonic() + SETTLE_SECONDS
    found: dict[TopicPartition, int] = {}
    late = list(due)
    while True:
        listed = await listed_offsets(connections.target, dict.fromkeys(late, LATEST), isolation=READ_COMMITTED)
        found |= listed.found
        late = [place for place in late if found.get(place, due[place]) < due[place]]
        if not late or time.monotonic() > until:
            return ListedOffsets(found=found, failed=listed.failed)
        await connections.loop.sleep(_LOOK_SECONDS)


async def compacted_topics(cluster: Cluster, topics: Collection[str], notes: list[str]) -> frozenset[str]:
    """Return the topics whose log cleaner removes records that a later one replaces; note each hidden topic."""
    listed = await topic_settings(cluster, sorted(topics), names=[_CLEANUP])
    notes += [
        f"{_CLEANUP} of topic {topic} on cluster {cluster.alias} may not be seen (grant DESCRIBE_CONFIGS): it is "
        "compared as if it were not compacted"
        for topic in sorted(listed.denied)
    ]
    policies = {}
    for topic, settings in listed.found.items():
        inherited = settings.inherited.get(_CLEANUP)
        policies[topic] = settings.own.get(_CLEANUP) or (inherited.value if inherited is not None else "")
    return frozenset(topic for topic, policy in policies.items() if "compact" in policy)


def hidden_topic(cluster: Cluster, topic: str) -> str | None:
    """Return why a topic may not be seen, by the metadata of now; None when it may, or is not there."""
    if topic in cluster.topics or topic not in cluster.denied:
        return None
    return f"topic {topic} on cluster {cluster.alias} is hidden from this login: grant READ on it"


async def offset_bytes(cluster: Cluster, places: Collection[TopicPartition]) -> dict[TopicPartition, int]:
    """Return about how many bytes an offset of these partitions has: a log's average, if brokers report its size."""
    if not places:
        return {}
    sizes = await log_sizes(cluster)
    known = [place for place in places if place in sizes]
    begins = (await listed_offsets(cluster, dict.fromkeys(known, EARLIEST), isolation=READ_UNCOMMITTED)).found
    ends = (await listed_offsets(cluster, dict.fromkeys(known, LATEST), isolation=READ_UNCOMMITTED)).found
    return {
        place: sizes[place] // max(1, ends[place] - begins[place])
        for place in known
        if place in begins and place in ends
    }
