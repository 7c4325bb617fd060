"""What may be replaced by a rebuilt ledger, and what readers are told of a rebuild."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from ferry.ledger.codec import claim_record, encode, pause_record, resume_record
from ferry.ledger.ledger import fold
from ferry.ledger.rebuilt import Rebuild, Successor, newest_rebuild, rebuild_notes, rebuild_record
from ferry.ledger.receipt_codec import receipt_records
from ferry.ledger.run_codec import fenced_record, run_record
from ferry.model import Fate, LedgerRecord, OpenedRun, Pause, Record
from tests.golden import Golden
from tests.pure.decide.values import FLOW, LANE, RECEIPT, lying, run_of

PAUSE = Pause(topic="audit", who="ann", why="lost", since_ms=1, until_ms=0)
MARK = Rebuild(
    upto=40, who="ann@desk", at_ms=1_000, file="l.jsonl", digest="d", exported_at_ms=0, records=9, replaced=2
)


def taken(*records: Record, exported: bool = False, fate: Fate = Fate.COMMITTED) -> Successor:
    found = Successor(lanes={LANE})
    for record in lying(*records):
        found.take(replace(record, fate=fate), exported=exported)
    return found


def test_what_runs_leave_that_copied_nothing_may_be_replaced() -> None:
    found = taken(
        run_record(run_of("r")), fenced_record(LANE, "r", 0, 12, [FLOW]), claim_record("a.orders", FLOW, LANE)
    )
    assert (found.evidence, found.carried, found.records, found.is_exported) == ("", [], 3, False)
    assert found.slots == {LANE: 12}, "whoever may still write is to be fenced"


@pytest.mark.parametrize(
    ("record", "field"),
    [(run_record(run_of("r")), "origin"), (fenced_record(LANE, "r", 0, 1, [FLOW]), "run")],
    ids=["run", "fenced"],
)
def test_a_record_that_is_damaged_elsewhere_still_shows_its_writers(record: Record, field: str) -> None:
    """A rebuild is the remedy for damage, and must not stop at it."""
    body = json.loads(record.value or b"")
    found = taken(replace(record, value=encode({**body, field: 7})))
    assert (found.slots, found.flows) == ({LANE: body["slots"]}, {FLOW})


@pytest.mark.parametrize("fate", [Fate.COMMITTED, Fate.OPEN])
def test_a_receipt_is_evidence_also_while_it_is_undecided(fate: Fate) -> None:
    found = taken(*receipt_records(RECEIPT), fate=fate)
    assert (found.evidence, found.topics) == ("receipts of copied records (1)", {RECEIPT.target.topic})
    assert taken(*receipt_records(RECEIPT), fate=Fate.ABORTED).evidence == ""


def test_what_nobody_knows_is_evidence(golden: Golden) -> None:
    later = Record(key=encode(["later", LANE]), value=b"{}")
    golden(taken(later, Record(key=b"a stranger's", value=b"x")).evidence)


def test_pauses_are_kept_and_so_is_their_end_and_where_unknown_lanes_began() -> None:
    began = [Record(key=encode(["began", lane]), value=b"{}") for lane in (LANE, "backfill")]
    found = taken(pause_record(PAUSE), resume_record("orders"), *began, resume_record("audit"))
    assert found.carried == [resume_record("orders"), began[1], resume_record("audit")]


def test_the_exported_ledger_itself_is_known_by_its_runs() -> None:
    assert taken(run_record(run_of("r")), *receipt_records(RECEIPT), exported=True).is_exported
    alike = taken(claim_record("a.orders", FLOW, LANE), exported=True)
    assert not alike.is_exported, "two ledgers may have the same claim at one offset"
    assert taken(*receipt_records(RECEIPT), exported=True).evidence == ""


def test_the_first_run_of_a_lane_since_notes_the_rebuild_and_no_later_one(golden: Golden) -> None:
    def at(offset: int, record: Record) -> LedgerRecord:
        return LedgerRecord(offset=offset, key=record.key, value=record.value, fate=Fate.COMMITTED, producer_id=-1)

    earlier = at(5, run_record(run_of("r0")))
    marks = [at(30, rebuild_record(replace(MARK, upto=29))), at(41, rebuild_record(MARK))]
    runs = [at(number, run_record(run_of(f"r{number}"))) for number in (50, 60)]
    opened = [OpenedRun(record=run_of(f"r{number}"), generation=number) for number in (50, 60)]
    view = fold([earlier, *marks, *runs], 61)
    assert newest_rebuild(view) == replace(MARK, offset=41)
    assert rebuild_notes(view, opened[0]) == [MARK.sentence]
    golden(MARK.sentence)
    assert rebuild_notes(view, opened[1]) == []
    assert rebuild_notes(fold([earlier, *runs], 61), opened[0]) == []
    body = json.loads(rebuild_record(MARK).value or b"")
    newer = Record(key=rebuild_record(MARK).key, value=encode(body | {"more": 1}))
    assert newest_rebuild(fold([at(41, newer)], 42)) == replace(MARK, offset=41), "a later Ferry may add to it"
