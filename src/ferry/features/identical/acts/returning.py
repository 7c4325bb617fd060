"""Where a flow with identical offsets continues after clients were at its target: at the end of both logs (ADR 57).

A switch has moved clients to the target of this flow, and another one, or its last step, starts the flow again. Clients
have written to the target's topics, and the flow back has copied that to the source. So both logs have the same records
up to the cut-over, by several producers. The lane writes after them under a producer id of its own, because brokers
compare a batch with the last one of its producer.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from ferry.clock import wall_ms
from ferry.errors import Refused
from ferry.features.identical.acts.found import differing_before
from ferry.features.identical.acts.judging import new_producer
from ferry.features.identical.acts.late import look_late
from ferry.features.identical.acts.target import SettledEnds, leaders_of, settled_ends
from ferry.kafka.fetch.offsets import EARLIEST, LATEST, listed_offsets
from ferry.kafka.fetch.requests import READ_UNCOMMITTED
from ferry.lane.connections import FlowConnections
from ferry.ledger.ledger import LedgerView
from ferry.ledger.producer_codec import Continued, continued, continued_record, sent_places
from ferry.ledger.receipts import last_receipts
from ferry.messages.catalogue import sentence
from ferry.model import Receipt, Record, Slice, TopicPartition
from ferry.wire.content import MOST_DECOMPRESSED
from ferry.words import several


@dataclass(frozen=True, slots=True, kw_only=True)
class Returning:
    """Where a lane continues, by target partition.

    `others` says of other partitions why their logs do not have the same records up to the cut-over.
    """

    at: Mapping[TopicPartition, int] = field(default_factory=dict)
    producer: int = -1
    """The producer id of partitions that have none for this cut-over; -1: all have one."""
    is_new: bool = False
    """Whether the ledger does not have all of it as this step's."""
    source_ids: Mapping[str, str] = field(default_factory=dict)
    """The ids of the source's topics."""
    source_cluster_id: str = ""
    others: Mapping[TopicPartition, str] = field(default_factory=dict)
    written: bool = False
    """Whether the lane may have written to a topic of `others`: then it cannot be made again."""
    made_again: frozenset[str] = frozenset()
    """Topics of the target that were created again: the lane copies all to them, from the beginning."""
    gone: frozenset[str] = frozenset()
    """Topics that the target does not have."""

    def records(self, view: LedgerView, lane: str, run: str) -> list[Record]:
        """Make the records of where the lane continues, without those that this step has written already.

        A partition keeps the producer id that it has for this cut-over: a batch may have been sent under it.
        """
        known, at_ms, found = continued(view, lane), wall_ms(), list[Record]()
        for place, at in sorted(self.at.items()):
            one = known.get(place)
            is_kept = one is not None and one.at == at
            if one is not None and is_kept and one.run == run:
                continue
            new = Continued(
                at=at,
                producer_id=one.producer_id if one is not None and is_kept else self.producer,
                run=run,
                at_ms=at_ms,
                source_topic_id=self.source_ids.get(place.topic, ""),
                source_cluster_id=self.source_cluster_id,
            )
            found.append(continued_record(lane, place, new))
        return found

    def refusal(self, cluster: str) -> str:
        """Say which partitions of the cluster do not have the same records, and why."""
        places = several([f"{place} ({why})" for place, why in sorted(self.others.items())])
        code = "identical.return.again" if self.written else "identical.return.ends"
        return sentence(code, places=places, cluster=cluster)


