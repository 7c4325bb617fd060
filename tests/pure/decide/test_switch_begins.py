"""Where the flow back begins after a switch."""

from __future__ import annotations

from dataclasses import replace

from ferry.features.switch.rules.beginning import beginnings, latest_beginnings, passed_before, stands_at
from ferry.ledger.ledger import fold
from ferry.ledger.receipt_codec import receipt_records
from ferry.model import (
    Record,
)
from ferry.model.evidence import START, STRANDED
from ferry.plan.rules.passed_over import passed_over
from ferry.plan.rules.starts import first_run, recorded_starts
from tests.pure.decide.values import RECEIPT, lying, place

HERE, COPY, LIVE = place("orders"), place("primary.orders"), place("orders", 1)

NOW = 1_000_000


def test_a_flow_begins_behind_the_cut_over_once() -> None:
    def begun(records: list[Record], cut: int) -> tuple[list[Record], list[tuple[int, int]]]:
        view = fold(lying(*records), 99)
        made, gaps = beginnings(
            view, "live", {HERE: cut}, switch="s", who="bob", reason="r", ids={"orders": "id"}, now_ms=NOW
        )
        return made, [(gap.start, gap.end) for gap in gaps]

    records, gaps = begun([], 30)
    view = fold(lying(*records), 99)
    assert not gaps
    assert not first_run(view, "live"), "ferry.start does not count any more"
    assert recorded_starts(view, "live").offsets == {HERE: 30}
    assert begun(records, 30) == ([], []), "a second attempt has nothing to do"
    second, gaps = begun(records, 80)
    assert not gaps
    moved = recorded_starts(fold(lying(*records, *second), 99), "live", {"orders": "id"})
    assert moved.offsets == {HERE: 80}, "the next switch there moves the start of the same topic forward (ADR 42)"

    records, _ = begun([], 0)
    view = fold(lying(*records), 99)
    assert not first_run(view, "live"), "nothing was copied there, and ferry.start does not count: from its beginning"
    assert recorded_starts(view, "live").offsets == {}
    assert begun(records, 0) == ([], [])

    receipt = list(receipt_records(replace(RECEIPT, lane="live", source=HERE, target=COPY, start=30, end=50, since=-1)))
    records, gaps = begun(receipt, 80)
    assert gaps == [(50, 80)], "what came from there is passed over, and the ledger says so"
    assert begun([*receipt, *records], 80) == ([], [])
    assert begun([*receipt, *records], 95)[1] == [(80, 95)]
    assert begun(receipt, 50) == begun(receipt, 20) == ([], []), "a lane that is there, or beyond, is left"

    back = receipt_records(replace(RECEIPT, lane="live", source=HERE, target=COPY, start=30, end=50, since=4))
    assert begun([*back, *records], 80)[1] == [(50, 80)], "a copy of before a way back was to pass it, not this one"


def test_what_a_switch_leaves_stranded_has_a_gap_of_its_own_and_counts_as_passed_over() -> None:
    receipt = receipt_records(replace(RECEIPT, lane="live", source=HERE, target=COPY, start=30, end=50, since=-1))
    cuts = {HERE: 80, LIVE: 20}
    view = fold(lying(*receipt), 99)
    made, gaps = beginnings(
        view,
        "live",
        cuts,
        switch="s",
        who="bob",
        reason="r",
        ids={"orders": "id"},
        now_ms=NOW,
        stranded={HERE: (50, 62), LIVE: (5, 12)},
    )
    assert [(gap.source, gap.start, gap.end, gap.stranded) for gap in gaps] == [
        (HERE, 50, 62, True),
        (HERE, 62, 80, False),
    ]
    after = fold(lying(*receipt, *made), 99)
    found = passed_over(after, "live", {"orders": "id"})
    assert {(one.source, one.start, one.end, one.why) for one in found} == {
        (HERE, 50, 62, STRANDED),
        (LIVE, 5, 12, START),
    }
    assert stands_at(after, "live", {"orders": "id"})[HERE] == 80, "the lane continues after both gaps"


def test_a_flow_that_begins_at_latest_begins_at_the_switch() -> None:
    lives = {HERE: 30, LIVE: 0}
    ids = {"orders": "first", "audit": "old"}
    records = latest_beginnings(fold([], 0), "live", lives, [place("audit", 1), place("audit")], ids, NOW)
    view = fold(lying(*records), 99)
    assert not first_run(view, "live"), "producers may come before its first run"
    begun = recorded_starts(view, "live")
    assert begun.offsets == {HERE: 30}, "what was empty begins at its beginning"
    assert begun.pending == {place("audit"): NOW, place("audit", 1): NOW}
    assert latest_beginnings(view, "live", {HERE: 90}, [], ids, NOW) == [], "where it has begun it continues"
    again = recorded_starts(view, "live", {"orders": "second", "audit": "new"})
    assert (again.offsets, again.pending) == ({}, {}), "topics that were created again begin at their beginning"


def test_what_a_flow_passes_over_that_begins_at_latest_at_a_switch_is_recorded() -> None:
    """Of topics that came back, only what was left out counts; of a log that does not answer, it is not known."""
    silent, empty = place("audit"), place("audit", 1)
    lives = {HERE: 30, LIVE: 9, silent: 5, empty: 4}
    passed = passed_before(lives, {LIVE: 2, empty: 4, HERE: 0}, {HERE: 30}, {HERE: (20, 25), place("gone"): (0, 9)})
    view = fold(lying(*latest_beginnings(fold([], 0), "live", lives, [], {}, NOW, passed)), 99)
    found = {(one.source, one.start, one.end, one.why) for one in passed_over(view, "live", {})}
    assert found == {(HERE, 20, 25, START), (LIVE, 2, 9, START), (silent, None, 5, START)}
    assert recorded_starts(view, "live").offsets == lives
