"""Tasks of one run that write one slot at once, as Spark may start them: the ledger shows none of them a newer run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from unittest.mock import patch

import pytest
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from ferry.clock import wall_ms
from ferry.errors import Refused
from ferry.features.identical.rules.values import Done
from ferry.ledger.receipts import receipts
from ferry.plan.rules.clock_skew import MAX_SKEW_MS
from tests.pure.identical import marking_writer, world
from tests.pure.identical import test_markers as markers
from tests.pure.identical import test_offsets as offsets
from tests.pure.identical.machine import places
from tests.pure.identical.marking_writer import MarkingWriter
from tests.pure.identical.offset_writer import OffsetWriter
from tests.pure.identical.test_slot import Identical
from tests.pure.identical.world import Near, Task, World
from tests.pure.identical.writer import Claim, Ledger
from tests.pure.protocol.world import LANE, TOPIC
from tests.pure.scripted.faults import Fault
from tests.pure.scripted.lane import at_work
from tests.pure.scripted.wire import scripted

MAX_TASKS = 5


@dataclass(slots=True)
class Kept(Ledger):
    """The ledger, which keeps the plan of the newest run."""

    plan: Claim | None = None

    def claim(self, planned_end: int, first: int = 0) -> Claim:
        """A run begins."""
        self.plan = Ledger.claim(self, planned_end, first)
        return self.plan


class Again(Near):
    """The world of a task that begins no run: its plan is in the ledger, which it reads for receipts."""

    def claim(self) -> Claim:
        """Read the ledger."""
        assert isinstance(self.ledger, Kept)
        assert self.ledger.plan is not None
        ledger = self.ledger
        ledger.fences += 1  # InitProducerId comes first
        found = replace(self.ledger.plan, receipts=ledger.receipts, marking=ledger.marking, fence=ledger.fences)
        return self.world.early(found)


def again(it: World) -> Task:
    """Another task of the newest run begins."""
    task = Task("abcdefghijklmnop"[len(it.tasks)], type(it.tasks[0].writer)(cluster=Again(it)))
    it.tasks.append(task)
    return task


@pytest.fixture(autouse=True)
def _writers() -> Iterator[None]:
    """The model's writers and its ledger are of this kind."""
    with patch.object(world, "Writer", OffsetWriter), patch.object(world, "Ledger", Kept):
        yield


class Tasks(RuleBasedStateMachine):
    """Tasks begin again at any time, while others of their run write."""

    world: World

    @precondition(lambda self: 0 < len(self.world.tasks) < MAX_TASKS and self.world.ledger.plan is not None)
    @rule(place=places)
    def again(self, place: str) -> None:
        """A task of the newest run begins once more."""
        self.world.run_until(again(self.world), place)


class TaskMachine(Tasks, offsets.OffsetMachine):
    """Sources without holes."""


class MarkingTaskMachine(Tasks, markers.MarkerMachine):
    """Sources with holes, which are passed by markers."""


@pytest.mark.slow
def test_no_interleaving_of_tasks_breaks_it() -> None:
    run_state_machine_as_test(TaskMachine, settings=settings(stateful_step_count=30, deadline=None))


@pytest.mark.slow
def test_no_interleaving_of_tasks_that_pass_holes_breaks_it() -> None:
    with patch.object(world, "Writer", MarkingWriter):
        run_state_machine_as_test(MarkingTaskMachine, settings=settings(stateful_step_count=30, deadline=None))


@pytest.mark.extra
@pytest.mark.timeout(900)
def test_no_interleaving_of_many_tasks_breaks_it() -> None:
    run_state_machine_as_test(
        TaskMachine, settings=settings(max_examples=5_000, stateful_step_count=30, database=None, deadline=None)
    )


@pytest.mark.extra
@pytest.mark.timeout(900)
def test_no_interleaving_of_many_tasks_that_pass_holes_breaks_it() -> None:
    with patch.object(world, "Writer", MarkingWriter):
        run_state_machine_as_test(
            MarkingTaskMachine,
            settings=settings(max_examples=5_000, stateful_step_count=30, database=None, deadline=None),
        )


def of_one_run() -> ExitStack:
    """All writers of a world are tasks of its first run."""
    begin = World.start

    def start(it: World) -> Task:
        return again(it) if it.tasks else begin(it)

    stack = ExitStack()
    stack.enter_context(patch.object(World, "start", start))
    return stack


OF_RUNS = (offsets.other_firsts_forgotten, offsets.first_unconfirmed)
"""Clauses that tasks of one run do not need: its plan has one first offset."""


@pytest.mark.parametrize(("clause", "schedule"), offsets.SCHEDULES)
def test_a_schedule_ends_well_if_all_its_writers_are_tasks_of_one_run(
    clause: offsets.Clause, schedule: Callable[[], None]
) -> None:
    with of_one_run():
        schedule()


