"""What somebody else wrote to the copies: looked for behind the lane's own records, before each plan and each attempt.

After the fencing all of our markers are there. So behind our last record lie one marker, which is not looked at, and
more only where chunks were aborted, or somebody else has written. A copy of which the ledger has no receipt is looked
into from its beginning: its records are somebody else's, or the ledger was lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ferry.config.flow import FlowConfig
from ferry.config.guards import OnGuard
from ferry.decide.ledger.ledger import LedgerView, accounted
from ferry.decide.ledger.receipts import last_receipts, open_receipts
from ferry.decide.plan.facts import Facts
from ferry.decide.plan.lost_ledger import accounted_positions
from ferry.model import RefusalKind, TopicPartition
from ferry.net.cluster import Cluster
from ferry.net.fetch import READ_COMMITTED, READ_UNCOMMITTED
from ferry.net.offsets import EARLIEST, LATEST, listed_offsets
from ferry.run.others.neighbours import without_unseen
from ferry.run.others.strangers import first_strangers


async def with_foreign_writers(flow: FlowConfig, lane: str, facts: Facts, target: Cluster, view: LedgerView) -> Facts:
    """`facts` with the first record on each target partition that is not the flow's.

    Topics that several flows share have a look of their own (`ferry.run.others.neighbours`).
    """
    ids = {name: topic.topic_id for name, topic in facts.targets.items()}
    before = accounted(view, lane, ids)
    begins: dict[TopicPartition, int] = {}
    for place, last in facts.receipts.items():
        topic = facts.targets.get(place.topic)
        if topic is None or place.partition not in topic.ends or flow.merge.matches(last.source.topic):
            continue
        if last.target_next < 0 or (last.target_topic_id and topic.topic_id not in ("", last.target_topic_id)):
            continue
        begin = max(last.target_next, before.get(place, 0))
        # A predecessor's end was looked up: its markers lie before it, and none of ours behind it yet.
        marker = 1 if begin == last.target_next and not last.adopted else 0
        if topic.ends[place.partition] - begin > marker:
            begins[place] = begin
    sources = {place: facts.receipts[place].source.topic for place in begins}
    uncopied = _uncopied(flow, facts)
    first = await listed_offsets(target, dict.fromkeys(uncopied, EARLIEST), isolation=READ_UNCOMMITTED)
    for place, offset in first.found.items():
        begin = max(offset, before.get(place, 0))
        if facts.targets[place.topic].ends[place.partition] > begin:
            begins[place], sources[place] = begin, uncopied[place]
    if not begins:
        return facts
    stable = await listed_offsets(target, dict.fromkeys(begins, LATEST), isolation=READ_COMMITTED)
    parts = {place: [(begin, stable.found[place])] for place, begin in begins.items() if place in stable.found}
    looked = await first_strangers(
        target, {place: ranges for place, ranges in parts.items() if ranges[0][0] < ranges[0][1]}
    )
    failed = stable.failed | looked.failed
    seen = {
        place: ranges[0][1]
        for place, ranges in parts.items()
        if place not in failed
        and (
            place not in looked.found or flow.guards.of(RefusalKind.FOREIGN_WRITER, sources[place]) is not OnGuard.FAIL
        )
    }
    topics = {place.topic for place in seen}
    kept = {place: offset for place, offset in before.items() if place.topic in topics}
    facts = without_unseen(facts, failed.keys(), failed)
    return replace(facts, foreign=looked.found, accounted={**facts.accounted, **kept, **seen})


def _uncopied(flow: FlowConfig, facts: Facts) -> dict[TopicPartition, str]:
    """Target partitions that are not empty and that the lane has no receipt of, with their source topics."""
    found: dict[TopicPartition, str] = {}
    for name in facts.sources:
        topic = facts.targets.get(flow.policy.format_remote_topic(flow.flow.source, name))
        if topic is None or flow.merge.matches(name):
            continue
        places = (TopicPartition(topic=topic.name, partition=number) for number, end in topic.ends.items() if end > 0)
        found |= {place: name for place in places if place not in facts.receipts}
    return found


def without_own(facts: Facts, lane: str, view: LedgerView) -> Facts:
    """`facts` without what the lane itself has written since, by a `view` of the ledger that was read after the look.

    For a plan that fences nobody: a run may be at work, whose records are newer than the receipts that the facts know.
    """
    receipts = [*last_receipts(view, lane).values(), *open_receipts(view, lane)]
    reached: dict[TopicPartition, int] = {}
    for receipt in receipts:
        reached[receipt.target] = max(receipt.target_next, reached.get(receipt.target, -1))
    found = {place: offset for place, offset in facts.foreign.items() if reached.get(place, -1) <= offset}
    return replace(facts, foreign=found, positions=accounted_positions(facts, receipts))


async def ends_after_look(
    target: Cluster, begins: Mapping[TopicPartition, int]
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
    """Where target partitions end now, and the first offset at or behind each of `begins` that somebody else wrote.

    A transaction that is open there is somebody else's, too: our own have ended when this is asked. One that has been
    open since before proves nothing about what came since. Partitions that cannot be asked are in neither.
    """
    stable = await listed_offsets(target, dict.fromkeys(begins, LATEST), isolation=READ_COMMITTED)
    ends = await listed_offsets(target, dict.fromkeys(stable.found, LATEST), isolation=READ_UNCOMMITTED)
    parts = {place: [(begins[place], end)] for place, end in stable.found.items() if end > begins[place]}
    looked = await first_strangers(target, parts)
    found = dict(looked.found)
    for place, end in ends.found.items():
        if end > stable.found[place] >= begins[place] and place not in found:
            found[place] = stable.found[place]
    known = {place: end for place, end in ends.found.items() if place not in looked.failed}
    return known, found
