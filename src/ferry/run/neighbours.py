"""What other flows' ledgers say: who owns a target topic, what came from the target, who else writes a merged topic.

With `DefaultReplicationPolicy` names tell flows apart, and nothing of this is asked.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from functools import partial

from ferry.config.flow import FlowConfig
from ferry.decide.facts import Facts, Unserved
from ferry.decide.ledger import UNREAD, LedgerView, accounted, every_receipt, shared_topics
from ferry.decide.neighbours import Neighbour, Range, gaps, neighbour_of, ranges
from ferry.errors import Refused, Retryable
from ferry.model import TopicPartition
from ferry.net import codes
from ferry.net.cluster import Cluster
from ferry.net.fetch import READ_COMMITTED, READ_UNCOMMITTED, FetchedPartition, fetch_request, fetched
from ferry.net.offsets import EARLIEST, LATEST, listed_offsets
from ferry.policy import DefaultReplicationPolicy
from ferry.run.known_ledger import KnownLedgers
from ferry.wire.aborted import AbortedTransactions
from ferry.wire.batch import batches

_LEDGER = re.compile(r"ferry-ledger\.(.+)\.internal")
_GAP_BYTES = 64 << 10
"""Read per gap and request: gaps are markers, or chunks that were aborted."""


def names_tell_flows_apart(flow: FlowConfig) -> bool:
    """Whether a target topic's name shows which flow writes it."""
    return isinstance(flow.policy, DefaultReplicationPolicy)


async def with_neighbours(
    flow: FlowConfig,
    lane: str,
    facts: Facts,
    source: Cluster,
    target: Cluster,
    ledgers: KnownLedgers,
    view: LedgerView,
) -> Facts:
    """`facts` with what the ledgers of other flows add to them; `facts` and `view` are as they were read before."""
    if names_tell_flows_apart(flow):
        return facts
    targets = {name: flow.policy.format_remote_topic(flow.flow.source, name) for name in facts.sources}
    merged = {remote for name, remote in targets.items() if flow.merge.matches(name)}
    places = _places(facts, merged)
    # Before any ledger: what is committed below these offsets has its receipt in a ledger by now.
    listed = await listed_offsets(target, dict.fromkeys(places, LATEST), isolation=READ_COMMITTED)
    begun = await listed_offsets(target, dict.fromkeys(listed.found, EARLIEST), isolation=READ_UNCOMMITTED)
    ends, begins = listed.found, begun.found
    facts = _without_unseen(facts, places - begins.keys(), listed.failed | begun.failed)
    neighbours: tuple[Neighbour, ...] = ()
    asked = merged | (set(targets.values()) - facts.claims.keys())
    if asked:
        neighbours = await read_neighbours(flow, target, ledgers, asked)
    strangers: dict[TopicPartition, int] = {}
    upto: dict[TopicPartition, int] = {}
    if begins:
        own_view = await ledgers.of(target, flow.flow.source).view() if view.by_key else UNREAD
        own = ranges(every_receipt(own_view))
        before = accounted(view, lane)
        open_parts = {
            place: gaps(
                [*own.get(place, ()), *(part for other in neighbours for part in other.written.get(place, ()))],
                max(before.get(place, 0), begins[place]),
                ends[place],
            )
            for place in begins
        }
        strangers = await _first_strangers(target, open_parts)
        upto = {place: ends[place] for place in open_parts if place not in strangers}
    return replace(
        facts,
        neighbours=neighbours,
        returned=await _returned(facts, source, ledgers),
        strangers=strangers,
        accounted=upto,
        shared=shared_topics(view),
    )


def _places(facts: Facts, merged: Collection[str]) -> set[TopicPartition]:
    return {
        TopicPartition(topic=name, partition=number)
        for name in merged
        if name in facts.targets
        for number in facts.targets[name].ends
    }


def _without_unseen(
    facts: Facts, places: Collection[TopicPartition], failed: Mapping[TopicPartition, Unserved]
) -> Facts:
    """The facts without the ends of target partitions that could not be looked into: nothing is copied to those."""
    targets = dict(facts.targets)
    for place in places:
        topic = targets[place.topic]
        targets[place.topic] = replace(
            topic,
            ends={number: end for number, end in topic.ends.items() if number != place.partition},
            unserved={**topic.unserved, **({place.partition: failed[place]} if place in failed else {})},
        )
    return replace(facts, targets=targets)


