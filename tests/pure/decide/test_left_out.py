"""What a target lacks by number: dead letters, and what was left out before an adoption. None is 'not known'."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ferry.ledger.adoption_codec import adoption_records
from ferry.ledger.codec import gap_record
from ferry.ledger.ledger import LedgerView, fold
from ferry.ledger.receipt_codec import receipt_records
from ferry.ledger.summary import rolled_up
from ferry.ledger.unit_codec import era_record
from ferry.model import Era, Gap, Receipt, Record, RefusalKind, Resolution, Segment, TopicPartition
from ferry.model.evidence import ADOPTED, DEAD_LETTERS, PassedOver
from ferry.plan.rules.passed_over import passed_clause, passed_over, passed_sentences
from ferry.plan.rules.starts import start_record
from tests.pure.decide.test_adopted_map import ADOPTION
from tests.pure.decide.test_museum import EXHIBITS, exhibit
from tests.pure.decide.test_unit_codec import ONE
from tests.pure.decide.values import LANE, RECEIPT, lying, place, redealt

HERE = place("orders")
FIRST = replace(RECEIPT, transform="mask", transform_digest="m", dead_letters=3)
NEXT = replace(FIRST, start=40, end=60, target_next=58, segments=(Segment(source_start=40, target_start=40, count=18),))
CLEAN = replace(NEXT, dead_letters=0)


def seen(*records: Record | tuple[Record, ...]) -> LedgerView:
    flat = [one for some in records for one in ((some,) if isinstance(some, Record) else some)]
    return fold(lying(*flat), len(flat))


def receipts(*ones: Receipt) -> tuple[Record, ...]:
    return tuple(record for one in ones for record in receipt_records(one))


def found(view: LedgerView, lane: str = LANE, **given: frozenset[str]) -> list[PassedOver]:
    return [one for one in passed_over(view, lane, {}, **given) if one.is_counted]


def letters(start: int | None, end: int, records: int | None, source: TopicPartition = HERE) -> PassedOver:
    return PassedOver(source=source, start=start, end=end, why=DEAD_LETTERS, records=records)


def test_dead_letters_of_all_receipts_add_up() -> None:
    view = seen(receipts(FIRST, replace(NEXT, dead_letters=2)))
    assert found(view) == [letters(0, 60, 5)]
    assert "5 records" in passed_clause(found(view))
    (said,) = passed_sentences(found(view), "b")
    assert "5 records" in said


@pytest.mark.parametrize("one", [RECEIPT, replace(FIRST, dead_letters=0)], ids=["bytes", "a transform without any"])
def test_without_dead_letters_there_is_nothing_to_say(one: Receipt) -> None:
    assert found(seen(receipts(one))) == []
    assert passed_clause(()) == ""


def test_dead_letters_whose_receipts_a_summary_has_in_short_are_not_known() -> None:
    view = rolled_up(seen(receipts(FIRST, CLEAN)))
    assert found(view) == [letters(40, 60, None)], "the first chunk has a record for each offset"
    assert "not known" in passed_clause(found(view))
    later = replace(NEXT, start=60, end=80, dead_letters=2)
    more = fold(lying(*receipts(FIRST, CLEAN, later)), 6)
    assert found(replace(view, by_key={**view.by_key, **more.by_key})) == [letters(0, 80, None)]


def test_a_transform_that_makes_no_dead_letters_is_known_to_have_made_none() -> None:
    view = rolled_up(seen(receipts(CLEAN)))
    assert found(view, never=frozenset({"m"})) == []
    assert found(view, never=frozenset({"another"})) == [letters(40, 60, None)]
    assert found(rolled_up(seen(receipts(RECEIPT)))) == [], "bytes make none"


@pytest.mark.parametrize(("void_from", "wanted"), [(60, [letters(0, 60, 5)]), (40, [letters(0, 40, 3)]), (0, [])])
def test_dead_letters_of_what_a_lane_went_back_from_are_counted_when_they_are_made_again(
    void_from: int, wanted: list[PassedOver]
) -> None:
    gap = _restart(void_from)
    assert found(seen(receipts(FIRST, replace(NEXT, dead_letters=2)), gap_record(LANE, gap))) == wanted


def test_how_many_of_a_chunk_are_from_before_the_place_a_lane_went_back_to_is_not_known() -> None:
    assert found(seen(receipts(FIRST), gap_record(LANE, _restart(20)))) == [letters(0, 20, None)]


def _restart(void_from: int) -> Gap:
    why = RefusalKind.TARGET_CHANGED
    return Gap(
        source=HERE, start=60, end=void_from, why=why, run="r", at_ms=0, how=Resolution.RESTART, generation=9,
        void_from=void_from,
    )  # fmt: skip


def test_dead_letters_of_a_window_count_with_those_of_the_live_lane() -> None:
    window = replace(FIRST, lane="append-1", generation=9)
    view = seen(receipts(FIRST, NEXT, window))
    assert found(view) == [letters(0, 60, 9)]
    other = seen(receipts(FIRST, replace(FIRST, lane="backfill-1")))
    assert found(other) == [letters(0, 40, 3)]


def test_dead_letters_of_an_earlier_topic_or_copy_are_not_counted() -> None:
    earlier = replace(FIRST, source_topic_id="before", start=0, end=5)
    renamed = replace(FIRST, target=place("old.orders"), generation=1)
    assert found(seen(receipts(earlier, renamed, NEXT))) == [letters(40, 60, 3)]


UNIT = redealt(ONE, starts=(0, 0), ends=(9, 1), dead_letters=2)
OTHER = redealt(ONE, starts=(9, 1), ends=(9, 4), records=1, target_start=10)
ERA = Era(source_topic="t", target_topic="a.t", since=4, begins=(0, 0), digest="d", partitions=2)
ALL = place("t", -1)


def test_dead_letters_of_a_repartitioned_topic_are_known_while_all_of_its_units_are_there() -> None:
    begun = start_record(LANE, "t", {0: 3, 1: 0}, {}, "", {})
    assert found(seen(receipts(UNIT, OTHER), era_record(LANE, ERA))) == [letters(None, 9, 2, ALL)]
    late = redealt(UNIT, starts=(3, 0), ends=(9, 1))
    assert found(seen(begun, receipts(late, OTHER))) == [letters(None, 9, 2, ALL)], "it began there"
    assert str(ALL) not in passed_clause(found(seen(receipts(UNIT))))


@pytest.mark.parametrize("rolled", [True, False], ids=["a summary has them in short", "their runs were deleted"])
def test_dead_letters_of_units_that_are_gone_are_not_known(rolled: bool) -> None:
    view = seen(receipts(UNIT, OTHER), era_record(LANE, ERA))
    if rolled:
        view = rolled_up(view)
    else:
        gone = Record(key=receipt_records(UNIT)[0].key, value=None)
        view = seen(receipts(UNIT, OTHER), era_record(LANE, ERA), gone)
    assert found(view) == [letters(None, 9, None, ALL)]
    assert found(view, never=frozenset({"d"})) == [], "its rule makes none"


def test_units_that_were_copied_twice_do_not_count_twice() -> None:
    again = redealt(UNIT, starts=(0, 0), ends=(9, 4), run="r2")
    assert found(seen(receipts(UNIT, again))) == [letters(None, 9, None, ALL)]


def test_what_was_left_out_before_an_adoption_is_not_known() -> None:
    (one,) = found(seen(adoption_records(ADOPTION)))
    assert (one.why, one.source, one.start, one.end, one.records) == (ADOPTED, HERE, 0, 100, None)
    assert "not known" in passed_clause([one])
    assert found(seen(adoption_records(replace(ADOPTION, end=0)))) == [], "nothing was there before it"


def test_what_a_lane_copied_itself_of_an_adoption_is_not_left_out() -> None:
    window = replace(RECEIPT, lane="append-1", start=0, end=40, generation=12)
    (one,) = found(seen(adoption_records(ADOPTION), receipts(window)))
    assert (one.start, one.end) == (40, 100)


def test_an_adoption_of_which_only_the_receipt_is_there_is_named() -> None:
    _, last = adoption_records(ADOPTION)
    (one,) = found(seen(last))
    assert (one.why, one.end, one.records) == (ADOPTED, 100, None)


def test_a_group_does_not_know_which_of_its_records_are_among_the_counted_ones() -> None:
    one = letters(10, 20, 3)
    assert [one.unread(at) for at in (5, 15, 20)] == [None, None, 0]
    assert [one.holds(at) for at in (5, 10, 19, 20)] == [False, None, None, False]


@pytest.mark.parametrize("path", EXHIBITS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_no_ledger_of_an_earlier_version_is_said_to_have_left_out_nothing_without_its_receipts(path: Path) -> None:
    kept = exhibit(path)
    view = fold(kept.records, kept.end)
    short = {one.why for one in found(rolled_up(view))}
    assert {one.records for one in found(view)} <= {None}, "none of them made a dead letter"
    assert {one.why for one in found(view)} == ({ADOPTED} if path.stem == "adopted" else set())
    assert (DEAD_LETTERS in short) is (path.stem == "dealt")
