"""What other flows' ledgers show: the owner of a target topic, records from the target, writers of a merged topic.

With `DefaultReplicationPolicy` names keep flows apart, and no other ledger is read, unless an alias contains the
separator.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial

from ferry.config.flow.flow import FlowConfig
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.fetch.foreign_records import first_foreign_records
from ferry.kafka.fetch.offsets import EARLIEST, LATEST, listed_offsets
from ferry.kafka.fetch.requests import READ_COMMITTED, READ_UNCOMMITTED
from ferry.lane.ledger_cache import LedgerCaches
from ferry.lane.map_entries import NOWHERE
from ferry.ledger.ledger import UNREAD, LedgerView, accounted, pauses, shared_topics
from ferry.ledger.map_block import ReceiptChain
from ferry.ledger.other_flows import OtherFlow, gaps, other_flow_of, ranges, uncut
from ferry.ledger.producer_codec import continued, identical_lanes, own_producers, receipts_of_now, sent_places
from ferry.ledger.receipts import open_receipts
from ferry.ledger.unit_codec import last_units
from ferry.model import Range, Receipt, TopicPartition
from ferry.model.observed import Unavailable
from ferry.plan.rules.facts import Facts, NoReceipt, TargetFacts
from ferry.plan.rules.flow_names import names_tell_flows_apart

_LEDGER = re.compile(r"ferry-ledger\.(.+)\.internal")


async def with_other_flows(
    flow: FlowConfig,
    lane: str,
    facts: Facts,
    source: Cluster,
    target: Cluster,
    ledgers: LedgerCaches,
    view: LedgerView,
) -> Facts:
    """Return `facts` with what the ledgers of other flows add. `facts` and `view` must have been read before."""
    if names_tell_flows_apart(flow):
        return facts
    copies = {name: flow.copies_of(name) for name in facts.source.topics}
    targets = {copy for some in copies.values() for copy in some}
    merged = {copy for name, some in copies.items() if flow.topics.merge.matches(name) for copy in some}
    places = _places(facts.target, merged)
    # Asked before any ledger is read: what is committed below these offsets already has its receipt in a ledger.
    listed = await listed_offsets(target, dict.fromkeys(places, LATEST), isolation=READ_COMMITTED)
    begun = await listed_offsets(target, dict.fromkeys(listed.found, EARLIEST), isolation=READ_UNCOMMITTED)
    ends, begins = listed.found, begun.found
    unread = without_unseen(facts.target, places - begins.keys(), listed.failed | begun.failed)
    facts = replace(facts, target=unread)
    neighbours: tuple[OtherFlow, ...] = ()
    asked = merged | (targets - facts.lane.claims.keys())
    before = accounted(view, lane, {name: topic.topic_id for name, topic in facts.target.topics.items()})
    unaccounted = {place: max(before.get(place, 0), begin) for place, begin in begins.items()}
    # Records that were accounted for after a cut, or written there by this flow, were in another log.
    cut = facts.target.cut
    unaccounted |= {place: min(unaccounted[place], at) for place, at in cut.items() if place in unaccounted}
    if asked:
        neighbours = await read_other_flows(flow, target, ledgers, asked, unaccounted)
    foreign: dict[TopicPartition, int] = {}
    upto: dict[TopicPartition, int] = {}
    if begins:
        cache = ledgers.of(target, flow.flow.source)
        own_view = await cache.view() if view.by_key else UNREAD
        rows = await cache.rows(own_view, lambda of: of.target in begins, unaccounted)
        own = uncut(ranges(rows, open_receipts(own_view)), cut)
        open_parts = {
            place: gaps(
                [*own.get(place, ()), *(part for other in neighbours for part in other.written.get(place, ()))],
                unaccounted[place],
                ends[place],
            )
            for place in begins
        }
        looked = await first_foreign_records(target, open_parts)
        foreign = looked.found
        upto = {place: ends[place] for place in open_parts if place not in foreign.keys() | looked.failed.keys()}
        facts = replace(facts, target=without_unseen(facts.target, looked.failed.keys(), looked.failed))
    returned, originals, no_receipt = await _returned(facts, source, ledgers)
    facts = await _behind_originals(facts, target, originals)
    return replace(
        facts,
        lane=replace(facts.lane, shared=shared_topics(view)),
        others=replace(
            facts.others,
            flows=neighbours,
            returned=returned,
            no_receipt=no_receipt,
            accounted={**facts.others.accounted, **upto},
            unaccounted=foreign,
            back_paused=await _back_paused(flow, facts.now_ms, source, ledgers),
        ),
    )


def _places(target: TargetFacts, merged: Collection[str]) -> set[TopicPartition]:
    return {
        TopicPartition(topic=name, partition=number)
        for name in merged
        if name in target.topics
        for number in target.topics[name].ends
    }


def without_unseen(
    facts: TargetFacts, places: Collection[TopicPartition], failed: Mapping[TopicPartition, Unavailable]
) -> TargetFacts:
    """Return the facts without the ends of target partitions that could not be read: nothing is copied to those."""
    topics = dict(facts.topics)
    for place in places:
        topic = topics[place.topic]
        topics[place.topic] = replace(
            topic,
            ends={number: end for number, end in topic.ends.items() if number != place.partition},
            unserved={**topic.unserved, **({place.partition: failed[place]} if place in failed else {})},
        )
    return replace(facts, topics=topics)


async def read_other_flows(
    flow: FlowConfig,
    target: Cluster,
    ledgers: LedgerCaches,
    topics: Collection[str],
    begins: Mapping[TopicPartition, int] = NOWHERE,
) -> tuple[OtherFlow, ...]:
    """Return the other flows into the target that concern `topics`, by their ledgers read up to their current ends.

    What they have written is collected from the offsets `begins` on, and only for the partitions that it names.
    """
    found = []
    for alias in await _ledgers(target):
        if alias != flow.flow.source:
            cache = ledgers.of(target, alias)
            view = await cache.view()
            rows = await cache.rows(view, lambda of: of.target.topic in topics and of.target in begins, begins)
            found.append(other_flow_of(f"ferry-ledger.{alias}.internal", view, topics, rows))
    return tuple(other for other in found if other.claimed)


async def _ledgers(cluster: Cluster) -> list[str]:
    """Return the source aliases of all ledgers on a cluster that this login can see."""
    matches = (_LEDGER.fullmatch(name) for name in await cluster.refresh(None))
    return sorted(match.group(1) for match in matches if match is not None)


async def _back_paused(flow: FlowConfig, now_ms: int, source: Cluster, ledgers: LedgerCaches) -> bool:
    """Return whether the opposite flow is paused without an end time. Its ledger is on the source."""
    if flow.flow.target not in await _ledgers(source):
        return False
    held = pauses(await ledgers.of(source, flow.flow.target).view(), now_ms).get("")
    return held is not None and held.until_ms == 0


async def _behind_originals(facts: Facts, target: Cluster, originals: Mapping[TopicPartition, int]) -> Facts:
    """Return `facts` with copies that have no receipt searched again, from where the originals that they hold end.

    Such a copy holds the originals of records that flow to the source. Records of others come after those, and are as
    foreign as in any other copy.
    """
    again = {
        place: originals[place]
        for place, offset in facts.others.foreign.items()
        if place not in facts.lane.receipts and offset < originals.get(place, 0)
    }
    if not again:
        return facts
    stable = await listed_offsets(target, dict.fromkeys(again, LATEST), isolation=READ_COMMITTED)
    parts = {place: [(again[place], end)] for place, end in stable.found.items() if end > again[place]}
    looked = await first_foreign_records(target, parts)
    unseen = (again.keys() - stable.found.keys()) | looked.failed.keys()
    kept = {place: offset for place, offset in facts.others.foreign.items() if place not in again}
    return replace(
        facts,
        target=without_unseen(facts.target, unseen, stable.failed | looked.failed),
        others=replace(facts.others, foreign={**kept, **looked.found}),
    )


async def _returned(
    facts: Facts, source: Cluster, ledgers: LedgerCaches
) -> tuple[dict[TopicPartition, tuple[Range, ...]], dict[TopicPartition, int], dict[TopicPartition, NoReceipt]]:
    """Return by source partition the offsets that flows from the target cluster wrote there, under any alias.

    The second value holds by target partition the offset up to which those flows have read it. The third one has by
    source partition what they wrote with identical offsets, and no receipt covers yet.
    """
    found: dict[TopicPartition, tuple[Range, ...]] = {}
    originals: dict[TopicPartition, int] = {}
    no_receipt: dict[TopicPartition, NoReceipt] = {}
    begins = {
        TopicPartition(topic=name, partition=number): part.log_start
        for name, topic in facts.source.topics.items()
        for number, part in topic.partitions.items()
    }

    for alias in await _ledgers(source):
        cache = ledgers.of(source, alias)
        view = await cache.view()
        kept = {lane: sent_places(view, lane) for lane in identical_lanes(view)}
        comes_back = partial(_comes_back, facts, kept)
        rows, undecided = await cache.rows(view, comes_back, begins), list(filter(comes_back, open_receipts(view)))
        came = ranges(rows, undecided)
        ends = [(of.source, row.end) for of, some in rows.items() for row in some]
        for at, end in [*ends, *((receipt.source, receipt.end) for receipt in undecided)]:
            originals[at] = max(end, originals.get(at, 0))
        for place, parts in came.items():
            found[place] = (*found.get(place, ()), *parts)
        for place, last in last_units(view, None).items():  # no receipt shows where each of these records is
            if comes_back(last):
                found[place] = (*found.get(place, ()), (0, last.target_next or 0))
                for number, end in enumerate(last.ends):
                    at = TopicPartition(topic=last.source.topic, partition=number)
                    originals[at] = max(end, originals.get(at, 0))
        for lane, places in kept.items():
            no_receipt |= await _no_receipt(facts, source, f"{alias}->{source.alias}", view, lane, places)
    return found, originals, no_receipt


def _comes_back(facts: Facts, kept: Mapping[str, Collection[TopicPartition]], of: ReceiptChain | Receipt) -> bool:
    """Return whether records came from the target. `kept` are the partitions with identical offsets, by lane."""
    if of.source_cluster_id != facts.target.cluster_id or of.target.topic not in facts.source.topics:
        return False
    return of.target not in kept.get(of.lane, ()) or not _is_gone(facts, of)


def _is_gone(facts: Facts, of: ReceiptChain | Receipt) -> bool:
    """Return whether records came from a topic of the target that was deleted, and created again since.

    Then they are not there any more, and may go back.
    """
    now = facts.target.topics.get(of.source.topic)
    return now is not None and bool(of.source_topic_id and now.topic_id) and of.source_topic_id != now.topic_id


async def _no_receipt(
    facts: Facts, source: Cluster, writer: str, view: LedgerView, lane: str, places: Collection[TopicPartition]
) -> dict[TopicPartition, NoReceipt]:
    """Return what a lane wrote to the source with identical offsets after its receipts, by source partition.

    It writes nothing after a record of another producer, so the source is read up to the first one. What the flow has
    copied is not read again. A lane without receipts may be of any cluster, so it counts. `places` are the partitions
    to which the lane may have sent batches.
    """
    lasts = [*receipts_of_now(view, lane).values(), *open_receipts(view, lane)]
    if lasts and all(last.source_cluster_id != facts.target.cluster_id for last in lasts):
        return {}
    begins: dict[TopicPartition, int] = {}
    after = continued(view, lane)  # what is before it, clients wrote, and both clusters have it
    for place in places:
        topic = facts.source.topics.get(place.topic)
        part = None if topic is None else topic.partitions.get(place.partition)
        if part is not None and not any(_is_gone(facts, last) for last in lasts if last.target == place):
            covered = [last.target_next or 0 for last in lasts if last.target == place]
            read = [last.end for last in facts.lane.receipts.values() if last.source == place]
            begun = after[place].at if place in after else 0
            begins[place] = max([part.log_start, begun, *covered, *read])
    stable = await listed_offsets(source, dict.fromkeys(begins, LATEST), isolation=READ_COMMITTED)
    ends = {place: facts.source.topics[place.topic].partitions[place.partition].end for place in begins}
    parts = {place: (begin, min(ends[place], stable.found.get(place, begin))) for place, begin in begins.items()}
    looked = await first_foreign_records(
        source, {place: [part] for place, part in parts.items() if part[0] < part[1]}, own=own_producers(view, lane)
    )
    failed = {place: one.why for place, one in (stable.failed | looked.failed).items()}
    known = {place: looked.own[place] for place in looked.own.keys() - failed.keys()}
    return {
        **{place: NoReceipt(start=begins[place], end=end, writer=writer) for place, end in known.items()},
        **{
            place: NoReceipt(start=begins[place], end=ends[place], writer=writer, why=why)
            for place, why in failed.items()
            if begins[place] < ends[place]
        },
    }
