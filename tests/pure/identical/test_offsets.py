"""Sequence numbers that are offsets: no wait is needed, also for an empty target. Each clause is needed for that."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from unittest.mock import patch

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule, run_state_machine_as_test

from ferry.features.identical.rules import empty, stamped
from ferry.features.identical.rules.values import Code, Done, Look, Refuse
from tests.pure.identical import clauses, offset_writer, world
from tests.pure.identical.machine import LaterMachine, indexes
from tests.pure.identical.offset_writer import OffsetWriter
from tests.pure.identical.test_damage import foreign
from tests.pure.identical.world import EXPIRATION, LATENESS, Task, World
from tests.pure.identical.writer import LANE

BATCH = 3
"""Records of a batch (`tests.pure.identical.source.READ_AT_ONCE`)."""
Clause = Callable[[], AbstractContextManager[object]]


@pytest.fixture(autouse=True)
def _writers() -> Iterator[None]:
    """The model's writers are of this kind."""
    with patch.object(world, "Writer", OffsetWriter):
        yield


class OffsetMachine(LaterMachine):
    """Faults never shift, double or lose a record; what cannot be copied is refused."""

    @precondition(lambda self: self.live())
    @rule(index=indexes, place=st.sampled_from(["note", "confirm", "send", "delete", "end"]))
    def go_on_to(self, index: int, place: str) -> None:
        """A writer continues to a place of its own."""
        task = self.chosen(index)
        self.world.advance(task)
        self.world.run_until(task, place)

    def teardown(self) -> None:
        """Faults stop, and all that is late arrives."""
        if not hasattr(self, "world"):
            return
        it = self.world
        self.end_faults()
        assert not any(entry.marker for entry in it.target.entries)


@pytest.mark.slow
def test_no_interleaving_breaks_it() -> None:
    run_state_machine_as_test(OffsetMachine, settings=settings(stateful_step_count=30, deadline=None))


@pytest.mark.extra
@pytest.mark.timeout(900)
def test_no_interleaving_of_many_breaks_it() -> None:
    run_state_machine_as_test(
        OffsetMachine, settings=settings(max_examples=5_000, stateful_step_count=30, database=None, deadline=None)
    )


# Clauses that are switched off.


def reading_kept() -> AbstractContextManager[object]:
    """A writer that slept continues at the end that it read before, if the ledger shows no newer run."""

    def never(known_at: int, now: int, lease: int) -> bool:
        return False

    return patch.object(stamped, "is_outdated", never)


def sent_ahead() -> AbstractContextManager[object]:
    """A batch is sent although the one before it was not answered."""

    def always(answer: object) -> bool:
        return True

    return patch.object(offset_writer, "continues", always)


def leaders_log() -> AbstractContextManager[object]:
    """The end of the leader's log is taken for the end, replicated or not."""
    look = World.look

    def unsettled(self: World, asked_at: int) -> tuple[Look, bool]:
        seen, stale = look(self, asked_at)
        return replace(seen, end=self.target.end, settled=True, tail=None), stale

    return patch.object(World, "look", unsettled)


def anywhere() -> AbstractContextManager[object]:
    """The base offset of an answer is not compared."""

    def never(base: int, offset: int) -> bool:
        return False

    return patch.object(offset_writer, "misplaced", never)


def other_firsts_forgotten() -> AbstractContextManager[object]:
    """A writer does not ask with which offset the records of earlier ones began."""

    def never(first: int, firsts: Collection[int]) -> int | None:
        return None

    return patch.object(empty, "other_first", never)


def first_unconfirmed() -> AbstractContextManager[object]:
    """A writer does not ask for a newer run after it wrote with which offset its records begin."""

    def never() -> bool:
        return False

    return patch.object(offset_writer, "confirms", never)


def deleted_at_once() -> AbstractContextManager[object]:
    """Empty records are deleted up to the end of the log, before a record follows them."""
    stack = clauses.all_deleted()

    def always(end: int, first: int) -> bool:
        return end >= first

    stack.enter_context(patch.object(offset_writer, "deletable", always))
    return stack


# Schedules: each ends well with all clauses.


def with_ages(shape: str, start: int, age: int) -> World:
    """A source whose records from `start` on are older than those before."""
    it = World(shape)
    for offset in range(start, it.source.end):
        one = it.source.truth[offset]
        assert one is not None
        it.source.truth[offset] = replace(one, timestamp=one.timestamp - age)
    return it


def ended(it: World, task: Task) -> None:
    """A writer continues without faults, and what is late arrives."""
    it.finish(task)
    while it.late:
        it.deliver_late(0)
    it.check()


