"""What the ledger shows as copied: receipts, each partition's last one, and how far a lane has come."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping

from ferry.ledger.codec import decode_key, encode
from ferry.ledger.ledger import LedgerView
from ferry.ledger.reading import read_as
from ferry.ledger.receipt_codec import is_unit, parse_receipt
from ferry.model import Fate, LedgerRecord, Plan, Receipt, TopicPartition


def last_receipts(
    view: LedgerView, lane: str, words: Collection[Collection[bytes]] | None = None
) -> dict[TopicPartition, Receipt]:
    """Return the last committed receipt of every target partition that the lane copies as bytes.

    With `words`, only receipts whose value contains all words of one of its collections.
    """
    return {
        TopicPartition(topic=parts[2], partition=parts[3]): view.last(key)
        for key, parts, value in ((key, json.loads(key), view.by_key[key].value) for key in view.keys("last"))
        if parts[1] == lane and not is_unit(value) and (words is None or _has(value or b"", words))
    }


def _has(value: bytes, words: Collection[Collection[bytes]]) -> bool:
    return any(all(word in value for word in together) for together in words)


def lane_ends(
    view: LedgerView, lane: str, plan: Plan | None = None, lasts: Mapping[TopicPartition, Receipt] | None = None
) -> dict[TopicPartition, int]:
    """Return how far the lane has come, as source offsets by source partition.

    With a `plan`, the answer is for that plan. A partition that it went back on is left out until a run has copied
    since. A partition that a later run went back on has come as far as the plan wanted. What the plan left there is not
    missing any more. What was copied to a topic of another name does not count. `lasts` are the lane's
    `last_receipts`; None: they are read here.
    """
    pieces = {} if plan is None else {piece.source: piece for piece in plan.kept}
    ends: dict[TopicPartition, int] = {}
    for last in (last_receipts(view, lane) if lasts is None else lasts).values():
        piece = pieces.get(last.source)
        if piece is not None and last.target != piece.target:
            continue
        if piece is None or last.since == piece.since:
            ends[last.source] = last.end
        elif last.since > piece.since:
            ends[last.source] = max(last.end, piece.end)
    return ends


def receipts(
    view: LedgerView,
    *,
    lane: str | None = None,
    run: str | None = None,
    topic: str | None = None,
    target: TopicPartition | None = None,
) -> Iterable[Receipt]:
    """Yield committed receipts in ledger order, narrowed by lane, run, source topic or target partition."""
    named = [encode(name) for name in (run, topic) if name is not None]
    for key, record in view.of_kind("receipt"):
        if lane is not None and key[1] != lane:
            continue
        if target is not None and key[2:4] != [target.topic, target.partition]:
            continue
        # A search is a hundred times quicker than decoding.
        if record.value is not None and not all(name in record.value for name in named):
            continue
        receipt = read_as(record, parse_receipt)
        if (run is None or receipt.run == run) and (topic is None or receipt.source.topic == topic):
            yield receipt


def heard_receipts(
    records: Iterable[LedgerRecord], kind: str, lane: str, generation: int
) -> tuple[list[Receipt], int | None]:
    """Return a run's committed receipts (kind "receipt", or the "last" of each partition) in a part of the ledger.

    Also returns the offset of the first record that is undecided, from which to read again; None when there is none.
    """
    found: list[Receipt] = []
    first_open: int | None = None
    for record in records:
        if record.fate is Fate.OPEN and first_open is None:
            first_open = record.offset
        if record.fate is not Fate.COMMITTED or record.value is None or decode_key(record.key)[:2] != [kind, lane]:
            continue
        if is_unit(record.value):
            continue
        receipt = read_as(record, parse_receipt)
        if receipt.generation == generation:
            found.append(receipt)
    return found, first_open


def open_receipts(view: LedgerView, lane: str | None = None) -> Iterable[Receipt]:
    """Yield the receipts (of a lane) whose transactions are not decided yet."""
    for record in view.open:
        key = decode_key(record.key)
        if record.value is not None and key[:1] == ["receipt"] and lane in (None, key[1]):
            yield read_as(record, parse_receipt)
