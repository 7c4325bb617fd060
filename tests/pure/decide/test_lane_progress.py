"""How far a lane's windows are copied, and how long the rest may take, as the ledger tells."""

from __future__ import annotations

from dataclasses import replace

from ferry.features.lanes.rules.listing import Lane, lane_of, outlook_of
from ferry.ledger.codec import deleted_record
from ferry.ledger.history import PastRun, PastState
from ferry.ledger.ledger import fold
from ferry.ledger.map_block import MapEntry, ReceiptChain
from ferry.ledger.report import Report
from ferry.ledger.window_codec import window_record
from ferry.model import OpenedRun, WindowRecord
from tests.golden import Golden
from tests.pure.decide.values import DELETED, PLAN, RECEIPT, lying, place, run_of

NAME = "backfill-january"
AT = 1_790_000_000_000


def test_what_is_left_of_a_lane_is_what_its_windows_want_and_no_receipt_has() -> None:
    windows = [
        WindowRecord(
            lane=NAME, topic="orders", window=name, from_ms=0, to_ms=1, topic_id="", ranges=ranges, run="r", at_ms=AT
        )
        # Two days of which the second begins within the first: a late record came.
        for name, ranges in (("one", {0: (10, 30), 1: (0, 5)}), ("two", {0: (25, 40)}))
    ]
    records = [window_record(window) for window in windows]
    view = fold(lying(*records), len(records))
    receipt = replace(RECEIPT, lane=NAME, source=place("orders"), target=place("a.orders"), start=8, end=28)
    rows = {ReceiptChain.of(receipt): [MapEntry.of(receipt, 0)]}
    lane = lane_of(view, NAME, rows)
    assert (lane.whole, lane.left) == (35, 35 - 18)
    assert lane_of(view, "backfill-other", {}).whole == 0


def test_copies_that_were_deleted_with_their_receipts_are_named_as_not_counted(golden: Golden) -> None:
    view = fold(
        lying(deleted_record(NAME, DELETED), deleted_record("other", replace(DELETED, target_topic="a.clicks"))), 2
    )
    lane = lane_of(view, NAME, {})
    assert lane.deleted == 1
    golden(lane.uncounted)


def test_the_rest_is_told_at_the_pace_of_a_run_that_is_under_way(golden: Golden) -> None:
    receipts = (replace(RECEIPT, start=60, end=80),)
    report = Report(plan=PLAN, started_ms=AT, receipts=receipts, refusals=(), unfinished=(), left=(), done=0)
    opened = OpenedRun(record=replace(run_of("r"), started_ms=AT), generation=1)
    run = PastRun(opened=opened, state=PastState.OPEN, report=report)
    lane = Lane(name=NAME, kind=None, topics=(), parts=(), windows=1, last_run=run, whole=100, left=20)
    # 20 offsets in 10 seconds, though a run before copied 60 at once.
    golden(outlook_of(lane, AT + 10_000))
    over = replace(lane, last_run=replace(run, state=PastState.SUCCESS))
    assert outlook_of(over, AT + 10_000) == "80 % copied, 20 offsets left"
    assert outlook_of(replace(lane, whole=0, left=0), AT) == ""
