"""Compacted topics: absent records are passed, too. Any interleaving, and each clause switched off."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from unittest.mock import patch

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule, run_state_machine_as_test

from ferry.features.identical.rules.values import Code, Done, Refuse
from tests.pure.identical import clauses, test_tasks, world
from tests.pure.identical import exclusive_clauses as off
from tests.pure.identical import marking_clauses as marking_off
from tests.pure.identical.compacted_world import CompactedNear, CompactedWorld
from tests.pure.identical.exclusive_writer import ExclusiveWriter
from tests.pure.identical.machine import MAX_RUNS, indexes, places, search, shapes
from tests.pure.identical.marking_writer import MARKING, MarkingWriter
from tests.pure.identical.test_markers import QUIET, MarkerMachine, ended, grow
from tests.pure.identical.test_tasks import Again, Kept, Tasks, again
from tests.pure.identical.world import EXPIRATION, LATENESS, LIMITS, Endless, Task
from tests.pure.identical.writer import Claim

Clause = Callable[[], AbstractContextManager[object]]
Schedule = Callable[[], None]


@pytest.fixture(autouse=True)
def _writers() -> Iterator[None]:
    """The model's writers are of this kind."""
    with patch.object(world, "Writer", ExclusiveWriter), patch.object(world, "Near", CompactedNear):
        yield


class CompactedAgain(CompactedNear, Again):
    """The world of a task that begins no run: others of its run may have written by the same plan."""

    def claim(self) -> Claim:
        """Read the ledger."""
        return replace(Again.claim(self), planned_before=self.ledger.planned)


def of_tasks() -> ExitStack:
    """Tasks of one run may begin again."""
    stack = ExitStack()
    stack.enter_context(patch.object(world, "Ledger", Kept))
    stack.enter_context(patch.object(test_tasks, "Again", CompactedAgain))
    return stack


class ExclusiveMachine(MarkerMachine):
    """Faults never shift or double a record, nor pass one that all brokers have; later a run copies the rest."""

    world: CompactedWorld

    @initialize(shape=shapes, version=st.sampled_from([1, 2]), doubling=st.booleans())
    def begin(self, shape: str, version: int, doubling: bool) -> None:
        """A source with something in it, an empty target."""
        self.world = CompactedWorld(shape, version=version)

    @precondition(
        lambda self: len(self.world.tasks) < 3 and all(type(one.writer) is MarkingWriter for one in self.world.tasks)
    )
    @rule(place=places)
    def start_other(self, place: str) -> None:
        """A run begins that takes the topic for one that is not compacted."""
        self.world.run_until(self.world.start_other(), place)

    @precondition(lambda self: self.live())
    @rule(index=indexes)
    def doubt(self, index: int) -> None:
        """A write arrives, and its answer is an error that says nothing of that."""
        self.world.doubt(self.chosen(index))

    @precondition(lambda self: not any(type(one.writer) is MarkingWriter for one in self.world.tasks))
    @rule()
    def forget(self) -> None:
        """A broker has no producer state any more, on which writers of the other kind rely."""
        self.world.forget()

    @rule(offset=indexes)
    def clean_target(self, offset: int) -> None:
        """The target's cleaner takes something."""
        self.world.clean_target(offset)

    @precondition(lambda self: self.live())
    @rule(index=indexes, time=st.sampled_from([1, MARKING, QUIET]))
    def stop_guest(self, index: int, time: int) -> None:
        """A machine is stopped, and its clock that counts sleep does not count that."""
        task = self.chosen(index)
        if isinstance(task.writer, ExclusiveWriter) and not task.writer.cluster.ahead:
            self.world.sleep(time)
            task.writer.cluster.paused += time

    @precondition(lambda self: self.live())
    @rule(index=indexes, by=st.sampled_from([2 * QUIET, -2 * QUIET]))
    def set_clock(self, index: int, by: int) -> None:
        """The wall clock of a writer is set forward, or back, when it has begun."""
        task = self.chosen(index)
        if isinstance(task.writer, ExclusiveWriter) and not task.writer.cluster.paused and task.writer.generation:
            task.writer.cluster.ahead += by

    @rule(ahead=st.sampled_from([0, 0, QUIET, -QUIET]))
    def set_clocks(self, ahead: int) -> None:
        """The wall clocks of the writers that begin next are wrong."""
        self.world.ahead = ahead

    @rule(offset=indexes)
    def grow_and_compact(self, offset: int) -> None:
        """A newer record of a key comes, and a broker's cleaner takes the older one."""
        it = self.world
        if it.source.end < 9:
            it.source.grow("r", it.now, it.now)
            it.source.clean(offset, it.source.leader)

    @precondition(lambda self: len(self.world.tasks) <= MAX_RUNS - 2)
    @rule(
        begun=st.sampled_from(["claim", "send", "mark", "commit"]),
        at=st.sampled_from(["send", "mark", "commit"]),
        dies=st.booleans(),
        brokers=st.sampled_from([(0, 1), (0,), ()]),
        wait=st.sampled_from([0, 0, MARKING, QUIET]),
        then=st.sampled_from(["send", "mark", "mark"]),
    )
    def late_with_another(
        self, begun: str, at: str, dies: bool, brokers: tuple[int, ...], wait: int, then: str
    ) -> None:
        """A request is late. Meanwhile the source is compacted, and its writer or another one writes there."""
        it = self.world
        task = it.start()
        it.advance(it.run_until(task, begun))
        if it.run_until(task, at).pending is not None:
            it.lose(task, "late", dies=dies)
        for broker in brokers:
            it.source.clean(it.target.end, broker)
            it.source.leader = broker
        it.sleep(wait)
        if dies:
            task = it.start()
        it.advance(it.run_until(task, then))
        if it.late:
            it.deliver_late(0)

    def teardown(self) -> None:
        """Faults stop, all that is late arrives, and a run copies the rest."""
        if not hasattr(self, "world"):
            return
        it = self.world
        it.ahead, it.shown = 0, None
        self.end_faults()
        it.sleep(2 * QUIET + EXPIRATION)
        outcome = it.finish(it.start())
        assert isinstance(outcome, Done) or outcome == Refuse(Code.MOVED), "\n".join([*it.trace, f"{outcome}"])
        assert isinstance(outcome, Refuse) or it.target.end == it.source.end


