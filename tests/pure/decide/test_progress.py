"""How far an active run has come: what is committed, what is sent in addition, and the pace of all and of each slot."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.ledger.progress import (
    NOTHING_SENT,
    PACE_SECONDS,
    LogEnd,
    Paced,
    Progress,
    committed,
    progress_before,
    progress_of,
    unfinished,
    with_pace,
)
from ferry.ledger.receipt_codec import receipt_records
from ferry.model import Fate, Receipt, Slice, TopicPartition
from ferry.run.following import Heard
from ferry.run.pace import progress_in_short, progress_line
from tests.golden import Golden
from tests.pure.decide.values import PLAN, RECEIPT, dealt_slice, lying, piece, place, redealt

AT = 1_790_000_000_000
FIRST = replace(piece("orders", start=0, end=100, slot=0), bytes_estimate=10_000, target_end=500)
OTHER = replace(piece("clicks", start=50, end=150, slot=1), bytes_estimate=20_000, target_end=0)
TWO = replace(PLAN, slices=(FIRST, OTHER))
LAST = replace(RECEIPT, source=FIRST.source, target=FIRST.target, start=0, end=40, target_next=540)


def log(stable: int, end: int) -> LogEnd:
    return LogEnd(stable=stable, end=end)


DONE = [replace(LAST, end=100), replace(LAST, source=OTHER.source, target=OTHER.target, end=150)]
CASES: dict[str, tuple[list[Receipt], dict[TopicPartition, LogEnd]]] = {
    "sent": ([], {FIRST.target: log(500, 550), OTHER.target: log(0, 10)}),
    "committed and sent": ([LAST], {FIRST.target: log(541, 550), OTHER.target: log(0, 10)}),
    "in part": ([], {FIRST.target: log(500, 550)}),
    "not known": ([LAST], {}),
    "nothing": ([LAST], {FIRST.target: log(541, 541), OTHER.target: log(0, 0)}),
    "done": (DONE, {}),
    "nothing sent yet": ([], {FIRST.target: log(500, 500), OTHER.target: log(0, 0)}),
}


def of(one: Slice, ends: LogEnd | None, *receipts: Receipt) -> tuple[int, int | None, int, int]:
    """Of a run of one slice: what is sent, in records and bytes, the offsets passed, and what is not seen."""
    plan = replace(PLAN, slices=(one,))
    whole = progress_of(plan, committed(receipts), {} if ends is None else {one.target: ends}).whole
    return whole.sent, whole.sent_bytes, whole.passed, whole.unseen


def test_what_lies_in_the_open_transaction_is_sent_and_not_committed() -> None:
    assert of(FIRST, log(500, 530)) == (30, 3_000, 30, 0)
    whole = progress_of(TWO, {}, {FIRST.target: log(500, 530), OTHER.target: log(0, 0)}).whole
    assert (whole.done, whole.records, whole.bytes, whole.sent, whole.left) == (0, 0, 0, 30, 170)


def test_what_is_committed_is_never_counted_as_sent() -> None:
    assert of(FIRST, log(541, 541), LAST) == (0, 0, 40, 0)
    assert of(FIRST, log(500, 540), LAST) == (0, 0, 40, 0), "its marker is not written yet"
    assert of(FIRST, log(541, 561), LAST) == (20, 2_000, 60, 0), "by the size of the records before"
    assert of(FIRST, log(700, 900), replace(LAST, end=100)) == (0, 0, 100, 0), "nothing is left to send"


def test_records_from_before_the_slice_are_not_of_the_run() -> None:
    assert of(FIRST, log(480, 510)) == (10, 1_000, 10, 0), "another producer's transaction is open there"


KEPT = replace(FIRST, start=1_000, end=1_100, target_end=None, producer=42)
"""Its records keep their offsets, in no transaction: readers see them as soon as they are there."""


@pytest.mark.parametrize(
    ("at", "receipts", "sent", "passed"),
    [
        (600, [], 0, 0),
        (1_030, [], 30, 30),
        (1_040, [replace(LAST, start=1_000, end=1_040, target_next=1_040)], 0, 40),
        (1_060, [replace(LAST, start=1_000, end=1_040, target_next=1_040)], 20, 60),
        (1_100, [replace(LAST, start=1_000, end=1_100, target_next=1_100)], 0, 100),
    ],
    ids=["empty records", "before a receipt", "committed", "after a receipt", "done"],
)
def test_records_that_keep_their_offsets_are_sent_from_their_first_offset_on(
    at: int, receipts: list[Receipt], sent: int, passed: int
) -> None:
    assert of(KEPT, log(at, at), *receipts)[::2] == (sent, passed)
    found_before = replace(KEPT, target_end=1_020)
    assert of(found_before, log(at, at), *receipts)[::2] == (sent, passed), "a run before wrote no receipt of it"


def test_nothing_of_what_keeps_its_offsets_is_sent_before_a_slot_begins() -> None:
    assert progress_before(replace(PLAN, slices=(KEPT,)), {}).whole.sent == 0


def test_more_records_than_the_slice_has_do_not_pass_its_end() -> None:
    assert of(FIRST, log(500, 900)) == (400, 40_000, 100, 0)


def test_what_the_target_does_not_show_is_not_known() -> None:
    assert of(FIRST, None) == (0, 0, 0, 1)
    assert of(FIRST, None, replace(LAST, end=100)) == (0, 0, 100, 0)
    unknown = progress_of(TWO, {}, {}).whole
    assert unknown.is_unknown
    in_part = progress_of(TWO, {}, {FIRST.target: log(500, 530)}).whole
    assert (in_part.is_unknown, in_part.sent, in_part.unseen) == (False, 30, 1)


def test_bytes_without_an_estimate_are_not_known() -> None:
    one = replace(FIRST, bytes_estimate=0)
    assert of(one, log(500, 530)) == (30, None, 30, 0)
    assert of(one, log(500, 500)) == (0, 0, 0, 0)


def test_of_changed_and_repartitioned_topics_only_what_is_committed_passes_offsets() -> None:
    assert of(replace(FIRST, transform="mask"), log(500, 530)) == (30, 3_000, 0, 0)
    unit = dealt_slice(target=place("a.t", 1), starts=(0, 0), ends=(60, 60))
    assert of(unit, log(7, 27)) == (20, None, 0, 0)
    some = redealt(
        replace(RECEIPT, target=unit.target, target_next=27), starts=(0, 0), ends=(60, 30), records=27, bytes=2_700
    )
    assert of(unit, log(28, 38), some) == (10, 1_000, 90, 0)


def test_each_slot_has_its_own_progress_and_together_they_are_the_runs() -> None:
    ends = {FIRST.target: log(541, 561), OTHER.target: log(0, 25)}
    found = progress_of(TWO, committed([LAST]), ends)
    assert [(slot, part.records, part.sent, part.share) for slot, part in found.slots] == [
        (0, 40, 20, 60),
        (1, 0, 25, 25),
    ]
    assert (found.whole.slices, found.whole.records, found.whole.sent, found.whole.share) == (2, 40, 45, 42)
    assert unfinished(TWO, committed([replace(LAST, end=100)])) == [OTHER.target]


def test_the_pace_follows_from_two_measurements_and_counts_what_is_sent() -> None:
    ends = {FIRST.target: log(500, 550), OTHER.target: NOTHING_SENT}
    found = with_pace(progress_before(TWO, {}), progress_of(TWO, {}, ends), 10)
    assert (found.whole.bytes_per_second, found.whole.offsets_per_second) == (500, 5)
    assert found.whole.seconds_left == 30
    slots = dict(found.slots)
    assert (slots[0].seconds_left, slots[1].seconds_left) == (10, None), "what stands has no time left"
    assert slots[1].bytes_per_second is None, "before its first record a rate is not known"


@pytest.mark.parametrize(("passed", "seconds"), [(0, None), (9, None), (10, 990)])
def test_before_one_percent_there_is_no_time_left(passed: int, seconds: float | None) -> None:
    one = Progress(
        slices=1, done=0, offsets=1_000, passed=passed, records=0, bytes=0, sent=0, sent_bytes=0, unseen=0,
        offsets_per_second=1.0,
    )  # fmt: skip
    assert one.seconds_left == seconds


def test_there_is_no_pace_without_two_measurements_of_the_same() -> None:
    now = progress_of(TWO, {}, {FIRST.target: log(500, 550)})
    for before, seconds in ((progress_before(TWO, {}), 10), (progress_of(TWO, {}, {}), 10), (now, 0)):
        found = with_pace(before, now, seconds).whole
        assert (found.bytes_per_second, found.seconds_left) == (None, None)
    assert Paced().add(0, now).whole.offsets_per_second is None


def test_a_chunk_that_was_abandoned_has_no_negative_pace() -> None:
    ends = dict.fromkeys((FIRST.target, OTHER.target), NOTHING_SENT)
    before = progress_of(TWO, {}, {**ends, FIRST.target: log(500, 550)})
    found = with_pace(before, progress_of(TWO, {}, ends), 5).whole
    assert (found.sent, found.bytes_per_second, found.seconds_left) == (0, None, None)


def test_the_pace_is_that_of_the_last_minute() -> None:
    paced = Paced()
    found = None
    for at in range(0, 200, 5):
        sent = min(at, 30)  # it stands from then on
        ends = {FIRST.target: log(500, 500 + sent), OTHER.target: NOTHING_SENT}
        found = paced.add(at, progress_of(TWO, {}, ends)).whole
        assert (found.offsets_per_second is None) == (at == 0)
        if 0 < at <= 30:
            assert found.offsets_per_second == 1
    assert found is not None
    assert found.offsets_per_second == 0
    assert len(paced._kept) <= PACE_SECONDS / 5 + 1


@given(
    st.integers(0, 100),
    st.integers(0, 200),
    st.integers(0, 200),
    st.integers(0, 100),
)
def test_whatever_logs_show_no_more_is_passed_than_there_is(copied: int, stable: int, more: int, after: int) -> None:
    receipts = (replace(LAST, end=copied, records=copied, target_next=500 + after),) if copied else ()
    sent, _, passed, _ = of(FIRST, log(500 + stable, 500 + stable + more), *receipts)
    assert 0 <= sent <= more
    assert copied <= passed <= 100


@pytest.mark.parametrize("case", CASES)
def test_only_a_run_that_is_seen_to_have_sent_nothing_says_so_and_has_no_rate(case: str) -> None:
    receipts, ends = CASES[case]
    whole = with_pace(progress_before(TWO, {}), progress_of(TWO, committed(receipts), ends), 10).whole
    assert whole.has_sent_nothing == (case == "nothing sent yet")
    assert not whole.has_sent_nothing or whole.bytes_per_second is None
    assert not progress_of(replace(TWO, slices=()), {}, {}).whole.has_sent_nothing, "it is to copy nothing"


def test_what_was_not_sent_when_a_run_has_ended_is_not_said_to_come_yet() -> None:
    none = progress_of(TWO, {}, CASES["nothing sent yet"][1])
    assert progress_line(TWO, none) != progress_line(TWO, none, has_ended=True)


@pytest.mark.parametrize("case", CASES)
def test_a_line_tells_what_is_committed_and_what_is_sent_apart(golden: Golden, case: str) -> None:
    receipts, ends = CASES[case]
    found = with_pace(progress_before(TWO, {}), progress_of(TWO, committed(receipts), ends), 10)
    golden(progress_line(TWO, found), "line")
    golden(progress_in_short(TWO, found), "bar")


def test_a_bar_has_what_is_committed_apart_from_what_is_sent_and_the_slots() -> None:
    ends = {FIRST.target: log(541, 551), OTHER.target: NOTHING_SENT}
    found = progress_of(TWO, committed((replace(LAST, start=0, end=40, records=40, target_next=541),)), ends)
    first, *rest = progress_in_short(TWO, found).splitlines()
    assert len(first) < 60, "a bar stands next to it"
    assert rest[0].startswith(f"{found.whole.records} records committed")
    assert f"about {found.whole.sent} records" in rest[1]
    assert ("slot" in rest[-1]) == (len(found.slots) > 1)


def test_what_runs_after_this_one_copy_is_in_the_time_left() -> None:
    ends = {FIRST.target: log(500, 550), OTHER.target: NOTHING_SENT}
    found = with_pace(progress_before(TWO, {}), progress_of(TWO, {}, ends), 10)
    assert "about 30 s left" in progress_line(TWO, found)
    assert "about 40 s left" in progress_line(TWO, found, ahead=50)


def test_what_an_earlier_attempt_committed_is_shown_and_is_not_of_this_ones_pace() -> None:
    heard = Heard(TWO, since_ms=AT, since_s=1_000.0)
    early, *_ = receipt_records(replace(LAST, at_ms=AT - 1))
    late_clock, *_ = receipt_records(replace(LAST, at_ms=AT - 1, start=40, end=50, records=10))
    heard.see({FIRST.target: log(541, 551), OTHER.target: NOTHING_SENT})
    heard.read(lying(early))
    found = heard.progress(1_010.0).whole
    assert (found.records, found.passed, found.offsets_per_second) == (40, 50, 1)
    heard.see({FIRST.target: log(552, 552), OTHER.target: NOTHING_SENT})
    heard.read(lying(late_clock, first=1))
    found = heard.progress(1_010.0).whole
    assert (found.records, found.passed, found.offsets_per_second) == (50, 50, 1)


def test_a_receipt_that_is_heard_twice_counts_once() -> None:
    heard = Heard(TWO, since_ms=AT, since_s=0.0)
    for _ in range(2):
        heard.hear([replace(LAST, at_ms=AT)])
    assert heard.progress(1.0).whole.records == 40
    assert heard.unfinished == [FIRST.target, OTHER.target]


def test_the_ledger_is_read_again_from_the_first_receipt_that_was_undecided() -> None:
    plan = replace(PLAN, slices=(FIRST,))
    receipt, *_ = receipt_records(replace(LAST, generation=plan.generation))
    later, *_ = receipt_records(replace(LAST, generation=plan.generation, start=60, end=80))
    heard = Heard(plan, since_ms=0, since_s=0.0)
    assert heard.read(lying(later, (receipt, Fate.OPEN), later, (receipt, Fate.OPEN), first=5)) == 6
    assert heard.progress(1.0).whole.records == 40
    assert heard.read(lying(receipt, first=6)) is None
    assert heard.progress(2.0).whole.records == 80
