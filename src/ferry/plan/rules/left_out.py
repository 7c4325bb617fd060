"""The records that a lane's target lacks by number: dead letters, and what was left out before an adoption. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from ferry.ledger.adoption_codec import adoptions
from ferry.ledger.block_index import rest_of
from ferry.ledger.copied import united, without
from ferry.ledger.history import holds_until
from ferry.ledger.ledger import LedgerView, gaps
from ferry.ledger.reading import read_as
from ferry.ledger.receipt_codec import parse_receipt
from ferry.ledger.receipts import last_receipts
from ferry.ledger.unit_codec import eras, last_units, narrowed_units
from ferry.model import Gap, LaneKind, Offsets, Range, Receipt, TopicPartition, lane_kind
from ferry.model.evidence import ADOPTED, DEAD_LETTERS, PassedOver, summed
from ferry.plan.rules.starts import recorded_starts

_HAS_LETTERS = re.compile(rb'"dead_letters":[1-9]')


def is_earlier(topic: str, topic_id: str, ids: Mapping[str, str]) -> bool:
    """Return whether a record with this topic id is about an earlier topic of the same name; `ids` are those of now."""
    now = ids.get(topic, "")
    return bool(now and topic_id and now != topic_id)


def is_part_of(lane: str, by: str) -> bool:
    """Return whether what lane `by` copies is in the topics of `lane`: it is the same, or appends to the live one's."""
    return by == lane or (lane_kind(lane) is None and lane_kind(by) is LaneKind.APPEND)


def adopted_ranges(view: LedgerView, lane: str, ids: Mapping[str, str]) -> dict[TopicPartition, list[Range]]:
    """Return the source offsets that the lane took over from another replicator, by partition.

    Ledgers do not have what that replicator left out of them. Where the adoption itself is not recorded, they begin at
    0. `ids` are topic ids by source topic.
    """
    found: dict[TopicPartition, list[Range]] = {}
    targets = _targets(view, lane)
    for one in adoptions(view, lane):
        is_current = targets.get(one.source, one.target) == one.target
        if is_current and not is_earlier(one.source.topic, one.source_topic_id, ids):
            found.setdefault(one.source, []).append((one.start, one.end))
    for last in last_receipts(view, lane).values():
        if last.adopted and last.source not in found:
            found[last.source] = [(0, last.end)]
    return found


def adopted_left(
    taken: Mapping[TopicPartition, Collection[Range]], later: Mapping[TopicPartition, Collection[Range]]
) -> list[PassedOver]:
    """Return what of the ranges `taken` over the lane has not copied itself since (`later`)."""
    return [
        PassedOver(source=place, start=start, end=end, why=ADOPTED)
        for place, ranges in taken.items()
        for start, end in without(ranges, later.get(place, ()))
    ]


class _Letters(NamedTuple):
    """Dead letters of source offsets `[start, end)`; None: their number is not known."""

    source: TopicPartition
    start: int
    end: int
    records: int | None


def dead_letters(view: LedgerView, lane: str, ids: Mapping[str, str], never: Collection[str] = ()) -> list[PassedOver]:
    """Return the dead letters of what the lane has copied, by source partition, or by topic where it is repartitioned.

    Their number is not known if a summary of the ledger took the place of receipts, or if units were deleted with their
    runs. It is not known either if the lane went back inside of a chunk that has some. Transforms with these digests
    (`never`) make none. `ids` are topic ids by source topic.
    """
    found: dict[TopicPartition, list[_Letters]] = {}
    for one in (*_of_bytes(view, lane, ids, never), *_of_units(view, lane, ids, never)):
        found.setdefault(one.source, []).append(one)
    return [
        PassedOver(
            source=place,
            start=None if place.partition < 0 else min(one.start for one in ones),
            end=max(one.end for one in ones),
            why=DEAD_LETTERS,
            records=summed([one.records for one in ones]),
        )
        for place, ones in found.items()
    ]


def _targets(view: LedgerView, lane: str) -> dict[TopicPartition, TopicPartition]:
    """Return the target partition of each source partition; if the policy renamed a copy, that of the newest."""
    lasts = sorted(last_receipts(view, lane).values(), key=lambda last: last.generation)
    return {last.source: last.target for last in lasts}


