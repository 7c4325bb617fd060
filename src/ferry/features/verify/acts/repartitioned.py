"""What two clusters have of repartitioned topics: their receipts and logs, and what is compared of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from ferry.config.flow.flow import FlowConfig
from ferry.features.verify.acts.logs import compacted_topics, hidden_topic, settled
from ferry.features.verify.acts.wanted import Wanted
from ferry.features.verify.rules.repartitioned import Chosen, DealtCopy, Sides, dealt_copies, gone_receipts, left_whole
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.fetch.offsets import EARLIEST, LATEST, listed_offsets
from ferry.kafka.fetch.requests import READ_UNCOMMITTED
from ferry.lane.connections import FlowConnections
from ferry.lane.unit_receipts import receipts_from_ledger, receipts_in_view
from ferry.ledger.ledger import LedgerView
from ferry.ledger.unit_codec import eras, last_units
from ferry.model import Era, NotCompared, NotComparedKind, Range, Receipt, TopicPartition


@dataclass(slots=True, kw_only=True)
class SurveyOfDealt:
    """What is to be compared, and what cannot be.

    `topics` are all repartitioned topics, of those asked for.
    """

    topics: set[str] = field(default_factory=set)
    copies: list[DealtCopy] = field(default_factory=list)
    not_compared: list[NotCompared] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    began: dict[TopicPartition, int] = field(default_factory=dict)
    """The least offset that a receipt has, by any rule, of each source partition."""


async def survey_dealt(
    flow: FlowConfig, connections: FlowConnections, view: LedgerView, wanted: Wanted
) -> SurveyOfDealt:
    """Read the ledger and both logs. Raises Unreachable."""
    found = SurveyOfDealt()
    lasts = last_units(view, flow.lane)
    written = {place.topic for place in lasts}
    rules = {target: era for target, era in eras(view, flow.lane).items() if target in written}
    rules = {at: one for at, one in rules.items() if wanted.topics is None or one.source_topic in wanted.topics}
    found.topics = {era.source_topic for era in rules.values()}
    lasts = {place: last for place, last in lasts.items() if place.topic in rules}
    if wanted.run is None:
        known = await receipts_from_ledger(connections.ledger, view, flow.lane, lasts, set(rules))
    else:
        known = {
            place: [one for one in mine if one.run == wanted.run]
            for place, mine in receipts_in_view(view, flow.lane, lasts).items()
        }
        rules = {target: rules[target] for target in {place.topic for place, mine in known.items() if mine}}
    found.began = _began(one for mine in known.values() for one in mine)
    if not rules:
        return found
    source, target = connections.source, connections.target
    await source.refresh(found.topics)
    await target.refresh(rules)
    cleaned = await compacted_topics(source, {era.source_topic for era in rules.values()}, found.notes)
    cleaned_copies = await compacted_topics(target, set(rules), found.notes)
    chosen = Chosen(run=wanted.run, sample=wanted.sample, seed=wanted.seed)
    for name, era in sorted(rules.items()):
        mine = {place.partition: some for place, some in known.items() if place.topic == name and some}
        is_compacted = wanted.compacted or era.source_topic in cleaned or name in cleaned_copies
        left = _hidden(era, connections) or _left(era, connections, mine, wanted, is_compacted=is_compacted)
        if left is not None:
            found.not_compared.append(left)
            continue
        width = max(len(one.ends) for some in mine.values() for one in some)
        here = [TopicPartition(era.source_topic, number) for number in range(width)]
        there = {TopicPartition(name, number): some[-1].target_next or 0 for number, some in mine.items()}
        sides = Sides(await _source_ends(source, here), await _target_ends(connections, there))
        copies, not_compared = dealt_copies(era, mine, sides, chosen)
        found.copies += copies
        found.not_compared += not_compared
        gone = gone_receipts(era, mine, sides.target) if wanted.run is None else None
        if gone is not None:
            found.not_compared.append(gone)
    return found


def _began(receipts: Iterable[Receipt]) -> dict[TopicPartition, int]:
    found: dict[TopicPartition, int] = {}
    for receipt in receipts:
        for number, begin in enumerate(receipt.starts):
            place = TopicPartition(receipt.source.topic, number)
            found[place] = min(begin, found.get(place, begin))
    return found


def _hidden(era: Era, connections: FlowConnections) -> NotCompared | None:
    why = hidden_topic(connections.source, era.source_topic) or hidden_topic(connections.target, era.target_topic)
    return None if why is None else left_whole(era, why, NotComparedKind.UNREADABLE, asked=True)


def _left(
    era: Era,
    connections: FlowConnections,
    receipts: Mapping[int, Collection[Receipt]],
    wanted: Wanted,
    *,
    is_compacted: bool,
) -> NotCompared | None:
    """Return why nothing of a topic is compared; None when some of it may be."""
    here = connections.source.topics.get(era.source_topic)
    there = connections.target.topics.get(era.target_topic)
    ids = {one.source_topic_id for some in receipts.values() for one in some} - {""}
    if any(one is not None for one in (wanted.partition, wanted.start, wanted.end, wanted.since_ms, wanted.until_ms)):
        why = "receipts say of none of its records where it went; leave --partition, --from and --to out, or give --run"
        return left_whole(era, why, NotComparedKind.DEALT, asked=True)
    if here is None:
        return left_whole(era, "it is gone from the source", NotComparedKind.SOURCE_REPLACED, asked=True)
    if here.id_text and ids - {here.id_text}:
        why = "it was created again at the source since it was copied"
        return left_whole(era, why, NotComparedKind.SOURCE_REPLACED, asked=True)
    if there is None:
        why = "its copy is gone from the target: `ferry plan` shows what to do"
        return left_whole(era, why, NotComparedKind.TARGET_GONE, asked=True)
    if is_compacted:
        why = (
            "one of the two is compacted, and of records that are gone no receipt says where they were; compare the "
            "newest of each key in Spark (format ferry)"
        )
        return left_whole(era, why, NotComparedKind.DEALT, asked=wanted.run is None)
    return None


async def _source_ends(cluster: Cluster, places: Collection[TopicPartition]) -> dict[int, Range]:
    topics = cluster.topics
    there = [place for place in places if place.partition in topics[place.topic].partitions]
    starts = (await listed_offsets(cluster, dict.fromkeys(there, EARLIEST), isolation=READ_UNCOMMITTED)).found
    ends = (await listed_offsets(cluster, dict.fromkeys(there, LATEST), isolation=READ_UNCOMMITTED)).found
    return {place.partition: (starts[place], ends[place]) for place in there if place in starts and place in ends}


async def _target_ends(connections: FlowConnections, due: Mapping[TopicPartition, int]) -> dict[int, Range]:
    """Return first and last stable offset, once what is in the ledger can be read, or `SETTLE_SECONDS` have passed."""
    target = connections.target
    there = {place: at for place, at in due.items() if place.partition in target.topics[place.topic].partitions}
    starts = (await listed_offsets(target, dict.fromkeys(there, EARLIEST), isolation=READ_UNCOMMITTED)).found
    stable = (await settled(connections, there)).found
    return {place.partition: (starts[place], stable[place]) for place in there if place in starts and place in stable}