@pytest.mark.parametrize(("clause", "schedule"), [one for one in offsets.SCHEDULES if one[0] not in OF_RUNS])
def test_tasks_of_one_run_need_the_same_clauses(clause: offsets.Clause, schedule: Callable[[], None]) -> None:
    with of_one_run(), clause(), pytest.raises(AssertionError, match="wrong:"):
        schedule()


# Tasks that pass holes.


def opened_by_another_task() -> None:
    """`b` begins while `a` is at a hole, and marks, late. `a` is fenced when it says that it sends markers."""
    it = World("rrrmrrr")
    a = it.run_until(it.start(), "open")
    b = it.run_until(again(it), "mark")
    it.lose(b, "late", dies=True)
    it.lose(a, "dropped", dies=False)
    markers.ended(it, a)


def records_forgotten() -> AbstractContextManager[object]:
    """A task takes no record about markers into account that came after its own beginning."""
    return patch.object(marking_writer, "forgets", lambda _, known: not known)


@pytest.fixture
def _marking() -> Iterator[None]:
    """The model's writers pass holes."""
    with patch.object(world, "Writer", MarkingWriter):
        yield


@pytest.mark.usefixtures("_marking")
@pytest.mark.parametrize(("clause", "schedule"), markers.SCHEDULES)
def test_a_schedule_with_holes_ends_well_if_all_its_writers_are_tasks_of_one_run(
    clause: markers.Clause, schedule: Callable[[], None]
) -> None:
    with of_one_run():
        schedule()


@pytest.mark.usefixtures("_marking")
def test_a_task_sees_that_another_one_may_have_sent_markers() -> None:
    opened_by_another_task()
    with records_forgotten(), pytest.raises(AssertionError, match="wrong:"):
        opened_by_another_task()


def test_a_task_that_begins_again_while_the_first_one_writes_ends_in_one_copy() -> None:
    it = World("r" * 9)
    first = it.run_until(it.start(), "send")
    second = it.run_until(again(it), "send")
    for task in (first, second, first, second):
        it.advance(task)
    assert isinstance(it.finish(second), Done)
    assert isinstance(it.finish(first), Done)
    assert it.target.end == 9


# The real slot, over scripted brokers.


@pytest.mark.slow
@pytest.mark.parametrize("skip", [0, 1, 3])
def test_a_task_that_begins_again_while_a_batch_of_the_first_one_is_late_copies_each_record_once(skip: int) -> None:
    lane = Identical([[1, 2, 1, 3, 1]])
    with scripted(lane.source, lane.target, lane.target) as (_, (source, target, elsewhere)):
        lane.connect([source, target])
        target.loop.run(elsewhere.refresh, None)
        attempt = lane.begin(lane.open("r"))
        late = Fault(api="Produce", topic=TOPIC, held=True, skip=skip)
        lane.target.faults.append(late)
        first = lane.start(attempt, target=elsewhere, request_bytes=1)
        lane.run_until(lambda: late.happened > 0)
        lane.copy(attempt)
        assert lane.is_identical()
        lane.target.release()
        lane.run_until(lambda: first.is_done)
        assert lane.is_identical()
        assert sum(one.records for one in receipts(lane.view(), lane=LANE)) == 8


@pytest.mark.slow
def test_two_tasks_of_one_attempt_that_write_at_once_copy_each_record_once() -> None:
    lane = Identical([[1] * 9])
    with scripted(lane.source, lane.target, lane.target) as (_, (source, target, elsewhere)):
        lane.connect([source, target])
        target.loop.run(elsewhere.refresh, None)
        attempt = lane.begin(lane.open("r"))
        tasks = [lane.start(attempt, request_bytes=1, target=one) for one in (target, elsewhere)]
        lane.run_until(lambda: all(task.is_done for task in tasks))
        lane.copy(attempt)
        assert lane.is_identical()
        assert sum(one.records for one in receipts(lane.view(), lane=LANE)) == 9


@pytest.mark.parametrize(("seconds", "refused"), [(MAX_SKEW_MS // 1000 - 60, False), (MAX_SKEW_MS // 1000 + 60, True)])
def test_a_machine_whose_clock_is_too_slow_writes_nothing(seconds: int, refused: bool) -> None:
    lane = Identical([[2]])
    with at_work(lane):
        began = replace(lane.begin(lane.open("r")), started_ms=wall_ms() + seconds * 1000)
        if refused:
            with pytest.raises(Refused):
                lane.copy(began)
        else:
            lane.copy(began)
        assert lane.same_up_to() == (0 if refused else 2)
