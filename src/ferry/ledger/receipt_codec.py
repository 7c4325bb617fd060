"""Receipts as records: one chunk of one target partition, under its own key and as the newest.

```
["receipt", lane, topic, partition, start]       of one source partition; in format 2 where a transform made its records
["unit", lane, run, topic, partition, start]     repartitioned, from all partitions of a topic (ADR 39); format 2
["last", lane, topic, partition]                 the same value again: the target partition's last one
```

Topic and partition are the target's. Each plan reads the last receipts of its lane, so a Ferry that reads only format 1
stops there.
"""

from __future__ import annotations

from operator import attrgetter

from ferry.codec.form import F, Form
from ferry.codec.kinds import FLOW, Kind, fields, many, optional, or_minus_one, row, typed
from ferry.ledger.codec import (
    IDENTICAL_VERSION,
    LEDGER_VERSION,
    TARGET,
    UNIT_VERSION,
    Json,
    decode_key,
    encode,
    head,
)
from ferry.ledger.reading import read_as
from ferry.model import (
    NOT_THROTTLED,
    AgeStats,
    LedgerRecord,
    Origin,
    Receipt,
    Record,
    Segment,
    ThrottleTime,
    TopicPartition,
    parse_topic_id,
)

UNIT = "unit"


def receipt_records(receipt: Receipt) -> tuple[Record, Record]:
    """Make a receipt's record under its own key, and again as the target partition's last one."""
    value = encode(receipt_json(receipt))
    lane, target, start = receipt.lane, receipt.target, receipt.start
    key = receipt_key(lane, target, start, receipt.since)
    if receipt.reads is not None:
        key = encode([UNIT, lane, receipt.run, target.topic, target.partition, start])
    return (
        Record(key=key, value=value),
        Record(key=encode(["last", lane, target.topic, target.partition]), value=value),
    )


def receipt_key(lane: str, target: TopicPartition, start: int, since: int) -> bytes:
    """Return the key of a receipt that begins at a source offset."""
    key: list[object] = ["receipt", lane, target.topic, target.partition, start]
    if since >= 0:  # the same source offset may have been copied before
        key.append(since)
    return encode(key)


AGES = optional(row(AgeStats, least=None))
"""The least, the mean, the most, and the number of records."""

ORIGIN = fields(Origin, host="host:pid")

THROTTLED_SAYS = {
    "ferry": "fetches waited for ferry.throttle.bytes.per.second",
    "source": "brokers of the source asked for a pause (quotas, KIP-219)",
    "target": "brokers of the target asked for a pause",
}

TOPIC_ID = Kind(None, parse_topic_id)


def _is_verbatim(receipt: Receipt) -> bool:
    return not receipt.transform


def _version(receipt: Receipt) -> int:
    """Return the format, so that a Ferry that would continue the topic in another way stops at the receipt."""
    if receipt.identical:
        return IDENTICAL_VERSION
    return UNIT_VERSION if receipt.transform else LEDGER_VERSION


BY_SLOT = (F("flow", kind=FLOW), F("lane"), F("run"), F("generation"), F("slot"))
"""The fields that name the writer."""

RECEIPT = Form(
    Receipt,
    *head("receipt", _version),
    *BY_SLOT,
    F("topic", "source.topic", says="name at the source"),
    F("partition", "source.partition"),
    *TARGET,
    F("start", says="first source offset"),
    F("end", says="first source offset after it"),
    F("target_next", kind=or_minus_one(None), says="target offset after the last record; -1: none yet"),
    F(
        "segments",
        kind=many(row(Segment)),
        says="[source offset, target offset, count]: this many records follow each other on both sides",
    ),
    F("records"),
    F("bytes", says="as stored, compressed"),
    F("batches"),
    F("digest", says="CRC-32C of all record payloads in order, hexadecimal"),
    F("at_ms"),
    F("transcoded"),
    F("aborted_batches"),
    F("control_batches"),
    F("max_timestamp_ms", kind=or_minus_one(None)),
    F("source_epoch", kind=or_minus_one(None)),
    F("source_topic_id", kind=TOPIC_ID),
    F("target_topic_id", kind=TOPIC_ID),
    F("source_cluster_id"),
    F("origin", kind=ORIGIN),
    # Some receipts of kept ledgers lack these.
    F("target_cluster_id", default="", says="empty: the receipt lacks it"),
    F(
        "missing",
        default=None,
        says="offsets of [start, end) of which the source has no record; null: the receipt lacks it",
    ),
    F(
        "min_timestamp_ms",
        kind=or_minus_one(None),
        default=None,
        says="the smallest first timestamp of its batches; -1: none, or the receipt lacks it",
    ),
    F(
        "mean_timestamp_ms",
        kind=or_minus_one(None),
        default=None,
        says="of the records, each counted at the middle between its batch's first and largest timestamp",
    ),
    F(
        "record_age_ms",
        "ages",
        AGES,
        default=None,
        says="how old the records were when they went to the target: the youngest, their mean, the oldest, and how "
        "many records that is; null: not known",
    ),
    F(
        "since",
        default=-1,
        least=-1,
        says="the run, by its generation, that last went back on the partition; -1: none did",
    ),
    F(
        "target_epoch",
        kind=or_minus_one(),
        default=None,
        says="a leader epoch of the target in which its log reached target_next; -1: not known",
    ),
    F(
        "throttled_ms",
        "throttled",
        fields(ThrottleTime, **THROTTLED_SAYS),
        default=NOT_THROTTLED,
        says="how long the chunk was held back; one receipt of a chunk has it",
    ),
    F(
        "adopted",
        default="",
        omit=lambda receipt: not receipt.adopted,
        says="the replicator whose copy the lane took over there; absent: none",
    ),
    F(
        "transform",
        default="",
        omit=_is_verbatim,
        says="the transform that made its records, and may have left some out: they are in no segment; absent where "
        "they are copied as they are",
    ),
    F("transform_digest", default="", omit=_is_verbatim, says="digest of that transform"),
    F(
        "dead_letters",
        default=0,
        omit=_is_verbatim,
        says="records that are among the dead letters in place of the copy, from the same transaction; absent without "
        "a transform",
    ),
    F(
        "identical",
        default=False,
        omit=lambda receipt: not receipt.identical,
        says="true: each record has the same offset on both sides, and was written before the receipt; absent: offsets "
        "are translated",
    ),
)

