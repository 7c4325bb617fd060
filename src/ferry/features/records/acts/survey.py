"""Reads from a cluster what there is to read of it: topics, partitions, ranges of offsets."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from ferry.config.client_options import ConnectionOptions, FetchOptions
from ferry.config.flow.start import Start, StartTime
from ferry.config.record_source import RecordSource
from ferry.config.text.filters import LEGAL_NAME, PatternList
from ferry.errors import BadInput, Unreachable
from ferry.features.records.acts.cluster import connected
from ferry.features.records.rules.filters import Narrowing
from ferry.features.records.rules.ranges import Edges, settled
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.fetch.offsets import EARLIEST, LATEST, list_offsets
from ferry.kafka.fetch.requests import READ_COMMITTED, READ_UNCOMMITTED
from ferry.model import Range, TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Surveyed:
    """What there is to read: ranges of committed records, and the connection to their cluster. Travels pickled."""

    alias: str
    connection: ConnectionOptions = field(repr=False)
    fetch: FetchOptions
    ranges: Mapping[TopicPartition, Range]
    topic_ids: Mapping[str, str]
    task_records: int


def survey(wanted: RecordSource) -> Surveyed:
    """Ask the cluster once.

    Raises BadInput for topics or offsets that do not exist. Raises Refused for what may not or cannot be read. Raises
    Unreachable for a cluster, or the leader of a partition, that does not answer.
    """
    with connected(wanted.alias, wanted.connection) as cluster:
        ranges, topic_ids = cluster.loop.run(_survey, cluster, wanted)
    return Surveyed(
        alias=wanted.alias,
        connection=wanted.connection,
        fetch=wanted.fetch,
        ranges=ranges,
        topic_ids=topic_ids,
        task_records=wanted.task_records,
    )


def narrowed_ranges(found: Surveyed, where: Narrowing) -> dict[TopicPartition, Range]:
    """Return what is left to read where conditions hold.

    For a lowest timestamp the brokers return the first record that has it, or a later one; every record before has an
    earlier one. Raises BadInput, Refused and Unreachable as `survey` does.
    """
    ranges = where.cut(found.ranges)
    low = where.timestamps.low
    if not ranges or low is None or low < 0:  # a negative one has another meaning to a broker
        return ranges
    with connected(found.alias, found.connection) as cluster:
        first = cluster.loop.run(_timed, cluster, StartTime(timestamp_ms=low), ranges)
    later = {
        place: (end if first.get(place, -1) < 0 else max(start, first[place]), end)
        for place, (start, end) in ranges.items()
    }
    return {place: part for place, part in later.items() if part[0] < part[1]}


async def _survey(cluster: Cluster, wanted: RecordSource) -> tuple[dict[TopicPartition, Range], dict[str, str]]:
    every = await cluster.refresh(None)
    names = [name for name, info in every.items() if wanted.topics.matches(name) and not info.internal]
    _check_topics(cluster.alias, wanted.topics, every)
    if not names:
        raise BadInput(
            f"cluster {cluster.alias} shows no topic that {', '.join(wanted.topics.items)} matches: correct topics, or "
            "grant DESCRIBE on them"
        )
    places = [TopicPartition(name, number) for name in names for number in every[name].partitions]
    starts = await list_offsets(cluster, dict.fromkeys(places, EARLIEST), isolation=READ_UNCOMMITTED)
    ends = await list_offsets(cluster, dict.fromkeys(places, LATEST), isolation=READ_COMMITTED)
    for place in places:
        if place not in starts or place not in ends:
            raise Unreachable(f"{place} on cluster {cluster.alias} has no leader: look at its brokers, then read again")
    edges = {place: Edges(starts[place], max(starts[place], ends[place])) for place in places}
    ranges = settled(
        edges,
        wanted.begin,
        wanted.end,
        first_at=await _timed(cluster, wanted.begin, places),
        end_at=await _timed(cluster, wanted.end, places),
    )
    return ranges, {name: every[name].id_text for name in names}


async def _timed(cluster: Cluster, bound: Start, places: Collection[TopicPartition]) -> dict[TopicPartition, int]:
    """Return the first offset at a time or later, by partition; -1: there is none. Empty if the bound is not a time."""
    if not isinstance(bound, StartTime):
        return {}
    return await list_offsets(cluster, dict.fromkeys(places, bound.timestamp_ms), isolation=READ_UNCOMMITTED)


def _check_topics(alias: str, topics: PatternList, there: Collection[str]) -> None:
    """Raise BadInput for an item that is written as a name and matches no topic."""
    for item in topics.items:
        if LEGAL_NAME.fullmatch(item) and not any(map(PatternList(items=(item,)).matches, there)):
            raise BadInput(f"cluster {alias} shows no topic {item}: correct the name, or grant DESCRIBE on it")
