"""Offset maps of a flow's partitions, loaded from its ledger for many partitions at once."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from ferry.decide.adopted_map import approximate
from ferry.decide.adoption_codec import adopted_receipt, adoptions
from ferry.decide.ledger import LedgerView, gaps, receipts
from ferry.decide.offset_map import OffsetMap, Translated
from ferry.model import Adoption, Gap, Receipt, TopicPartition
from ferry.net.cluster import Cluster
from ferry.net.fetch import READ_COMMITTED
from ferry.net.offsets import LATEST, listed_offsets
from ferry.run.connections import TargetConnection


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionMap:
    """Where the offsets of one partition went: `offsets` leads from `source` to `target`, or (`backward`) back.

    What the lane took over from another replicator is in `adoptions`, `gaps` say what of it does not hold any more.
    """

    source: TopicPartition
    target: TopicPartition
    offsets: OffsetMap
    adoptions: tuple[Adoption, ...] = ()
    gaps: tuple[Gap, ...] = ()
    backward: bool = False

    def translate(self, offset: int) -> Translated:
        """As OffsetMap; Approximate for what was adopted."""
        adopted = approximate(self.adoptions, offset, backward=self.backward, gaps=self.gaps)
        return adopted or self.offsets.translate(offset)


async def offset_maps(
    connection: TargetConnection,
    lane: str,
    asked: Mapping[TopicPartition, Collection[int]],
    *,
    backward: bool = False,
) -> dict[TopicPartition, PartitionMap]:
    """The maps of the `asked` partitions of the source (`backward`: of the target), to translate these offsets of each.

    A map that is asked other offsets than it was loaded for may not have them. What the lane has copied nothing of is
    not in the answer. A source partition whose copy was renamed in between has the map to its newest copy. One look at
    the ledger and one at the ends of the target serve all partitions. BadInput when the flow never ran.
    """
    view = await connection.view()
    found = _by_target(view, lane, asked) if backward else _by_source(view, lane, asked)
    adopted: dict[TopicPartition, list[Adoption]] = {}
    for one in adoptions(view, lane):
        place = one.target if backward else one.source
        if place in asked:
            adopted.setdefault(place, []).append(one)
            found.setdefault(place, []).append(adopted_receipt(one))
    for place in adopted.keys() & found.keys():
        ones = sorted(found[place], key=lambda receipt: (receipt.generation, receipt.end))
        found[place] = [one for one in ones if one.target == ones[-1].target]
    stable = await _last_stable(connection.target, {ones[-1].target for ones in found.values()})
    make = OffsetMap.backward if backward else OffsetMap.forward
    known = gaps(view, lane)
    maps = {}
    for place, ones in found.items():
        source, target = ones[-1].source, ones[-1].target
        own = [gap for gap in known if gap.source == source]
        maps[place] = PartitionMap(
            source=source,
            target=target,
            offsets=make(ones, own, stable.get(target)),
            adoptions=tuple(one for one in adopted.get(place, ()) if (one.source, one.target) == (source, target)),
            gaps=tuple(own),
            backward=backward,
        )
    return maps


def _by_source(view: LedgerView, lane: str, asked: Collection[TopicPartition]) -> dict[TopicPartition, list[Receipt]]:
    """Receipts of source partitions; where the policy renamed a copy in between, of the newest one."""
    found: dict[TopicPartition, list[Receipt]] = {}
    for receipt in receipts(view, lane=lane):
        if receipt.source in asked:
            found.setdefault(receipt.source, []).append(receipt)
    return {place: [one for one in ones if one.target == ones[-1].target] for place, ones in found.items()}


def _by_target(view: LedgerView, lane: str, asked: Collection[TopicPartition]) -> dict[TopicPartition, list[Receipt]]:
    found: dict[TopicPartition, list[Receipt]] = {}
    for receipt in receipts(view, lane=lane):
        if receipt.target in asked:
            found.setdefault(receipt.target, []).append(receipt)
    return found


async def _last_stable(cluster: Cluster, targets: Collection[TopicPartition]) -> Mapping[TopicPartition, int]:
    """Where read_committed readers of target partitions end now; without those of which that cannot be learned."""
    if not targets:
        return {}
    topics = await cluster.refresh({target.topic for target in targets})
    there = [target for target in targets if target.topic in topics]
    listed = await listed_offsets(cluster, dict.fromkeys(there, LATEST), isolation=READ_COMMITTED)
    return listed.found
