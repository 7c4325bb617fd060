"""Where a group would go on in topics that were dealt to other partitions: by the receipts of units that are left."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ferry.decide.groups.dealt_map import GoesOn, goes_on
from ferry.decide.ledger.codec import decode_key
from ferry.decide.ledger.ledger import LedgerView, body_of
from ferry.decide.ledger.unit_codec import UNIT, last_units, parse_unit_receipt
from ferry.model import LedgerRecord, TopicPartition, UnitReceipt
from ferry.net.fetch.offsets import EARLIEST, LATEST, listed_offsets
from ferry.net.fetch.requests import READ_COMMITTED, READ_UNCOMMITTED
from ferry.run.flow.connections import TargetConnection
from ferry.run.flow.summaries import LedgerLog


async def dealt_places(
    connection: TargetConnection, lane: str, read: Mapping[str, Mapping[int, int]]
) -> dict[str, list[tuple[TopicPartition, GoesOn]]]:
    """By source topic the target partitions with where a group goes on that has `read` its partitions up to there.

    Of those that answer; a topic of which nothing was dealt yet is not in it. Raises Unreachable.
    """
    view = await connection.view()
    lasts = {place: last for place, last in last_units(view, lane).items() if last.source_topic in read}
    if not lasts:
        return {}
    known: dict[TopicPartition, list[UnitReceipt]] = {place: [] for place in lasts}
    for receipt in await _receipts(connection.ledger, view, lane, {place.topic for place in lasts}):
        known.setdefault(receipt.target, []).append(receipt)
    for place, last in lasts.items():
        if last not in known[place]:  # its own record has gone with its run
            known[place].append(last)
    await connection.target.refresh({place.topic for place in lasts})
    starts = await listed_offsets(connection.target, dict.fromkeys(lasts, EARLIEST), isolation=READ_UNCOMMITTED)
    stable = await listed_offsets(connection.target, dict.fromkeys(lasts, LATEST), isolation=READ_COMMITTED)
    found: dict[str, list[tuple[TopicPartition, GoesOn]]] = {}
    for place, last in sorted(lasts.items()):
        if place in starts.found and place in stable.found:
            at = goes_on(
                read[last.source_topic], known[place], log_start=starts.found[place], stands_at=stable.found[place]
            )
            found.setdefault(last.source_topic, []).append((place, at))
    return found


async def _receipts(log: LedgerLog, view: LedgerView, lane: str, topics: Collection[str]) -> list[UnitReceipt]:
    """All that the ledger still has of these target topics, in its order."""

    def is_wanted(key: list[object]) -> bool:
        return key[:2] == [UNIT, lane] and key[3] in topics

    records: dict[int, LedgerRecord] = {
        record.offset: record for key, record in view.of_kind(UNIT) if is_wanted(list(key))
    }
    older = {at for key, at in view.rolled.left.items() if is_wanted(decode_key(key.encode()))}
    if older:
        records |= await log.read_at(older)
    return [parse_unit_receipt(body_of(one)) for _, one in sorted(records.items()) if one.value is not None]
