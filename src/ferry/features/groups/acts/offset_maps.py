"""Offset maps of a flow's partitions, loaded from its ledger for many partitions at once.

A summary lists the blocks of each partition's map: the offset that a block begins at, and its place in the ledger. So
the block that an offset needs is found by bisection, and read at a known place. What is newer is in the view.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from ferry.errors import Refused, Unreachable
from ferry.features.groups.rules.adopted_map import approximate
from ferry.features.groups.rules.map_check import Cut, Present, map_cut, map_trouble
from ferry.features.groups.rules.offset_map import Before, InGap, LogStart, OffsetMap, Translated
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.fetch.offsets import EARLIEST, LATEST, listed_offsets
from ferry.kafka.fetch.requests import READ_COMMITTED, READ_UNCOMMITTED
from ferry.lane.connections import FlowConnections, TargetConnection
from ferry.lane.map_entries import read_blocks
from ferry.lane.source_cuts import source_cuts
from ferry.lane.summaries import LedgerLog
from ferry.lane.target_cuts import target_cuts
from ferry.ledger.adoption_codec import adopted_receipt, adoptions
from ferry.ledger.block_index import NO_LINKS, Links
from ferry.ledger.codec import encode
from ferry.ledger.ledger import LedgerView, gaps
from ferry.ledger.map_block import MapEntry, ReceiptChain
from ferry.ledger.map_rows import chains_of, needed_block, newer_rows
from ferry.ledger.producer_codec import receipts_of_now
from ferry.ledger.pruning import Pruned, pruned, ranges
from ferry.model import Adoption, Gap, Range, Receipt, TopicPartition
from ferry.words import several

log = logging.getLogger(__name__)

Asked = Mapping[TopicPartition, Collection[int] | None]
"""Partitions with the offsets to be translated; None: any offset."""

WHOLE_BLOCKS = 2
"""A map of at most so many blocks is loaded whole: an offset in a hole needs as many."""

FEW = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionMap:
    """The map of the offsets of one partition: `offsets` leads from `source` to `target`, or (`backward`) back.

    `asked` are the offsets that it was loaded for; None: all. `adoptions` are what the lane took over from another
    replicator, and `gaps` say which of it is not valid any more. `pruned` are offsets, on the side that is asked about,
    whose receipts the ledger does not keep any more. `log_start` is that of the side it leads to, if known.

    With a `trouble`, a sentence, it leads nowhere: one of the clusters does not have what was copied any more. With a
    `cut` it leads nowhere from there on.
    """

    source: TopicPartition
    target: TopicPartition
    offsets: OffsetMap
    adoptions: tuple[Adoption, ...] = ()
    gaps: tuple[Gap, ...] = ()
    backward: bool = False
    asked: frozenset[int] | None = None
    pruned: tuple[Range, ...] = ()
    log_start: int | None = None
    trouble: str | None = None
    cut: Cut | None = None
    transformed: bool = False
    """Whether a transform made some of it, so that records may have been left out."""
    identical: bool = False
    """Whether the last records of it have identical offsets."""

    def trouble_at(self, offset: int) -> str | None:
        """Return why the map does not translate an offset, as a sentence; None when it does.

        LookupError when the map was not loaded for this offset.
        """
        if self.trouble is not None or self.cut is None:
            return self.trouble
        if self.backward:
            return self.cut.why if self._led_to(offset).offset >= self.cut.at else None
        # A reader in a gap right before the cut would be led to a place after it.
        beyond = offset >= self.cut.at or self._led_to(offset).offset >= self._led_to(self.cut.at).offset
        return self.cut.why if beyond else None

    def translate(self, offset: int) -> Translated:
        """Return where a reader of `offset` continues on the other side.

        Approximate for what was adopted, LogStart for what the side it leads to has deleted. Raises Refused with the
        trouble at the offset, LookupError when the map was not loaded for this offset.
        """
        why = self.trouble_at(offset)
        if why is not None:
            raise Refused(why)
        found = self._led_to(offset)
        if self.log_start is None or found.offset >= self.log_start:
            return found
        if isinstance(found, Before) and found.pruned is not None:
            return replace(found, offset=self.log_start)
        return LogStart(offset=self.log_start)

    def passes(self, offset: int) -> bool:
        """Report whether the lane skipped source offsets after this one, which came from elsewhere or were left."""
        return any(gap.end > offset for gap in self.gaps)

    def _led_to(self, offset: int) -> Translated:
        if self.asked is not None and offset not in self.asked:
            raise LookupError(f"the offset map of {self.source} was not loaded for offset {offset}")
        if not self.adoptions and not self.pruned:  # nearly always so, and groups have hundreds of thousands of offsets
            return self.offsets.translate(offset)
        adopted = approximate(self.adoptions, offset, backward=self.backward, gaps=self.gaps)
        return adopted or self._pruned(offset) or self._kept(offset)

    def _pruned(self, offset: int) -> Before | None:
        """Return the first record that is left, as on a log that lost its beginning.

        None: the offset was not pruned.
        """
        end = _pruned_end(self.pruned, offset)
        return None if end is None else Before(offset=self._kept(end).offset, pruned=end)

    def _kept(self, offset: int) -> Translated:
        found = self.offsets.translate(offset)
        if isinstance(found, Before) and any(end <= offset for _, end in self.pruned):
            return InGap(offset=found.offset)  # after what was pruned there was nothing up to what is left
        return found


def _pruned_end(some: Iterable[Range], offset: int) -> int | None:
    return next((end for start, end in some if start <= offset < end), None)


async def offset_maps(
    connection: TargetConnection, lane: str, asked: Asked, *, backward: bool = False
) -> dict[TopicPartition, PartitionMap]:
    """Return the maps of the `asked` partitions of the source (`backward`: of the target), for these offsets of each.

    What the lane has copied nothing of is not in the answer. A source partition whose copy was renamed meanwhile has
    the map to its newest copy. What the clusters show now is compared with its last receipt (`PartitionMap.trouble`,
    `cut`): the source's side over FlowConnections only, and when it answers. The ledger and each cluster are read once
    for all partitions. BadInput when the flow never ran.
    """
    view = await connection.view()
    source = connection.source if isinstance(connection, FlowConnections) and connection.has_source else None
    return await maps_of_ledger(
        connection.ledger, view, lane, asked, target=connection.target, source=source, backward=backward
    )


async def maps_of_ledger(
    ledger: LedgerLog,
    view: LedgerView,
    lane: str,
    asked: Asked,
    *,
    target: Cluster,
    source: Cluster | None,
    backward: bool = False,
) -> dict[TopicPartition, PartitionMap]:
    """Return the maps of the `asked` partitions of the source (`backward`: of the target), by a `view` of the ledger.

    The ledger is that of a flow from `source` (None: it does not answer) to `target`. What the lane has copied nothing
    of is not in the answer.
    """
    lasts = newest_receipts(view, lane, asked, backward=backward)
    there = await _target_logs(target, lasts.values())
    here = _SourceLogs() if source is None else await _source_logs(source, lasts.values(), begins=backward)
    if not backward:  # where it was cut, too, is asked of the map
        asked = {
            place: offsets if offsets is None or place not in here.cuts else {*offsets, here.cuts[place]}
            for place, offsets in asked.items()
        }
    maps = await load_maps(ledger, view, lane, asked, there.stable, backward=backward)
    found = {}
    for place, made in maps.items():
        last = lasts[place]
        now = Present(
            source_cluster_id=here.cluster_id,
            source_topic_id=here.ids.get(last.source.topic, ""),
            target_topic_id=there.ids.get(last.target.topic, ""),
            target_end=there.ends.get(last.target),
            target_cut=there.cuts.get(last.target),
        )
        trouble = map_trouble(last, made.gaps, now)
        cut = map_cut(last, made.gaps, here.cuts[last.source]) if last.source in here.cuts else None
        start = here.starts.get(last.source) if backward else there.starts.get(last.target)
        found[place] = replace(made, log_start=start, trouble=trouble, cut=cut)
    return found


def newest_receipts(
    view: LedgerView, lane: str, asked: Collection[TopicPartition], *, backward: bool
) -> dict[TopicPartition, Receipt]:
    """Return the newest receipt of each asked partition."""
    # A search for a few names is many times quicker than decoding all.
    side = b"target_" if backward else b""
    topics = {topic: b'"%stopic":%s' % (side, encode(topic)) for topic in {place.topic for place in asked}}
    few: list[tuple[bytes, ...]] | None = None
    if len(asked) <= FEW:
        few = [(topics[place.topic], b'"%spartition":%d,' % (side, place.partition)) for place in asked]
    elif len(topics) <= FEW:
        few = [(word,) for word in topics.values()]
    found = {last.target if backward else last.source: last for last in receipts_of_now(view, lane, few).values()}
    return {place: found[place] for place in asked if place in found}


@dataclass(slots=True, kw_only=True)
class _Loading:
    """A map that is being loaded: its chains, the rows that are known, and the offsets that need blocks."""

    last: Receipt
    gaps: list[Gap]
    offsets: frozenset[int] | None
    adoptions: list[Adoption] = field(default_factory=list)
    pruned: tuple[Range, ...] = ()
    links: dict[ReceiptChain, Links] = field(default_factory=dict)
    rows: dict[ReceiptChain, list[MapEntry]] = field(default_factory=dict)
    blocks: dict[ReceiptChain, dict[int, list[MapEntry]]] = field(default_factory=dict)

    @property
    def whole(self) -> bool:
        """Report whether all blocks are to be loaded.

        That is so if any offset may be asked for, or if there are few blocks. It is also so if offsets may not ascend:
        there are several chains, or the lane went back.
        """
        count = sum(len(links.blocks) for links in self.links.values())
        went_back = any(gap.void_from is not None for gap in self.gaps)
        return self.offsets is None or count <= WHOLE_BLOCKS or len(self.links) > 1 or went_back

    def needed(self, *, backward: bool) -> set[tuple[ReceiptChain, int]]:
        """Return the blocks to be read next; none when the map is complete for its offsets."""
        found = set()
        for of, links in self.links.items():
            known = self.blocks.setdefault(of, {})
            if self.whole:
                found |= {(of, index) for index in range(len(links.blocks)) if index not in known}
                continue
            asked = {_pruned_end(self.pruned, offset) or offset for offset in self.offsets or ()}
            wanted = {needed_block(links, known, offset, backward=backward) for offset in asked}
            if links.blocks and backward:
                wanted.add(0)  # it has the first copied record
            if links.blocks and not self.rows[of]:
                wanted.add(len(links.blocks) - 1)  # it has the copied end
            found |= {(of, index) for index in wanted if index is not None and index not in known}
        return found

    def made(self, stands_at: int | None, *, backward: bool) -> PartitionMap:
        """Make the map, once no block is needed."""
        if self.last.identical:
            stands_at = None  # no marker follows its records, so what is there is another producer's
        rows = [row for of in self.rows for row in self.rows[of]]
        rows += [row for blocks in self.blocks.values() for block in blocks.values() for row in block]
        rows += [MapEntry.of(adopted_receipt(one), -1) for one in self.adoptions]
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
            pruned=self.pruned,
            transformed=any(of.transform for of in self.rows),
            identical=self.last.identical,
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
    """Load the maps of the `asked` partitions by a view, without what the clusters show now.

    `stable` are the last stable offsets of target partitions, as far as they are known.
    """
    lasts = newest_receipts(view, lane, asked, backward=backward)
    targets = {last.target: last.source for last in lasts.values()}

    def match(of: ReceiptChain) -> bool:
        return of.lane == lane and (of.target in targets if backward else targets.get(of.target) == of.source)

    links, rows = chains_of(view, match), newer_rows(view, match, targets)
    known: dict[TopicPartition, list[Gap]] = {}
    for gap in gaps(view, lane):
        known.setdefault(gap.source, []).append(gap)
    given_up: dict[TopicPartition, list[Pruned]] = {}
    for mark in pruned(view).values():
        if mark.copy.lane == lane and targets.get(mark.copy.target) == mark.source:
            given_up.setdefault(mark.copy.target, []).append(mark)
    loading: dict[TopicPartition, _Loading] = {}
    for place, last in lasts.items():
        offsets, mine = asked[place], known.get(last.source, [])
        loading[place] = _Loading(
            last=last,
            gaps=mine,
            offsets=None if offsets is None else frozenset(offsets),
            pruned=ranges(given_up.get(last.target, ()), mine, backward=backward),
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _TargetLogs:
    """Where target partitions begin and end now, as far as they answer, and the ids of their topics.

    `stable` is where read_committed readers end. `ends` are log ends that are before what was written. `cuts` are the
    offsets from which on logs have other records than were written to them.
    """

    ids: Mapping[str, str] = field(default_factory=dict)
    starts: Mapping[TopicPartition, int] = field(default_factory=dict)
    stable: Mapping[TopicPartition, int] = field(default_factory=dict)
    ends: Mapping[TopicPartition, int] = field(default_factory=dict)
    cuts: Mapping[TopicPartition, int] = field(default_factory=dict)


async def _target_logs(cluster: Cluster, lasts: Collection[Receipt]) -> _TargetLogs:
    if not lasts:
        return _TargetLogs()
    topics = await cluster.refresh({last.target.topic for last in lasts})
    written = {last.target: last.target_next or 0 for last in lasts if last.target.topic in topics}
    starts = await listed_offsets(cluster, dict.fromkeys(written, EARLIEST), isolation=READ_UNCOMMITTED)
    stable = await listed_offsets(cluster, dict.fromkeys(written, LATEST), isolation=READ_COMMITTED)
    # An open transaction of another producer stops readers, though the log is complete.
    short = [place for place, offset in stable.found.items() if offset < written[place]]
    ends = {}
    if short:
        ends = (await listed_offsets(cluster, dict.fromkeys(short, LATEST), isolation=READ_UNCOMMITTED)).found
    ids = {name: info.id_text for name, info in topics.items()}
    cuts = await target_cuts(cluster, lasts)
    return _TargetLogs(ids=ids, starts=starts.found, stable=stable.found, ends=ends, cuts=cuts)


@dataclass(frozen=True, slots=True, kw_only=True)
class _SourceLogs:
    """The source cluster, the ids of its topics, and where its logs begin and were cut, as far as they answer."""

    cluster_id: str = ""
    ids: Mapping[str, str] = field(default_factory=dict)
    starts: Mapping[TopicPartition, int] = field(default_factory=dict)
    cuts: Mapping[TopicPartition, int] = field(default_factory=dict)


async def _source_logs(cluster: Cluster, lasts: Collection[Receipt], *, begins: bool) -> _SourceLogs:
    if not lasts:
        return _SourceLogs()
    topics = await cluster.refresh({last.source.topic for last in lasts})
    found = await source_cuts(cluster, lasts)
    if found.silent:
        named = [str(place) for place in sorted(found.silent)]
        log.warning(
            "whether %s was cut off on %s is not known: its leader does not answer", several(named), cluster.alias
        )
    cuts = dict(found.at)
    if found.unreported:
        ends = await listed_offsets(cluster, dict.fromkeys(found.unreported, LATEST), isolation=READ_UNCOMMITTED)
        copied = {last.source: last.end for last in lasts}
        cuts |= {place: end for place, end in ends.found.items() if end < copied[place]}
    starts: Mapping[TopicPartition, int] = {}
    if begins:
        there = [last.source for last in lasts if last.source.topic in topics]
        try:
            starts = (await listed_offsets(cluster, dict.fromkeys(there, EARLIEST), isolation=READ_UNCOMMITTED)).found
        except Unreachable as error:
            log.warning("what the source has deleted of what was copied is not known: %s", error)
    ids = {name: info.id_text for name, info in topics.items()}
    return _SourceLogs(cluster_id=cluster.cluster_id or "", ids=ids, starts=starts, cuts=cuts)
