"""Records of foreign writers in the copies: searched after the lane's own records, before each plan and each attempt.

After the fencing all markers of the lane are in the log. So after the lane's last record comes one marker, which is not
examined. There is more only if chunks were aborted, or if a foreign writer wrote there.

A copy is searched from its beginning if the ledger has no receipt of it, or if it was created again since. Its records
are a foreign writer's, or the ledger was lost.

A transaction that is open on a copy is a foreign writer's, too. Its records cannot be read yet, and no later search
would reach them: it begins after the records that this lane writes next.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from ferry.config.flow.flow import FlowConfig
from ferry.config.flow.guards import OnGuard
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.fetch.foreign_records import first_foreign_records
from ferry.kafka.fetch.offsets import EARLIEST, LATEST, listed_offsets
from ferry.kafka.fetch.requests import READ_COMMITTED, READ_UNCOMMITTED
from ferry.lane.behind import others_transactions
from ferry.ledger.ledger import LedgerView, accounted
from ferry.ledger.producer_codec import own_producers
from ferry.ledger.receipts import last_receipts, open_receipts
from ferry.ledger.runs import newest_run, outcome
from ferry.ledger.unit_codec import last_units, open_units
from ferry.model import Receipt, RefusalKind, TopicPartition
from ferry.model.observed import OpenTransaction
from ferry.plan.others.other_flows import without_unseen
from ferry.plan.rules.facts import Facts, LaneFacts, TargetFacts
from ferry.plan.rules.lost_ledger import accounted_positions


async def with_foreign_writers(
    flow: FlowConfig, lane: str, facts: Facts, target: Cluster, view: LedgerView, writers: Collection[str]
) -> Facts:
    """Return `facts` with the first foreign record on each target partition, and with foreign open transactions.

    `writers` are the transactional ids of the lane's own slots. Topics that several flows share are searched separately
    (`ferry.plan.others.other_flows`).
    """
    ids = {name: topic.topic_id for name, topic in facts.target.topics.items()}
    before = accounted(view, lane, ids)
    sources, begins = _behind_receipts(flow, facts, before)
    uncopied = _uncopied(flow, facts)
    first = await listed_offsets(target, dict.fromkeys(uncopied, EARLIEST), isolation=READ_UNCOMMITTED)
    for place, offset in first.found.items():
        sources[place] = uncopied[place]
        begin = max(offset, before.get(place, 0))
        if facts.target.topics[place.topic].ends[place.partition] > begin:
            begins[place] = begin
    unseen = uncopied.keys() - first.found.keys()
    # Asked after the ends: where it is below an end, a transaction is open.
    stable = await listed_offsets(target, dict.fromkeys(sources, LATEST), isolation=READ_COMMITTED)
    ends = {place: facts.target.topics[place.topic].ends[place.partition] for place in stable.found}
    undecided = await others_transactions(target, stable.found, ends, writers)
    parts = {place: [(begin, stable.found[place])] for place, begin in begins.items() if place in stable.found}
    looked = await first_foreign_records(
        target,
        {place: ranges for place, ranges in parts.items() if ranges[0][0] < ranges[0][1]},
        own=own_producers(view, lane),
    )
    unseen |= (sources.keys() - stable.found.keys()) | looked.failed.keys()
    seen = {
        place: ranges[0][1]
        for place, ranges in parts.items()
        if place not in unseen
        and (
            place not in looked.found
            or flow.topics.guards.of(RefusalKind.FOREIGN_WRITER, sources[place]) is not OnGuard.FAIL
        )
    }
    topics = {place.topic for place in seen}
    kept = {place: offset for place, offset in before.items() if place.topic in topics}
    return replace(
        facts,
        target=without_unseen(facts.target, unseen, first.failed | stable.failed | looked.failed),
        others=replace(
            facts.others,
            foreign=looked.found,
            open_transactions=undecided,
            accounted={**facts.others.accounted, **kept, **seen},
        ),
    )


def _behind_receipts(
    flow: FlowConfig, facts: Facts, before: Mapping[TopicPartition, int]
) -> tuple[dict[TopicPartition, str], dict[TopicPartition, int]]:
    """Return the copies that hold records of the lane, with their source topics; and where to search in them.

    The second value has only partitions with more than the lane's own marker after the lane's last record.
    """
    sources: dict[TopicPartition, str] = {}
    begins: dict[TopicPartition, int] = {}
    for place, (name, last) in _lasts(facts.lane).items():
        topic = facts.target.topics.get(place.topic)
        if topic is None or place.partition not in topic.ends or flow.topics.merge.matches(name):
            continue
        if not _has_records(last) or _is_another(facts.target, last):
            continue
        sources[place] = name
        if place in facts.target.cut:  # records that were accounted for after the cut were in another log
            begins[place] = facts.target.cut[place]
            continue
        begin = max(last.target_next or 0, before.get(place, 0))
        # The end of an adopted predecessor was asked for: its markers are before it, and the lane has none after it
        # yet. Records with identical offsets are in no transaction.
        marker = 1 if begin == last.target_next and not last.adopted and not last.identical else 0
        if topic.ends[place.partition] - begin > marker:
            begins[place] = begin
    return sources, begins


def _lasts(lane: LaneFacts) -> dict[TopicPartition, tuple[str, Receipt]]:
    """Return the lane's last receipts of both kinds by target partition, with their source topics."""
    slices = {place: (last.source.topic, last) for place, last in lane.receipts.items()}
    return slices | {place: (last.source.topic, last) for place, last in lane.units.items()}


