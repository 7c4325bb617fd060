"""Read what the old primary no longer holds of what was copied from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ferry.config.flow.flow import FlowConfig
from ferry.errors import Refused
from ferry.features.switch.acts.partition_state import keeps_offsets, takes
from ferry.features.switch.acts.sides import Sides
from ferry.features.switch.rules.old_primary import (
    Lack,
    OldLogs,
    copied_checks,
    copied_partitions,
    lacks_of,
    reached_offsets,
)
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.fetch.offsets import LATEST, listed_offsets
from ferry.kafka.fetch.requests import READ_UNCOMMITTED
from ferry.lane.connections import FlowConnections
from ferry.lane.source_cuts import source_cuts
from ferry.ledger.ledger import LedgerView, gaps
from ferry.ledger.producer_codec import receipts_of_now
from ferry.ledger.source_reads import Read, reads_of_units
from ferry.ledger.unit_codec import eras, last_units
from ferry.model import Receipt, RefusalKind, TopicPartition
from ferry.model.check import Check
from ferry.run.ledger.access import LedgerAccess


@dataclass(frozen=True, slots=True, kw_only=True)
class OldPrimary:
    """What the old primary holds of what was copied from it.

    `reached` is up to where its logs of now were copied, by partition. `lacks` is what it no longer holds. What the
    `silent` partitions hold is not known.
    """

    reached: Mapping[TopicPartition, int] = field(default_factory=dict)
    lacks: tuple[Lack, ...] = ()
    silent: frozenset[TopicPartition] = frozenset()
    ids: Mapping[str, str] = field(default_factory=dict)

    def checks(self, forward: FlowConfig) -> list[Check]:
        """Make the checks of a failback of the flow `forward`; empty if all is held."""
        return copied_checks(forward.flow, self.lacks, self.silent, forward.topics.guards)


def forward_view(forward: FlowConfig, *, patience_s: float) -> LedgerView:
    """Return the ledger of the flow that copied from the old primary."""
    with LedgerAccess(forward, patience_s=patience_s) as ledger:
        return ledger.view_if_any()


def old_primary_checks(sides: Sides, *, patience_s: float) -> list[Check]:
    """Check whether the old primary still holds what was copied from it. Raises Unreachable if a cluster is."""
    if sides.back is None:
        return []
    forward = sides.back  # in a failback, `back` is the flow that the operator named
    view = forward_view(forward, patience_s=patience_s)
    with FlowConnections.of(sides.via, patience_s=patience_s) as both:
        return both.run(lambda: look_at_old_primary(forward, view, both.target, both.source)).checks(forward)


async def look_at_old_primary(forward: FlowConfig, view: LedgerView, primary: Cluster, copies: Cluster) -> OldPrimary:
    """Compare the last receipts of the flow `forward` with what its source, `primary`, has now.

    A topic that is gone from there counts only while `copies`, the flow's target, has its copy: without one it lacks
    nothing.
    """
    lasts = [last for last in receipts_of_now(view, forward.lane).values() if takes(forward, last.source.topic)]
    units = [last for last in last_units(view, forward.lane).values() if takes(forward, last.source.topic)]
    rules = [era for era in eras(view, forward.lane).values() if takes(forward, era.source_topic)]
    topics = await primary.refresh(None)
    ids = {name: info.id_text for name, info in topics.items()}
    copied = copied_partitions(lasts, units, rules)
    known = gaps(view, forward.lane)
    places = [place for place in copied if place.topic in ids and place.partition in topics[place.topic].partitions]
    listed = await listed_offsets(primary, dict.fromkeys(places, LATEST), isolation=READ_UNCOMMITTED)
    reads: list[Receipt | Read] = [*(one.last for one in copied.values() if one.last.reads is None)]
    cuts = await source_cuts(primary, [*reads, *reads_of_units(units)])
    now = OldLogs(
        cluster_id=primary.cluster_id,
        ids=ids,
        ends=listed.found,
        cuts=cuts.at,
        silent=cuts.silent | {place for place in places if place not in listed.found},
    )
    there = await copies.refresh({one.copy.topic for one in copied.values()}) if copied else {}
    keeps = keeps_offsets(forward)  # the step `return` compares these topics, or copies all of them
    every = lacks_of(copied.values(), known, now)
    return OldPrimary(
        reached=reached_offsets(copied.values(), known, every, ids),
        lacks=tuple(
            one
            for one in every
            if not keeps(one.source.topic) and (one.why is not RefusalKind.TOPIC_GONE or one.target.topic in there)
        ),
        silent=now.silent,
        ids=ids,
    )


def refuse_lacking(forward: FlowConfig, found: OldPrimary) -> None:
    """Raise Refused if the old primary no longer holds what was copied from it, and no guard of the flow accepts it."""
    failed = [check for check in found.checks(forward) if not check.ok]
    if failed:
        raise Refused(failed[0].message)
