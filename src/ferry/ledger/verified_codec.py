"""The result of a comparison as JSON: what `ferry verify` and its Spark job answer (docs/schemas/verify.json).

Also the ledger's record of a run that verified itself:

```
["verified", lane, run]                 what came of it; a run that is verified again overwrites it
```
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ferry.codec.form import F, Form
from ferry.codec.kinds import PAIR, enum, many
from ferry.config.flow.flow import Verification
from ferry.ledger.codec import LEDGER_VERSION, SOURCE, TARGET, encode
from ferry.ledger.ledger import LedgerView
from ferry.ledger.reading import read_as, whole
from ferry.ledger.receipts import receipts
from ferry.ledger.runs import opened_run
from ferry.ledger.unit_codec import narrowed_units
from ferry.model import (
    Begin,
    Difference,
    DifferenceKind,
    NotCompared,
    Record,
    RunVerified,
    Verified,
    VerifyMode,
    Witness,
)

SHOWN = 20
"""Differences, and things not compared, that a run's record names."""


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
        "whole": result.is_whole if result.begins else None,
        "begins": [_begin_json(one) for one in result.begins],
        "sample": result.sample,
        "seed": result.seed,
    }


def _begin_json(one: Begin) -> dict[str, Any]:
    return {
        "topic": one.source.topic,
        "partition": one.source.partition,
        "offset": one.offset,
        "log_start": one.log_start,
        "unaccounted": [list(part) for part in one.unaccounted],
        "adopted": one.adopted,
        "message": one.sentence,
    }


def difference_json(one: Difference) -> dict[str, Any]:
    """One difference with the records that are shown of it."""
    return {
        **PLACE.dump(one),
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


def due(view: LedgerView, lane: str, run: str, verification: Verification) -> VerifyMode:
    """How a run is to verify itself; OFF where it is not, or has copied nothing.

    One of `every_runs` is due. One that copied nothing leaves it to the next; one that did it may do it again.
    """
    opened = opened_run(view, lane, run)
    if (
        verification.mode is VerifyMode.OFF
        or opened is None
        or not (any(True for _ in receipts(view, lane=lane, run=run)) or narrowed_units(view, lane, run, None))
    ):
        return VerifyMode.OFF
    last = max((at for at in _generations(view, lane, run) if at < opened.generation), default=None)
    if last is not None:
        since = sum(one.record.lane == lane and last < one.generation <= opened.generation for one in view.runs)
        if since < verification.every_runs:
            return VerifyMode.OFF
    return verification.mode


def _generations(view: LedgerView, lane: str, but: str) -> list[int]:
    """Of the runs that verified themselves, but for one."""
    return [
        read_as(record, lambda body: whole(body["generation"]))
        for key, record in view.of_kind("verified")
        if key[1] == lane and key[2] != but
    ]


def of_run(result: Verified, mode: VerifyMode, generation: int, at_ms: int) -> RunVerified:
    """What is kept of a result."""
    left = [one.message for one in result.not_compared if one.asked]
    return RunVerified(
        mode=mode,
        generation=generation,
        equal=result.is_equal,
        partitions=result.partitions,
        records=result.records,
        bytes=result.bytes,
        seconds=result.seconds,
        differences=tuple(replace(one, source_records=(), target_records=()) for one in result.differences[:SHOWN]),
        more=result.more + len(result.differences[SHOWN:]),
        not_compared=(*left[:SHOWN], *([f"and {len(left) - SHOWN} more"] if len(left) > SHOWN else [])),
        at_ms=at_ms,
    )


def run_verified_record(lane: str, run: str, found: RunVerified) -> Record:
    """What came of a run that verified itself."""
    body = {"v": LEDGER_VERSION, "kind": "verified", **run_verified_json(found)}
    return Record(key=encode(["verified", lane, run]), value=encode(body))


PLACE = Form(
    Difference,
    *SOURCE,
    F("source_range", kind=PAIR),
    *TARGET,
    F("target_range", kind=PAIR),
    F("kind", kind=enum(DifferenceKind)),
)
"""Where a difference is; the records themselves are not kept."""

RUN_VERIFIED = Form(
    RunVerified,
    F("mode", kind=enum(VerifyMode)),
    F("generation"),
    F("equal"),
    F("partitions"),
    F("records"),
    F("bytes"),
    F("seconds"),
    F("differences", kind=many(PLACE.kind)),
    F("more_differences", "more"),
    F("not_compared", kind=many()),
    F("at_ms"),
)


def run_verified_json(found: RunVerified) -> dict[str, Any]:
    """What came of a run that verified itself, as the documented JSON object."""
    return RUN_VERIFIED.dump(found)


def run_verified(view: LedgerView, lane: str, run: str) -> RunVerified | None:
    """What a run's record says; None when it did not verify itself (yet)."""
    for key, record in view.of_kind("verified"):
        if key[1:] == [lane, run]:
            return read_as(record, RUN_VERIFIED.load)
    return None