def _is_another(target: TargetFacts, last: Receipt) -> bool:
    """Return whether the copy was created again since the receipt: it then holds no records of the lane."""
    topic = target.topics.get(last.target.topic)
    return topic is not None and bool(last.target_topic_id) and topic.topic_id not in ("", last.target_topic_id)


def _has_records(last: Receipt) -> bool:
    """Return whether the lane wrote to the copy at all: receipts may cover only markers and aborted transactions."""
    return last.target_next is not None


def _uncopied(flow: FlowConfig, facts: Facts) -> dict[TopicPartition, str]:
    """Return target partitions with records but without a receipt of the lane for any, with their source topics."""
    found: dict[TopicPartition, str] = {}
    known = _lasts(facts.lane)
    for name, copy in ((source, one) for source in facts.source.topics for one in flow.copies_of(source)):
        topic = facts.target.topics.get(copy)
        if topic is None or flow.topics.merge.matches(name):
            continue
        places = (TopicPartition(topic=topic.name, partition=number) for number, end in topic.ends.items() if end > 0)
        found |= {
            place: name
            for place in places
            if place not in known or not _has_records(known[place][1]) or _is_another(facts.target, known[place][1])
        }
    return found


def without_own(facts: Facts, lane: str, view: LedgerView) -> Facts:
    """Return `facts` without what the lane itself has written since; `view` is of the ledger read after the search.

    It serves a plan that fences no writer: a run may be active, with records newer than the receipts in the facts.
    """
    receipts = [*last_receipts(view, lane).values(), *open_receipts(view, lane)]
    written: list[Receipt] = [*receipts, *last_units(view, lane).values(), *open_units(view, lane)]
    reached: dict[TopicPartition, int] = {}
    for receipt in written:
        if _is_another(facts.target, receipt):
            continue
        reached[receipt.target] = max(receipt.target_next or 0, reached.get(receipt.target, 0))
    found = {place: offset for place, offset in facts.others.foreign.items() if reached.get(place, 0) <= offset}
    newest = newest_run(view, lane)
    at_work = newest is not None and outcome(view, lane, newest.record.run) is None

    def is_own(place: TopicPartition, one: OpenTransaction) -> bool:
        """Return whether it may be the lane's own: only if its transactional id is not known.

        One that has ended meanwhile shows in the receipts, if it is the lane's.
        """
        ended = one.producer_id < 0 and reached.get(place, 0) > one.start
        return not one.transactional_id and (at_work or ended)

    undecided = {place: one for place, one in facts.others.open_transactions.items() if not is_own(place, one)}
    positions = accounted_positions(facts, receipts)
    return replace(
        facts,
        lane=replace(facts.lane, positions=positions),
        others=replace(facts.others, foreign=found, open_transactions=undecided),
    )