class ExclusiveTaskMachine(ExclusiveMachine, Tasks):
    """Tasks of one run begin again, too."""

    world: CompactedWorld


def test_no_interleaving_breaks_it() -> None:
    run_state_machine_as_test(ExclusiveMachine, settings=settings(stateful_step_count=30, deadline=None))


def test_no_interleaving_of_tasks_breaks_it() -> None:
    with of_tasks():
        run_state_machine_as_test(ExclusiveTaskMachine, settings=settings(stateful_step_count=30, deadline=None))


@pytest.mark.parametrize("looks", [off.looks_after_data, off.stops_at_once])
def test_no_interleaving_breaks_writers_that_stop_without_an_answer(looks: Clause) -> None:
    with looks():
        run_state_machine_as_test(ExclusiveMachine, settings=settings(stateful_step_count=30, deadline=None))


@pytest.mark.extra
@pytest.mark.timeout(900)
def test_no_interleaving_of_many_breaks_it() -> None:
    run_state_machine_as_test(
        ExclusiveMachine, settings=settings(max_examples=5_000, stateful_step_count=30, database=None, deadline=None)
    )


# Schedules: each ends well with all clauses. `a` is the first writer, `b` its successor.


def sent(it: CompactedWorld, task: Task, label: str) -> Task:
    """A writer continues until one request is about to leave, after its first batch was answered."""
    it.run_until(task, "send")
    it.advance(task)
    return it.run_until(task, label)


def compact(it: CompactedWorld, *offsets: int) -> None:
    """The source's cleaners remove records, on both brokers."""
    for offset in offsets:
        for broker in (0, 1):
            it.source.clean(offset, broker)


class Uncopied(Exception):
    """A run without faults did not copy the rest."""


def rest(it: CompactedWorld, *tasks: Task) -> None:
    """Writers end, what is late arrives, and a run that is quiet copies the rest."""
    ended(it, *tasks)
    it.ahead = 0
    it.sleep(2 * QUIET)
    if not isinstance(outcome := it.finish(it.start()), Done):
        raise Uncopied(it.say(f"{outcome}"))
    assert it.target.end == it.source.end


def copied(shape: str, more: str) -> CompactedWorld:
    """A run has copied all that there was, and ended. Then there is more."""
    it = CompactedWorld(shape)
    assert isinstance(it.finish(it.start()), Done)
    grow(it, more)
    return it


