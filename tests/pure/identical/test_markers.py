"""Holes of the source passed by markers, without a wait: any interleaving, and each clause switched off."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from unittest.mock import patch

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule, run_state_machine_as_test

from ferry.features.identical.rules import marked
from ferry.features.identical.rules.values import Code, Done, Refuse
from ferry.model import Record
from ferry.wire.batch import batches
from ferry.wire.records import ProducerIdentity, build_batch
from tests.pure.identical import clauses, world
from tests.pure.identical import marking_clauses as off
from tests.pure.identical.machine import MAX_RUNS, LaterMachine, indexes
from tests.pure.identical.marking_writer import MARKING, MarkingWriter
from tests.pure.identical.test_damage import foreign
from tests.pure.identical.world import EXPIRATION, LATENESS, LIMITS, Task, World
from tests.pure.identical.writer import ANSWERED
from tests.pure.wire.logs import marker

QUIET = MARKING + LATENESS + 1
"""After this long no marker of a writer that was opened now can arrive."""


@pytest.fixture(autouse=True)
def _writers() -> Iterator[None]:
    """The model's writers are of this kind."""
    with patch.object(world, "Writer", MarkingWriter):
        yield


class MarkerMachine(LaterMachine):
    """Faults never shift, double or lose a record; once they stop, a later run copies the rest."""

    @precondition(lambda self: self.live())
    @rule(index=indexes, place=st.sampled_from(["note", "open", "mark", "mark", "send", "commit", "fence", "delete"]))
    def go_on_to(self, index: int, place: str) -> None:
        """A writer continues to a place of its own."""
        task = self.chosen(index)
        self.world.advance(task)
        self.world.run_until(task, place)

    @rule(on=st.booleans())
    def fail_one_of_several(self, on: bool) -> None:
        """One marker of several in a request fails, or none does."""
        self.world.partial = on

    @rule()
    def read_early(self) -> None:
        """The next reading of the ledger lacks what comes after this moment."""
        self.world.shown = self.world.ledger.marking

    @rule(ahead=st.sampled_from([0, 0, QUIET]))
    def set_clocks(self, ahead: int) -> None:
        """The wall clocks of the writers that begin next are fast."""
        self.world.ahead = ahead

    @rule()
    def expire_after_idleness(self) -> None:
        """Nobody writes for a while."""
        self.world.sleep(EXPIRATION + 1)
        self.world.expire()

    @precondition(lambda self: len(self.world.tasks) <= MAX_RUNS - 2 and self.world.source.end < 7)
    @rule(dies=st.booleans(), slept=st.sampled_from([1, 2, EXPIRATION // 2]))
    def expire_while_a_batch_is_late(self, dies: bool, slept: int) -> None:
        """All is copied. A run begins shortly before the state expires; its batch is late, and the next run begins."""
        it = self.world
        it.run_until(it.start(), "no place: its end")
        it.sleep(EXPIRATION - slept)
        grow(it, "r")
        task = it.run_until(it.start(), "send")
        if task.pending is not None:
            it.lose(task, "late", dies=dies)
        it.sleep(slept)
        it.expire()
        grow(it, "r")
        it.run_until(it.start(), "send")

    def teardown(self) -> None:
        """Faults stop, all that is late arrives, and a run that is quiet copies the rest."""
        if not hasattr(self, "world"):
            return
        it = self.world
        it.ahead = 0
        self.end_faults()
        it.sleep(2 * QUIET)  # a fast clock says that it sends markers for longer
        last = it.start()
        outcome = it.finish(last)
        if outcome == Refuse(Code.EXPIRES):
            it.sleep(EXPIRATION + 1)
            it.expire()
            outcome = it.finish(it.start())
        assert outcome is not None
        fitting = {Code.ABSENT, Code.STATE_TOO_SHORT, Code.MOVED}
        assert isinstance(outcome, Done) or outcome.code in fitting, "\n".join([*it.trace, f"{outcome}"])


@pytest.mark.slow
def test_no_interleaving_breaks_it() -> None:
    run_state_machine_as_test(MarkerMachine, settings=settings(stateful_step_count=30, deadline=None))


@pytest.mark.extra
@pytest.mark.timeout(900)
def test_no_interleaving_of_many_breaks_it() -> None:
    run_state_machine_as_test(
        MarkerMachine, settings=settings(max_examples=5_000, stateful_step_count=30, database=None, deadline=None)
    )


# Schedules: each ends well with all clauses.


def late_marker(it: World, task: Task) -> None:
    """The writer's next marker is late, and the writer is gone."""
    it.lose(it.run_until(task, "mark"), "late", dies=True)


def grow(it: World, shape: str) -> None:
    """The source gets records of now."""
    it.source.grow(shape, it.now, it.now)


def ended(it: World, *tasks: Task) -> None:
    """Writers continue without faults, and what is late arrives."""
    for task in tasks:
        it.finish(task)
    while it.late:
        it.deliver_late(0)
    it.check()


def marker_late() -> None:
    """`a` marks 3, late; `b` comes to the hole."""
    it = World("rrrmrrr")
    late_marker(it, it.start())
    ended(it, it.start())


def marker_late_for_long() -> None:
    """`a` marks 3, late; `b` begins when `a` may send no more."""
    it = World("rrrmrrr")
    late_marker(it, it.start())
    it.sleep(MARKING)
    ended(it, it.start())


def later_than_idle_connections() -> None:
    """`a` marks 3; `b` begins when its connection was closed."""
    it = World("rrrmrrr")
    late_marker(it, it.start())
    it.sleep(QUIET)
    ended(it, it.start())


def own_marker_late() -> None:
    """`a` gets no answer to its marker, and reads again."""
    it = World("rrrmrrr")
    a = it.run_until(it.start(), "mark")
    it.lose(a, "late", dies=False)
    ended(it, a)


def own_marker_late_and_the_ledger_silent() -> None:
    """The same, and the ledger does not answer `a` when it is about to stop."""
    it = World("mmrrr")
    a = it.run_until(it.start(), "mark")
    it.lose(a, "late", dies=False)
    it.lose(it.run_until(a, "confirm"), "dropped", dies=False)
    ended(it, a)


def marks_when_its_time_is_over() -> None:
    """`a` passes a hole. Later it comes to another one, marks it, late, and dies. `b` begins."""
    it = World("mrmrrr")
    a = it.run_until(it.start(), "mark")
    it.advance(a)
    it.run_until(a, "read")
    it.sleep(MARKING - 1)
    it.run_until(a, "send")
    it.advance(a)
    it.run_until(a, "read")
    it.sleep(MARKING - 1)
    it.lose(it.run_until(a, "confirm"), "dropped", dies=False)
    it.lose(it.run_until(a, "mark"), "late", dies=True)
    it.sleep(LATENESS)
    ended(it, it.start())


def stale_reading() -> None:
    """`a` marks 3, late. A broker that leads no more shows `b` a log without records; then the leader answers."""
    it = World("rrrmrrr")
    late_marker(it, it.start())
    it.sleep(MARKING)
    b = it.run_until(it.start(), "look")
    it.stale_end = 0
    ended(it, b)


def early_reading() -> None:
    """`b` reads. `a` sends the same records, and marks, late. `b` sends them again, and gets success."""
    it = World("mrrrmrrr")
    a = it.run_until(it.start(), "mark")
    it.advance(a)
    it.run_until(a, "send")
    b = it.run_until(it.start(), "send")
    it.advance(a)
    late_marker(it, a)
    ended(it, b)


def closed_at_a_hole() -> None:
    """As before; `b` stops at the hole, and its receipts are there. `c` begins."""
    it = World("mrrrmrrr")
    a = it.run_until(it.start(), "mark")
    it.advance(a)
    it.run_until(a, "send")
    b = it.run_until(it.start(), "send")
    it.advance(a)
    late_marker(it, a)
    it.finish(b)
    ended(it, it.start())


def receipts_late() -> None:
    """The receipts of `a` are late. It continues, marks, late, and dies; then the receipts arrive. `b` begins."""
    it = World("mrrrmrrrmrrr")
    a = it.run_until(it.start(), "commit")
    it.lose(a, "late", dies=False)
    it.run_until(a, "open")
    late_marker(it, a)
    it.deliver_late(0)
    ended(it, it.start())


def ledger_read_early() -> None:
    """`a` marks 3, late. `b` reads the ledger up to an end that is before the record of that."""
    it = World("rrrmrrr")
    late_marker(it, it.start())
    it.shown = ANSWERED
    ended(it, it.start())


def fast_clock() -> None:
    """`a` marks 3, late. The wall clock of `b` is fast."""
    it = World("rrrmrrr")
    late_marker(it, it.start())
    it.ahead = QUIET
    ended(it, it.start())


def stopped_guest() -> None:
    """`a` says that it sends markers; its machine is stopped. `b` copies all. The machine of `a` continues."""
    it = World("rrrmrrr")
    a = it.run_until(it.start(), "open")
    it.step(a)
    it.sleep(QUIET)
    a.writer.cluster.paused += QUIET
    it.finish(it.start())
    ended(it, a)


def clock_set_back() -> None:
    """The wall clock of `a` is set back before it says until when it sends markers; it marks 3, late. `b` begins."""
    it = World("rrrmrrr")
    a = it.run_until(it.start(), "read")
    a.writer.cluster.ahead -= 2 * QUIET
    late_marker(it, a)
    ended(it, it.start())


def record_is_back() -> None:
    """`a` comes to a record that one broker has deleted. Another broker has it, and `b` sends it."""
    it = World("rrrrrrr")
    it.source.clean(3, 0)
    a = it.run_until(it.start(), "mark")
    if a.pending is not None:
        it.lose(a, "late", dies=True)
    it.source.leader = 1
    ended(it, it.start())


def deleted_up_to_a_marker() -> None:
    """Empty records of `a` are late. `b` writes them, and passes a hole; a broker loads the log again."""
    it = World("rrrmrrr")
    for broker in (0, 1):
        it.source.retain(3, broker)
    it.lose(it.run_until(it.start(), "send"), "late", dies=True)
    b = it.run_until(it.start(), "mark")
    for _ in ("mark", "its answer", "look", "its answer"):
        it.advance(b)
    if b.label == "delete":
        it.advance(b)
    it.fail_over(0)
    it.deliver_late(0)
    ended(it, b)


def one_of_two_fails() -> None:
    """The broker appends one of two markers, and answers success."""
    it = World("rmmrrr")
    it.partial = True
    ended(it, it.start())


def not_replicated(it: World) -> Task:
    """`b` reads a marker of `a` that the leader alone has; the leader fails before the batch of `b` arrives."""
    a = it.run_until(it.start(), "mark")
    it.replicating = False
    it.lose(a, "applied", dies=True)
    it.sleep(QUIET)
    b = it.run_until(it.start(), "send")
    it.fail_over(1)
    it.replicating = True
    return b


def marker_not_replicated() -> None:
    """The leader alone has a marker, and fails."""
    it = World("rrrmrrr")
    ended(it, not_replicated(it))


def deposed(it: World) -> Task:
    """`a` dies before its receipts. A broker that leads no more shows `b` a hole that was passed."""
    it.lose(it.run_until(it.start(), "commit"), "dropped", dies=True)
    it.sleep(QUIET)
    b = it.run_until(it.start(), "look")
    it.stale_end = 3
    return b


def deposed_leader() -> None:
    """A broker that leads no more shows an earlier end."""
    it = World("rrrmrrr")
    ended(it, deposed(it))


def state_about_to_expire() -> None:
    """`a` reads the state, and its batch is late. The state expires; `b` takes the offset for the number."""
    it = World("rm")
    it.finish(it.start())
    it.sleep(EXPIRATION - 1)
    grow(it, "r")
    a = it.run_until(it.start(), "send")
    if a.pending is not None:
        it.lose(a, "late", dies=True)
    it.sleep(1)
    it.expire()
    grow(it, "r")
    b = it.run_until(it.start(), "send")
    if it.late:
        it.deliver_late(0)
    ended(it, b)


Clause = Callable[[], AbstractContextManager[object]]
SCHEDULES: list[tuple[Clause, Callable[[], None]]] = [
    (off.at_once, marker_late),
    (off.lateness_not_awaited, marker_late_for_long),
    (clauses.connections_forever, later_than_idle_connections),
    (off.repeated, own_marker_late),
    (off.own_markers_forgotten, own_marker_late_and_the_ledger_silent),
    (off.unopened, marker_late),
    (off.opened_for_ever, marks_when_its_time_is_over),
    (off.reading_trusted, stale_reading),
    (off.repeats_trusted, early_reading),
    (off.closed_by_all, closed_at_a_hole),
    (off.transactions_late, receipts_late),
    (off.ledger_read_once, ledger_read_early),
    (off.clocks_unknown, fast_clock),
    (off.wall_clock_ignored, stopped_guest),
    (off.set_back, clock_set_back),
    (off.absent_passed, record_is_back),
    (off.marker_follows, deleted_up_to_a_marker),
    (off.answers_believed, one_of_two_fails),
    (off.numbers_for_ever, state_about_to_expire),
    (off.leaders_log, marker_not_replicated),
    (clauses.stale_looks_sent, deposed_leader),
]


@pytest.mark.parametrize(("clause", "schedule"), SCHEDULES)
def test_a_schedule_ends_well_with_all_clauses(clause: Clause, schedule: Callable[[], None]) -> None:
    schedule()


@pytest.mark.parametrize(("clause", "schedule"), SCHEDULES)
def test_without_its_clause_a_schedule_shifts_or_doubles_records(clause: Clause, schedule: Callable[[], None]) -> None:
    with clause(), pytest.raises(AssertionError, match="wrong:"):
        schedule()


@pytest.mark.parametrize("commits", [True, False])
def test_each_marker_is_a_hole_that_stays(commits: bool) -> None:
    assert [marked.is_seen(marker(7, 1, commits=commits), offset) for offset in (6, 7, 8)] == [False, True, False]


def test_an_aborted_batch_with_all_of_its_records_is_a_hole_that_stays() -> None:
    whole = next(batches(build_batch([Record(key=b"", value=b"")] * 3, 0, ProducerIdentity())))
    assert [marked.is_seen(whole, offset) for offset in (0, 2, 3)] == [True, True, False]
    compacted = whole._replace(record_count=2)
    assert not any(marked.is_seen(compacted, offset) for offset in range(4))


def test_a_source_with_holes_is_copied_offset_by_offset() -> None:
    it = World("mrrmmrrrmrm")
    assert isinstance(it.finish(it.start()), Done)
    assert (it.target.end, it.ledger.receipts, it.ledger.marking.until) == (11, 11, 0)
    assert [entry.marker for entry in it.target.entries] == [one is None for one in it.source.truth]


@pytest.mark.parametrize(("shape", "end"), [("rrmr", 2), ("mr", 0)])
def test_without_the_permission_a_hole_is_refused_before_it_is_passed(shape: str, end: int) -> None:
    it = World(shape, limits=replace(LIMITS, markers_allowed=False))
    assert it.finish(it.start()) == Refuse(Code.MARKERS)
    assert it.target.end == end


def test_an_absent_record_is_refused_before_it_is_passed() -> None:
    it = World("rrmrr")
    it.source.clean(3, 0)
    assert it.finish(it.start()) == Refuse(Code.ABSENT)
    assert it.target.end == 3


@pytest.mark.parametrize("dies", [True, False])
@pytest.mark.parametrize("fate", ["dropped", "late"])
def test_a_marker_without_an_answer_stops_the_partition_until_it_cannot_arrive(fate: str, dies: bool) -> None:
    it = World("rrrmrrr")
    a = it.run_until(it.start(), "mark")
    it.lose(a, fate, dies=dies)
    assert it.finish(a) == (None if dies else Refuse(Code.NOT_QUIET))
    for wait in (0, MARKING, LATENESS):
        it.sleep(wait)
        assert it.finish(it.start()) == Refuse(Code.NOT_QUIET)
    it.sleep(1)
    assert isinstance(it.finish(it.start()), Done)
    assert it.target.end == 7


def test_a_crash_after_a_marker_arrived_costs_no_lateness() -> None:
    it = World("rrrmrrrm")
    it.lose(it.run_until(it.start(), "mark"), "applied", dies=True)
    it.sleep(MARKING)
    assert isinstance(it.finish(it.start()), Done)
    assert it.target.end == 8


def test_an_end_with_receipts_costs_no_wait() -> None:
    it = World("rrrm")
    began = it.now
    assert isinstance(it.finish(it.start()), Done)
    it.source.grow("rm", it.now, it.now)
    assert isinstance(it.finish(it.start()), Done)
    assert (it.now, it.target.end) == (began, 6)


@pytest.mark.parametrize("shape", ["rrm", "rrmm"])
def test_a_foreign_record_before_a_marker_gets_no_receipt(shape: str) -> None:
    def copied() -> tuple[World, Done | Refuse | None]:
        it = World(shape)
        a = it.run_until(it.start(), "mark")
        foreign(it)
        return it, it.finish(a)

    it, outcome = copied()
    assert (isinstance(outcome, Refuse), it.ledger.receipts <= 2) == (True, True)
    with off.answers_believed():
        it, outcome = copied()
        assert it.ledger.receipts > 2


@pytest.mark.parametrize("hole", ["m", "mm"])
def test_producer_state_that_is_gone_before_a_marker_disturbs_nothing(hole: str) -> None:
    it = World("rrr")
    assert isinstance(it.finish(it.start()), Done)
    it.sleep(EXPIRATION + 1)
    it.expire()
    it.source.grow(hole + "rrr", it.now, it.now)
    assert isinstance(it.finish(it.start()), Done)
    assert it.target.end == it.source.end


@pytest.mark.parametrize("fate", ["dropped", "applied", "late"])
@pytest.mark.parametrize("dies", [True, False])
@pytest.mark.parametrize("label", ["note", "open", "mark", "send", "commit", "fence", "confirm", "delete"])
@pytest.mark.parametrize("sent", range(4))
def test_a_fault_at_each_step_disturbs_nothing(fate: str, dies: bool, label: str, sent: int) -> None:
    it = World("rrrrmrrmmrm")
    for broker in (0, 1):
        it.source.retain(2, broker)
    task = it.run_until(it.start(), label)
    for _ in range(sent):
        if task.pending is not None:
            it.advance(task)
            it.run_until(task, label)
    it.lose(task, fate, dies=dies)
    for one in (task, it.start()):
        it.finish(one)
    while it.late:
        it.deliver_late(0)
    it.sleep(QUIET)
    assert isinstance(it.finish(it.start()), Done)
    assert (it.target.end, it.target.log_start) == (11, 2)
