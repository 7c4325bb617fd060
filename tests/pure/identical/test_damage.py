"""What identical offsets refuse: settings that do not fit, a foreign producer, records that are gone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ferry.features.identical.rules.values import Code, Done, Limits, Refuse
from tests.pure.identical import clauses
from tests.pure.identical.world import FOREIGN, LATENESS, LEASE, LIMITS, START, Task, World


def foreign(world: World, value: str = "x") -> None:
    """Another producer writes one record."""
    world.checking = False
    world.target.produce(FOREIGN, 0, 0, [(value, START)], transactional=False)
    world.settle()


def ours_behind(world: World) -> list[int]:
    """Base offsets of the lane's batches after the foreign record."""
    entries = world.target.entries
    where = next(offset for offset, entry in enumerate(entries) if entry.producer == FOREIGN)
    return sorted({entry.base for entry in entries[where:] if entry.value is not None and entry.producer != FOREIGN})


def writing(shape: str, label: str) -> tuple[World, Task]:
    """A writer that has sent its first batch, and is about to send the next thing."""
    world = World(shape)
    task = world.run_until(world.start(), "send")
    world.advance(task)
    return world, world.run_until(task, label)


@pytest.mark.parametrize("label", ["look", "read"])
def test_a_foreign_record_before_the_look_is_refused_at_once(label: str) -> None:
    world, task = writing("rrrrrr", "look")
    if label == "read":
        world.step(task)
    foreign(world)
    outcome = world.finish(task)
    assert isinstance(outcome, Refuse)
    assert len(ours_behind(world)) == (0 if label == "look" else 1)


def test_a_foreign_record_before_a_batch_is_found_by_its_answer() -> None:
    world, task = writing("rrrrrrrrr", "send")
    foreign(world)
    assert world.finish(task) == Refuse(Code.SHIFTED)
    assert len(ours_behind(world)) == 1


def test_a_foreign_record_before_a_marker_is_found_by_the_next_look() -> None:
    world, task = writing("rrrmrr", "mark")
    foreign(world)
    assert world.finish(task) == Refuse(Code.MOVED)
    assert not ours_behind(world)


@pytest.mark.parametrize("late", [True, False])
def test_the_next_run_finds_a_foreign_record(late: bool) -> None:
    """Also when a late batch of ours follows it: that differs from the source's at its offset."""
    world, task = writing("rrrrrrrrr", "send")
    world.lose(task, "late" if late else "dropped", dies=True)
    foreign(world)
    if late:
        world.deliver_late(0)
    assert world.finish(world.start()) == Refuse(Code.SHIFTED if late else Code.FOREIGN)
    assert len(ours_behind(world)) == late


def test_without_the_checks_more_follows_a_foreign_record() -> None:
    world, task = writing("rrrrrrrrr", "send")
    foreign(world)
    with clauses.damage_unseen():
        world.finish(task)
    assert len(ours_behind(world)) > 1


def lost() -> World:
    """A target that lost acknowledged records by an unclean election."""
    world, task = writing("rrrrrr", "look")
    world.finish(task)
    world.target.fail_over(3)
    world.settle()
    return world


def test_a_log_that_ends_before_its_receipts_is_refused() -> None:
    world = lost()
    assert world.finish(world.start()) == Refuse(Code.LOST)


def test_once_it_is_quiet_lost_records_could_be_copied_again() -> None:
    """The refusal is for readers who had them: the log's end still says which record comes next."""
    world = lost()
    with clauses.losses_unseen():
        assert isinstance(world.finish(world.start()), Done)
    assert world.target.end == 6


@pytest.mark.parametrize(
    ("limits", "code"),
    [
        (replace(LIMITS, lateness=None), Code.LATE_UNBOUNDED),
        (replace(LIMITS, expiration=LEASE + 2 * LATENESS), Code.STATE_TOO_SHORT),
        (replace(LIMITS, keeps_acknowledged=False), Code.MAY_LOSE),
    ],
)
def test_settings_that_do_not_fit_are_refused(limits: Limits, code: Code) -> None:
    world = World("r", limits=limits)
    assert world.finish(world.start()) == Refuse(code)


def test_holes_need_leave_to_write_markers() -> None:
    world = World("rrm", limits=replace(LIMITS, markers_allowed=False))
    assert world.finish(world.start()) == Refuse(Code.MARKERS)
    assert world.target.end == 2


def test_a_dense_source_needs_no_leave() -> None:
    world = World("rrr", limits=replace(LIMITS, markers_allowed=False))
    assert world.finish(world.start()) == Done(clean=True)


def test_a_target_that_is_ahead_is_refused() -> None:
    world = World("r")
    foreign(world)
    foreign(world)
    world.target.produce(FOREIGN, 0, 1, [("y", START)], transactional=False)
    world.settle()
    assert world.finish(world.start()) == Refuse(Code.AHEAD)


def test_a_crash_without_holes_costs_no_waiting() -> None:
    """Records of today are compared, so a successor continues at once."""
    world, task = writing("rrrrrr", "send")
    world.lose(task, "late", dies=True)
    assert world.finish(world.start()) == Done(clean=False)
    assert world.now == START


def test_a_clean_end_costs_no_waiting() -> None:
    world = World("rrrm")
    assert world.finish(world.start()) == Done(clean=True)
    world.source.grow("mo", START, START - 1_000)
    assert world.finish(world.start()) == Done(clean=True)
    assert world.now == START
