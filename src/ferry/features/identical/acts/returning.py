"""Where a flow with identical offsets continues after clients were at its target: at the end of both logs (ADR 57).

A switch has moved clients to the target of this flow, and another one, or its last step, starts the flow again. Clients
have written to the target's topics, and the flow back has copied that to the source. So both logs have the same records
up to the cut-over, by several producers. The lane writes after them under a producer id of its own, because brokers
compare a batch with the last one of its producer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ferry.clock import wall_ms
from ferry.errors import Refused
from ferry.features.identical.acts.judging import new_producer
from ferry.features.identical.acts.late import look_late
from ferry.kafka.fetch.offsets import LATEST, LEADER_LOG, listed_offsets
from ferry.kafka.fetch.requests import READ_UNCOMMITTED
from ferry.lane.connections import FlowConnections
from ferry.ledger.ledger import LedgerView
from ferry.ledger.producer_codec import Continued, continued, continued_record
from ferry.messages.catalogue import sentence
from ferry.model import Record, TopicPartition
from ferry.words import several


@dataclass(frozen=True, slots=True, kw_only=True)
class Returning:
    """Where a lane continues, by target partition, and under which producer id.

    `others` are the ends of partitions that end elsewhere than at the cut-over, or at no settled offset (None).
    """

    at: Mapping[TopicPartition, int] = field(default_factory=dict)
    producer: int = -1
    others: Mapping[TopicPartition, int | None] = field(default_factory=dict)

    def records(self, view: LedgerView, lane: str, run: str) -> list[Record]:
        """Make the records of where the lane continues, without those that the ledger has already.

        A step that is done again finds them. Its runs may have written since, so the logs end elsewhere then.
        """
        known, at_ms = continued(view, lane), wall_ms()
        return [
            continued_record(lane, place, Continued(at=at, producer_id=self.producer, run=run, at_ms=at_ms))
            for place, at in sorted(self.at.items())
            if place not in known or known[place].at != at
        ]

    def refusal(self, cuts: Mapping[TopicPartition, int], cluster: str) -> str:
        """Say which partitions end elsewhere than at the cut-over."""
        rows = [
            f"{place} (ends at {'an unknown offset' if end is None else end}, not at {cuts[place]})"
            for place, end in sorted(self.others.items())
        ]
        return sentence("identical.return.ends", places=several(rows), cluster=cluster)


async def look_returning(
    both: FlowConnections, lane: str, view: LedgerView, cuts: Mapping[TopicPartition, int]
) -> Returning:
    """Return where a lane continues, from the ends of its target's logs. Used on the connections' event loop.

    `cuts` are the offsets up to which both clusters have the same records, by target partition. Raises Refused while a
    batch of the lane may still arrive from before the switch, and Unreachable.
    """
    if not cuts:
        return Returning()
    target, known = both.target, continued(view, lane)
    late = await look_late(target, both.ledger.place, both.cache, lane)
    if late.until:
        raise Refused(late.sentence(target.alias))
    there = await target.refresh({place.topic for place in cuts})
    asked = [place for place in cuts if place.topic in there and place.partition in there[place.topic].partitions]
    shown = await listed_offsets(target, dict.fromkeys(asked, LATEST), isolation=READ_UNCOMMITTED)
    logs = await listed_offsets(target, dict.fromkeys(asked, LATEST), isolation=READ_UNCOMMITTED, replica=LEADER_LOG)
    at, others = dict[TopicPartition, int](), dict[TopicPartition, int | None]()
    for place, cut in cuts.items():
        end = shown.found.get(place) if place in asked else 0
        begun = place in known and known[place].at == cut  # this step was done, and runs may have written since
        if not cut and not end:
            continue  # nothing is there, on either side
        if begun or (end == cut and logs.found.get(place) == end):
            at[place] = cut
        else:
            others[place] = end if logs.found.get(place) == end else None
    new = [place for place, one in at.items() if place not in known or known[place].at != one]
    producer = await new_producer(target) if new else -1
    return Returning(at=at, producer=producer, others=others)
