"""Compacted topics: absent records are passed, too. Any interleaving, and each clause switched off."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from unittest.mock import patch

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule, run_state_machine_as_test

from ferry.features.identical.rules.values import Code, Done, Refuse
from tests.pure.identical import exclusive_clauses as off
from tests.pure.identical import marking_clauses as marking_off
from tests.pure.identical import test_tasks, world
from tests.pure.identical.compacted_world import CompactedNear, CompactedWorld
from tests.pure.identical.exclusive_schedules import (
    REFUSING,
    SCHEDULES,
    Clause,
    Schedule,
    Uncopied,
    committed_after_another_task,
    compact,
    copied,
    rest,
)
from tests.pure.identical.exclusive_writer import ExclusiveWriter
from tests.pure.identical.machine import MAX_RUNS, indexes, places, search, shapes
from tests.pure.identical.marking_writer import MARKING, MarkingWriter
from tests.pure.identical.test_markers import QUIET, MarkerMachine
from tests.pure.identical.test_tasks import Again, Kept, Tasks
from tests.pure.identical.world import EXPIRATION, LATENESS, LIMITS, Endless
from tests.pure.identical.writer import Claim


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


@pytest.mark.slow
def test_no_interleaving_breaks_it() -> None:
    run_state_machine_as_test(ExclusiveMachine, settings=settings(stateful_step_count=30, deadline=None))


@pytest.mark.slow
def test_no_interleaving_of_tasks_breaks_it() -> None:
    with of_tasks():
        run_state_machine_as_test(ExclusiveTaskMachine, settings=settings(stateful_step_count=30, deadline=None))


@pytest.mark.slow
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
