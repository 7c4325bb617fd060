"""The way back with identical offsets: each clause closes a counterexample, and no interleaving breaks them all."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from unittest.mock import patch

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.internal.conjecture.providers import HypothesisProvider
from hypothesis.stateful import run_state_machine_as_test

from ferry.features.identical.rules.values import Code, Done, Refuse
from tests.pure.identical import clauses, marking_clauses
from tests.pure.identical import return_clauses as off
from tests.pure.identical.marking_writer import MARKING
from tests.pure.identical.return_machine import LateSwitchMachine, MarkingReturnMachine, ReturnMachine
from tests.pure.identical.returning import STRAY, Both, ReturningMarkers, Way
from tests.pure.identical.test_offsets import reading_kept
from tests.pure.identical.world import EXPIRATION, LATENESS, LEASE

Clause = Callable[[], AbstractContextManager[object]]
BATCH = 3
STEPS = 30


# Schedules. A and B are the clusters: clients begin at A, and move to B.


def moved(shape: str = "rrr", *, kind: type[ReturningMarkers] | None = None) -> Both:
    """Clients have moved from A to B."""
    it = Both(kind)
    it.produce(shape)
    assert it.switchover()
    return it


def returning(shape: str = "rrr", age: int = 0, *, kind: type[ReturningMarkers] | None = None) -> Both:
    """The same; the way back is open, and clients have written."""
    it = moved(kind=kind)
    turned(it)
    it.produce(shape, age)
    return it


def turned(it: Both) -> None:
    """The step `return` is done."""
    assert isinstance(it.copy.finish(it.copy.turn()), Done), it.copy.say("no return")


def turned_at_last(it: Both) -> None:
    """The step `return` is done, if need be when nothing can arrive any more."""
    if it.copy.finish(it.copy.turn()) == Refuse(Code.NOT_QUIET):
        it.copy.sleep(2 * EXPIRATION)
        arrived(it)
        turned(it)


def late(way: Way, label: str = "send") -> None:
    """A run's next batch is late, and the run is gone; if it is not refused."""
    task = way.run_until(way.start(), label)
    if task.pending is not None:
        assert task.label == label, way.say(f"{task.label}, not {label}")
        way.lose(task, "late", dies=True)


def arrived(it: Both) -> None:
    """What is late arrives, at both clusters."""
    for way in it.ways:
        while way.late:
            way.deliver_late(0)


def ended(it: Both) -> None:
    """What is late arrives, a run copies the rest, and both logs are the same."""
    arrived(it)
    way = it.copy
    outcome = way.finish(way.start())
    assert isinstance(outcome, Done), way.say(f"{outcome}")
    assert way.target.end == len(it.truth), way.say("not all is there")


def first_batch_late() -> None:
    """The first batch of `a` is late. `b` sends it, too."""
    it = returning("r" * 2 * BATCH)
    late(it.copy)
    it.copy.finish(it.copy.start())
    ended(it)


def two_runs_before_the_first_batch() -> None:
    """`a` and `b` have both read the end of the log. Both send the first batch."""
    it = returning()
    a = it.copy.run_until(it.copy.start(), "send")
    b = it.copy.run_until(it.copy.start(), "send")
    it.copy.finish(b)
    it.copy.finish(a)
    ended(it)


def return_after_return() -> None:
    """Clients go to B, to A and to B again: the broker wants the numbers of before."""
    it = returning()
    it.copy.finish(it.copy.start())
    assert it.switchover()
    turned(it)
    it.produce("rr")
    ended(it)


def late_batch_of_before() -> None:
    """A batch is late. Clients go there and back meanwhile, and the lane writes under another number."""
    it = Both()
    it.produce("rrr")
    it.produce("rrr", EXPIRATION - 2)
    late(it.copy)
    if not it.switchover():
        return  # the last records are too old
    turned(it)
    assert it.switchover()
    turned(it)
    it.produce("rrr")
    it.copy.finish(it.copy.start())
    it.copy.sleep(3)
    it.copy.expire()
    ended(it)


def return_done_again() -> None:
    """The step is done, a run sends its first batch, late, and the step is done again."""
    it = returning()
    late(it.copy)
    turned_at_last(it)
    it.copy.finish(it.copy.start())
    arrived(it)


