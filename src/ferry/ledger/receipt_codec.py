"""Receipts as records: one chunk of one target partition, under its own key and as the newest."""

from __future__ import annotations

from ferry.codec.form import F, Form
from ferry.codec.kinds import FLOW, Kind, fields, many, optional, row
from ferry.ledger.codec import LEDGER_VERSION, SOURCE, TARGET, UNIT_VERSION, encode, head
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


AGES = optional(row(Ages))
"""The least, the mean, the most, and of how many."""

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
    *SOURCE,
    *TARGET,
    F("start"),
    F("end"),
    F("target_next"),
    F("segments", kind=many(row(Segment))),
    F("records"),
    F("bytes"),
    F("batches"),
    F("digest"),
    F("at_ms"),
    F("transcoded"),
    F("aborted_batches"),
    F("control_batches"),
    F("max_timestamp_ms"),
    F("source_epoch"),
    F("source_topic_id", kind=TOPIC_ID),
    F("target_topic_id", kind=TOPIC_ID),
    F("source_cluster_id"),
    F("origin", kind=fields(Origin)),
    # Absent in records of earlier Ferrys, which pass them over in turn.
    F("target_cluster_id", default=""),
    F("missing", default=None),
    F("min_timestamp_ms", default=-1),
    F("mean_timestamp_ms", default=-1),
    F("record_age_ms", "ages", AGES, default=None),
    F("since", default=-1),
    F("target_epoch", default=-1),
    F("throttled_ms", "throttled", fields(Throttled), default=NOT_THROTTLED),
    F("adopted", default="", omit=lambda receipt: not receipt.adopted),
    F("transform", default="", omit=_is_verbatim),
    F("transform_digest", default="", omit=_is_verbatim),
    F("dead_letters", default=0, omit=_is_verbatim),
)

receipt_json = RECEIPT.dump
"""A receipt as the documented JSON object."""

parse_receipt = RECEIPT.load
"""Inverse of `receipt_json`."""