def asleep_with_a_reading() -> None:
    """`b` reads an empty log and sleeps; `a` copies all; its last batch is older, and the state expires."""
    it = with_ages("r" * 2 * BATCH, BATCH, EXPIRATION // 2)
    a = it.run_until(it.start(), "send")
    b = it.run_until(it.start(), "read")
    assert isinstance(it.finish(a), Done)
    it.sleep(EXPIRATION // 2 + 1)
    it.expire()
    ended(it, b)


def old_after_new() -> None:
    """The first batch of `a` is late; `b` copies all, the last batch is old, and the state expires."""
    it = World("r" * BATCH + "o" * BATCH)
    it.lose(it.run_until(it.start(), "send"), "late", dies=True)
    it.finish(it.start())
    it.expire()
    it.deliver_late(0)


def deposed_leader() -> None:
    """`a` dies before its receipts; the state expires; a broker that leads no more shows `b` an older end."""
    it = with_ages("r" * 3 * BATCH, 2 * BATCH, EXPIRATION // 2)
    it.lose(it.run_until(it.start(), "end"), "dropped", dies=True)
    it.sleep(EXPIRATION // 2 + 1)
    it.expire()
    b = it.run_until(it.start(), "look")
    it.stale_end = BATCH
    ended(it, b)


def later_than_the_state() -> None:
    """A batch of `a` arrives when `b` has copied all and the state has expired."""
    it = World("r" * 2 * BATCH)
    it.lose(it.run_until(it.start(), "send"), "late", dies=True)
    assert isinstance(it.finish(it.start()), Done)
    it.sleep(EXPIRATION + 1)
    it.expire()
    it.deliver_late(0)


def end_that_was_not_replicated() -> None:
    """`b` reads what `a` wrote to the leader alone; the leader fails before the batch of `b` arrives."""
    it = World("r" * 2 * BATCH)
    it.replicating = False
    it.lose(it.run_until(it.start(), "send"), "applied", dies=True)
    b = it.run_until(it.start(), "send")
    it.fail_over(BATCH)
    it.replicating = True
    ended(it, b)


def first_answer_missing() -> None:
    """The first batch is lost on its way to an empty log."""
    it = World("r" * 2 * BATCH)
    a = it.run_until(it.start(), "send")
    it.lose(a, "dropped", dies=False)
    ended(it, a)


def later(shape: str, *starts: int) -> World:
    """A source whose log begins at these offsets, by broker; the first one leads."""
    it = World(shape)
    for broker, start in enumerate(starts):
        it.source.retain(start, broker)
    return it


def begins_earlier_on_another_broker() -> None:
    """The empty records of `a` are late; another broker leads the source, and has the first of their offsets yet."""
    it = later("r" * 3 * BATCH, 2 * BATCH, BATCH)
    a = it.run_until(it.start(), "send")
    it.advance(a)
    it.lose(it.run_until(a, "send"), "late", dies=True)
    it.source.leader = 1
    b = it.run_until(it.start(), "send")
    it.deliver_late(0)
    ended(it, b)


def noted_after_its_successor() -> None:
    """`a` writes its first offset to the ledger when `b` has read it, and its empty records are late."""
    it = later("r" * 3 * BATCH, 2 * BATCH, BATCH)
    a = it.run_until(it.start(), "note")
    it.source.leader = 1
    b = it.run_until(it.start(), "send")
    it.run_until(a, "send")
    it.advance(b)
    it.run_until(b, "send")
    it.run_until(a, "look")
    it.run_until(a, "send")
    it.lose(a, "late", dies=True)
    while it.late:
        it.deliver_late(0)
    ended(it, b)


def deleted_and_loaded_again() -> None:
    """The first empty records of `a` come late; `b` wrote all of them; a broker loads the log again."""
    it = later("r" * 3 * BATCH, 2 * BATCH, 2 * BATCH)
    it.lose(it.run_until(it.start(), "send"), "late", dies=True)
    b = it.run_until(it.start(), "delete")
    it.advance(b)
    it.fail_over(0)
    it.deliver_late(0)
    ended(it, b)


def late_empty_records_after_old_ones() -> None:
    """The empty records of `a` are late; `b` copies all; its last batch is old, and the state expires."""
    it = later("r" * 2 * BATCH + "o" * BATCH, BATCH, BATCH)
    it.lose(it.run_until(it.start(), "send"), "late", dies=True)
    it.finish(it.start())
    it.expire()
    it.deliver_late(0)


SCHEDULES: list[tuple[Clause, Callable[[], None]]] = [
    (reading_kept, asleep_with_a_reading),
    (clauses.timestamps_ignored, old_after_new),
    (clauses.stale_looks_sent, deposed_leader),
    (clauses.connections_forever, later_than_the_state),
    (leaders_log, end_that_was_not_replicated),
    (sent_ahead, first_answer_missing),
    (other_firsts_forgotten, begins_earlier_on_another_broker),
    (first_unconfirmed, noted_after_its_successor),
    (deleted_at_once, deleted_and_loaded_again),
    (clauses.timestamps_ignored, late_empty_records_after_old_ones),
]


@pytest.mark.parametrize(("clause", "schedule"), SCHEDULES)
def test_a_schedule_ends_well_with_all_clauses(clause: Clause, schedule: Callable[[], None]) -> None:
    schedule()


@pytest.mark.parametrize(("clause", "schedule"), SCHEDULES)
def test_without_its_clause_a_schedule_shifts_or_doubles_records(clause: Clause, schedule: Callable[[], None]) -> None:
    with clause(), pytest.raises(AssertionError, match="wrong:"):
        schedule()


@pytest.mark.parametrize("fate", ["dropped", "applied", "late"])
@pytest.mark.parametrize("dies", [True, False])
@pytest.mark.parametrize("sent", [0, 1])
def test_it_continues_at_once_after_a_crash_also_at_an_empty_target(fate: str, dies: bool, sent: int) -> None:
    it = World("r" * 8)
    began = it.now
    task = it.run_until(it.start(), "send")
    for _ in range(sent):
        it.advance(task)
        it.run_until(task, "send")
    it.lose(task, fate, dies=dies)
    assert isinstance(it.finish(it.start() if dies else task), Done)
    while it.late:
        it.deliver_late(0)
    assert (it.now, it.target.end) == (began, 8)


def test_two_runs_at_once_and_the_zombie_of_one_end_in_one_copy() -> None:
    it = World("r" * 9)
    first = it.run_until(it.start(), "send")
    it.advance(first)
    it.run_until(first, "send")
    assert isinstance(it.finish(it.start()), Done)
    it.sleep(LATENESS)
    it.finish(first)
    assert it.target.end == 9


@pytest.mark.parametrize(
    ("shape", "code", "end"), [("rrmr", Code.MARKERS, 2), ("mr", Code.MARKERS, 0), ("rrrooo", Code.STATE_TOO_SHORT, 3)]
)
def test_holes_and_old_records_are_refused_before_they_are_passed(shape: str, code: Code, end: int) -> None:
    it = World(shape)
    assert it.finish(it.start()) == Refuse(code)
    assert it.target.end == end


@pytest.mark.parametrize("fate", ["dropped", "applied", "late"])
@pytest.mark.parametrize("dies", [True, False])
@pytest.mark.parametrize("label", ["note", "confirm", "send", "delete", "end"])
@pytest.mark.parametrize("sent", [0, 1, 2])
def test_a_copy_that_begins_later_survives_a_fault_at_each_step(fate: str, dies: bool, label: str, sent: int) -> None:
    it = later("r" * 3 * BATCH, 2 * BATCH - 1, 2 * BATCH - 1)
    began, task = it.now, it.run_until(it.start(), label)
    for _ in range(sent):
        if task.pending is not None:
            it.advance(task)
            it.run_until(task, label)
    it.lose(task, fate, dies=dies)
    for one in (task, it.start()):
        it.finish(one)
    while it.late:
        it.deliver_late(0)
    assert (it.now, it.target.end) == (began, 3 * BATCH)
    assert it.ledger.covered
    assert it.target.log_start == 2 * BATCH - 1


def test_a_target_of_another_producer_is_refused_before_a_write() -> None:
    it = World("rrr")
    foreign(it)
    before = it.target.end
    assert it.finish(it.start()) == Refuse(Code.FOREIGN)
    assert it.target.end == before


def lane_records_after_a_stranger() -> int:
    """A foreign record comes between a reading and the batch that follows from it; how many records are shifted."""
    it = World("r" * 3 * BATCH)
    it.checking = False
    task = it.run_until(it.start(), "send")
    it.advance(task)
    it.run_until(task, "send")
    foreign(it)
    it.finish(task)
    return sum(entry.producer == LANE for entry in it.target.entries[BATCH:])


def test_a_foreign_record_shifts_one_batch_at_most() -> None:
    assert lane_records_after_a_stranger() == BATCH
    with anywhere():
        assert lane_records_after_a_stranger() > BATCH
