"""Adoptions as records of the ledger: the evidence, and the empty receipt after which the lane continues (ADR 23)."""

from __future__ import annotations

import json
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterable, Sequence
from itertools import accumulate

from ferry.codec.form import F, Form
from ferry.codec.kinds import FLOW, PAIR, enum, many, or_minus_one
from ferry.errors import BadInput
from ferry.ledger.codec import SOURCE, TARGET, Json, encode, head
from ferry.ledger.ledger import LedgerView
from ferry.ledger.reading import read_as
from ferry.ledger.receipt_codec import TOPIC_ID, receipt_json
from ferry.model import Adoption, Predecessor, Receipt, Record, TopicPartition

NO_DIGEST = "00000000"
"""The CRC-32C of no bytes."""

SHOWN_PAIRS = 64
"""The most pairs that a record shows in full. With more pairs, it has all of them also in `all_pairs`."""

_MOST_UNPACKED_BYTES = 64 << 20

Pair = tuple[int, int]


def adoption_records(adoption: Adoption) -> tuple[Record, Record]:
    """Make the record of the adoption under its own key, and the partition's last receipt.

    The receipt is empty, at the adoption's end.
    """
    target, body = adoption.target, adoption_json(adoption)
    if len(adoption.pairs) > SHOWN_PAIRS:
        body |= {"pairs": [list(pair) for pair in _some(adoption.pairs)], "all_pairs": packed_pairs(adoption.pairs)}
    return (
        Record(
            key=encode(["adopted", adoption.lane, target.topic, target.partition, adoption.end]),
            value=encode(body),
        ),
        Record(
            key=encode(["last", adoption.lane, target.topic, target.partition]),
            value=encode(receipt_json(adopted_receipt(adoption))),
        ),
    )


def _some(pairs: Sequence[Pair]) -> list[Pair]:
    """Return the pairs that a record shows, half of them from the end.

    They are for people, and for versions without `all_pairs`.
    """
    dense = SHOWN_PAIRS // 2
    older = pairs[:-dense]
    return [*older[:: -(-len(older) // dense)], *pairs[-dense:]]


def packed_pairs(pairs: Iterable[Pair]) -> str:
    """Pack ascending pairs as base64 of a zlib stream.

    The stream is a JSON list of the difference of each number to the one before.
    """
    steps, before = list[int](), (0, 0)
    for pair in pairs:
        steps += (pair[0] - before[0], pair[1] - before[1])
        before = pair
    return b64encode(zlib.compress(encode(steps), 9)).decode()


def unpacked_pairs(text: str) -> tuple[Pair, ...]:
    """Return the pairs that `packed_pairs` packed. Raises BadInput for any other text."""
    try:
        stream = zlib.decompressobj()
        found = stream.decompress(b64decode(text), _MOST_UNPACKED_BYTES)
        if not stream.eof:
            raise ValueError("they are cut off, or too many")
        steps = json.loads(found)
        if len(steps) % 2:
            raise ValueError("the last one has one offset")
        sources, targets = accumulate(steps[::2]), accumulate(steps[1::2])
        return tuple(zip(sources, targets, strict=True))
    except (ValueError, TypeError, zlib.error) as error:
        raise BadInput(f"the pairs of an adoption in the ledger cannot be read: {error}") from error


def adopted_receipt(adoption: Adoption) -> Receipt:
    """Return the receipt that takes the place of the lane's last one: nothing copied, and everything before `end` done.

    A Ferry that does not know adoptions continues there, too, and regards what is before as not copied.
    """
    return Receipt(
        flow=adoption.flow,
        lane=adoption.lane,
        run=adoption.run,
        generation=adoption.generation,
        slot=0,
        source=adoption.source,
        target=adoption.target,
        start=adoption.end,
        end=adoption.end,
        target_next=adoption.target_next,
        segments=(),
        records=0,
        bytes=0,
        batches=0,
        digest=NO_DIGEST,
        at_ms=adoption.at_ms,
        missing=0,
        source_epoch=adoption.source_epoch,
        source_topic_id=adoption.source_topic_id,
        target_topic_id=adoption.target_topic_id,
        source_cluster_id=adoption.source_cluster_id,
        target_cluster_id=adoption.target_cluster_id,
        since=adoption.since,
        adopted=adoption.by.value,
    )


ADOPTION = Form(
    Adoption,
    *head("adopted"),
    F("flow", kind=FLOW),
    F("lane"),
    F("run"),
    F("generation"),
    *SOURCE,
    *TARGET,
    F("start"),
    F("end", says="the source offsets from start to before end were copied by another replicator"),
    F("target_start"),
    F("target_next"),
    F("by", kind=enum(Predecessor)),
    F("where", says="what its position was read from"),
    F("who"),
    F("at_ms"),
    F("pairs", kind=many(PAIR), says="source offset and target offset of single records"),
    F("source_epoch", kind=or_minus_one()),
    F("source_topic_id", kind=TOPIC_ID),
    F("target_topic_id", kind=TOPIC_ID),
    F("source_cluster_id"),
    F("target_cluster_id"),
    F("since", least=-1),
)


adoption_json = ADOPTION.dump
"""Return an adoption as the documented JSON object."""


def parse_adoption(body: Json) -> Adoption:
    """Return the adoption of a record that `adoption_records` made, or of the object that `adoption_json` made."""
    return ADOPTION.load({**body, "pairs": unpacked_pairs(body["all_pairs"])} if "all_pairs" in body else body)


def adoptions(
    view: LedgerView, lane: str, *, source: TopicPartition | None = None, target: TopicPartition | None = None
) -> Iterable[Adoption]:
    """Return what the lane took over, in ledger order, narrowed by source or target partition."""
    for key, record in view.of_kind("adopted"):
        if key[1] != lane or (target is not None and key[2:4] != [target.topic, target.partition]):
            continue
        if record.value is None:
            continue
        found = read_as(record, parse_adoption)
        if source is None or found.source == source:
            yield found
