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
from ferry.plan.rules.facts import Facts
from ferry.plan.rules.progress import next_offset
from ferry.plan.rules.truncation import held_upto, with_high_watermark


async def with_truncations(
    facts: Facts, lane: str, source: Cluster, target: Cluster, view: LedgerView, ledger: LedgerCache
) -> Facts:
    """Return `facts` with where source logs diverge from their copies, and what truncated target logs still have."""
    facts = await _with_high_watermarks(facts, source)
    read: list[Receipt | Read] = [*facts.receipts.values(), *reads_of_units(facts.units.values())]
    lasts = [
        last
        for last in read
        if last.source.topic in facts.sources and last.source.partition in facts.sources[last.source.topic].partitions
    ]
    cut = (await source_cuts(source, lasts)).at
    written: list[Receipt] = [*facts.receipts.values(), *facts.units.values()]
    facts = replace(_with_diverged(facts, cut), cut=await target_cuts(target, written))
    return replace(facts, kept=await _kept(facts, lane, view, ledger))


async def _with_high_watermarks(facts: Facts, source: Cluster) -> Facts:
    """Ask again for unknown high watermarks if the last stable offset is before what was copied: truncated, or not."""
    short = [last.source for last in facts.receipts.values() if _may_be_cut(facts, last)]
    if not short:
        return facts
    listed = await listed_offsets(source, dict.fromkeys(short, LATEST), isolation=READ_UNCOMMITTED)
    sources = dict(facts.sources)
    for place in short:
        sources[place.topic] = with_high_watermark(
            sources[place.topic], place.partition, listed.found.get(place), listed.failed.get(place)
        )
    return replace(facts, sources=sources)


def _may_be_cut(facts: Facts, last: Receipt) -> bool:
    topic = facts.sources.get(last.source.topic)
    part = None if topic is None else topic.partitions.get(last.source.partition)
    if part is None or part.high_watermark is not None:
        return False
    return part.end < next_offset(facts, last.source, part, last)


def _with_diverged(facts: Facts, cut: Mapping[TopicPartition, int]) -> Facts:
    sources = dict(facts.sources)
    for place, at in cut.items():
        topic = sources[place.topic]
        part = replace(topic.partitions[place.partition], diverged=at)
        sources[place.topic] = replace(topic, partitions={**topic.partitions, place.partition: part})
    return replace(facts, sources=sources)


async def _kept(facts: Facts, lane: str, view: LedgerView, ledger: LedgerCache) -> dict[TopicPartition, int]:
    short = {place: last for place, last in facts.receipts.items() if _is_short(facts, place, last)}
    if not short:
        return {}
    known = gaps(view, lane)
    written: dict[TopicPartition, list[MapEntry]] = {place: [] for place in short}
    for of, rows in (await ledger.rows(view, lambda of: of.lane == lane and of.target in short)).items():
        written[of.target] += rows
    return {
        place: held_upto(written[place], known, last, _target_end(facts, place, last)) for place, last in short.items()
    }


def _is_short(facts: Facts, place: TopicPartition, last: Receipt) -> bool:
    return place.topic in facts.targets and _target_end(facts, place, last) < last.target_next


def _target_end(facts: Facts, place: TopicPartition, last: Receipt) -> int:
    """Return up to where a target partition has what the lane wrote; its last receipt's offset if no end is known."""
    end = facts.targets[place.topic].ends.get(place.partition, last.target_next)
    return min(end, facts.cut.get(place, end))