def passes(it: CompactedWorld) -> Task:
    """Another writer begins, and passes a hole if it may; then what is late arrives."""
    task = it.run_until(it.start(), "mark")
    it.advance(task)
    while it.late:
        it.deliver_late(0)
    return task


def compacted_in_between(wait: int = 0) -> None:
    """`a` sends record 3, late, and dies. The source's cleaner removes 3, and `b` passes it."""
    it = copied("rrr", "rrrr")
    it.lose(it.run_until(it.start(), "send"), "late", dies=True)
    compact(it, 3)
    it.sleep(wait)
    rest(it, passes(it))


def compacted_in_between_long_ago() -> None:
    """The same, and `b` begins when `a` may write no more."""
    compacted_in_between(MARKING)


def later_than_idle_connections() -> None:
    """The same, and `b` begins when the connection of `a` was closed."""
    compacted_in_between(QUIET)


def zombie_with_a_marker() -> None:
    """`a` marks 1, late, and dies. `b` begins."""
    it = copied("r", "rrr")
    compact(it, 1)
    it.lose(it.run_until(it.start(), "mark"), "late", dies=True)
    rest(it, it.start())


def record_is_back() -> None:
    """`a` marks 3, late, and dies. After *until*, `b` reads from a broker that has 3 yet: the log ends at a record."""
    it = CompactedWorld("rrrrrrr")
    it.source.clean(3, 0)
    it.lose(it.run_until(it.start(), "mark"), "late", dies=True)
    it.source.leader = 1
    it.sleep(MARKING)
    rest(it, it.start())


def own_marker_late() -> None:
    """`a` gets no answer to its marker."""
    it = CompactedWorld("rrrrrrr")
    compact(it, 3)
    a = it.run_until(it.start(), "mark")
    it.lose(a, "late", dies=False)
    rest(it, a)


def own_marker_late_and_the_ledger_silent() -> None:
    """The same, and the ledger does not answer `a` when it is about to stop, so `a` reads again."""
    it = CompactedWorld("rrrrr")
    compact(it, 0, 1)
    a = it.run_until(it.start(), "mark")
    it.lose(a, "late", dies=False)
    it.lose(it.run_until(a, "confirm"), "dropped", dies=False)
    rest(it, a)


def own_batch_late() -> None:
    """`a` gets no answer to record 3, and the source's cleaner removes it."""
    it = CompactedWorld("rrrrrrr")
    a = sent(it, it.start(), "send")
    it.lose(a, "late", dies=False)
    compact(it, 3)
    it.advance(it.run_until(a, "mark"))
    it.deliver_late(0)
    rest(it, a)


def own_old_batch_late() -> None:
    """`a` gets no answer to old records. They are there at once if they are sent again; then the state expires."""
    it = CompactedWorld("oooooo")
    a = it.run_until(it.start(), "send")
    it.lose(a, "late", dies=False)
    it.advance(it.run_until(a, "send"))
    it.expire()
    it.deliver_late(0)
    rest(it, a)


def ended_too_early() -> None:
    """`a` gets no answer to record 3, and stops. Its last receipts are there. `b` begins."""
    it = CompactedWorld("rrrrrrr")
    a = sent(it, it.start(), "send")
    it.lose(a, "late", dies=False)
    it.finish(a)
    compact(it, 3)
    rest(it, passes(it))


def ended_by_another() -> None:
    """`a` sends record 3, late, and dies. `b` is not quiet, and writes receipts of what is there. `c` begins."""
    it = CompactedWorld("rrrrrrr")
    it.lose(sent(it, it.start(), "send"), "late", dies=True)
    it.finish(it.start())
    compact(it, 3)
    rest(it, passes(it))


def receipts_in_between() -> None:
    """`a` writes receipts and continues. Its next batch is late, and it dies. `b` begins."""
    it = CompactedWorld("r" * 12)
    a = it.run_until(it.start(), "commit")
    it.advance(a)
    it.lose(it.run_until(a, "send"), "late", dies=True)
    compact(it, 9)
    rest(it, passes(it))


def receipts_late() -> None:
    """The last receipts of `a` are late, and it dies. `b` sends, late, and dies. Then the receipts arrive."""
    it = CompactedWorld("rrr")
    it.lose(it.run_until(it.start(), "commit"), "late", dies=True)
    it.sleep(QUIET)
    grow(it, "rrrr")
    it.lose(it.run_until(it.start(), "send"), "late", dies=True)
    it.deliver_late(0)
    compact(it, 3)
    rest(it, passes(it))


