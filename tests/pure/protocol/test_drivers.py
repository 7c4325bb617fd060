"""The driver writer on the modelled cluster: what a driver decides counts with its plan, or not at all."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

import pytest

from ferry.errors import Retryable, Superseded
from ferry.model import Plan
from ferry.protocol.driver import OPENINGS
from tests.pure.protocol import clauses, schedules
from tests.pure.protocol.calls import Task
from tests.pure.protocol.ports import DRIVER
from tests.pure.protocol.world import World
from tests.said import data_of

versions = pytest.mark.parametrize("version", [1, 2])


def _amid(version: int, place: str) -> tuple[World, Task]:
    """A driver that has fenced, and now stands before `place` of its plan's transaction."""
    world = World([(1, 1)], version=version)
    task = world.open_run("a", 1)
    world.run_until(task, "append plan")
    world.run_until(task, place)
    assert task.label.startswith(place), world.trace
    return world, task


def _fence_driver(world: World) -> None:
    """A late driver of an earlier run initialises the writer; it writes nothing."""
    world.deliver_markers()
    while world.target.open_transactions():
        world.expire()
        world.deliver_markers()
    world.target.init_producer(DRIVER)


@versions
@pytest.mark.parametrize(
    ("clause", "schedule"),
    [
        (clauses.driver_writes_plainly, schedules.overtaken_driver),
        (clauses.driver_unguarded, schedules.overtaken_driver),
        (clauses.driver_unfenced, schedules.overtaken_before_its_commit),
        (clauses.no_look_of_the_driver, schedules.driver_fences_late),
    ],
)
def test_a_clause_keeps_what_a_newer_run_decided(
    clause: Callable[[], ExitStack], schedule: Callable[[int], object], version: int
) -> None:
    schedule(version)
    with clause(), pytest.raises(AssertionError, match="decided"):
        schedule(version)


@versions
@pytest.mark.parametrize("backup_only", [clauses.driver_unfenced, clauses.no_look_of_the_driver])
def test_fence_and_look_each_stop_a_driver_before_its_appends(
    backup_only: Callable[[], ExitStack], version: int
) -> None:
    with backup_only():
        schedules.overtaken_driver(version)


@versions
@pytest.mark.parametrize("place", ["init", "append fenced", "fetch", "append plan", "commit"])
def test_an_overtaken_driver_is_superseded_wherever_it_wakes(version: int, place: str) -> None:
    error = schedules.overtaken_driver(version, place).error
    assert isinstance(error, Superseded)
    assert data_of(error)[0] == "superseded.driver"


@versions
def test_a_driver_that_finds_a_newer_run_sends_no_end_of_its_transaction(version: int) -> None:
    world = World([(1, 1)], version=version)
    late = world.open_run("a", 1)
    world.run_until(late, "init")
    world.finish(world.open_run("b", 1))
    before = world.decided()
    world.finish(late)
    assert isinstance(late.error, Superseded), world.trace
    assert f"{late.name}: append fenced" in world.trace
    assert f"{late.name}: commit" not in world.trace
    world.deliver_markers()
    assert world.decided() == before
    assert not world.target.open_transactions(), world.trace


@versions
@pytest.mark.parametrize("fate", ["applied", "late", "dropped"])
def test_a_plan_whose_commit_had_no_answer_counts_once(version: int, fate: str) -> None:
    world, task = _amid(version, "commit")
    world.lose(task, fate)
    world.finish(task)
    assert isinstance(task.result, Plan), world.trace
    generation = task.result.generation
    assert world.decided() == {"start": [generation], "era": [generation]}
    assert world.trace.count(f"{task.name}: append plan") == (1 if fate == "applied" else 2), world.trace
    world.end_well()


@versions
@pytest.mark.parametrize("place", ["append plan", "commit"])
def test_a_driver_fenced_without_a_newer_run_opens_the_run_again(version: int, place: str) -> None:
    world, task = _amid(version, place)
    _fence_driver(world)
    world.finish(task)
    assert isinstance(task.result, Plan), world.trace
    assert world.trace.count(f"{task.name}: append run") == 2, world.trace
    generation = task.result.generation
    assert world.decided() == {"start": [generation], "era": [generation]}
    world.end_well()


@versions
def test_a_run_whose_driver_is_fenced_each_time_may_be_opened_later(version: int) -> None:
    world, task = _amid(version, "append plan")
    for left in reversed(range(OPENINGS)):
        _fence_driver(world)
        world.step(task)
        if left:
            world.run_until(task, "append plan")
    world.finish(task)
    assert isinstance(task.error, Retryable), world.trace
    code, facts = data_of(task.error)
    assert (code, facts["run"], facts["times"]) == ("driver.fenced", "a", OPENINGS)
    assert world.trace.count(f"{task.name}: append run") == OPENINGS, world.trace
    assert world.decided() == {"start": [], "era": []}
    world.end_well()