async def look_returning(
    both: FlowConnections,
    lane: str,
    view: LedgerView,
    cuts: Mapping[TopicPartition, int],
    run: str,
    *,
    fenced: int = -1,
) -> Returning:
    """Return where a lane continues, from what both clusters show. It is used on the connections' event loop.

    `cuts` are the offsets up to which both are to have the same records, by target partition. Topics have one name on
    both sides. `run` is the run of this step, and `fenced` its generation when it has fenced the lane; -1: it has not.
    Last records are compared before that, and ends again when the lane is fenced.

    Raises Refused for a lane that is fenced, while a batch of it may arrive that was sent since it was stopped. Until
    when that is does not move any more then. Raises Unreachable.
    """
    used = {place: cut for place, cut in cuts.items() if cut}
    if not used:
        return Returning()
    target, known = both.target, continued(view, lane)
    there = await target.refresh({place.topic for place in used})
    gone = {place.topic for place in used} - there.keys()
    # Runs may have written after the ledger had these, under their producer ids.
    done = {
        place for place, cut in used.items() if place in known and (known[place].at, known[place].run) == (cut, run)
    }
    left = {place: cut for place, cut in used.items() if place not in done and place.topic not in gone}
    if left and fenced >= 0:
        late = await look_late(target, both.ledger.place, both.cache, lane, fenced=fenced)
        if late.until:
            raise Refused(late.sentence(target.alias, begun=True))
    again = await _made_again(both, last_receipts(view, lane), known.keys(), left)
    found = await _at_cut(
        both, {place: cut for place, cut in left.items() if place.topic not in again}, compare=fenced < 0
    )
    others = {place: why for place, why in found.items() if why}
    new = [place for place, why in found.items() if not why]
    needs_id = any(place not in known or known[place].at != used[place] for place in new)
    written = {place.topic for place in sent_places(view, lane)}
    return Returning(
        at={place: used[place] for place in [*done, *new]},
        producer=await new_producer(target) if needs_id else -1,
        is_new=bool(new),
        source_ids={name: info.id_text for name, info in both.source.topics.items()},
        source_cluster_id=both.source.cluster_id,
        others=others,
        written=any(place.topic in written for place in others),
        made_again=frozenset(again),
        gone=frozenset(gone),
    )


async def _made_again(
    both: FlowConnections,
    receipts: Mapping[TopicPartition, Receipt],
    known: Collection[TopicPartition],
    cuts: Mapping[TopicPartition, int],
) -> set[str]:
    """Return the topics of the target that have nothing but what the lane has copied to them from their beginning.

    They were created again. The lane has begun them if the step is done again, because its runs may have begun. It has
    continued in the `known` partitions, and `receipts` are its last.
    """
    topics = {place.topic for place in cuts} - {place.topic for place in known}
    there = await both.target.refresh(topics) if topics else {}
    asked = [
        TopicPartition(topic=name, partition=number)
        for name, info in there.items()
        if name in topics
        for number in info.partitions
    ]
    ends = await listed_offsets(both.target, dict.fromkeys(asked, LATEST), isolation=READ_UNCOMMITTED)

    def is_own(place: TopicPartition) -> bool:
        end, last = ends.found.get(place), receipts.get(place)
        if last is None:
            return end == 0
        return last.target_topic_id == there[place.topic].id_text and last.target_next == end

    own = {place.topic for place in asked} - {place.topic for place in asked if not is_own(place)}
    whole = {name for name in own if all(ends.found.get(one) == cut for one, cut in cuts.items() if one.topic == name)}
    return own - whole


async def _at_cut(
    both: FlowConnections, cuts: Mapping[TopicPartition, int], *, compare: bool
) -> dict[TopicPartition, str]:
    """Return why a partition of the target does not have the same records up to its cut-over; empty: it has.

    It is to end there, and its last record is to be that of the source (`compare`).
    """
    source, target = both.source, both.target
    await source.refresh({place.topic for place in cuts})

    async def ask() -> tuple[SettledEnds, Mapping[TopicPartition, int], Mapping[TopicPartition, int]]:
        there = await target.refresh({place.topic for place in cuts})
        pieces = {
            place: _piece(place, cut)
            for place, cut in cuts.items()
            if place.topic in there and place.partition in there[place.topic].partitions
        }
        begins = await listed_offsets(target, dict.fromkeys(pieces, EARLIEST), isolation=READ_UNCOMMITTED)
        firsts = await listed_offsets(source, dict.fromkeys(pieces, EARLIEST), isolation=READ_UNCOMMITTED)
        return await settled_ends(target, pieces, leaders_of(target, pieces)), begins.found, firsts.found

    ends, begins, firsts = await target.retrying(ask)
    why = {one.piece.target: one.refusal.message for one in ends.drops}
    for place, cut in cuts.items():
        if place not in ends.found:
            why.setdefault(place, "it is not there")
        elif ends.found[place] != cut:
            why[place] = f"it ends at offset {ends.found[place]}, not at {cut}"
        elif place not in begins or place not in firsts:
            why[place] = "where its log begins is not known"
    pieces = [
        replace(_piece(place, cuts[place]), log_start=firsts[place]) for place in cuts if compare and place not in why
    ]
    for one in await differing_before(source, target, pieces, begins, MOST_DECOMPRESSED):
        why[one.piece.target] = one.refusal.message
    return {place: why.get(place, "") for place in cuts}


def _piece(place: TopicPartition, cut: int) -> Slice:
    return Slice(source=place, target=place, start=cut, end=cut, slot=0, target_next=cut, continued_at=cut)