def ledger_read_early() -> None:
    """`a` marks 3, late. `b` reads the ledger up to an end that is before the record of that."""
    it = copied("rrr", "rrrr")
    before = it.ledger.marking
    compact(it, 3)
    it.lose(it.run_until(it.start(), "mark"), "late", dies=True)
    it.shown = before
    rest(it, it.start())


def fast_clock() -> None:
    """`a` marks 3, late. The wall clock of `b` is fast."""
    it = CompactedWorld("rrrrrrr")
    compact(it, 3)
    it.lose(it.run_until(it.start(), "mark"), "late", dies=True)
    it.ahead = QUIET
    rest(it, it.start())


def slow_clock() -> None:
    """The wall clock of `a` is slow, so it says too early a time. It marks 3, late. `b` begins."""
    it = CompactedWorld("rrrrrrr")
    compact(it, 3)
    it.ahead = -QUIET
    a = it.run_until(it.start(), "mark")
    it.ahead = 0
    if a.pending is not None:
        it.lose(a, "late", dies=True)
    rest(it, it.start())


def stopped_guest() -> None:
    """`a` says until when it writes, and its machine is stopped. `b` copies all. The machine of `a` continues."""
    it = copied("r", "rrr")
    compact(it, 1)
    a = it.run_until(it.start(), "open")
    it.step(a)
    it.sleep(QUIET)
    a.writer.cluster.paused += QUIET
    it.finish(it.start())
    rest(it, a)


def clock_set_back() -> None:
    """The wall clock of `a` is set back before it says until when it writes. It marks 0, late. `b` begins."""
    it = CompactedWorld("rrrr")
    compact(it, 0)
    a = it.run_until(it.start(), "read")
    a.writer.cluster.ahead -= 2 * QUIET
    it.lose(it.run_until(a, "mark"), "late", dies=True)
    rest(it, it.start())


def clock_set_forward() -> None:
    """`a` marks 3, late. The wall clock of `b` is set forward before it reads the target again."""
    it = CompactedWorld("rrrrrrr")
    compact(it, 3)
    it.lose(it.run_until(it.start(), "mark"), "late", dies=True)
    b = it.run_until(it.start(), "look")
    b.writer.cluster.ahead += 2 * QUIET
    it.lose(b, "dropped", dies=False)
    rest(it, b)


def one_of_two_fails() -> None:
    """The broker appends one of two markers, and answers success."""
    it = CompactedWorld("rrrrrr")
    compact(it, 1, 2)
    it.partial = True
    a = it.start()
    for _ in range(20):
        it.advance(a)
    it.partial = False
    rest(it, a)


def marker_not_replicated() -> None:
    """`b` reads a marker of `a` that the leader alone has; the leader fails before the batch of `b` arrives."""
    it = CompactedWorld("rrrrrrr")
    compact(it, 3)
    a = it.run_until(it.start(), "mark")
    it.replicating = False
    it.lose(a, "applied", dies=True)
    it.sleep(QUIET)
    b = it.run_until(it.start(), "send")
    it.fail_over(1)
    it.replicating = True
    rest(it, b)


def deposed_leader() -> None:
    """`a` dies before its receipts. A broker that leads no more shows `b` a hole that was passed."""
    it = CompactedWorld("rrrrrrr")
    compact(it, 3)
    it.lose(it.run_until(it.start(), "commit"), "dropped", dies=True)
    it.sleep(QUIET)
    b = it.run_until(it.start(), "look")
    it.stale_end = 3
    rest(it, b)


def compacted_since() -> None:
    """`a`, which takes the topic for one that is not compacted, sends record 3, late. Then the topic is compacted."""
    it = CompactedWorld("rrrrrrr")
    it.lose(sent(it, it.start_other(), "send"), "late", dies=True)
    compact(it, 3)
    rest(it, passes(it))


def two_numberings() -> None:
    """The state expires before a hole, so numbers begin at 0 again. Another broker has both kinds of batches."""
    it = copied("rrrrrr", "mrrr")
    it.forget()
    it.finish(it.start())
    it.fail_over(0)
    grow(it, "rrr")
    rest(it, it.start())


def compacted_after_a_crash() -> None:
    """`a` sends three records, and dies before its receipts. The source's cleaner removes one."""
    it = CompactedWorld("rrrrrr")
    it.lose(sent(it, it.start(), "send"), "dropped", dies=True)
    compact(it, 1)
    rest(it)


