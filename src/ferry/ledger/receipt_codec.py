"""Receipts as records: one chunk of one target partition, under its own key and as the newest."""

from __future__ import annotations

from ferry.codec.form import F, Form
from ferry.codec.kinds import FLOW, Kind, fields, many, optional, row
from ferry.ledger.codec import LEDGER_VERSION, TARGET, UNIT_VERSION, encode, head
from ferry.model import NOT_THROTTLED, Ages, Origin, Receipt, Record, Segment, Throttled, TopicPartition, parse_topic_id


def receipt_records(receipt: Receipt) -> tuple[Record, Record]:
    """A receipt under its own key and again as the target partition's last one."""
    value = encode(receipt_json(receipt))
    target = receipt.target
    return (
        Record(key=receipt_key(receipt.lane, target, receipt.start, receipt.since), value=value),
        Record(key=encode(["last", receipt.lane, target.topic, target.partition]), value=value),
    )


def receipt_key(lane: str, target: TopicPartition, start: int, since: int) -> bytes:
    """The key of a receipt that begins at a source offset."""
    key: list[object] = ["receipt", lane, target.topic, target.partition, start]
    if since >= 0:  # the same source offset may have been copied before
        key.append(since)
    return encode(key)


AGES = optional(row(Ages, least=None))
"""The least, the mean, the most, and of how many."""

ORIGIN = fields(Origin, host="host:pid")

THROTTLED_SAYS = {
    "ferry": "fetches waited for ferry.throttle.bytes.per.second",
    "source": "brokers of the source asked for a pause (quotas, KIP-219)",
    "target": "brokers of the target asked for a pause",
}

TOPIC_ID = Kind(None, parse_topic_id)


def _is_verbatim(receipt: Receipt) -> bool:
    return not receipt.transform


RECEIPT = Form(
    Receipt,
    # A Ferry that knows no transformed records would go on with bytes.
    *head("receipt", lambda receipt: UNIT_VERSION if receipt.transform else LEDGER_VERSION),
    F("flow", kind=FLOW),
    F("lane"),
    F("run"),
    F("generation"),
    F("slot"),
    F("topic", "source.topic", says="name at the source"),
    F("partition", "source.partition"),
    *TARGET,
    F("start", says="first source offset"),
    F("end", says="first source offset behind"),
    F("target_next", least=None, says="target offset behind the last record; -1: none yet"),
    F(
        "segments",
        kind=many(row(Segment)),
        says="[source offset, target offset, count]: so many records lie one behind the other on both sides",
    ),
    F("records"),
    F("bytes", says="as stored, compressed"),
    F("batches"),
    F("digest", says="CRC-32C of all record payloads in order, hexadecimal"),
    F("at_ms"),
    F("transcoded"),
    F("aborted_batches"),
    F("control_batches"),
    F("max_timestamp_ms", least=None),
    F("source_epoch", least=None),
    F("source_topic_id", kind=TOPIC_ID),
    F("target_topic_id", kind=TOPIC_ID),
    F("source_cluster_id"),
    F("origin", kind=ORIGIN),
    # Absent in records of earlier Ferrys, which pass them over in turn.
    F("target_cluster_id", default="", says="empty: an earlier version wrote it"),
    F(
        "missing",
        default=None,
        says="offsets of [start, end) of which the source has no record; null: an earlier version did not count",
    ),
    F(
        "min_timestamp_ms",
        default=-1,
        least=None,
        says="the smallest first timestamp of its batches; -1: none, or an earlier version wrote it",
    ),
    F(
        "mean_timestamp_ms",
        default=-1,
        least=None,
        says="of the records, each taken to lie in the middle between its batch's first and largest timestamp",
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
        default=-1,
        least=-1,
        says="a leader epoch of the target in which its log reached target_next; -1: not known",
    ),
    F(
        "throttled_ms",
        "throttled",
        fields(Throttled, **THROTTLED_SAYS),
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
)

receipt_json = RECEIPT.dump
"""A receipt as the documented JSON object."""

parse_receipt = RECEIPT.load
"""Inverse of `receipt_json`."""
