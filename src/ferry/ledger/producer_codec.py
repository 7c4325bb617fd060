"""The producer id of a lane with identical offsets, as a record: written before the id is first used (ADR 57)."""

from __future__ import annotations

from ferry.ledger.codec import IDENTICAL_VERSION, Json, encode
from ferry.ledger.ledger import LedgerView
from ferry.ledger.reading import read_as, whole
from ferry.model import Record

PRODUCER = "producer"


def producer_record(lane: str, *, producer_id: int, run: str, at_ms: int) -> Record:
    """Make the record of a lane's producer id. The lane uses no other, and the record outlives the lane."""
    body: Json = {"v": IDENTICAL_VERSION, "kind": PRODUCER, "producer_id": producer_id, "run": run, "at_ms": at_ms}
    return Record(key=encode([PRODUCER, lane]), value=encode(body))


def lane_producer(view: LedgerView, lane: str) -> int | None:
    """Return the producer id under which a lane writes at the source's offsets; None: it never did."""
    for key, record in view.of_kind(PRODUCER):
        if key[1] == lane and record.value is not None:
            return read_as(record, lambda body: whole(body["producer_id"]))
    return None