def another_broker_after_a_crash() -> None:
    """`a` passes a record that one broker has removed, and dies before its receipts. Another broker has it."""
    it = CompactedWorld("rrrrrr")
    it.source.clean(0, 0)
    it.lose(it.run_until(it.start(), "send"), "dropped", dies=True)
    it.source.leader = 1
    rest(it)


SCHEDULES: list[tuple[Clause, Schedule]] = [
    (off.data_unleased, compacted_in_between),
    (off.markers_unleased, zombie_with_a_marker),
    (marking_off.at_once, compacted_in_between),
    (marking_off.at_once, zombie_with_a_marker),
    (marking_off.lateness_not_awaited, compacted_in_between_long_ago),
    (clauses.connections_forever, later_than_idle_connections),
    (off.written_at_once, record_is_back),
    (off.own_markers_forgotten, own_marker_late),
    (marking_off.own_markers_forgotten, own_marker_late_and_the_ledger_silent),
    (off.own_data_forgotten, own_batch_late),
    (off.own_data_forgotten, own_old_batch_late),
    (off.lease_ended_by_all, ended_too_early),
    (off.lease_ended_by_all, ended_by_another),
    (off.lease_ended_early, receipts_in_between),
    (off.transactions_late, receipts_late),
    (marking_off.ledger_read_once, ledger_read_early),
    (off.clocks_unknown, fast_clock),
    (off.clocks_unknown, slow_clock),
    (marking_off.wall_clock_ignored, stopped_guest),
    (marking_off.set_back, clock_set_back),
    (off.set_forward, clock_set_forward),
    (marking_off.answers_believed, one_of_two_fails),
    (marking_off.leaders_log, marker_not_replicated),
    (clauses.stale_looks_sent, deposed_leader),
    (off.other_kinds_forgotten, compacted_since),
]
REFUSING: list[tuple[Clause, Schedule]] = [
    (off.repeats_refused, two_numberings),
    (off.repeats_of_one_size, two_numberings),
    (off.records_compared, compacted_after_a_crash),
    (off.markers_compared, another_broker_after_a_crash),
]
"""Without its clause such a schedule ends with a partition that is refused, or copied no further."""


def committed_after_another_task() -> None:
    """`a` is asleep in a transaction. `b`, a task of the same run, copies all. `a` gets no answer, and is at a hole."""
    it = CompactedWorld("rrrrrrrrrrr")
    compact(it, 9)
    a = it.run_until(it.start(), "commit")
    it.sleep(QUIET)
    it.finish(again(it))
    it.lose(a, "dropped", dies=False)
    rest(it, a)


def test_a_task_reads_again_after_a_transaction_that_was_not_committed() -> None:
    with of_tasks():
        committed_after_another_task()
        with off.end_kept(), pytest.raises(AssertionError, match="wrong: "):
            committed_after_another_task()


def test_a_writer_of_the_other_kind_must_not_follow() -> None:
    """It does not wait for the late marker, and sends the record that another broker of the source has."""
    it = copied("rrr", "rrrr")
    it.source.clean(3, 0)
    it.lose(it.run_until(it.start(), "mark"), "late", dies=True)
    it.source.leader = 1
    with pytest.raises(AssertionError, match="wrong: "):
        rest(it, it.start_other())


@pytest.mark.parametrize("schedule", dict.fromkeys(schedule for _, schedule in [*SCHEDULES, *REFUSING]))
def test_a_schedule_ends_well_with_all_clauses(schedule: Schedule) -> None:
    schedule()


@pytest.mark.parametrize("looks", [off.looks_after_data, off.stops_at_once])
@pytest.mark.parametrize("schedule", dict.fromkeys(schedule for _, schedule in SCHEDULES))
def test_a_schedule_ends_well_if_a_writer_stops_without_an_answer(schedule: Schedule, looks: Clause) -> None:
    with looks():
        schedule()


@pytest.mark.parametrize(("clause", "schedule"), SCHEDULES)
def test_without_its_clause_a_schedule_shifts_or_doubles_records(clause: Clause, schedule: Schedule) -> None:
    with clause(), pytest.raises(AssertionError, match="wrong:") as caught:
        schedule()
    assert caught.type is AssertionError


@pytest.mark.parametrize(("clause", "schedule"), REFUSING)
def test_without_its_clause_a_schedule_stops_the_copy(clause: Clause, schedule: Schedule) -> None:
    with clause(), pytest.raises((Uncopied, Endless)):
        schedule()