def return_dies() -> None:
    """The process of the step dies after InitProducerId, and another one does it."""
    it = moved()
    it.copy.lose(it.copy.run_until(it.copy.turn(), "commit"), "dropped", dies=True)
    turned(it)
    it.produce("rrr")
    ended(it)


def return_overtaken() -> None:
    """The process of the step sleeps before it writes its record. Another one has done it, and a run sends, late."""
    it = moved()
    asleep = it.copy.run_until(it.copy.turn(), "commit")
    turned(it)
    it.produce("rrr")
    late(it.copy)
    it.copy.finish(asleep)
    it.copy.finish(it.copy.start())
    ended(it)


def run_before_the_return() -> None:
    """The lane was started by hand after a switch had stopped it. Its batch is late when the step `return` is done."""
    it = returning("")
    assert it.switchover()
    it.produce("rrr")
    late(it.copy)
    turned_at_last(it)
    it.copy.finish(it.copy.start())
    arrived(it)


def run_between_look_and_fence() -> None:
    """The same, and the run begins when the step has asked what may arrive."""
    it = returning("")
    assert it.switchover()
    it.produce("rrr")
    turn = it.copy.run_until(it.copy.turn(), "claim")
    late(it.copy)
    it.copy.finish(turn)
    it.copy.finish(it.copy.start())
    arrived(it)


def both_ways_open() -> None:
    """The lane to the clients was started by hand, and has read the end there. Its source gets their records."""
    it = moved()
    turned(it)
    run = it.primary.run_until(it.primary.start(), "read")
    it.produce("rrr")
    it.copy.finish(it.copy.start())
    it.primary.run_until(run, "its end")
    ended(it)


def stray_before_the_record() -> None:
    """A client that did not move writes a record before the step is done."""
    it = moved()
    it.copy.write("r", producer=STRAY)
    it.produce("rrrrrr")
    it.copy.finish(it.copy.turn())
    it.copy.finish(it.copy.start())


def stray_after_the_record() -> None:
    """The same, when the step is done, before the first run."""
    it = moved()
    turned(it)
    it.copy.write("r", producer=STRAY)
    it.produce("r" * 3 * BATCH)
    it.copy.finish(it.copy.start())


def stray_before_the_first_batch() -> None:
    """The same, when a run has read where the log ends."""
    it = returning("r" * 3 * BATCH)
    run = it.copy.run_until(it.copy.start(), "send")
    it.copy.write("r", producer=STRAY)
    it.copy.finish(run)
    it.copy.finish(it.copy.start())


def another_last_record() -> None:
    """A was lost, with its last record. A client has written another one there."""
    it = moved()
    it.copy.lose_end(1)
    it.copy.write("r", producer=STRAY)
    it.produce("rrr")
    it.copy.finish(it.copy.turn())
    it.copy.finish(it.copy.start())


def another_last_record_since() -> None:
    """The same, after the step has compared it."""
    it = returning()
    it.copy.lose_end(1)
    it.copy.write("r", producer=STRAY)
    it.copy.finish(it.copy.start())


def retention_before_the_return() -> None:
    """Retention has deleted all of A. A broker loads the log again, and the first batch is late."""
    it = moved()
    it.copy.retain(BATCH)
    it.copy.fail_over(0)
    turned(it)
    it.produce("rrrrrr")
    late(it.copy)
    it.copy.finish(it.copy.start())
    ended(it)


def records_of_clients_stay() -> None:
    """The first run of the way back has no receipts, and its first record is not at 0."""
    it = returning("rrrrrr")
    ended(it)


def receipts_of_before() -> None:
    """The lane's receipts end before the records of clients. A run dies before its receipts."""
    it = returning()
    it.copy.finish(it.copy.start())
    assert it.switchover()
    turned(it)
    it.produce("rrrrrr")
    run = it.copy.run_until(it.copy.start(), "send")
    it.copy.lose(run, "applied", dies=True)
    ended(it)


def clients_back_before_a_late_batch() -> None:
    """The first batch of the way back is late, and B is lost. Clients write at A again."""
    it = returning()
    late(it.copy)
    it.failover()
    it.produce("rr")
    arrived(it)