async def read_neighbours(
    flow: FlowConfig, target: Cluster, ledgers: KnownLedgers, topics: Collection[str]
) -> tuple[Neighbour, ...]:
    """The other flows into the target, as far as `topics` concern them, by their ledgers up to their ends now."""
    found = [
        neighbour_of(f"ferry-ledger.{alias}.internal", await ledgers.of(target, alias).view(), topics)
        for alias in await _ledgers(target)
        if alias != flow.flow.source
    ]
    return tuple(other for other in found if other.claimed)


async def _ledgers(cluster: Cluster) -> list[str]:
    """The source aliases of all ledgers on a cluster that can be seen."""
    matches = (_LEDGER.fullmatch(name) for name in await cluster.refresh(None))
    return sorted(match.group(1) for match in matches if match is not None)


async def _returned(facts: Facts, source: Cluster, ledgers: KnownLedgers) -> dict[TopicPartition, tuple[Range, ...]]:
    """By source partition the offsets that flows from the target cluster wrote there, under whatever alias."""
    found: dict[TopicPartition, tuple[Range, ...]] = {}
    for alias in await _ledgers(source):
        came = ranges(
            receipt
            for receipt in every_receipt(await ledgers.of(source, alias).view())
            if receipt.source_cluster_id == facts.target_cluster_id and receipt.target.topic in facts.sources
        )
        for place, parts in came.items():
            found[place] = (*found.get(place, ()), *parts)
    return found


async def _first_strangers(
    target: Cluster, open_parts: Mapping[TopicPartition, list[Range]]
) -> dict[TopicPartition, int]:
    """Per partition the first offset in its `open_parts` that holds a record which no transaction aborted."""
    waiting = {place: list(parts) for place, parts in open_parts.items() if parts}
    found: dict[TopicPartition, int] = {}
    while waiting:
        at = {place: parts[0][0] for place, parts in waiting.items()}
        for part in await target.retrying(partial(_read, target, at)):
            parts = waiting[part.place]
            stranger, seen = _judged(part, parts)
            if stranger is not None:
                found[part.place] = stranger
                parts.clear()
            parts[:] = [(max(low, seen), high) for low, high in parts if high > seen]
            if not parts:
                del waiting[part.place]
    return found


async def _read(target: Cluster, at: Mapping[TopicPartition, int]) -> list[FetchedPartition]:
    """A fetch from one leader of some of the partitions."""
    leader = target.leader(next(iter(at)))
    offsets = {place: offset for place, offset in at.items() if target.leader(place) == leader}
    request = fetch_request(
        target,
        offsets,
        isolation=READ_COMMITTED,
        max_bytes=len(offsets) * _GAP_BYTES,
        partition_bytes=_GAP_BYTES,
        max_wait_ms=200,
    )
    try:
        parts = list(fetched(target, offsets, await target.ask(request, leader)))
    except Retryable:
        await target.refresh({place.topic for place in offsets})
        raise
    first = next(iter(offsets))
    for part in parts:
        if part.place == first and not part.error_code and not part.records:
            raise Retryable(f"{first} on cluster {target.alias} does not show offset {offsets[first]}")
        if part.error_code in codes.UNAUTHORIZED:
            raise Refused(f"not allowed to read merged topic {part.place.topic} on cluster {target.alias}: grant READ")
        if part.error_code not in (codes.NONE, codes.OFFSET_OUT_OF_RANGE):
            await target.refresh({place.topic for place in offsets})
            raise Retryable(f"{part.place} on cluster {target.alias}: {codes.describe(part.error_code)}")
    return parts


def _judged(part: FetchedPartition, open_parts: Iterable[Range]) -> tuple[int | None, int]:
    """The first offset of a live record in one of `open_parts`, and how far the answer allows to judge.

    A partition that is not the first of a request may come without a whole batch: nothing is judged then.
    """
    seen = min(low for low, _ in open_parts)
    if part.error_code == codes.OFFSET_OUT_OF_RANGE:  # retention was faster
        return None, max(part.log_start_offset, seen + 1)
    aborted = AbortedTransactions()
    aborted.learn(part.aborted)
    for batch in batches(part.records):
        seen = batch.next_offset
        if aborted.hides(batch) or batch.is_control or (batch.magic == 2 and not batch.record_count):
            continue
        for low, high in open_parts:
            if batch.base_offset < high and low < batch.next_offset:
                return max(low, batch.base_offset), seen
    return None, seen
