"""Which runs verify themselves, and which of their chunks are read for it."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from ferry.config.flow.parts import Verification
from ferry.features.verify.rules.by_receipt import affordable
from ferry.features.verify.rules.compare_ranges import CompareRange
from ferry.ledger.ledger import fold
from ferry.ledger.receipt_codec import receipt_records
from ferry.ledger.run_codec import run_record
from ferry.ledger.runs import expired
from ferry.ledger.verified_codec import due, run_verified_record
from ferry.model import Flow, Origin, Receipt, Record, RunRecord, RunVerified, Segment, VerifyMode
from tests.pure.decide.values import RECEIPT, lying, place

LANE = RECEIPT.lane


def run(name: str) -> list[Record]:
    opened = RunRecord(
        flow=Flow.parse("a->b"), lane=LANE, run=name, slots=1, config_digest="", started_ms=0, origin=Origin(host="h")
    )
    return [run_record(opened)]


def copying(name: str) -> list[Record]:
    return [*run(name), *receipt_records(replace(RECEIPT, run=name))]


def verified(name: str, generation: int) -> list[Record]:
    found = RunVerified(
        mode=VerifyMode.RECEIPT, generation=generation, equal=True, partitions=1, records=1, bytes=1, seconds=0.1
    )
    return [run_verified_record(LANE, name, found)]


EVERY_3 = Verification(mode=VerifyMode.RECEIPT, every_runs=3)
FIRST = [*copying("r1"), *verified("r1", 0)]


@pytest.mark.parametrize(
    ("records", "name", "verification", "expected"),
    [
        (copying("r1"), "r1", Verification(), VerifyMode.OFF),
        (copying("r1"), "r1", EVERY_3, VerifyMode.RECEIPT),
        (run("r1"), "r1", EVERY_3, VerifyMode.OFF),
        ([*FIRST, *copying("r2")], "r2", EVERY_3, VerifyMode.OFF),
        ([*FIRST, *copying("r2"), *copying("r3")], "r3", EVERY_3, VerifyMode.OFF),
        ([*FIRST, *copying("r2"), *run("r3"), *copying("r4")], "r4", EVERY_3, VerifyMode.RECEIPT),
        ([*FIRST, *run("r2"), *run("r3"), *run("r4"), *copying("r5")], "r5", EVERY_3, VerifyMode.RECEIPT),
        ([*FIRST, *copying("r2")], "r2", replace(EVERY_3, every_runs=1), VerifyMode.RECEIPT),
        (FIRST, "r1", EVERY_3, VerifyMode.RECEIPT),
        (FIRST, "no such run", EVERY_3, VerifyMode.OFF),
    ],
    ids=[
        *("off", "the first", "nothing copied", "one after", "two after", "three after", "the next that copies"),
        *("every one", "again", "unknown"),
    ],
)  # fmt: skip
def test_one_of_so_many_runs_is_due(
    records: list[Record], name: str, verification: Verification, expected: VerifyMode
) -> None:
    assert due(fold(lying(*records), 99), LANE, name, verification) is expected


def test_the_record_goes_with_its_run() -> None:
    view = fold(lying(*FIRST, *copying("r2"), *copying("r3")), 99)
    assert b'["verified","live","r1"]' in [record.key for record in expired(view, LANE, 1)]


def receipt(partition: int, start: int, size: int) -> Receipt:
    segment = Segment(source_start=start, target_start=start, count=10)
    return replace(
        RECEIPT,
        source=place("t", partition),
        target=place("a.t", partition),
        start=start,
        end=start + 10,
        segments=(segment,),
        bytes=size,
    )


def span(partition: int, start: int, end: int, *, compacted: bool = False) -> CompareRange:
    return CompareRange(
        source=place("t", partition),
        target=place("a.t", partition),
        source_range=(start, end),
        target_range=(start, end),
        segments=(),
        covered_until=end,
        compacted=compacted,
    )


def test_only_whole_chunks_of_logs_that_are_not_compacted_are_read() -> None:
    ones = [receipt(partition, start, 5) for partition, start in itertools.product((0, 1, 2), (0, 10))]
    found = [span(0, 5, 20), span(1, 0, 20, compacted=True), span(2, 0, 20)]
    assert affordable(ones, found) == [ones[1], ones[4], ones[5]]
    assert affordable([replace(ones[5], segments=())], found) == []


def test_of_more_than_is_affordable_another_run_reads_others() -> None:
    ones = [receipt(0, 10 * number, 5) for number in range(8)]
    found = [span(0, 0, 80)]
    chosen = {
        tuple(one.start for one in affordable([replace(one, generation=run) for one in ones], found, 20))
        for run in range(20)
    }
    assert {len(starts) for starts in chosen} == {4}
    assert {start for starts in chosen for start in starts} == {one.start for one in ones}
    one_each = [affordable([replace(one, generation=run) for one in ones], found, 4) for run in range(60)]
    assert {len(chosen) for chosen in one_each} == {1}, "a chunk of more than that has its turn, too"
    assert {chosen.start for (chosen,) in one_each} == {one.start for one in ones}
