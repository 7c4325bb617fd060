"""Logs that were truncated since the last receipt: by leader epochs on both sides, at the target also by its end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.fetch.offsets import LATEST, listed_offsets
from ferry.kafka.fetch.requests import READ_UNCOMMITTED
from ferry.lane.ledger_cache import LedgerCache
from ferry.lane.source_cuts import source_cuts
from ferry.lane.target_cuts import target_cuts
from ferry.ledger.ledger import LedgerView, gaps
from ferry.ledger.map_block import MapEntry
from ferry.ledger.source_reads import Read, reads_of_units
from ferry.model import Receipt, TopicPartition
from ferry.plan.rules.facts import Facts, SourceFacts, TargetFacts
from ferry.plan.rules.progress import next_offset
from ferry.plan.rules.truncation import held_upto, with_high_watermark


async def with_truncations(
    facts: Facts, lane: str, source: Cluster, target: Cluster, view: LedgerView, ledger: LedgerCache
) -> Facts:
    """Return `facts` with where source logs diverge from their copies, and what truncated target logs still have."""
    facts = replace(facts, source=await _with_high_watermarks(facts, source))
    read: list[Receipt | Read] = [*facts.lane.receipts.values(), *reads_of_units(facts.lane.units.values())]
    topics = facts.source.topics
    lasts = [
        last
        for last in read
        if last.source.topic in topics and last.source.partition in topics[last.source.topic].partitions
    ]
    cut = (await source_cuts(source, lasts)).at
    written: list[Receipt] = [*facts.lane.receipts.values(), *facts.lane.units.values()]
    facts = replace(
        facts,
        source=_with_diverged(facts.source, cut),
        target=replace(facts.target, cut=await target_cuts(target, written)),
    )
    return replace(facts, target=replace(facts.target, kept=await _kept(facts, lane, view, ledger)))


async def _with_high_watermarks(facts: Facts, source: Cluster) -> SourceFacts:
    """Ask again for unknown high watermarks if the last stable offset is before what was copied: truncated, or not."""
    short = [last.source for last in facts.lane.receipts.values() if _may_be_cut(facts, last)]
    if not short:
        return facts.source
    listed = await listed_offsets(source, dict.fromkeys(short, LATEST), isolation=READ_UNCOMMITTED)
    topics = dict(facts.source.topics)
    for place in short:
        topics[place.topic] = with_high_watermark(
            topics[place.topic], place.partition, listed.found.get(place), listed.failed.get(place)
        )
    return replace(facts.source, topics=topics)


def _may_be_cut(facts: Facts, last: Receipt) -> bool:
    topic = facts.source.topics.get(last.source.topic)
    part = None if topic is None else topic.partitions.get(last.source.partition)
    if part is None or part.high_watermark is not None:
        return False
    return part.end < next_offset(facts, last.source, part, last)


def _with_diverged(source: SourceFacts, cut: Mapping[TopicPartition, int]) -> SourceFacts:
    topics = dict(source.topics)
    for place, at in cut.items():
        topic = topics[place.topic]
        part = replace(topic.partitions[place.partition], diverged=at)
        topics[place.topic] = replace(topic, partitions={**topic.partitions, place.partition: part})
    return replace(source, topics=topics)


async def _kept(facts: Facts, lane: str, view: LedgerView, ledger: LedgerCache) -> dict[TopicPartition, int]:
    short = {place: last for place, last in facts.lane.receipts.items() if _is_short(facts.target, place, last)}
    if not short:
        return {}
    known = gaps(view, lane)
    written: dict[TopicPartition, list[MapEntry]] = {place: [] for place in short}
    for of, rows in (await ledger.rows(view, lambda of: of.lane == lane and of.target in short)).items():
        written[of.target] += rows
    return {
        place: held_upto(written[place], known, last, _target_end(facts.target, place, last))
        for place, last in short.items()
    }


def _is_short(target: TargetFacts, place: TopicPartition, last: Receipt) -> bool:
    return place.topic in target.topics and _target_end(target, place, last) < (last.target_next or 0)


def _target_end(target: TargetFacts, place: TopicPartition, last: Receipt) -> int:
    """Return up to where a target partition has what the lane wrote; its last receipt's offset if no end is known."""
    end = target.topics[place.topic].ends.get(place.partition, last.target_next or 0)
    return min(end, target.cut.get(place, end))
