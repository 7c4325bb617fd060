"""Offset maps of a flow's partitions, loaded from its ledger for many partitions at once.

A summary names the blocks of each partition's map by the offsets that they begin at, and by where they lie in the
ledger. So what an offset needs is found by bisection, and read at known places; what is newer is in the view.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from ferry.decide.adopted_map import approximate
from ferry.decide.adoption_codec import adopted_receipt, adoptions
from ferry.decide.ledger import LedgerView, gaps, last_receipts
from ferry.decide.ledger_codec import encode
from ferry.decide.map_block import Chain, MapRow
from ferry.decide.map_rows import chains_of, needed_block, newer_rows
from ferry.decide.offset_map import OffsetMap, Translated
from ferry.decide.rolled import NO_LINKS, Links
from ferry.model import Adoption, Gap, Receipt, TopicPartition
from ferry.net.cluster import Cluster
from ferry.net.fetch import READ_COMMITTED
from ferry.net.offsets import LATEST, listed_offsets
from ferry.run.connections import TargetConnection
from ferry.run.rows import read_blocks
from ferry.run.summaries import LedgerLog

Asked = Mapping[TopicPartition, Collection[int] | None]
"""Partitions with the offsets to be translated; None: any."""

_WHOLE_BLOCKS = 2
"""Blocks up to which a map is loaded whole: that is what an offset in a hole needs."""

_FEW = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionMap:
    """Where the offsets of one partition went: `offsets` leads from `source` to `target`, or (`backward`) back.

    `asked` are the offsets that it was loaded for; None: all. What the lane took over from another replicator is in
    `adoptions`, `gaps` say what of it does not hold any more.
    """

    source: TopicPartition
    target: TopicPartition
    offsets: OffsetMap
    adoptions: tuple[Adoption, ...] = ()
    gaps: tuple[Gap, ...] = ()
    backward: bool = False
    asked: frozenset[int] | None = None

    def translate(self, offset: int) -> Translated:
        """As OffsetMap; Approximate for what was adopted. LookupError when the map was not loaded for this offset."""
        if self.asked is not None and offset not in self.asked:
            raise LookupError(f"the offset map of {self.source} was not loaded for offset {offset}")
        adopted = approximate(self.adoptions, offset, backward=self.backward, gaps=self.gaps)
        return adopted or self.offsets.translate(offset)


async def offset_maps(
    connection: TargetConnection, lane: str, asked: Asked, *, backward: bool = False
) -> dict[TopicPartition, PartitionMap]:
    """The maps of the `asked` partitions of the source (`backward`: of the target), to translate these offsets of each.

    What the lane has copied nothing of is not in the answer. A source partition whose copy was renamed in between has
    the map to its newest copy. One look at the ledger and one at the ends of the target serve all partitions. BadInput
    when the flow never ran.
    """
    view = await connection.view()
    lasts = newest_receipts(view, lane, asked, backward=backward)
    stable = await _last_stable(connection.target, {last.target for last in lasts.values()})
    return await load_maps(connection.ledger, view, lane, asked, stable, backward=backward)


def newest_receipts(
    view: LedgerView, lane: str, asked: Collection[TopicPartition], *, backward: bool
) -> dict[TopicPartition, Receipt]:
    """The newest receipt of each asked partition."""
    # A search for a few names is many times quicker than decoding all.
    side = b"target_" if backward else b""
    topics = {topic: b'"%stopic":%s' % (side, encode(topic)) for topic in {place.topic for place in asked}}
    few: list[tuple[bytes, ...]] | None = None
    if len(asked) <= _FEW:
        few = [(topics[place.topic], b'"%spartition":%d,' % (side, place.partition)) for place in asked]
    elif len(topics) <= _FEW:
        few = [(word,) for word in topics.values()]
    found = {last.target if backward else last.source: last for last in last_receipts(view, lane, few).values()}
    return {place: found[place] for place in asked if place in found}


@dataclass(slots=True, kw_only=True)
class _Loading:
    """One map on its way: its chains, what is known of their rows, and the offsets that blocks are needed for."""

    last: Receipt
    gaps: list[Gap]
    offsets: frozenset[int] | None
    adoptions: list[Adoption] = field(default_factory=list)
    links: dict[Chain, Links] = field(default_factory=dict)
    rows: dict[Chain, list[MapRow]] = field(default_factory=dict)
    blocks: dict[Chain, dict[int, list[MapRow]]] = field(default_factory=dict)

    @property
    def whole(self) -> bool:
        """Whether all blocks are to be loaded: offsets do not ascend through chains, nor past a way back."""
        count = sum(len(links.blocks) for links in self.links.values())
        went_back = any(gap.void_from >= 0 for gap in self.gaps)
        return self.offsets is None or count <= _WHOLE_BLOCKS or len(self.links) > 1 or went_back

    def needed(self, *, backward: bool) -> set[tuple[Chain, int]]:
        """Blocks to be read next; none when the map is complete for its offsets."""
        found = set()
        for of, links in self.links.items():
            known = self.blocks.setdefault(of, {})
            if self.whole:
                found |= {(of, index) for index in range(len(links.blocks)) if index not in known}
                continue
            wanted = {needed_block(links, known, offset, backward=backward) for offset in self.offsets or ()}
            if links.blocks and backward:
                wanted.add(0)  # it tells the first copied record
            if links.blocks and not self.rows[of]:
                wanted.add(len(links.blocks) - 1)  # it tells the copied end
            found |= {(of, index) for index in wanted if index is not None and index not in known}
        return found

    def made(self, stands_at: int | None, *, backward: bool) -> PartitionMap:
        """The map, once nothing is needed."""
        rows = [row for of in self.rows for row in self.rows[of]]
        rows += [row for blocks in self.blocks.values() for block in blocks.values() for row in block]
        rows += [MapRow.of(adopted_receipt(one), -1) for one in self.adoptions]
        rows.sort(key=lambda row: (row.generation, row.at, row.end))
        if backward:
            made = OffsetMap.backward(rows, self.gaps, stands_at)
        else:
            begins = None
            if not self.whole:
                firsts = [links.blocks[0].start for links in self.links.values()]
                begins = min([*firsts, *(one.end for one in self.adoptions)])
            made = OffsetMap.forward(rows, self.gaps, stands_at, begins=begins)
        asked = None if self.whole else self.offsets
        return PartitionMap(
            source=self.last.source,
            target=self.last.target,
            offsets=made,
            adoptions=tuple(self.adoptions),
            gaps=tuple(self.gaps),
            backward=backward,
            asked=asked,
        )


async def load_maps(
    log: LedgerLog,
    view: LedgerView,
    lane: str,
    asked: Asked,
    stable: Mapping[TopicPartition, int],
    *,
    backward: bool = False,
) -> dict[TopicPartition, PartitionMap]:
    """As `offset_maps`, of a view; `stable` are the last stable offsets of targets, as far as they are known."""
    lasts = newest_receipts(view, lane, asked, backward=backward)
    targets = {last.target: last.source for last in lasts.values()}

    def match(of: Chain) -> bool:
        return of.lane == lane and (of.target in targets if backward else targets.get(of.target) == of.source)

    links, rows = chains_of(view, match), newer_rows(view, match, targets)
    known: dict[TopicPartition, list[Gap]] = {}
    for gap in gaps(view, lane):
        known.setdefault(gap.source, []).append(gap)
    loading: dict[TopicPartition, _Loading] = {}
    for place, last in lasts.items():
        offsets = asked[place]
        loading[place] = _Loading(
            last=last,
            gaps=known.get(last.source, []),
            offsets=None if offsets is None else frozenset(offsets),
        )
    places = {last.target: place for place, last in lasts.items()}
    for one in adoptions(view, lane):
        if one.target in places and lasts[places[one.target]].source == one.source:
            loading[places[one.target]].adoptions.append(one)
    for of in links.keys() | rows.keys():
        loading[places[of.target]].links[of] = links.get(of, NO_LINKS)
        loading[places[of.target]].rows[of] = rows.get(of, [])
    while needed := {place: wanted for place, one in loading.items() if (wanted := one.needed(backward=backward))}:
        found = await read_blocks(log, links, {block for wanted in needed.values() for block in wanted})
        for place, wanted in needed.items():
            for of, index in wanted:
                loading[place].blocks[of][index] = found[of, index]
    return {place: one.made(stable.get(one.last.target), backward=backward) for place, one in loading.items()}


async def _last_stable(cluster: Cluster, targets: Collection[TopicPartition]) -> Mapping[TopicPartition, int]:
    """Where read_committed readers of target partitions end now; without those of which that cannot be learned."""
    if not targets:
        return {}
    topics = await cluster.refresh({target.topic for target in targets})
    there = [target for target in targets if target.topic in topics]
    listed = await listed_offsets(cluster, dict.fromkeys(there, LATEST), isolation=READ_COMMITTED)
    return listed.found
