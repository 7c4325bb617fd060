"""What to compare of two clusters between which another mirror copies: no ledger shows which offset became which.

Topics are paired by the flow's policy, partitions by their numbers. Where the comparison begins is found by time: both
logs are read from the later of their first records on. They are aligned by the contents of records. If the file asks
for identical offsets, each record is compared with that at the same offset.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from ferry.config.flow.flow import FlowConfig
from ferry.errors import BadInput
from ferry.features.identical.settings import IdenticalSettings
from ferry.features.verify.acts.logs import compacted_topics, hidden_topic
from ferry.features.verify.acts.survey import Survey
from ferry.features.verify.acts.wanted import Wanted
from ferry.features.verify.rules.compare_ranges import CompareRange
from ferry.kafka.admin.topic_settings import topic_settings
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.fetch.offsets import EARLIEST, LATEST, listed_offsets
from ferry.kafka.fetch.requests import READ_COMMITTED, READ_UNCOMMITTED
from ferry.kafka.fetch.source import SourceReader
from ferry.lane.connections import FlowConnections
from ferry.model import NotCompared, NotComparedKind, Segment, TopicPartition
from ferry.plan.gather import isolation_of

_STAMP = "message.timestamp.type"
_NEWS_SECONDS = 0.5
_MEMORY_BYTES = 16 << 20
_NO_RECEIPTS = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Log:
    """A partition of one side: its first offset, its end, and where its comparison begins."""

    first: int
    end: int
    start: int


async def survey_by_content(flow: FlowConfig, connections: FlowConnections, wanted: Wanted) -> Survey:
    """Survey both logs of every partition that a mirror should have copied.

    Raises BadInput when the flow takes no topic of the source, or not one that is asked for.
    """
    source, target = connections.source, connections.target
    named = {name: flow.copy_of(name) for name in await _taken(flow, source, wanted)}
    await target.refresh(set(named.values()))
    found = Survey()
    pairs = _pairs(source, target, named, wanted.partition, found)
    for here in list(pairs):
        spec = flow.transform_of(here.topic)
        if spec is not None:
            message = (
                f"the copy of {here} is made by ferry.transform.{spec.name}, and without a ledger it is not known from "
                "which records: omit --without-ledger"
            )
            _leave(found, here, NotComparedKind.TRANSFORMED, message)
            del pairs[here]
    stamped = await _log_append(target, set(named.values()))
    for here, there in list(pairs.items()):
        if there.topic in stamped:
            message = f"{there} has times of its own ({_STAMP} is LogAppendTime), so no record of it is its source's"
            _leave(found, here, NotComparedKind.UNREADABLE, message)
            del pairs[here]
    found.partitions = len(pairs)
    # The target first: what it has then, the source has as well.
    targets = await _logs(target, pairs.values(), wanted, READ_COMMITTED)
    sources = await _logs(source, pairs, wanted, isolation_of(flow))
    both = {here: there for here, there in pairs.items() if here in sources and there in targets}
    aligned = {here: there for here, there in both.items() if not _is_identical(flow, here.topic)}
    if wanted.since_ms is None:
        sources, targets = await _from_common_times(connections, aligned, sources, targets, isolation_of(flow))
    cleaned = await compacted_topics(source, {one.topic for one in both}, found.notes)
    cleaned_copies = await compacted_topics(target, {one.topic for one in both.values()}, found.notes)
    for here, there in pairs.items():
        if here not in both:
            message = f"{here} or its copy {there} has no leader at the moment: bring its brokers back"
            _leave(found, here, NotComparedKind.UNREADABLE, message)
            continue
        mine, copy = sources[here], targets[there]
        since = wanted.since_ms is not None
        compacted = wanted.compacted or here.topic in cleaned or there.topic in cleaned_copies
        if here not in aligned:
            one = _by_offset(here, there, mine, copy, since=since, to_end=wanted.until_ms is not None)
            found.spans.append(replace(one, compacted=compacted))
            continue
        found.spans.append(
            CompareRange(
                source=here,
                target=there,
                source_range=(mine.start, max(mine.start, mine.end)),
                target_range=(copy.start, max(copy.start, copy.end)),
                segments=(_reach(mine),) if mine.start < mine.end else (),
                covered_until=_NO_RECEIPTS,
                compacted=compacted,
                by_content=((since and copy.start > copy.first) or copy.first == 0,
                            (since and mine.start > mine.first) or mine.first == 0),
                to_end=wanted.until_ms is not None,
            )
        )  # fmt: skip
    return found


def _is_identical(flow: FlowConfig, topic: str) -> bool:
    return flow.of(IdenticalSettings).keeps_topic(flow.topics.policy, topic)


def _by_offset(
    here: TopicPartition, there: TopicPartition, mine: _Log, copy: _Log, *, since: bool, to_end: bool
) -> CompareRange:
    """Return a range of two logs whose records have to be at the same offsets.

    It begins where both have begun, or at a time of the source's (`since`). What the target lacks at its end is a
    difference if the end was asked for (`to_end`).
    """
    start = mine.start if since else max(mine.start, copy.start)
    there_end = min(copy.end, mine.end) if to_end else copy.end
    end = max(start, mine.end if to_end else min(mine.end, copy.end))
    return CompareRange(
        source=here,
        target=there,
        source_range=(start, end),
        target_range=(start, max(start, there_end)),
        segments=(Segment(source_start=start, target_start=start, count=end - start),) if start < end else (),
        covered_until=_NO_RECEIPTS,
        identical=True,
    )


def _reach(log: _Log) -> Segment:
    """Return how much there is to compare; its target offsets mean nothing."""
    return Segment(source_start=log.start, target_start=log.start, count=log.end - log.start)


async def _taken(flow: FlowConfig, source: Cluster, wanted: Wanted) -> list[str]:
    there = await source.refresh(None if wanted.topics is None else set(wanted.topics))
    for topic in wanted.topics or ():
        if topic not in there:
            raise BadInput(f"source {flow.flow.source} has no topic {topic}: name one that it has")
    taken = sorted(name for name in there if (name in (wanted.topics or ()) or flow.topics.selection.takes(name)))
    if not taken:
        raise BadInput(f"flow {flow.flow} takes no topic of the source: correct `topics`, or name one with --topic")
    return taken


def _pairs(
    source: Cluster, target: Cluster, named: Mapping[str, str], only: int | None, found: Survey
) -> dict[TopicPartition, TopicPartition]:
    pairs: dict[TopicPartition, TopicPartition] = {}
    for name, copy in named.items():
        here, there = source.topics[name].partitions, target.topics.get(copy)
        hidden = hidden_topic(target, copy)
        if hidden is not None:
            _leave(found, TopicPartition(name, 0), NotComparedKind.UNREADABLE, f"{name} is not compared: {hidden}")
        elif there is None:
            message = f"{copy}, the copy of {name}, is not on cluster {target.alias}: look at the mirror and its names"
            _leave(found, TopicPartition(name, 0), NotComparedKind.TARGET_GONE, message)
        elif len(here) != len(there.partitions):
            message = (
                f"{name} has {len(here)} partitions, its copy {copy} has {len(there.partitions)}: records of one "
                "partition are not in one, so their order cannot be compared"
            )
            _leave(found, TopicPartition(name, 0), NotComparedKind.PARTITION_COUNT, message)
        else:
            pairs |= {TopicPartition(name, number): TopicPartition(copy, number) for number in sorted(here)}
    if only is not None:
        pairs = {here: there for here, there in pairs.items() if here.partition == only}
        if not pairs:
            raise BadInput(f"--partition {only} is not one that source and target have")
    return pairs


def _leave(found: Survey, place: TopicPartition, why: NotComparedKind, message: str) -> None:
    found.not_compared.append(NotCompared(source=place, start=0, end=0, why=why, message=message, asked=True))


async def _log_append(target: Cluster, topics: Collection[str]) -> set[str]:
    listed = await topic_settings(target, sorted(topics), names=[_STAMP])
    return {
        topic
        for topic, settings in listed.found.items()
        if (settings.own.get(_STAMP) or (settings.inherited[_STAMP].value if _STAMP in settings.inherited else ""))
        == "LogAppendTime"
    }


async def _logs(
    cluster: Cluster, places: Collection[TopicPartition], wanted: Wanted, isolation: int
) -> dict[TopicPartition, _Log]:
    async def listed(at: int, isolation: int = READ_UNCOMMITTED) -> dict[TopicPartition, int]:
        return (await listed_offsets(cluster, dict.fromkeys(places, at), isolation=isolation)).found

    ends, first = await listed(LATEST, isolation), await listed(EARLIEST)
    since = first if wanted.since_ms is None else await listed(wanted.since_ms)
    until = ends if wanted.until_ms is None else await listed(wanted.until_ms)
    found = {}
    for place in places:
        if place in ends and place in first and place in since and place in until:
            end = ends[place] if until[place] < 0 else min(ends[place], until[place])
            found[place] = _Log(first=first[place], end=end, start=end if since[place] < 0 else since[place])
    return found


async def _from_common_times(
    connections: FlowConnections,
    both: Mapping[TopicPartition, TopicPartition],
    sources: dict[TopicPartition, _Log],
    targets: dict[TopicPartition, _Log],
    isolation: int,
) -> tuple[dict[TopicPartition, _Log], dict[TopicPartition, _Log]]:
    """Return the logs; the one that begins earlier begins at the other's first time."""
    here = await _first_times(connections.source, {place: sources[place] for place in both}, isolation)
    there = await _first_times(connections.target, {place: targets[place] for place in both.values()}, READ_COMMITTED)
    early: tuple[dict[TopicPartition, int], dict[TopicPartition, int]] = ({}, {})
    for place, copy in both.items():
        mine, theirs = here.get(place, math.inf), there.get(copy, math.inf)
        if mine < theirs < math.inf:
            early[0][place] = int(theirs)
        elif theirs < mine < math.inf:
            early[1][copy] = int(mine)
    out = []
    for cluster, logs, times in ((connections.source, sources, early[0]), (connections.target, targets, early[1])):
        found = (await listed_offsets(cluster, times, isolation=READ_UNCOMMITTED)).found if times else {}
        out.append(
            {
                place: _Log(first=log.first, end=log.end, start=max(log.start, min(found.get(place, -1), log.end)))
                for place, log in logs.items()
            }
        )
    return out[0], out[1]


async def _first_times(
    cluster: Cluster, logs: Mapping[TopicPartition, _Log], isolation: int
) -> dict[TopicPartition, int]:
    """Return the time of the first record of each log, from its batch; without logs that have none."""
    ranges = {place: (log.start, log.end) for place, log in logs.items() if log.start < log.end}
    found: dict[TopicPartition, int] = {}
    if not ranges:
        return found
    reader = SourceReader(cluster, ranges, {}, isolation=isolation, memory_bytes=_MEMORY_BYTES)
    buffer = reader.buffer
    try:
        await reader.start()
        while True:
            buffer.arrived.clear()
            for place, queue in buffer.queues.items():
                while queue and place not in found:
                    fetched = buffer.take(place)
                    buffer.release([fetched.answer])
                    if not fetched.hidden:
                        found[place] = fetched.batch.first_timestamp
            if not any(place not in found and buffer.wanted(place) for place in ranges):
                return found
            await buffer.news(_NEWS_SECONDS)
    finally:
        reader.close()
