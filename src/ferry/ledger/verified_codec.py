"""The result of a comparison as JSON: the answer of `ferry verify` and of its Spark job (docs/schemas/verify.json).

Also the ledger's record of a run that verified itself:
```
["verified", lane, run]                 the result; a run that is verified again overwrites it
```
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from ferry.codec.form import F, Form
from ferry.codec.kinds import FLOW, PAIR, SECONDS, enum, filled, many, typed
from ferry.codec.schema import of_type
from ferry.config.flow.parts import Verification
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
    NotComparedKind,
    Range,
    Record,
    RecordSample,
    RunVerified,
    Verified,
    VerifyMode,
)

SHOWN = 20
"""The most differences, and things not compared, that a run's record names."""


_RANGE = "offsets from the first up to, not including, the second; both the same: nothing, and where it would be"

WITNESS = Form(
    RecordSample,
    F("offset"),
    F("timestamp_ms", least=None),
    F("key_bytes", "key_size", least=None, says="null: the key is null"),
    F("value_bytes", "value_size", least=None, says="null: a tombstone"),
    F("headers_bytes", "headers_size", least=None),
    F("key_digest", kind=filled(""), says="equal in one answer for equal keys, in no other answer"),
    F("value_digest", kind=filled("")),
    F("headers_digest"),
    *(
        F(name, f"{name}_text", omit=lambda one: not (one.key_text or one.value_text or one.headers_text), says=says)
        for name, says in (("key", "with --show-values: its beginning, escaped"), ("value", ""), ("headers", ""))
    ),
)
"""A record that is shown."""

PLACE = Form(
    Difference,
    *SOURCE,
    F("source_range", kind=PAIR, says=_RANGE),
    *TARGET,
    F("target_range", kind=PAIR, says=_RANGE),
    F(
        "kind",
        kind=enum(DifferenceKind),
        says="record: more than one of key, value, headers, timestamp; moved: in another partition; displaced: equal "
        "records at other offsets than the ledger says",
    ),
)
"""The place of a difference; the records themselves are not kept."""

DIFFERENCE = Form(
    Difference,
    *PLACE.table,
    F("source_records", kind=many(WITNESS.kind)),
    F("target_records", kind=many(WITNESS.kind)),
)
"""A difference, with the records that are shown of it."""

NOT_COMPARED = Form(
    NotCompared,
    *SOURCE,
    F("source_range", lambda left: [left.start, left.end], typed(Range), says=_RANGE),
    F("kind", "why", enum(NotComparedKind)),
    F("message"),
    F("asked", says="asked for, or should be there: without it the answer is not complete"),
)

BEGIN = Form(
    Begin,
    *SOURCE,
    F("offset", says="the first source offset of the lane; null: not known yet"),
    F(
        "log_start",
        says="where the source's log begins; null: the log that was copied is gone, or does not answer",
    ),
    F(
        "unaccounted",
        kind=many(PAIR),
        says="offsets of the log, up to the last one copied, that neither a receipt nor a gap names: not compared",
    ),
    F("adopted", says="another replicator copied the records before"),
    F("message", "sentence", says="what of it was not compared; empty: nothing"),
)

VERIFIED = Form(
    Verified,
    F(
        "equal",
        "is_equal",
        says="all that was asked for was compared, and nothing differs; else the exit code is 1. Also true when there "
        "was nothing to compare: with records 0 it proves nothing",
    ),
    F("complete", "is_complete", says="nothing of not_compared was asked for"),
    F("flow", kind=FLOW),
    F("lane"),
    F("partitions"),
    F("records", says="source records that were compared"),
    F(
        "identical",
        kind=typed(int | None),
        says="of records, those of copies with identical offsets: each was compared with the target's record at the "
        "same offset. Null: no copy has identical offsets",
    ),
    F("bytes", says="read of both sides: batches as stored; by librdkafka keys, values and headers"),
    F("seconds", kind=SECONDS),
    F("differences", kind=many(DIFFERENCE.kind)),
    F("more_differences", "more", says="differences beyond the first 1,000 of a partition"),
    F("not_compared", kind=many(NOT_COMPARED.kind)),
    F("notes", kind=many()),
    F(
        "whole",
        lambda result: result.is_whole if result.begins else None,
        typed(bool | None),
        says="receipts and gaps name every offset of each log, up to the last one copied; false: equal is not said of "
        "all of the log. Null without a ledger",
    ),
    F(
        "begins",
        kind=many(BEGIN.kind),
        says="by source partition where the lane began; empty without a ledger",
    ),
    F("sample", least=1, says="one of so many segments was compared; null: all"),
    F("seed", least=None, says="--seed for the same sample; null without one"),
    F("reader", says="what read both clusters: ferry, or with --independent librdkafka and its version"),
)

verified_json = VERIFIED.dump
"""Return the whole answer."""


def due(view: LedgerView, lane: str, run: str, verification: Verification) -> VerifyMode:
    """Return how a run must verify itself; OFF where it need not, or has copied nothing.

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
    """Return the generations of the runs that verified themselves, except one."""
    return [
        read_as(record, lambda body: whole(body["generation"]))
        for key, record in view.of_kind("verified")
        if key[1] == lane and key[2] != but
    ]


def of_run(result: Verified, mode: VerifyMode, generation: int, at_ms: int) -> RunVerified:
    """Return what is kept of a result."""
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
    """Make the record of the result of a run that verified itself."""
    body = {"v": LEDGER_VERSION, "kind": "verified", **run_verified_json(found)}
    return Record(key=encode(["verified", lane, run]), value=encode(body))


RUN_VERIFIED = Form(
    RunVerified,
    F("mode", kind=replace(enum(VerifyMode), schema=lambda: of_type(Literal["receipt", "content"]))),
    F("generation"),
    F("equal", says="all of it was compared, and agrees"),
    F("partitions"),
    F("records", says="read of the source, or of the target where receipts were enough"),
    F("bytes", says="read, of both sides, as stored"),
    F("seconds", kind=SECONDS),
    F("differences", kind=many(PLACE.kind), says="the first 20, as those of ferry verify without records"),
    F("more_differences", "more", says="differences beyond those"),
    F("not_compared", kind=many(), says="sentences: what should be there and could not be compared"),
    F("at_ms"),
)

run_verified_json = RUN_VERIFIED.dump
"""Return the result of a run that verified itself, as the documented JSON object."""


def run_verified(view: LedgerView, lane: str, run: str) -> RunVerified | None:
    """Return what a run's record shows; None when it did not verify itself (yet)."""
    for key, record in view.of_kind("verified"):
        if key[1:] == [lane, run]:
            return read_as(record, RUN_VERIFIED.load)
    return None
