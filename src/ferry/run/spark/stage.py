"""What a Spark task does: copy the slots of its rows and answer in rows. Runs in Python workers; knows no Spark.

```
in   slot int                              one row per used slot of the plan; a Spark task has one, or several where
                                           slots share a rate and Spark runs fewer tasks at once
out  slot int, kind string, body string    kind "receipt", "unit": a receipt; kind "end": how it ended; body is JSON
```
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa

from ferry.copy.kafka_slot import SlotWiring, TargetSlot
from ferry.copy.slot_end import SlotEnd, end_of
from ferry.copy.task import SlotTask, run_slot
from ferry.errors import (
    MALFORMED,
    BadInput,
    Corrupt,
    FerryError,
    OutcomeUnknown,
    Refused,
    Retryable,
    Superseded,
    Unreachable,
)
from ferry.ledger.codec import Json, compact, encode
from ferry.ledger.receipt_codec import parse_dealt_receipt, parse_receipt, receipt_json
from ferry.ledger.run_codec import parse_refusal, refusal_json
from ferry.ledger.sentence_codec import read_sentence, sentence_fields
from ferry.model import Receipt, sentence_of
from ferry.protocol.slot import SlotProgress
from ferry.run.spark.columns import ints, strings
from ferry.run.spark.package import unpacked

ROW = "slot int, kind string, body string"
"""The rows of an answer, as Spark writes a schema."""

RECEIPT = "receipt"
UNIT = "unit"
END = "end"

ERRORS: Mapping[str, type[FerryError]] = {
    kind.__name__: kind for kind in (BadInput, Refused, Superseded, Unreachable, Retryable, OutcomeUnknown, Corrupt)
}


def run_named_slots(specs: Mapping[int, SlotTask], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Run every slot that the rows of `batches` name; a failed slot is an answer, too, so that the others continue.

    Anything but a FerryError is raised: Spark then tries the task again, perhaps in another worker.
    """
    for batch in batches:
        for slot in batch.column("slot").to_pylist():
            yield batch_of_rows(answer_rows(run_slot_in_spark(specs[slot])))


def run_packed_slots(name: str, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Run every slot that the rows of `batches` name, by the specs in the package `name` that was sent as an artifact.

    `ferry.run.spark.package` makes that package. A failed slot is an answer; anything but a FerryError is raised.
    """
    return run_named_slots(unpacked(name), batches)


def run_slot_in_spark(spec: SlotTask, port_of: Callable[[SlotWiring], TargetSlot] | None = None) -> SlotEnd:
    """Run one slot in a Spark task, over the port that `port_of` makes (None: that of `spec`), and return how it ended.

    Raises anything but a FerryError.
    """
    parent = os.getppid()

    def orphaned() -> bool:
        # Spark's worker daemon ends its workers when the JVM is gone; this covers a daemon that was killed itself.
        return os.getppid() != parent

    progress = SlotProgress()
    failure: FerryError | None = None
    try:
        run_slot(spec, orphaned, lambda _: None, progress, port_of)
    except FerryError as error:
        failure = error
    if progress.stopped:  # only the end of its parent stops a Spark task: it is to be tried again
        failure = Retryable(f"slot {spec.ref.slot} was stopped before its end")
    return end_of(spec.ref.slot, progress, failure)


Row = tuple[int, str, str]
"""Slot, kind, body."""


def answer_rows(end: SlotEnd) -> list[Row]:
    """Return one row per receipt, and one row for the end."""
    body: dict[str, Any] = {
        "refusals": [refusal_json(refusal) for refusal in end.refusals],
        "retries": end.retries,
        "time_over": end.time_over,
        "failure": None if end.failure is None else error_json(end.failure),
    }
    return [
        *((end.slot, UNIT if one.dealt else RECEIPT, encode(receipt_json(one)).decode()) for one in end.receipts),
        (end.slot, END, compact(body).decode()),
    ]


def parse_rows(answer: Iterable[Row]) -> list[SlotEnd]:
    """Return the ends in the rows of all slots, in slot order; a slot without an end row does not appear.

    It reads what `answer_rows` writes. Raises OutcomeUnknown for rows that Ferry did not write.
    """
    try:
        return _ends(answer)
    except (*MALFORMED, BadInput) as error:
        raise OutcomeUnknown(
            f"Spark's answer for its slots is not in Ferry's format ({type(error).__name__}: {error!s:.200}), and the "
            "ledger shows what they did: check that driver and executors have the same Ferry"
        ) from error


def _ends(answer: Iterable[Row]) -> list[SlotEnd]:
    receipts: dict[int, list[Receipt]] = {}
    ends: dict[int, dict[str, Any]] = {}
    for slot, kind, body in answer:
        if kind == RECEIPT:
            receipts.setdefault(slot, []).append(parse_receipt(json.loads(body)))
        elif kind == UNIT:
            receipts.setdefault(slot, []).append(parse_dealt_receipt(json.loads(body)))
        else:
            ends[slot] = json.loads(body)
    return [
        SlotEnd(
            slot=slot,
            receipts=tuple(receipts.get(slot, ())),
            refusals=tuple(parse_refusal(item) for item in end["refusals"]),
            retries=end["retries"],
            time_over=end["time_over"],
            failure=None if end["failure"] is None else parse_error(end["failure"]),
        )
        for slot, end in sorted(ends.items())
    ]


def error_json(error: FerryError) -> Json:
    """Return the error of a Spark task as JSON: its class and its sentence, with the sentence's code and facts."""
    return {"kind": type(error).__name__, "message": str(error), **sentence_fields(sentence_of(error))}


def parse_error(body: Json) -> FerryError:
    """Return the error that `error_json` wrote; a class that is not in ERRORS becomes FerryError.

    Raises an error of MALFORMED, or BadInput, for what Ferry did not write.
    """
    return ERRORS.get(body["kind"], FerryError)(read_sentence(body["message"], body))


def batch_of_rows(answer: list[Row]) -> pa.RecordBatch:
    slots, kinds, bodies = zip(*answer, strict=True)
    return pa.RecordBatch.from_arrays([ints(slots), strings(kinds), strings(bodies)], names=["slot", "kind", "body"])