def end_that_was_not_replicated() -> None:
    """`b` reads what `a` wrote to the leader alone. The leader fails before the batch of `b` arrives."""
    it = returning("r" * 2 * BATCH)
    it.copy.replicating = False
    it.copy.lose(it.copy.run_until(it.copy.start(), "send"), "applied", dies=True)
    b = it.copy.run_until(it.copy.start(), "send")
    it.copy.fail_over(BATCH)
    it.copy.replicating = True
    it.copy.finish(b)
    ended(it)


def deposed_leader() -> None:
    """`a` dies before its receipts, and the state expires. A broker that leads no more shows `b` the cut-over."""
    it = returning()
    it.produce("rrr", EXPIRATION // 2)
    it.copy.lose(it.copy.run_until(it.copy.start(), "end"), "dropped", dies=True)
    it.copy.sleep(EXPIRATION // 2 + 1)
    it.copy.expire()
    b = it.copy.run_until(it.copy.start(), "look")
    it.copy.stale_end = it.cut
    it.copy.finish(b)
    ended(it)


def asleep_with_a_reading() -> None:
    """`b` reads the cut-over and sleeps. `a` copies all, and the state expires."""
    it = returning()
    it.produce("rrr", EXPIRATION // 2)
    a = it.copy.run_until(it.copy.start(), "send")
    b = it.copy.run_until(it.copy.start(), "read")
    it.copy.finish(a)
    it.copy.sleep(EXPIRATION // 2 + 1)
    it.copy.expire()
    it.copy.finish(b)
    ended(it)


def state_expires_before_the_second_batch() -> None:
    """The first batch is late. `b` sends it, the second one is old, and the state expires."""
    it = returning("rrr")
    it.produce("rrr", 2 * EXPIRATION)
    late(it.copy)
    it.copy.finish(it.copy.start())
    it.copy.expire()
    arrived(it)


def later_than_the_state() -> None:
    """The first batch arrives when all was copied and the state has expired."""
    it = returning()
    late(it.copy)
    it.copy.finish(it.copy.start())
    it.copy.sleep(EXPIRATION + 1)
    it.copy.expire()
    ended(it)


def first_answer_missing() -> None:
    """The first batch is lost on its way."""
    it = returning("r" * 2 * BATCH)
    a = it.copy.run_until(it.copy.start(), "send")
    it.copy.lose(a, "dropped", dies=False)
    it.copy.finish(a)
    ended(it)


def marker_first() -> None:
    """The first thing after the cut-over is a marker of a client's transaction: the broker wants 0 after it."""
    ended(returning("mrrr", kind=ReturningMarkers))


def marker_first_and_late() -> None:
    """The same; the marker of `a` is late, and `b` comes there."""
    it = returning("mrrr", kind=ReturningMarkers)
    late(it.copy, "mark")
    it.copy.finish(it.copy.start())
    arrived(it)
    it.copy.sleep(2 * EXPIRATION)
    it.copy.expire()
    it.produce("r")
    it.copy.finish(it.copy.start())


def clients_before_a_late_marker() -> None:
    """The marker of `a` is late, and A is lost. Clients write at B before it arrives."""
    it = Both(ReturningMarkers)
    it.produce("rrrmr")
    late(it.copy, "mark")
    it.failover()
    it.produce("r")
    arrived(it)


def marker_late_and_the_rest_copied() -> None:
    """The marker of `a` is late. `b` comes to the hole, and clients move when all is copied."""
    it = Both(ReturningMarkers)
    it.produce("rrrmr")
    late(it.copy, "mark")
    it.copy.finish(it.copy.start())
    if it.copy.target.end < len(it.truth):
        it.copy.sleep(MARKING + LATENESS + 1)
    assert it.switchover()
    it.produce("r")
    arrived(it)


def old_record_after_a_marker(age: int = EXPIRATION - 1) -> None:
    """A batch is late. `b` copies it, a marker and an old record. Clients write, the state expires, the batch comes."""
    it = Both(ReturningMarkers)
    it.produce("mr")
    late(it.copy)
    it.copy.sleep(MARKING)
    it.produce("m")
    it.produce("r", age)
    it.copy.finish(it.copy.start())
    began = it.now
    if it.switchover():
        assert it.now == began, "it waits"
        it.copy.sleep(LATENESS - MARKING)
        it.primary.expire()
        it.produce("r")
    arrived(it)


SCHEDULES: list[tuple[Clause, Callable[[], None], Clause]] = [
    (off.number_for_each_run, first_batch_late, off.nothing),
    (off.number_for_each_run, two_runs_before_the_first_batch, off.nothing),
    (off.old_number, return_after_return, off.nothing),
    (clauses.timestamps_ignored, late_batch_of_before, off.nothing),
    (off.written_again, return_done_again, off.unguarded),
    (off.unguarded, return_done_again, off.written_again),
    (off.committed_by_all, return_overtaken, off.nothing),
    (off.unguarded, run_before_the_return, off.open_for_ever),
    (off.open_for_ever, run_before_the_return, off.unguarded),
    (off.guarded_before_the_fence, run_between_look_and_fence, off.open_for_ever),
    (off.read_without_end, both_ways_open, off.open_for_ever),
    (off.open_for_ever, both_ways_open, off.read_without_end),
    (off.any_end, stray_before_the_record, off.nothing),
    (off.any_tail, stray_after_the_record, off.nothing),
    (off.anywhere, stray_before_the_first_batch, off.nothing),
    (off.uncompared, another_last_record, off.nothing),
    (off.uncompared_in_runs, another_last_record_since, off.nothing),
    (off.number_for_each_run, retention_before_the_return, off.nothing),
    (off.as_a_first_copy, records_of_clients_stay, off.nothing),
    (off.own_tail, records_of_clients_stay, off.nothing),
    (off.from_receipts, receipts_of_before, off.nothing),
    (off.unwaited, clients_back_before_a_late_batch, off.nothing),
    (off.leaders_log, end_that_was_not_replicated, off.nothing),
    (clauses.stale_looks_sent, deposed_leader, off.nothing),
    (reading_kept, asleep_with_a_reading, off.nothing),
    (clauses.timestamps_ignored, state_expires_before_the_second_batch, off.nothing),
    (clauses.connections_forever, later_than_the_state, off.nothing),
    (off.sent_ahead, first_answer_missing, off.nothing),
    (off.numbers_are_offsets, marker_first, off.nothing),
    (marking_clauses.at_once, marker_first_and_late, off.nothing),
    (off.unwaited, clients_before_a_late_marker, off.nothing),
    (marking_clauses.at_once, marker_late_and_the_rest_copied, off.nothing),
    (clauses.timestamps_ignored, old_record_after_a_marker, off.nothing),
]
"""A clause, its schedule, and what is off in both cases: then another clause closes it, too."""
TABLE = [
    pytest.param(clause, schedule, other, id=f"{schedule.__name__}-{clause.__name__}")
    for clause, schedule, other in SCHEDULES
]


@pytest.mark.parametrize(("clause", "schedule", "other"), TABLE)
def test_a_clause_closes_its_counterexample(clause: Clause, schedule: Callable[[], None], other: Clause) -> None:
    with other():
        schedule()
        with clause(), pytest.raises(AssertionError, match="wrong: "):
            schedule()


def test_a_step_that_died_is_done_again() -> None:
    return_dies()


def test_a_late_batch_between_markers_is_refused_after_the_records_of_clients_and_nothing_waits() -> None:
    """The state is as old as it may be."""
    old_record_after_a_marker(EXPIRATION - LEASE - 2 * LATENESS - 1)


@pytest.mark.parametrize("kept", ["the record", "the marker"])
def test_numbers_that_began_again_are_compared_as_long_as_the_last_record_stays(kept: str) -> None:
    """The state expired, and a marker came first. A batch is late, and a broker loads what DeleteRecords has left."""
    it = Both(ReturningMarkers)
    it.produce("rr")
    it.copy.finish(it.copy.start())
    it.copy.sleep(EXPIRATION + 1)
    it.copy.expire()
    it.produce("mrm")
    task = it.copy.run_until(it.copy.start(), "send")
    it.copy.advance(task)  # the broker wants 0 after the marker
    it.copy.lose(it.copy.run_until(task, "send"), "late", dies=True)
    it.copy.sleep(MARKING)
    it.copy.finish(it.copy.start())
    began = it.now
    assert it.switchover()
    it.produce("r")
    way = it.primary
    way.retain(3 if kept == "the record" else 4)
    way.fail_over(0)
    assert (it.now, way.target.end) == (began, 6)
    if kept == "the record":
        arrived(it)
    else:
        with pytest.raises(AssertionError, match="wrong: "):
            arrived(it)


@pytest.mark.parametrize("lost", [1, BATCH])
def test_a_target_that_has_lost_records_of_before_is_refused(lost: int) -> None:
    it = returning()
    it.copy.lose_end(lost)
    assert it.copy.finish(it.copy.start()) == Refuse(Code.LOST)


def test_a_partition_without_a_return_is_refused() -> None:
    it = moved()
    it.produce("rrr")
    assert it.copy.finish(it.copy.start()) == Refuse(Code.MOVED)
    with off.open_for_ever():
        assert it.copy.finish(it.copy.start()) == Refuse(Code.FOREIGN)
    assert it.copy.target.end == BATCH


def test_after_a_failover_with_loss_the_cluster_that_was_lost_gets_no_return() -> None:
    it = moved()
    it.produce("rr")
    it.failover()
    it.produce("rr")
    assert it.copy.finish(it.copy.turn()) == Refuse(Code.FOREIGN)
    with off.open_for_ever():
        assert it.copy.finish(it.copy.start()) == Refuse(Code.FOREIGN)


# Random search.


@pytest.mark.slow
def test_no_interleaving_breaks_it() -> None:
    run_state_machine_as_test(ReturnMachine, settings=settings(stateful_step_count=STEPS, deadline=None))


@pytest.mark.slow
def test_no_interleaving_with_markers_breaks_it() -> None:
    run_state_machine_as_test(MarkingReturnMachine, settings=settings(stateful_step_count=STEPS, deadline=None))


@pytest.mark.slow
def test_no_interleaving_with_late_requests_while_clients_move_breaks_it() -> None:
    run_state_machine_as_test(LateSwitchMachine, settings=settings(stateful_step_count=STEPS, deadline=None))


@pytest.mark.extra
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("machine", [ReturnMachine, MarkingReturnMachine, LateSwitchMachine])
def test_no_interleaving_of_many_breaks_it(machine: type[ReturnMachine]) -> None:
    run_state_machine_as_test(
        machine, settings=settings(max_examples=5_000, stateful_step_count=STEPS, database=None, deadline=None)
    )


# With each clause the machine and the seed of a search that finds its counterexample.
QUICK: list[tuple[Clause, type[ReturnMachine], int]] = [
    (off.number_for_each_run, ReturnMachine, 1),
    (off.old_number, ReturnMachine, 0),
    (off.as_a_first_copy, ReturnMachine, 0),
    (off.from_receipts, ReturnMachine, 2),
    (off.unwaited, ReturnMachine, 0),
]
SLOW: list[tuple[Clause, type[ReturnMachine], int]] = [
    (off.committed_by_all, ReturnMachine, 2),
    (off.own_tail, ReturnMachine, 0),
    (off.any_tail, ReturnMachine, 0),
    (off.leaders_log, ReturnMachine, 0),
    (off.anywhere, ReturnMachine, 0),
    (off.written_again_unguarded, ReturnMachine, 9),
    (off.uncompared, MarkingReturnMachine, 3),
    (off.numbers_are_offsets, MarkingReturnMachine, 2),
    (marking_clauses.at_once, MarkingReturnMachine, 5),
]
EXAMPLES = 60
SEARCHES = [
    pytest.param(*search, id=f"{search[0].__name__}-{search[1].__name__}", marks=marks)
    for marks, cases in (((), QUICK), ((pytest.mark.slow,), SLOW))
    for search in cases
]


@pytest.mark.slow
@pytest.mark.parametrize(("clause", "machine", "number"), SEARCHES)
def test_without_a_clause_random_search_finds_a_counterexample(
    clause: Clause, machine: type[ReturnMachine], number: int
) -> None:
    """The search is the same in each profile and process, as in `test_machine.py`."""
    seeded = seed(number)(type("SeededMachine", (machine,), {}))
    limits = settings(
        settings.get_profile("default"),
        max_examples=EXAMPLES,  # another number is another search
        stateful_step_count=STEPS,
        database=None,
        derandomize=False,
        print_blob=False,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
        deadline=None,
    )
    with (
        patch.object(HypothesisProvider, "_maybe_draw_constant", lambda *_, **__: None),
        clause(),
        pytest.raises(AssertionError, match="wrong: "),
    ):
        run_state_machine_as_test(seeded, settings=limits)
