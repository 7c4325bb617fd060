"""The receipts of units that a ledger still has: those in a view, and older ones at their ledger offsets."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from ferry.lane.summaries import LedgerLog
from ferry.ledger.codec import decode_key
from ferry.ledger.ledger import LedgerView
from ferry.ledger.reading import read_as
from ferry.ledger.receipt_codec import UNIT, parse_dealt_receipt
from ferry.ledger.repartitioned_at import Dealing
from ferry.ledger.unit_codec import eras, last_units
from ferry.model import LedgerRecord, Receipt, TopicPartition

Lasts = Mapping[TopicPartition, Receipt]
ByPlace = dict[TopicPartition, list[Receipt]]


def receipts_in_view(view: LedgerView, lane: str, lasts: Lasts) -> ByPlace:
    """Return by target partition of these last receipts the receipts that the view has, ascending."""
    topics = {place.topic for place in lasts}
    return _by_place((record for key, record in view.of_kind(UNIT) if _is_of(key, lane, topics)), lasts)


async def receipts_from_ledger(log: LedgerLog, view: LedgerView, lane: str, lasts: Lasts, topics: set[str]) -> ByPlace:
    """Return by target partition the receipts of the view, and those of `topics` from before the summary, ascending."""
    left = {key: at for key, at in view.rolled.left.items() if topics and key not in view.by_key}
    older = [at for key, at in left.items() if _is_of(decode_key(key.encode()), lane, topics)]
    known = receipts_in_view(view, lane, lasts)
    if not older:
        return known
    found = _by_place((await log.read_at(older)).values(), {})
    for place, mine in known.items():
        mine[:0] = [one for one in found.get(place, ()) if not mine or one.end < mine[0].end]
    return known


async def receipts_of_topic(log: LedgerLog, view: LedgerView, lane: str, topic: str) -> tuple[Lasts, ByPlace]:
    """Return the last receipt of each target partition of a repartitioned source topic.

    The second value is all receipts that are left.
    """
    lasts = {place: last for place, last in last_units(view, lane).items() if last.source.topic == topic}
    return lasts, await receipts_from_ledger(log, view, lane, lasts, {place.topic for place in lasts})


async def dealing_of(log: LedgerLog, view: LedgerView, lane: str, topic: str) -> Dealing | None:
    """Return what the ledger shows about a repartitioned source topic; None when it is not repartitioned."""
    rules = [era for era in eras(view, lane).values() if era.source_topic == topic]
    if not rules:
        return None
    lasts, found = await receipts_of_topic(log, view, lane, topic)
    return Dealing(eras=rules, lasts=lasts, receipts=found)


def _is_of(key: list[object], lane: str, topics: Collection[str]) -> bool:
    return key[:2] == [UNIT, lane] and key[3] in topics


def _by_place(records: Iterable[LedgerRecord], lasts: Lasts) -> ByPlace:
    found: ByPlace = {place: [] for place in lasts}
    for record in records:
        if record.value is not None:
            receipt = read_as(record, parse_dealt_receipt)
            found.setdefault(receipt.target, []).append(receipt)
    for place, mine in found.items():
        mine.sort(key=lambda one: one.end)
        last = lasts.get(place)
        if last is not None and (not mine or mine[-1] != last):  # its own record was deleted with its run
            mine.append(last)
    return found
