"""The result of a comparison as JSON: what `ferry verify` and its Spark job answer (docs/schemas/verify.json)."""

from __future__ import annotations

from typing import Any

from ferry.model import Difference, NotCompared, Verified, Witness


def verified_json(result: Verified) -> dict[str, Any]:
    """The whole answer."""
    return {
        "equal": result.is_equal,
        "complete": result.is_complete,
        "flow": str(result.flow),
        "lane": result.lane,
        "partitions": result.partitions,
        "records": result.records,
        "bytes": result.bytes,
        "seconds": result.seconds,
        "differences": [difference_json(one) for one in result.differences],
        "more_differences": result.more,
        "not_compared": [_not_compared_json(left) for left in result.not_compared],
        "notes": list(result.notes),
        "sample": result.sample,
        "seed": result.seed,
    }


def difference_json(one: Difference) -> dict[str, Any]:
    """One difference with the records that are shown of it."""
    return {
        "topic": one.source.topic,
        "partition": one.source.partition,
        "source_range": list(one.source_range),
        "target_topic": one.target.topic,
        "target_partition": one.target.partition,
        "target_range": list(one.target_range),
        "kind": one.kind.value,
        "source_records": [_record_json(record) for record in one.source_records],
        "target_records": [_record_json(record) for record in one.target_records],
    }


def _record_json(record: Witness) -> dict[str, Any]:
    """Null: the record has none; texts are empty unless they were asked for."""
    body: dict[str, Any] = {
        "offset": record.offset,
        "timestamp_ms": record.timestamp_ms,
        "key_bytes": record.key_size,
        "value_bytes": record.value_size,
        "headers_bytes": record.headers_size,
        "key_digest": record.key_digest or None,
        "value_digest": record.value_digest or None,
        "headers_digest": record.headers_digest,
    }
    if record.key_text or record.value_text or record.headers_text:
        body |= {"key": record.key_text, "value": record.value_text, "headers": record.headers_text}
    return body


def _not_compared_json(left: NotCompared) -> dict[str, Any]:
    return {
        "topic": left.source.topic,
        "partition": left.source.partition,
        "source_range": [left.start, left.end],
        "kind": left.why.value,
        "message": left.message,
        "asked": left.asked,
    }