DEALT_RECEIPT = Form(
    Receipt,
    *head(UNIT, lambda _: UNIT_VERSION),
    *BY_SLOT,
    F("topic", lambda receipt: receipt.source.topic, typed(str), says="name at the source"),
    *TARGET,
    F("era", "since", says="the run, by its generation, that began the rule"),
    F("begins", "reads.starts", kind=many(), says="by source partition where the chunk began"),
    F(
        "reached",
        "reads.ends",
        many(),
        says="the same offset at its end: all offsets between are done for this target partition",
    ),
    F("target_start", attrgetter("target_start"), or_minus_one(None), says="of its first record; -1: it has none"),
    F("target_next", kind=or_minus_one(None), says="target offset after the last record; -1: none yet"),
    F("records"),
    F("bytes", says="as stored, compressed"),
    F("batches"),
    F("digest", says="CRC-32C of all record payloads in order, hexadecimal"),
    F("transform", "transform_digest", says="digest of the transform"),
    F("at_ms"),
    F("origin", kind=ORIGIN),
    F("max_timestamp_ms", kind=or_minus_one(None), default=None),
    F("source_topic_id", default=""),
    F("target_topic_id", default=""),
    F("source_cluster_id", default=""),
    F("target_cluster_id", default=""),
    F(
        "target_epoch",
        kind=or_minus_one(),
        default=None,
        says="a leader epoch of the target in which its log reached target_next; -1: not known",
    ),
    F(
        "dead_letters",
        default=0,
        omit=lambda receipt: not receipt.dead_letters,
        says="records that the transform could not be applied to, and that are among the dead letters; absent: none",
    ),
    F(
        "source_epochs",
        "reads.epochs",
        many(or_minus_one()),
        default=(),
        omit=lambda receipt: not receipt.reads.epochs,
        says="by source partition a leader epoch in which its log reached what was read of it, -1: not known; absent: "
        "none is",
    ),
    name="unit_receipt",
)


def receipt_json(receipt: Receipt) -> Json:
    """Return a receipt as the documented JSON object."""
    return RECEIPT.dump(receipt) if receipt.reads is None else DEALT_RECEIPT.dump(receipt)


parse_receipt = RECEIPT.load
"""Return the receipt of one source partition from the object that `receipt_json` made."""


def parse_dealt_receipt(body: Json) -> Receipt:
    """Return the receipt of a repartitioned chunk from the object that `receipt_json` made."""
    starts, ends, count = body["begins"], body["reached"], body["records"]
    segment = Segment(source_start=sum(starts), target_start=body["target_start"], count=count)
    return DEALT_RECEIPT.load(
        body,
        source=TopicPartition(body["topic"], body["target_partition"]),
        start=sum(starts),
        end=sum(ends),
        segments=(segment,) if count else (),
    )


def is_unit(value: bytes | None) -> bool:
    """Return whether a receipt's value is that of a repartitioned chunk, without decoding it."""
    return value is not None and b'"kind":"unit"' in value


def receipt_place(record: LedgerRecord, lane: str) -> TopicPartition | None:
    """Return the target partition of a receipt's own record of a lane; None: the record is something else."""
    key = decode_key(record.key)
    if key[:2] == ["receipt", lane]:
        return TopicPartition(topic=key[2], partition=key[3])
    return TopicPartition(topic=key[3], partition=key[4]) if key[:2] == [UNIT, lane] else None


def parsed_receipt(record: LedgerRecord) -> Receipt:
    """Return the receipt of a record of kind `receipt` or `unit`."""
    return read_as(record, parse_dealt_receipt if record.key.startswith(b'["unit"') else parse_receipt)
