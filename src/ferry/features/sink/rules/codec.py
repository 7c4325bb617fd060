"""The records of an application's ledger as JSON; compaction keeps the last one of each key.

```
["attempt", id]                       begins an attempt; its offset is the attempt's generation
["fenced"]                            the last attempt that fenced all slots, how many there were, and what it had read
                                      of all batches (`known`): the next attempt continues from there
["settled", batch]                    what a batch is, before any of it is written
["receipt", batch, topic, partition]  how much of it a target partition has
["delivered", batch]                  it is written whole; what was settled, and its receipts, are tombstones then
["forgotten"]                         up to which batch nothing is known any more
```

All but the first are written in transactions of writers that a later attempt fences before it reads.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from ferry.codec.form import F, Form
from ferry.codec.kinds import Kind
from ferry.errors import Refused
from ferry.ledger.codec import encode
from ferry.model import Record, TopicPartition
from ferry.model.delivery import DeliveryReceipt, Due, KnownBatches, Settled, TargetShape

VERSION = 1
_HIGHEST = 2**63 - 1
ATTEMPT, FENCED, SETTLED, RECEIPT, DELIVERED, FORGOTTEN = (
    "attempt",
    "fenced",
    "settled",
    "receipt",
    "delivered",
    "forgotten",
)
Json = dict[str, Any]

MOST_WRITTEN = 1 << 20
"""How many written batches a record may name, as ranges of numbers: a ledger keeps a little more than a thousand."""


def attempt_record(attempt: str, batch: int, slots: int, at_ms: int, host: str) -> Record:
    """Make the record that begins an attempt at a batch with this many slots."""
    return _record([ATTEMPT, attempt], {"batch": batch, "slots": slots, "at_ms": at_ms, "host": host})


def fenced_record(generation: int, slots: int, known: KnownBatches | None) -> Record:
    """Make the record that the attempt of this generation has fenced all slots.

    `known` is what was known of all batches before it.
    """
    body = None if known is None else _KNOWN.dump(known)
    return _record([FENCED], {"generation": generation, "slots": slots, "known": body})


def parse_known(value: Json) -> KnownBatches | None:
    """Return what the record of `fenced_record` has of batches; None for one of an earlier Ferry."""
    known = value.get("known")
    return None if known is None else _KNOWN.load(known)


def _spans(batches: Iterable[int]) -> list[list[int]]:
    """Return the first and the last of batches whose numbers follow each other."""
    found: list[list[int]] = []
    for batch in sorted(batches):
        if found and found[-1][1] == batch - 1:
            found[-1][1] = batch
        else:
            found.append([batch, batch])
    return found


def _batches(spans: list[list[int]]) -> frozenset[int]:
    if sum(last - first + 1 for first, last in spans) > MOST_WRITTEN:
        raise ValueError(f"it names more than {MOST_WRITTEN} batches")
    return frozenset(batch for first, last in spans for batch in range(first, last + 1))


_KNOWN = Form(
    KnownBatches,
    F("upto"),
    F("written", kind=Kind(_spans, _batches)),
    F("begun", kind=Kind(sorted, frozenset)),
    F("forgotten"),
)


_SETTLED = Form(
    Settled,
    F(
        "topics",
        kind=Kind(
            lambda topics: {name: [one.partitions, one.topic_id] for name, one in sorted(topics.items())},
            lambda body: {name: TargetShape(partitions=count, topic_id=of) for name, (count, of) in body.items()},
        ),
    ),
    F(
        "due",
        kind=Kind(
            lambda due: [[*place, *one] for place, one in sorted(due.items())],
            lambda rows: {TopicPartition(topic, number): Due(*done) for topic, number, *done in rows},
        ),
    ),
)

parse_settled = _SETTLED.load
"""Parse what a batch is, from a value of `settled_record` or `delivered_record`."""


def settled_record(batch: int, settled: Settled) -> Record:
    """Make the record of what a batch is."""
    return _record([SETTLED, batch], _SETTLED.dump(settled))


_RECEIPT = Form(
    DeliveryReceipt,
    F("records", "done.records"),
    F("digest", "done.digest"),
    F("first"),
    F("last"),
    F("slot"),
    F("generation"),
)


def receipt_record(batch: int, receipt: DeliveryReceipt) -> Record:
    """Make the record of how much of a batch a target partition has."""
    return _record([RECEIPT, batch, *receipt.place], _RECEIPT.dump(receipt))


def delivered_record(batch: int, settled: Settled, receipts: list[DeliveryReceipt], at_ms: int) -> Record:
    """Make the record that a batch is written whole, with its target offsets."""
    offsets = [[*one.place, one.first, one.last] for one in receipts]
    body = {**_SETTLED.dump(settled), "offsets": offsets, "at_ms": at_ms}
    return _record([DELIVERED, batch], body)


def most_bytes(batch: int, settled: Settled) -> int:
    """Return the most bytes that a record of a batch may have.

    The largest record is the one with its target offsets, here the highest possible ones.
    """
    last = [
        DeliveryReceipt(place=place, done=due, first=_HIGHEST, last=_HIGHEST, slot=0, generation=0)
        for place, due in sorted(settled.due.items())
    ]
    return len(delivered_record(batch, settled, last, _HIGHEST).value or b"")


def forgotten_record(batch: int) -> Record:
    """Make the record that nothing is known any more of the batches up to this one."""
    return _record([FORGOTTEN], {"batch": batch})


def tombstone(key: list[Any]) -> Record:
    """Make the tombstone of a key."""
    return Record(key=encode(key), value=None)


def parse_value(value: bytes, where: str) -> Json:
    """Return the value of a record. Raises Refused for one that a newer Ferry wrote."""
    found: Json = json.loads(value)
    if found.get("v") != VERSION:
        raise Refused(f"{where} has a record of version {found.get('v')}, this Ferry reads {VERSION}: use a newer one")
    return found


def parse_receipt(key: list[Any], value: Json) -> DeliveryReceipt:
    """Parse the value that `receipt_record` makes."""
    return _RECEIPT.load(value, place=TopicPartition(key[2], key[3]))


def parse_offsets(value: Json) -> dict[TopicPartition, tuple[int, int]]:
    """Return the first and the last target offset of each partition, from a value of `delivered_record`."""
    return {TopicPartition(topic, number): (first, last) for topic, number, first, last in value["offsets"]}


def _record(key: list[Any], value: Json) -> Record:
    return Record(key=encode(key), value=encode({"v": VERSION, **value}))
