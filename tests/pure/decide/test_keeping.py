"""Keep a plan, resume it, or open the run: by what the ledger has of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ferry.errors import BadInput, Superseded
from ferry.ledger.ledger import LedgerView, fold
from ferry.ledger.plan_codec import plan_records
from ferry.ledger.receipt_codec import receipt_records
from ferry.ledger.resume import kept_plan, refuse_planned, resumed_plan, slices_left
from ferry.ledger.run_codec import run_record
from ferry.model import Record
from tests.golden import Golden
from tests.pure.decide.values import LANE, PLAN, RECEIPT, lying, piece, run_of
from tests.said import data_of

OLD = replace(PLAN, run="old", generation=0, slices=(piece(end=40), piece(partition=1)))


def view(*records: Record) -> LedgerView:
    return fold(lying(*records), len(records))


OPENED = view(run_record(run_of("old")))
PLANNED = view(run_record(run_of("old")), *plan_records(OLD))
FOLLOWED = view(run_record(run_of("old")), run_record(run_of("new")))
SUPERSEDED = view(run_record(run_of("old")), *plan_records(OLD), run_record(run_of("new")))


def test_a_plan_is_kept_whoever_came_later(golden: Golden) -> None:
    for seen in (PLANNED, SUPERSEDED):
        assert kept_plan(seen, LANE, "old") == resumed_plan(seen, LANE, "old") == OLD
        with pytest.raises(BadInput) as caught:
            refuse_planned(seen, LANE, "old")
        golden(caught.value)


@pytest.mark.parametrize("seen", [view(), OPENED, replace(PLANNED, by_key={})], ids=["unknown", "opened", "unsealed"])
def test_a_run_without_a_plan_is_opened_but_not_resumed(seen: LedgerView, golden: Golden) -> None:
    assert kept_plan(seen, LANE, "old") is None
    refuse_planned(seen, LANE, "old")
    with pytest.raises(BadInput) as wrong:
        resumed_plan(seen, LANE, "old")
    golden(wrong.value)


def test_a_run_that_was_never_planned_is_over_once_a_newer_one_began(golden: Golden) -> None:
    for ask in (kept_plan, resumed_plan):
        with pytest.raises(Superseded) as caught:
            ask(FOLLOWED, LANE, "old")
        code, facts = data_of(caught.value)
        assert (code, facts["run"], facts["newer"]) == ("superseded.unplanned", "old", "new")
        golden(caught.value)
    refuse_planned(FOLLOWED, LANE, "old")


def test_what_is_left_belongs_to_the_newest_run() -> None:
    half = tuple(receipt_records(RECEIPT))
    other = replace(RECEIPT, source=OLD.slices[1].source, target=OLD.slices[1].target, end=100)
    rest, almost = tuple(receipt_records(other)), tuple(receipt_records(replace(other, end=99)))
    assert slices_left(view(*half), OLD) == slices_left(view(*half, *almost), OLD) == [OLD.slices[1]]
    assert slices_left(view(*half, *rest), OLD) == []
    newer = run_record(run_of("new"))
    with pytest.raises(Superseded) as caught:
        slices_left(view(*half, newer), OLD)
    facts = {"run": "old", "flow": "a->b", "newer": "new", "slices": 1}
    assert data_of(caught.value) == ("superseded.unfinished", facts)
    assert slices_left(view(*half, *rest, newer), OLD) == [], "superseded, but all of it is in the ledger"
