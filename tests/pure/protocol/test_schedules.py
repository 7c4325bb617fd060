"""Each clause of the protocol closes a counterexample: the schedule ends well with it and badly without it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

import pytest

from ferry.errors import FerryError, Refused, Unreachable
from ferry.messages.catalogue import sentence
from ferry.model import RefusalKind, TopicPartition
from ferry.protocol.drops import Blocked, drop
from tests.pure.decide.values import piece, refusal
from tests.pure.protocol import clauses, schedules
from tests.pure.protocol.ports import ModelSlot
from tests.pure.protocol.world import TOPIC
from tests.said import data_of, facts_in

Clause = Callable[[], ExitStack]
Schedule = Callable[[int], None]

CASES: list[tuple[Clause, Schedule, tuple[int, ...]]] = [
    (clauses.generation_counted, schedules.two_drivers_at_once, (1, 2)),
    (clauses.own_slots_fenced, schedules.fewer_slots_than_before, (1, 2)),
    (clauses.fenced_slots_forgotten, schedules.opened_again_with_fewer_slots, (1, 2)),
    (clauses.slots_dealt_by_attempt, schedules.two_slots_two_attempts, (1, 2)),
    (clauses.position_trusted, schedules.positions_deleted, (1, 2)),
    (clauses.no_look, schedules.stale_read_of_a_retry, (1, 2)),
    (clauses.undecided_ignored, schedules.stale_read_of_a_marker, (1, 2)),
    # Version 2 raises the epoch at every EndTxn, so a late batch bounces there.
    (clauses.abort_sent, schedules.late_batch_after_an_abort, (1,)),
    (clauses.read_up_to_stable, schedules.crashed_neighbour, (1, 2)),
    (clauses.fenced_late, schedules.writer_between_plan_and_fence, (1, 2)),
    (clauses.opened_by_a_stale_read, schedules.stale_read_of_a_driver, (1, 2)),
]
TABLE = [
    pytest.param(clause, schedule, version, id=f"{clause.__name__}-v{version}")
    for clause, schedule, versions in CASES
    for version in versions
]
versions = pytest.mark.parametrize("version", [1, 2])


@pytest.mark.parametrize(("clause", "schedule", "version"), TABLE)
def test_a_clause_closes_its_counterexample(clause: Clause, schedule: Schedule, version: int) -> None:
    schedule(version)
    with clause(), pytest.raises(AssertionError, match=r"begins at|shows"):
        schedule(version)


@pytest.mark.parametrize(("clause", "schedule", "version"), [case for case in TABLE if "no_look" not in str(case.id)])
def test_the_clause_holds_without_its_backup(clause: Clause, schedule: Schedule, version: int) -> None:
    with clauses.no_look():
        schedule(version)


@versions
def test_a_fence_waits_for_the_commit_of_a_dead_author(version: int) -> None:
    schedules.author_of_a_commit_dies(version)


@versions
@pytest.mark.parametrize("place", ["init", "produce", "positions", "receipts", "look", "commit"])
def test_a_zombie_wakes_after_its_successor(version: int, place: str) -> None:
    schedules.paused_writer(version, place)


@versions
@pytest.mark.parametrize("place", ["init", "produce", "positions", "receipts", "look", "commit"])
def test_what_was_skipped_stays_so_whenever_its_writer_wakes(version: int, place: str) -> None:
    schedules.skipped_while_a_writer_sleeps(version, place)


@versions
@pytest.mark.parametrize("place", ["fetch", "append plan", "look", "commit"])
def test_a_skip_that_a_run_was_quicker_than_says_so_and_skips_nothing(version: int, place: str) -> None:
    schedules.opened_while_somebody_skips(version, place)


@versions
@pytest.mark.parametrize("place", ["produce", "positions", "receipts", "look", "commit"])
def test_a_retry_is_not_disturbed_by_the_first_attempt(version: int, place: str) -> None:
    schedules.copied_again_while_the_first_lives(version, place)


UNDISTURBED: list[tuple[Clause, Schedule]] = [
    (clauses.attempts_forgotten, schedules.answer_lost_while_another_copies),
    (clauses.leaves_unasked, schedules.answer_lost_while_another_copies),
    (clauses.leaves_unasked, schedules.gives_up_while_another_copies),
    (clauses.fenced_takes_over, schedules.task_repeated_while_the_first_lives),
]


@versions
@pytest.mark.parametrize(("clause", "schedule"), UNDISTURBED)
def test_a_clause_keeps_a_successor_undisturbed(clause: Clause, schedule: Schedule, version: int) -> None:
    schedule(version)
    with clause(), pytest.raises(AssertionError):
        schedule(version)


@versions
@pytest.mark.parametrize("place", ["positions", "receipts", "look", "commit"])
@pytest.mark.parametrize("error", [Unreachable("no answer"), Refused("not allowed")], ids=["unreachable", "refused"])
def test_a_slot_that_gives_up_ends_its_own_transaction(version: int, place: str, error: FerryError) -> None:
    schedules.gives_up_amid_a_transaction(version, place, error)


@versions
@pytest.mark.parametrize("place", ["describe", "leave"])
def test_leaving_hides_no_error(version: int, place: str) -> None:
    schedules.gives_up_without_an_answer(version, place)


@versions
def test_a_slot_that_gives_up_raises_the_code_and_facts_of_the_reason(version: int) -> None:
    reason = sentence("acls.unread", cluster="b", why="no answer")
    error = schedules.gives_up_for_a_reason_with_a_code(version)
    assert (type(error), str(error)) == (Unreachable, reason)
    assert data_of(error) == (reason.code, facts_in(reason))
    silent = drop("target.silent", piece(TOPIC, 0), 0, passing=True, place=f"{TOPIC}-0", cluster="b")
    error = schedules.gives_up_for_a_reason_with_a_code(version, Blocked([silent]))
    assert (type(error), data_of(error)) == (Unreachable, (reason.code, facts_in(reason)))
    assert silent.refusal.message in str(error)
    assert reason in str(error)


@versions
def test_what_a_slot_refused_is_known_when_it_gives_up(version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    unread = TopicPartition(topic="orders", partition=1)
    monkeypatch.setattr(ModelSlot, "refusals", lambda _: {unread: refusal("orders", 1)})
    result = schedules.gives_up_after_a_refusal(version)
    assert {place.partition: found.kind for place, found in result.refusals.items()} == {
        0: RefusalKind.FOREIGN_WRITER,
        1: RefusalKind.TOO_LARGE,
    }


@versions
def test_a_slot_that_is_fenced_without_a_successor_may_be_copied_again(version: int) -> None:
    schedules.timed_out(version)
    schedules.fenced_between_check_and_fence(version)


@versions
@pytest.mark.parametrize("place", ["read", "produce", "receipts", "commit"])
def test_an_attempt_that_was_called_off_stops(version: int, place: str) -> None:
    schedules.called_off(version, place)


@versions
@pytest.mark.parametrize("fate", ["applied", "late", "dropped"])
def test_a_commit_of_unknown_outcome_is_looked_up(version: int, fate: str) -> None:
    schedules.unknown_commit(version, fate)


@versions
def test_a_slot_whose_time_is_over_copies_one_chunk_a_try(version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ModelSlot, "time_over", lambda *_: True)
    schedules.one_chunk_at_a_time(version, 3)