# What it costs.


def test_a_compacted_source_is_copied_offset_by_offset() -> None:
    it = CompactedWorld("rorormrrrorr")
    compact(it, 0, 1, 4, 8)
    assert isinstance(it.finish(it.start()), Done)
    assert [entry.value for entry in it.target.entries] == [
        None if offset in (0, 1, 4, 5, 8) else str(offset) for offset in range(12)
    ]
    assert (it.ledger.receipts, it.ledger.marking.until) == (12, 0)


def test_what_is_before_the_log_of_the_source_is_passed_by_markers() -> None:
    it = CompactedWorld("rrrrrr")
    it.source.retain(2, 0)
    it.source.retain(3, 1)
    it.lose(it.run_until(it.start(), "send"), "dropped", dies=True)
    it.source.leader = 1
    it.sleep(QUIET)
    assert isinstance(it.finish(it.start()), Done)
    assert [entry.marker for entry in it.target.entries] == [True, True, True, False, False, False]


def test_an_end_with_receipts_costs_no_wait() -> None:
    it = copied("rr", "rrr")
    began = it.now
    compact(it, 2)
    assert isinstance(it.finish(it.start()), Done)
    assert (it.now, it.target.end) == (began, 5)


@pytest.mark.parametrize("label", ["send", "mark", "commit"])
@pytest.mark.parametrize("fate", ["dropped", "applied", "late"])
def test_a_crash_costs_the_time_up_to_which_it_wrote_and_a_lateness(label: str, fate: str) -> None:
    it = CompactedWorld("rrrrrr" if label != "commit" else "rrrr")
    compact(it, 0)
    it.lose(it.run_until(it.start(), label), fate, dies=True)
    if (label, fate) != ("commit", "applied"):
        for wait in (0, MARKING, LATENESS):
            it.sleep(wait)
            end = it.target.end
            assert (it.finish(it.start()), it.target.end) in ((Refuse(Code.NOT_QUIET), end), (Done(clean=True), 4))
    it.sleep(1)
    rest(it)


@pytest.mark.parametrize("label", ["send", "mark"])
def test_a_request_that_arrived_without_an_answer_costs_nothing(label: str) -> None:
    it = CompactedWorld("rrrrrr")
    compact(it, 0)
    a = it.run_until(it.start(), label)
    it.lose(a, "applied", dies=False)
    assert isinstance(it.finish(a), Done)
    assert it.target.end == 6


def test_producer_state_that_expires_between_reading_and_sending_disturbs_nothing() -> None:
    it = copied("ooo", "ooo")
    a = it.run_until(it.start(), "send")
    it.expire()
    assert isinstance(it.finish(a), Done)
    assert it.target.end == 6


def test_without_the_permission_a_hole_is_refused_and_nothing_waits_afterwards() -> None:
    it = CompactedWorld("rrrr", limits=replace(LIMITS, markers_allowed=False))
    compact(it, 2)
    assert it.finish(it.start()) == Refuse(Code.MARKERS)
    assert (it.target.end, it.ledger.marking.until) == (2, 0)


@pytest.mark.parametrize("fate", ["dropped", "applied", "late"])
@pytest.mark.parametrize("dies", [True, False])
@pytest.mark.parametrize("label", ["note", "open", "mark", "send", "commit", "fence", "confirm", "look"])
@pytest.mark.parametrize("sent", range(3))
def test_a_fault_at_each_step_disturbs_nothing(fate: str, dies: bool, label: str, sent: int) -> None:
    it = CompactedWorld("rrrrmrrmorr")
    compact(it, 1, 5)
    task = it.run_until(it.start(), label)
    for _ in range(sent):
        if task.pending is not None:
            it.advance(task)
            it.run_until(task, label)
    it.lose(task, fate, dies=dies)
    compact(it, 2, 8)
    rest(it, task, it.start())


SEARCHES: list[Clause] = [
    off.data_unleased,
    off.own_data_forgotten,
    off.own_markers_forgotten,
    off.lease_ended_early,
    marking_off.at_once,
]


@pytest.mark.extra
@pytest.mark.timeout(600)
@pytest.mark.parametrize("clause", SEARCHES)
def test_without_a_clause_random_search_finds_a_counterexample(clause: Clause) -> None:
    with clause(), pytest.raises(AssertionError, match="wrong: "):
        search(ExclusiveMachine, 7, 3_000)