def _of_bytes(view: LedgerView, lane: str, ids: Mapping[str, str], never: Collection[str]) -> Iterator[_Letters]:
    """Yield the dead letters of topics that keep their partitions."""
    targets, known = _targets(view, lane), dict[str, list[Gap]]()

    def counts(by: str, place: TopicPartition, target: TopicPartition, topic_id: str) -> bool:
        is_current = targets.get(place, target) == target and not is_earlier(place.topic, topic_id, ids)
        return is_part_of(lane, by) and is_current

    for of, links in view.rolled.chains.items():
        is_certain = not of.transform or of.transform in never
        if is_certain or not counts(of.lane, of.source, of.target, of.source_topic_id):
            continue
        rows = [row for row in rest_of(of, links) if row.end - row.start > sum(part.count for part in row.segments)]
        parts = [*((block.start, block.end) for block in links.blocks), *((row.start, row.end) for row in rows)]
        if parts:
            yield _Letters(of.source, min(parts)[0], max(end for _, end in parts), None)
    for record in map(view.by_key.__getitem__, view.keys("receipt")):
        if record.value is None or not _HAS_LETTERS.search(record.value):
            continue
        one = read_as(record, parse_receipt)
        if not counts(one.lane, one.source, one.target, one.source_topic_id):
            continue
        until = holds_until(one, known.setdefault(one.lane, gaps(view, one.lane)))
        if until > one.start:
            yield _Letters(one.source, one.start, until, one.dead_letters if until == one.end else None)


def _of_units(view: LedgerView, lane: str, ids: Mapping[str, str], never: Collection[str]) -> Iterator[_Letters]:
    """Yield the dead letters of repartitioned topics. Receipts have no source partition of them, so it is -1."""
    for by in dict.fromkeys(key[1] for key, _ in view.of_kind("last")):
        lasts = [one for one in last_units(view, by).values() if not is_earlier(*_topic_of(one), ids)]
        if not lasts or not is_part_of(lane, by):
            continue
        units: dict[TopicPartition, list[Receipt]] = {}
        for unit in narrowed_units(view, by, None, None):
            units.setdefault(unit.target, []).append(unit)
        free, rules = _never_copied(view, by), eras(view, by)
        for last in lasts:
            own = [one for one in units.get(last.target, ()) if one.source_topic_id == last.source_topic_id]
            era = rules.get(last.target.topic)
            begins = era.begins if era is not None and era.digest in never else ()
            count = sum(one.dead_letters for one in own) if _tiles(last, own, free, begins) else None
            if count != 0:
                yield _Letters(TopicPartition(last.source.topic, -1), 0, max(last.ends, default=0), count)


def _topic_of(receipt: Receipt) -> tuple[str, str]:
    return receipt.source.topic, receipt.source_topic_id


def _never_copied(view: LedgerView, lane: str) -> dict[TopicPartition, list[Range]]:
    """Return the source offsets that a lane left out: those before its start, and those of gaps."""
    found = {place: [(0, start)] for place, start in recorded_starts(view, lane).offsets.items()}
    for gap in gaps(view, lane):
        found.setdefault(gap.source, []).append((gap.start, gap.end))
    return found


def _tiles(
    last: Receipt, units: Iterable[Receipt], free: Mapping[TopicPartition, Collection[Range]], begins: Offsets
) -> bool:
    """Return whether the units of a target partition have every source offset that was copied, and each once.

    Offsets that are `free` were not copied. From `begins` on a rule copied that makes no dead letters; empty: none did.
    """
    spans: dict[TopicPartition, list[Range]] = {}
    for unit in units:
        for place, start, end in unit.spans:
            spans.setdefault(place, []).append((start, end))
    for place, _, end in last.spans:
        own = spans.get(place, [])
        if sum(b - a for a, b in own) != sum(b - a for a, b in united(own)):
            return False
        surely = [(begins[place.partition], end)] if place.partition < len(begins) else []
        if without([(0, end)], [*own, *free.get(place, ()), *surely]):
            return False
    return True
