"""What somebody else wrote to the copies: looked for behind the lane's own records, before each plan and each attempt.

After the fencing all of our markers are there. So behind our last record lie one marker, which is not looked at, and
more only where chunks were aborted, or somebody else has written. A copy of which the ledger has no receipt, or that
was created again since, is looked into from its beginning: its records are somebody else's, or the ledger was lost.
And a transaction that is open on a copy is somebody else's: nobody can see yet what it wrote, and behind our next
records nobody would look again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from ferry.config.flow.flow import FlowConfig
from ferry.config.flow.guards import OnGuard
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.fetch.foreign_records import first_strangers
from ferry.kafka.fetch.offsets import EARLIEST, LATEST, listed_offsets
from ferry.kafka.fetch.requests import READ_COMMITTED, READ_UNCOMMITTED
from ferry.lane.behind import others_transactions
from ferry.ledger.ledger import LedgerView, accounted
from ferry.ledger.receipts import last_receipts, open_receipts
from ferry.ledger.runs import newest_run, outcome
from ferry.ledger.unit_codec import last_units, open_units
from ferry.model import Receipt, RefusalKind, TopicPartition
from ferry.model.observed import OpenTransaction
from ferry.plan.others.other_flows import without_unseen
from ferry.plan.rules.facts import Facts
from ferry.plan.rules.lost_ledger import accounted_positions


async def with_foreign_writers(
    flow: FlowConfig, lane: str, facts: Facts, target: Cluster, view: LedgerView, writers: Collection[str]
) -> Facts:
    """`facts` with the first record on each target partition that is not the flow's, and with others' transactions.

    `writers` are the transactional ids of the lane's own slots. Topics that several flows share have a look of their
    own (`ferry.plan.others.other_flows`).
    """
    ids = {name: topic.topic_id for name, topic in facts.targets.items()}
    before = accounted(view, lane, ids)
    sources, begins = _behind_receipts(flow, facts, before)
    uncopied = _uncopied(flow, facts)
    first = await listed_offsets(target, dict.fromkeys(uncopied, EARLIEST), isolation=READ_UNCOMMITTED)
    for place, offset in first.found.items():
        sources[place] = uncopied[place]
        begin = max(offset, before.get(place, 0))
        if facts.targets[place.topic].ends[place.partition] > begin:
            begins[place] = begin
    unseen = uncopied.keys() - first.found.keys()
    # Later than the ends: one below them is where a transaction is open.
    stable = await listed_offsets(target, dict.fromkeys(sources, LATEST), isolation=READ_COMMITTED)
    ends = {place: facts.targets[place.topic].ends[place.partition] for place in stable.found}
    undecided = await others_transactions(target, stable.found, ends, writers)
    parts = {place: [(begin, stable.found[place])] for place, begin in begins.items() if place in stable.found}
    looked = await first_strangers(
        target, {place: ranges for place, ranges in parts.items() if ranges[0][0] < ranges[0][1]}
    )
    unseen |= (sources.keys() - stable.found.keys()) | looked.failed.keys()
    seen = {
        place: ranges[0][1]
        for place, ranges in parts.items()
        if place not in unseen
        and (
            place not in looked.found or flow.guards.of(RefusalKind.FOREIGN_WRITER, sources[place]) is not OnGuard.FAIL
        )
    }
    topics = {place.topic for place in seen}
    kept = {place: offset for place, offset in before.items() if place.topic in topics}
    facts = without_unseen(facts, unseen, first.failed | stable.failed | looked.failed)
    return replace(facts, foreign=looked.found, undecided=undecided, accounted={**facts.accounted, **kept, **seen})


def _behind_receipts(
    flow: FlowConfig, facts: Facts, before: Mapping[TopicPartition, int]
) -> tuple[dict[TopicPartition, str], dict[TopicPartition, int]]:
    """Copies with records of the lane's, with their source topics; and where more than its marker lies behind them."""
    sources: dict[TopicPartition, str] = {}
    begins: dict[TopicPartition, int] = {}
    for place, (name, last) in _lasts(facts).items():
        topic = facts.targets.get(place.topic)
        if topic is None or place.partition not in topic.ends or flow.merge.matches(name):
            continue
        if not _has_records(last) or _is_another(facts, last):
            continue
        sources[place] = name
        if place in facts.cut:  # what was seen behind the cut was in another log
            begins[place] = facts.cut[place]
            continue
        begin = max(last.target_next, before.get(place, 0))
        # A predecessor's end was looked up: its markers lie before it, and none of ours behind it yet.
        marker = 1 if begin == last.target_next and not last.adopted else 0
        if topic.ends[place.partition] - begin > marker:
            begins[place] = begin
    return sources, begins


def _lasts(facts: Facts) -> dict[TopicPartition, tuple[str, Receipt]]:
    """The lane's last receipts of both kinds, with their source topics."""
    slices = {place: (last.source.topic, last) for place, last in facts.receipts.items()}
    return slices | {place: (last.source.topic, last) for place, last in facts.units.items()}


def _is_another(facts: Facts, last: Receipt) -> bool:
    """Whether the copy was created again since: none of the lane's records lie in it."""
    topic = facts.targets.get(last.target.topic)
    return topic is not None and bool(last.target_topic_id) and topic.topic_id not in ("", last.target_topic_id)


def _has_records(last: Receipt) -> bool:
    """Whether the lane wrote to the copy at all: its receipts may be of markers and aborted transactions alone."""
    return last.target_next >= 0


def _uncopied(flow: FlowConfig, facts: Facts) -> dict[TopicPartition, str]:
    """Target partitions with records though no receipt of the lane names any of them, with their source topics."""
    found: dict[TopicPartition, str] = {}
    known = _lasts(facts)
    for name, copy in ((source, one) for source in facts.sources for one in flow.copies_of(source)):
        topic = facts.targets.get(copy)
        if topic is None or flow.merge.matches(name):
            continue
        places = (TopicPartition(topic=topic.name, partition=number) for number, end in topic.ends.items() if end > 0)
        found |= {
            place: name
            for place in places
            if place not in known or not _has_records(known[place][1]) or _is_another(facts, known[place][1])
        }
    return found


def without_own(facts: Facts, lane: str, view: LedgerView) -> Facts:
    """`facts` without what the lane itself has written since, by a `view` of the ledger that was read after the look.

    For a plan that fences nobody: a run may be at work, whose records are newer than the receipts that the facts know.
    """
    receipts = [*last_receipts(view, lane).values(), *open_receipts(view, lane)]
    written: list[Receipt] = [*receipts, *last_units(view, lane).values(), *open_units(view, lane)]
    reached: dict[TopicPartition, int] = {}
    for receipt in written:
        if _is_another(facts, receipt):
            continue
        reached[receipt.target] = max(receipt.target_next, reached.get(receipt.target, -1))
    found = {place: offset for place, offset in facts.foreign.items() if reached.get(place, -1) <= offset}
    newest = newest_run(view, lane)
    at_work = newest is not None and outcome(view, lane, newest.record.run) is None

    def is_own(place: TopicPartition, one: OpenTransaction) -> bool:
        """Only where nobody tells whose it is; one that has ended meanwhile shows in the receipts, if it is ours."""
        ended = one.producer_id < 0 and reached.get(place, -1) > one.start
        return not one.transactional_id and (at_work or ended)

    undecided = {place: one for place, one in facts.undecided.items() if not is_own(place, one)}
    positions = accounted_positions(facts, receipts)
    return replace(facts, foreign=found, undecided=undecided, positions=positions)
