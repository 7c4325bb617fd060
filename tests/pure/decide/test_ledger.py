"""What the ledger says once its records are folded, and what stands against a commit."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.errors import BadInput
from ferry.ledger.checkpoint_codec import checkpoint_record
from ferry.ledger.codec import IDENTICAL_VERSION, claim_record, encode, pause_record, resume_record
from ferry.ledger.ledger import UNREAD, LedgerView, claims, fold, fold_on, pauses
from ferry.ledger.plan_codec import plan_records
from ferry.ledger.receipt_codec import receipt_records
from ferry.ledger.receipts import lane_ends, last_receipts, open_receipts, receipts
from ferry.ledger.run_codec import Outcome, attempt_record, ended_record, fenced_record, outcome_record, run_record
from ferry.ledger.runs import (
    expired,
    flows_to_fence,
    has_run,
    newer_attempt,
    newest_run,
    opened_run,
    outcome,
    slots_to_fence,
    superseded_by,
)
from ferry.ledger.summary import rolled_up
from ferry.model import Attempt, Fate, Flow, GroupOutcome, LedgerRecord, Origin, Pause, Plan, Record
from ferry.protocol.slot import foreign_record
from tests.golden import Golden
from tests.pure.decide.values import FLOW, LANE, PLAN, RECEIPT, lying, piece, place, refusal, run_of


def view_of(*records: Record | tuple[Record, Fate]) -> LedgerView:
    return fold(lying(*records), len(records))


def written(key: str, value: str | None) -> Record:
    return Record(key=encode([key]), value=None if value is None else encode({"is": value}))


# Folding


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.none() | st.sampled_from("xyz"), st.sampled_from(Fate)), max_size=20)
)
def test_the_last_committed_record_of_a_key_counts(history: list[tuple[str, str | None, Fate]]) -> None:
    records = lying(*((written(key, value), fate) for key, value, fate in history), first=10)
    view = fold(records, 99)
    expected: dict[str, LedgerRecord] = {}
    for record in records:
        if record.fate is Fate.COMMITTED:
            expected[record.key.decode()] = record
    assert view.by_key == {key: record for key, record in expected.items() if record.value is not None}
    assert [record.offset for record in view.by_key.values()] == sorted(r.offset for r in view.by_key.values())
    assert view.open == tuple(record for record in records if record.fate is Fate.OPEN)
    assert view.end == 99


def test_a_run_record_keeps_counting_after_its_tombstone_because_its_slots_may_still_write() -> None:
    record = run_record(run_of("r1", slots=5))
    view = view_of(record, Record(key=record.key, value=None))
    assert slots_to_fence(view, LANE) == 5


def test_a_run_record_of_a_newer_format_is_refused(golden: Golden) -> None:
    with pytest.raises(BadInput) as caught:
        view_of(Record(key=run_record(run_of("r1")).key, value=encode({"v": IDENTICAL_VERSION + 1})))
    golden(caught.value)


# Runs

THREE = view_of(
    run_record(run_of("r1", slots=4)), run_record(run_of("other", lane="drill", slots=9)), run_record(run_of("r2"))
)


def test_a_runs_generation_is_its_records_offset_and_the_highest_owns_the_lane() -> None:
    newest = newest_run(THREE, LANE)
    assert newest is not None
    assert (newest.record.run, newest.generation) == ("r2", 2)
    assert newest_run(THREE, "nowhere") is None


def test_a_run_opened_again_is_the_newer_one() -> None:
    view = view_of(run_record(run_of("r1")), run_record(run_of("r2")), run_record(run_of("r1")))
    assert [run.generation for name in ("r1", "r2") if (run := opened_run(view, LANE, name))] == [2, 1]
    assert opened_run(view, LANE, "r3") is None


@pytest.mark.parametrize(("generation", "newer"), [(0, "r2"), (2, None)])
def test_a_task_is_superseded_by_a_newer_run_of_its_lane(generation: int, newer: str | None) -> None:
    found = superseded_by(THREE, LANE, generation)
    assert (found.record.run if found else None) == newer


@pytest.mark.parametrize(
    ("records", "slots"),
    [
        ([], 0),
        ([run_record(run_of("r1", slots=4)), run_record(run_of("r2", slots=2))], 4),
        ([run_record(run_of("r1", slots=4)), run_record(run_of("r1", lane="drill", slots=9))], 4),
        ([fenced_record(LANE, "r1", 0, 7, []), run_record(run_of("r2", slots=2))], 7),  # r1's record is compacted away
        ([fenced_record("drill", "r1", 0, 7, []), run_record(run_of("r2", slots=2))], 2),
    ],
)
def test_all_slots_that_any_run_of_the_lane_ever_had_are_fenced(records: list[Record], slots: int) -> None:
    assert slots_to_fence(view_of(*records), LANE) == slots


def test_the_lane_s_writers_are_fenced_under_every_name_that_the_flow_had() -> None:
    earlier, other = Flow(source="old", target=FLOW.target), Flow(source="other", target=FLOW.target)
    records = [
        fenced_record(LANE, "r1", 0, 7, [earlier]),  # r1's record is compacted away
        fenced_record("drill", "r1", 0, 7, [other]),
        run_record(run_of("r2")),
    ]
    assert flows_to_fence(view_of(*records), LANE) == {FLOW, earlier}


def test_runs_beyond_the_newest_leave_nothing_but_their_receipts() -> None:
    old, kept = (replace(PLAN, run=name, generation=at, slices=(piece(),)) for name, at in (("r1", 0), ("r2", 7)))
    view = view_of(
        run_record(run_of("r1")), *plan_records(old), *receipt_records(replace(RECEIPT, run="r1")),
        outcome_record(LANE, "r1", Outcome()), run_record(run_of("r1", lane="drill")),
        run_record(run_of("r2")), *plan_records(kept), run_record(run_of("r3")),
    )  # fmt: skip
    gone = expired(view, LANE, 1)
    assert {record.value for record in gone} == {None}
    after = fold([*view.by_key.values(), *lying(*gone, first=50)], 99)
    assert [key.split(",")[0] for key in after.by_key] == [
        '["receipt"',
        '["last"',
        '["run"',
        '["run"',
        '["plan"',
        '["plan"',
        '["run"',
    ]
    assert expired(view, LANE, 2) == []


IDLE = replace(PLAN, caught_up=3)
BUSY = replace(PLAN, refusals=(refusal(),))


def runs_of(*plans: Plan | None, first: int = 0) -> list[Record]:
    """A run with each plan (None: it has none), by their numbers."""
    records: list[Record] = []
    for number, plan in enumerate(plans, first):
        generation, name = len(records), f"r{number}"
        records.append(run_record(run_of(name)))
        if plan is not None:
            records += plan_records(replace(plan, run=name, generation=generation))
    return records


def kept_of(view: LedgerView, keep: int) -> set[str]:
    gone = {json.loads(record.key)[2] for record in expired(view, LANE, keep)}
    return {run.record.run for run in view.runs} - gone


WRITTEN = replace(PLAN, notes=("opened by step reverse",))


@pytest.mark.parametrize(
    ("plans", "ran"),
    [
        ([], False),
        ([WRITTEN], False),
        ([WRITTEN, IDLE], True),
        ([IDLE, WRITTEN], True),
        ([replace(PLAN, slices=(piece(),))], True),
        ([None], True),  # what has no plan yet may look
    ],
)
def test_a_run_that_a_switch_opened_only_to_write_is_no_run_of_the_flow(plans: list[Plan | None], ran: bool) -> None:
    view = view_of(*runs_of(*plans))
    assert has_run(view, LANE) is ran
    assert not has_run(view, "other")


def test_a_plan_that_cannot_be_read_may_be_of_a_run_that_looked() -> None:
    records = [one if b'"plan"' not in one.key else replace(one, value=b"{}") for one in runs_of(WRITTEN)]
    assert has_run(view_of(*records), LANE)


def test_a_lane_with_receipts_has_run_though_no_run_is_remembered() -> None:
    view = view_of(*receipt_records(RECEIPT))
    assert has_run(view, LANE)
    assert not has_run(view, "other")


@pytest.mark.parametrize("short", [False, True])
@pytest.mark.parametrize(
    ("plans", "kept"),
    [
        ([BUSY, *[IDLE] * 5], {0, 3, 4, 5}),
        ([BUSY, *[None] * 5], {0, 3, 4, 5}),  # planned in vain
        ([IDLE, *[BUSY] * 5], {0, 3, 4, 5}),
        ([BUSY, IDLE, BUSY, IDLE, BUSY, IDLE], {1, 2, 3, 4, 5}),
        ([IDLE, IDLE, IDLE, IDLE], {1, 2, 3}),
        ([replace(PLAN, notes=("adopted",)), *[IDLE] * 5], {0, 3, 4, 5}),  # its note says what it did
        ([replace(IDLE, notes=("recurring",)), *[IDLE] * 5], {3, 4, 5}),
    ],
)
def test_idle_runs_push_out_none_that_did_something(plans: list[Plan | None], kept: set[int], short: bool) -> None:
    view = view_of(*runs_of(*plans))
    view = rolled_up(view) if short else view
    assert kept_of(view, 2) == {f"r{number}" for number in kept}


def test_a_run_that_wrote_groups_did_something() -> None:
    moved = GroupOutcome(groups=1, offsets=2, unchanged=0, left=(), inexact={})
    view = view_of(*runs_of(*[IDLE] * 5), checkpoint_record(LANE, "r0", moved))
    assert kept_of(view, 2) == {"r0", "r2", "r3", "r4"}
    view = view_of(*runs_of(*[IDLE] * 5), checkpoint_record(LANE, "r0", replace(moved, offsets=0)))
    assert kept_of(view, 2) == {"r2", "r3", "r4"}


def test_a_ledger_of_idle_runs_does_not_grow() -> None:
    view, sizes = UNREAD, []
    for number in range(30):
        generation = view.end
        records = [run_record(run_of(f"r{number}"))]
        records += plan_records(replace(IDLE, run=f"r{number}", generation=generation))
        view = fold_on(view, lying(*records, first=view.end), view.end + len(records))
        gone = expired(view, LANE, 3)
        view = fold_on(view, lying(*gone, first=view.end), view.end + len(gone))
        sizes.append(len(view.by_key))
    assert set(sizes[4:]) == {12}


# Receipts


def test_the_last_receipt_of_each_target_partition_is_where_the_lane_stands() -> None:
    second = replace(RECEIPT, start=40, end=60)
    view = view_of(*receipt_records(RECEIPT), *receipt_records(second), *receipt_records(replace(second, lane="drill")))
    assert last_receipts(view, LANE) == {place("a.orders"): second}
    assert lane_ends(view, LANE) == {place("orders"): 60}
    assert list(receipts(view, lane=LANE)) == [RECEIPT, second]


def test_receipts_are_narrowed_by_lane_run_and_source_topic() -> None:
    users = replace(RECEIPT, source=place("users"), target=place("a.users"), run="run-2")
    drill = replace(RECEIPT, lane="drill")
    view = view_of(*(receipt_records(receipt)[0] for receipt in (RECEIPT, users, drill)))
    assert list(receipts(view)) == [RECEIPT, users, drill]
    assert list(receipts(view, run="run-1")) == [RECEIPT, drill]
    assert list(receipts(view, topic="users")) == [users]
    assert list(receipts(view, lane="drill", topic="users")) == []


def test_a_receipt_whose_transaction_did_not_commit_moves_nothing() -> None:
    for fate in (Fate.ABORTED, Fate.OPEN):
        assert last_receipts(view_of(*((record, fate) for record in receipt_records(RECEIPT))), LANE) == {}


def test_a_runs_outcome_is_what_its_copy_step_recorded_last() -> None:
    last = Outcome(refusals=(refusal(),), time_over=frozenset({1, 3}))
    view = view_of(outcome_record(LANE, "r1", Outcome(refusals=(refusal(),))), outcome_record(LANE, "r1", last))
    assert outcome(view, LANE, "r1") == last
    assert outcome(view, LANE, "r2") is outcome(view, "drill", "r1") is None


# Claims and pauses


def test_the_first_unreleased_claim_wins() -> None:
    live, drill = claim_record("t", FLOW, "live"), claim_record("t", FLOW, "drill")
    release = Record(key=live.key, value=None)
    assert claims(view_of(live, drill)) == {"t": "live"}
    assert claims(view_of(drill, live)) == {"t": "drill"}
    assert claims(view_of(live, drill, release)) == {"t": "drill"}
    assert claims(view_of((live, Fate.ABORTED), drill)) == {"t": "drill"}
    assert claims(view_of((live, Fate.OPEN), drill)) == {"t": "live"}, "of two that come at once one sees the other's"


@pytest.mark.parametrize(("until", "now", "holds"), [(0, 10**15, True), (50, 49, True), (50, 50, False)])
def test_a_pause_holds_until_its_time_or_until_it_is_taken_back(until: int, now: int, holds: bool) -> None:
    pause = Pause(topic="orders", who="ann", why="upgrade", since_ms=1, until_ms=until)
    assert pauses(view_of(pause_record(pause)), now) == ({"orders": pause} if holds else {})
    assert pauses(view_of(pause_record(pause), resume_record("orders")), now) == {}
    assert pauses(view_of(pause_record(pause), resume_record("")), now) == ({"orders": pause} if holds else {})


# The last look before a commit

OURS = replace(RECEIPT, start=40, end=60)


@pytest.mark.parametrize(
    ("record", "fate", "abandoned"),
    [
        (run_record(run_of("r2")), Fate.COMMITTED, True),
        (run_record(run_of("r2", lane="drill")), Fate.COMMITTED, False),
        (receipt_records(OURS)[0], Fate.COMMITTED, True),
        (receipt_records(OURS)[0], Fate.OPEN, True),
        (receipt_records(OURS)[0], Fate.ABORTED, False),
        (receipt_records(replace(OURS, start=30, end=41))[0], Fate.OPEN, True),
        (receipt_records(replace(OURS, start=80, end=90))[0], Fate.OPEN, True),
        (receipt_records(RECEIPT)[0], Fate.COMMITTED, False),  # it ends where this chunk begins
        (receipt_records(replace(OURS, target=place("a.orders", 1)))[0], Fate.COMMITTED, False),
        (receipt_records(replace(OURS, lane="drill"))[0], Fate.COMMITTED, False),
        (Record(key=receipt_records(OURS)[0].key, value=None), Fate.COMMITTED, False),
        (outcome_record(LANE, "r1", Outcome()), Fate.COMMITTED, False),
    ],
    ids=[
        "another run",
        "a run of another lane",
        "another receipt",
        "an open receipt",
        "an aborted receipt",
        "a receipt that begins before",
        "a receipt that begins after",
        "the receipt before",
        "of another partition",
        "of another lane",
        "a tombstone",
        "an outcome",
    ],
)
def test_what_makes_a_chunk_be_abandoned(record: Record, fate: Fate, abandoned: bool, golden: Golden) -> None:
    found = foreign_record(
        lying((record, fate), first=10), lane=LANE, generation=3, own_offsets=frozenset(), starts={OURS.target: 40}
    )
    assert (found is not None) is abandoned
    if abandoned:
        golden(found)


def test_ones_own_receipts_and_run_record_stand_against_nothing() -> None:
    records = lying(run_record(run_of("r1")), *receipt_records(OURS), first=10)
    assert (
        foreign_record(records, lane=LANE, generation=10, own_offsets=frozenset({11, 12}), starts={OURS.target: 40})
        is None
    )


# Attempts


def begun(generation: int = 1) -> Record:
    return attempt_record(LANE, "a", generation, 1_000, Origin(host="here"))


def ended(number: int, generation: int = 1) -> Record:
    return ended_record(
        LANE, Attempt(run="a", generation=generation, number=number, started_ms=1_000, origin=Origin(host="there"))
    )


@pytest.mark.parametrize(
    ("records", "attempt", "found"),
    [
        ([begun()], 0, None),
        ([begun(), begun()], 0, (1, False)),
        ([begun(), begun()], 1, None),
        ([begun(), ended(0)], 0, (0, True)),
        ([begun(), begun(), ended(1)], 0, (1, True)),
        ([begun(), begun(), ended(0)], 1, None),
        ([begun(), begun(generation=2)], 0, None),
        ([begun(), (begun(), Fate.ABORTED)], 0, None),
    ],
    ids=["alone", "newer", "newest", "ended", "a later one ended", "an earlier one ended", "opened again", "aborted"],
)
def test_an_attempt_stops_for_a_newer_one_or_its_own_end(
    records: list[Record | tuple[Record, Fate]], attempt: int, found: tuple[int, bool] | None
) -> None:
    last = newer_attempt(view_of(*records), LANE, "a", 1, attempt)
    assert (None if last is None else (last.number, last.ended)) == found


@pytest.mark.parametrize("key", [b"mine", b"{}", b"[]", b"7", b"\xff"])
def test_what_a_stranger_writes_stands_against_nothing(key: bytes) -> None:
    stray = LedgerRecord(offset=5, fate=Fate.COMMITTED, key=key, value=b"1", producer_id=7)
    assert foreign_record([stray], lane=LANE, generation=3, own_offsets=frozenset(), starts={}) is None
    undecided = fold([stray, replace(stray, offset=6, fate=Fate.OPEN)], 7)
    assert (list(open_receipts(undecided)), list(receipts(undecided))) == ([], [])
