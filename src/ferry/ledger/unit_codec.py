"""Units, their receipts and the eras of topics as records: the record path's part of the ledger (ADR 39).

```
["era", lane, target topic]                      the rule by which records are repartitioned to it, and since when
["unit", lane, run, target topic, partition, n]  one chunk of one target partition; n offsets of the source, of all
                                                 partitions together, were done before
["last", lane, target topic, partition]          the same value again: the position, and the only one
```

Their values have format 2. Each plan reads the last receipts of its lane, so an earlier Ferry stops there.
"""

from __future__ import annotations

from collections.abc import Iterable

from ferry.codec.form import F, Form
from ferry.codec.kinds import Kind, many, or_minus_one
from ferry.ledger.codec import UNIT_VERSION, Json, decode_key, encode
from ferry.ledger.ledger import LedgerView
from ferry.ledger.reading import read_as, whole
from ferry.ledger.receipt_codec import UNIT, is_unit, parse_dealt_receipt
from ferry.model import Era, Fate, LedgerRecord, Offsets, Receipt, Record, Slice, TopicPartition

ERA = "era"

_VECTORS = ("starts", "ends", "source_epochs")

ERA_FORM = Form(
    Era,
    F("source_topic"),
    F("target_topic"),
    F("since"),
    F("begins", kind=many()),
    F("digest"),
    F("partitions"),
    F("source_topic_id"),
    F("target_topic_id"),
    F("spec"),
)


def _number_of_target(piece: Slice) -> int:
    return (piece.source.partition - piece.target.partition) // max(1, piece.partitions)


DEALT_SLICE = Form(
    Slice,
    F("source_topic", lambda piece: piece.source.topic),
    F("target", kind=Kind(list, lambda place: TopicPartition(*place))),
    F("starts", "reads.starts", many()),
    F("ends", "reads.ends", many()),
    F("slot"),
    F("era", "since"),
    F("partitions"),
    F("digest", "transform_digest"),
    F("source_topic_id", default=""),
    F("target_topic_id", default=""),
    F("target_next", kind=or_minus_one(0), default=None),
    F("target_end", kind=or_minus_one(0), default=None),
    F("target_epoch", kind=or_minus_one(0), default=None),
    F("source_epochs", "reads.epochs", many(or_minus_one(0)), default=()),
    F("name", _number_of_target, omit=lambda piece: not _number_of_target(piece)),
    closed=True,  # a plan is carried out as it was decided, or not at all
)
"""A repartitioned slice; `name` is the index of its target topic where records choose among several topics."""


def era_record(lane: str, era: Era) -> Record:
    """Make the record of a target topic's rule; the last one is in force."""
    body = {"v": UNIT_VERSION, "kind": ERA, **ERA_FORM.dump(era)}
    return Record(key=encode([ERA, lane, era.target_topic]), value=encode(body))


parse_era = ERA_FORM.load
"""Return the era of a record that `era_record` made."""


def eras(view: LedgerView, lane: str) -> dict[str, Era]:
    """Return the rules in force, by target topic."""
    return {key[2]: read_as(record, parse_era) for key, record in view.of_kind(ERA) if key[1] == lane}


def last_units(view: LedgerView, lane: str | None) -> dict[TopicPartition, Receipt]:
    """Return the last committed receipt of every repartitioned target partition of the lane (None: of any lane)."""
    return {
        TopicPartition(topic=key[2], partition=key[3]): read_as(record, parse_dealt_receipt)
        for key, record in view.of_kind("last")
        if lane in (None, key[1]) and is_unit(record.value)
    }


def heard_units(records: Iterable[LedgerRecord], lane: str, generation: int) -> list[Receipt]:
    """Return a run's committed receipts of units in a part of the ledger."""
    found = [
        read_as(record, parse_dealt_receipt)
        for record in records
        if record.fate is Fate.COMMITTED and record.value is not None and decode_key(record.key)[:2] == [UNIT, lane]
    ]
    return [receipt for receipt in found if receipt.generation == generation]


def open_units(view: LedgerView, lane: str) -> list[Receipt]:
    """Return the receipts of units of a lane whose transactions are not decided yet."""
    return [
        read_as(record, parse_dealt_receipt)
        for record in view.open
        if record.value is not None and decode_key(record.key)[:2] == [UNIT, lane]
    ]


def unit_receipts(view: LedgerView, lane: str, run: str, generation: int) -> list[Receipt]:
    """Return the committed receipts of units of a run, in ledger order."""
    found = (
        read_as(record, parse_dealt_receipt) for key, record in view.of_kind(UNIT) if key[1] == lane and key[2] == run
    )
    return [receipt for receipt in found if receipt.generation == generation]


def narrowed_units(view: LedgerView, lane: str, run: str | None, topic: str | None) -> list[Receipt]:
    """Return the committed receipts of units of a lane, in ledger order, narrowed by run and source topic."""
    found = (
        read_as(record, parse_dealt_receipt)
        for key, record in view.of_kind(UNIT)
        if key[1] == lane and run in (None, key[2])
    )
    return [receipt for receipt in found if topic in (None, receipt.source.topic)]


def unit_lines(units: Iterable[Slice]) -> list[Json]:
    """Return repartitioned slices as lines of a plan. Vectors that equal those of the line before are left out."""
    found: list[Json] = []
    before: Json = {"source_epochs": []}
    for piece in units:
        body = DEALT_SLICE.dump(piece)
        vectors = {name: body[name] for name in _VECTORS}
        found.append({name: value for name, value in body.items() if name not in before or before[name] != value})
        before = vectors
    return found


def parse_unit_lines(lines: Iterable[Json]) -> tuple[Slice, ...]:
    """Return the slices of the lines that `unit_lines` made."""
    found: list[Slice] = []
    vectors: dict[str, Offsets] = dict.fromkeys(_VECTORS, ())
    for line in lines:
        vectors = {name: tuple(line.get(name, before)) for name, before in vectors.items()}
        number = whole(line.get("name", 0)) * whole(line["partitions"]) + whole(line["target"][1])
        found.append(
            DEALT_SLICE.load(
                {**line, **vectors},
                source=TopicPartition(line["source_topic"], number),
                start=sum(vectors["starts"]),
                end=sum(vectors["ends"]),
            )
        )
    return tuple(found)
