"""The counterexamples that the clauses close, step by step. Each ends well as long as the clauses hold."""

from __future__ import annotations

from ferry.errors import FerryError, Retryable, Superseded, Unreachable
from ferry.messages.catalogue import sentence
from ferry.model import Plan
from ferry.protocol.drops import Blocked, Dropped, drop
from ferry.protocol.slot import SlotProgress
from tests.pure.decide.values import piece
from tests.pure.protocol.broker import LEDGER
from tests.pure.protocol.calls import Task
from tests.pure.protocol.world import TOPIC, World, everything_is_copied
from tests.said import data_of


def _copy(world: World, run: str) -> None:
    """Attempts of all slots of a run, to their ends."""
    for name, slot in world.planned():
        if name == run:
            world.finish(world.attempt(run, slot))


def _amid(version: int, place: str) -> tuple[World, Task]:
    """A run with one slot is opened, and the first attempt at it stands before `place`."""
    world = World([(1, 1)], version=version)
    world.finish(world.open_run("a", 1))
    task = world.attempt("a", 0)
    world.run_until(task, place)
    return world, task


def two_drivers_at_once(version: int) -> None:
    """Both start before either has written its run record; the first one's task comes late."""
    world = World([(1, 1)], version=version)
    first, second = world.open_run("a", 1), world.open_run("b", 1)
    world.finish(first)
    world.finish(second)
    _copy(world, "a")
    _copy(world, "b")
    world.end_well()


def fewer_slots_than_before(version: int) -> None:
    """A task of slot 1 stands behind its data while a run with one slot opens; then it goes on."""
    world = World([(2,), (1,)], version=version)
    world.finish(world.open_run("a", 2))
    zombie = world.attempt("a", 1)
    world.run_until(zombie, "positions" if version >= 2 else "join positions")
    world.finish(world.open_run("b", 1))
    world.finish(zombie)
    _copy(world, "b")
    world.end_well()


def opened_again_with_fewer_slots(version: int) -> None:
    """The run is opened under its name with one slot by a driver that dies, and compaction drops the first record."""
    world = World([(2,), (1,)], version=version)
    world.finish(world.open_run("a", 2))
    zombie = world.attempt("a", 1)
    world.run_until(zombie, "produce")
    dead = world.open_run("a", 1)
    world.step(dead)
    world.crash(dead, "dropped")
    world.compact()
    world.finish(world.open_run("a", 1))
    world.finish(zombie)
    _copy(world, "a")
    world.end_well()


def two_slots_two_attempts(version: int) -> None:
    """A second attempt of slot 1 has taken over when an attempt of slot 0 commits."""
    world = World([(1,), (1,)], version=version)
    world.finish(world.open_run("a", 2))
    world.crash(world.attempt("a", 1), "dropped")
    second = world.attempt("a", 1)
    world.run_until(second, "produce")
    world.finish(world.attempt("a", 0))
    world.finish(second)
    world.end_well()


def positions_deleted(version: int) -> None:
    """The position group is gone when the next run opens."""
    world = World([(1, 2)], version=version)
    world.finish(world.open_run("a", 1, max_records=1))
    _copy(world, "a")
    world.delete_positions()
    world.finish(world.open_run("b", 1))
    _copy(world, "b")
    world.end_well()


def stale_read_of_a_retry(version: int) -> None:
    """A first attempt commits; the second one's reads do not show it, for a new leader answers late."""
    world = World([(1, 1)], version=version)
    world.finish(world.open_run("a", 1))
    planned = world.target.logs[LEDGER].end
    world.finish(world.attempt("a", 0))
    hidden = world.target.logs[LEDGER].end - planned
    retry = world.attempt("a", 0)
    world.step(retry, hidden)
    world.run_until(retry, "read")
    world.step(retry, hidden)
    world.finish(retry)
    world.end_well()


def stale_read_of_a_marker(version: int) -> None:
    """A first attempt commits; the second one's reads show its receipt without the marker that decides it."""
    world = World([(1, 1)], version=version)
    world.finish(world.open_run("a", 1))
    world.finish(world.attempt("a", 0))
    retry = world.attempt("a", 0)
    world.step(retry, 1)
    world.run_until(retry, "read")
    world.step(retry, 1)
    world.finish(retry)
    world.end_well()


def late_batch_after_an_abort(version: int) -> None:
    """A batch is still in the network when its writer tries again; it arrives in the next transaction."""
    world, task = _amid(version, "produce")
    world.lose(task, "late")
    world.run_until(task, "produce")
    world.deliver_late()
    world.finish(task)
    world.end_well()


def crashed_neighbour(version: int) -> None:
    """A neighbour's open transaction holds the ledger's last stable offset back; a committed slot is tried again."""
    world = World([(1,), (1,)], version=version)
    world.finish(world.open_run("a", 2))
    neighbour = world.attempt("a", 1)
    world.run_until(neighbour, "commit")
    world.crash(neighbour, "dropped")
    world.finish(world.attempt("a", 0))
    world.finish(world.attempt("a", 0))
    world.end_well()


def writer_between_plan_and_fence(version: int) -> None:
    """A task goes on after a driver has decided its plan."""
    world = World([(1,)], version=version)
    world.finish(world.open_run("a", 1))
    zombie = world.attempt("a", 0)
    world.run_until(zombie, "positions" if version >= 2 else "join positions")
    driver = world.open_run("b", 1)
    world.run_until(driver, "fetch")
    world.step(driver)
    world.finish(zombie)
    world.finish(driver)
    _copy(world, "b")
    world.end_well()


def stale_read_of_a_driver(version: int) -> None:
    """A commit lies just before the fencing; the driver's read after it goes to a leader that answers late."""
    world = World([(1,)], version=version)
    world.finish(world.open_run("a", 1))
    task = world.attempt("a", 0)
    world.run_until(task, "commit")
    driver = world.open_run("b", 1)
    world.step(driver)
    world.step(driver)
    world.finish(task)
    world.run_until(driver, "append fenced")
    world.step(driver)
    world.step(driver, 99)
    world.finish(driver)
    _copy(world, "b")
    world.end_well()


def author_of_a_commit_dies(version: int) -> None:
    """EndTxn was taken, the markers tarry and its author is dead: the fence is answered "busy" until they arrive."""
    world, task = _amid(version, "commit")
    world.crash(task, "applied")
    driver = world.open_run("b", 1)
    for _ in range(6):
        world.step(driver)
    assert driver.label == "fence slot-0", world.trace
    world.finish(driver)
    _copy(world, "b")
    world.end_well()


def paused_writer(version: int, place: str) -> None:
    """An attempt pauses before `place`; a run with fewer slots opens and copies all; then the zombie wakes."""
    world = World([(2,), (1,)], version=version)
    world.finish(world.open_run("a", 2))
    zombie = world.attempt("a", 1)
    world.run_until(zombie, place)
    assert zombie.label.startswith(place), world.trace
    world.finish(world.open_run("b", 1))
    _copy(world, "b")
    world.finish(zombie)
    world.end_well()


def skipped_while_a_writer_sleeps(version: int, place: str) -> None:
    """A batch is passed by hand while the task that copies it sleeps; then the task goes on."""
    world, zombie = _amid(version, place)
    world.finish(world.skip("s", 0))
    assert isinstance(world.tasks[-1].result, Plan), world.tasks[-1].error
    world.finish(zombie)
    assert isinstance(zombie.error, Superseded)
    world.finish(world.open_run("b", 1))
    _copy(world, "b")
    world.end_well()
    (receipt,) = world.committed_receipts()
    assert (receipt.start, receipt.end) == (1, 2)


def opened_while_somebody_skips(version: int, place: str) -> None:
    """A run is opened before the gap is written; what it copies was not skipped, and the skip says so."""
    world = World([(1, 1)], version=version)
    world.finish(world.open_run("a", 1))
    skip = world.skip("s", 0)
    world.run_until(skip, place)
    world.finish(world.open_run("b", 1))
    world.finish(skip)
    assert isinstance(skip.error, Superseded)
    _copy(world, "b")
    world.end_well()
    assert [(receipt.start, receipt.end) for receipt in world.committed_receipts()] == [(0, 1), (1, 2)]


def copied_again_while_the_first_lives(version: int, place: str) -> None:
    """`copy` is retried while a slot of the first one stands before `place`; the first must not disturb the second."""
    world, first = _amid(version, place)
    world.step(world.begin("a"))
    second = world.attempt("a", 0)
    world.run_until(second, "commit")
    world.finish(first)
    assert isinstance(first.error, Superseded), world.trace
    _undisturbed(world, second)


def answer_lost_while_another_copies(version: int) -> None:
    """The first slot learns nothing of its end: no answer comes to it while a newer attempt is amid a transaction."""
    world, first = _amid(version, "produce")
    world.step(world.begin("a"))
    second = world.attempt("a", 0)
    world.run_until(second, "commit")
    world.lose(first, "dropped")
    world.finish(first)
    assert isinstance(first.error, Superseded), world.trace
    _undisturbed(world, second)


def gives_up_amid_a_transaction(version: int, place: str, error: FerryError) -> None:
    """The cluster does not answer before `place`, or refuses: no reader must wait for the transaction's timeout."""
    world, task = _amid(version, place)
    assert world.target.open_transactions(), world.trace
    world.lose(task, "dropped", error)
    world.finish(task)
    assert (type(task.error), str(task.error)) == (type(error), str(error)), world.trace
    assert not world.target.open_transactions(), world.trace
    world.end_well()


def gives_up_while_another_copies(version: int) -> None:
    """The first slot gives up while a newer attempt is amid a transaction: that one's must not be ended."""
    world, first = _amid(version, "produce")
    world.step(world.begin("a"))
    second = world.attempt("a", 0)
    world.run_until(second, "commit")
    world.lose(first, "dropped", Unreachable("no answer"))
    world.finish(first)
    assert isinstance(first.error, Unreachable), world.trace
    _undisturbed(world, second)


def gives_up_without_an_answer(version: int, place: str) -> None:
    """Nor does the coordinator answer the one that leaves: what made it leave is what it says."""
    world, task = _amid(version, "commit")
    error = Unreachable("no answer")
    world.lose(task, "dropped", error)
    world.run_until(task, place)
    world.lose(task, "late", Unreachable("none here either"))
    assert (type(task.error), str(task.error)) == (type(error), str(error)), world.trace
    world.end_well()


def gives_up_for_a_reason_with_a_code(version: int, *before: Blocked) -> FerryError:
    """A cluster cannot be reached, perhaps after a partition could not be written: what is raised then."""
    world, task = _amid(version, "produce")
    for error in before:
        world.lose(task, "dropped", error)
        world.run_until(task, "produce")
    world.lose(task, "dropped", Unreachable(sentence("acls.unread", cluster="b", why="no answer")))
    world.finish(task)
    assert task.error is not None, world.trace
    world.end_well()
    return task.error


def gives_up_after_a_refusal(version: int) -> SlotProgress:
    """Partition 0 is dropped from the attempt, and then the cluster does not answer."""
    world = World([(1,), (1,)], version=version)
    world.finish(world.open_run("a", 1))
    result = SlotProgress()
    task = world.attempt("a", 0, result)
    world.run_until(task, "produce")
    world.lose(
        task, "dropped", Dropped([drop("foreign.at-work", piece(TOPIC, 0), 0, place="t-0", cluster="there", at=7)])
    )
    world.run_until(task, "commit")
    world.lose(task, "dropped", Unreachable("no answer"))
    world.finish(task)
    assert isinstance(task.error, Unreachable), world.trace
    world.end_well()
    return result


def task_repeated_while_the_first_lives(version: int) -> None:
    """Spark takes a worker for dead and starts its task again, in the same attempt; then the worker goes on."""
    world, first = _amid(version, "produce")
    second = world.attempt("a", 0)
    world.run_until(second, "commit")
    world.finish(first)
    assert isinstance(first.error, Retryable), world.trace
    _undisturbed(world, second)


def _undisturbed(world: World, second: Task) -> None:
    world.finish(second)
    assert second.result is not None, f"the second one was fenced: {second.label} {world.trace}"
    assert second.result.retries == 0, f"the second one was fenced: {world.trace}"
    world.end_well()


def fenced_between_check_and_fence(version: int) -> None:
    """The one race that remains: a first slot checked, stands before InitProducerId, and then fences the second."""
    world, first = _amid(version, "init")
    world.step(world.begin("a"))
    second = world.attempt("a", 0)
    world.run_until(second, "commit")
    world.finish(first)
    world.finish(second)
    assert isinstance(first.error, Superseded), world.trace
    assert isinstance(second.error, Retryable), world.trace
    third = world.attempt("a", 0)
    world.finish(third)
    assert third.result is not None, world.trace
    world.end_well()


def timed_out(version: int) -> None:
    """The coordinator gives a transaction up; nobody took over, so the slot may be copied once more."""
    world, first = _amid(version, "commit")
    world.expire()
    world.finish(first)
    assert isinstance(first.error, Retryable), world.trace
    assert data_of(first.error)[0] == "slot.fenced"
    again = world.attempt("a", 0)
    world.finish(again)
    assert again.result is not None, world.trace
    world.end_well()


def called_off(version: int, place: str) -> None:
    """The driver ends its attempt while a slot stands before `place`; the slot stops, and a later attempt does not."""
    world = World([(1, 1), (2,)], version=version)
    world.finish(world.open_run("a", 2))
    task = world.attempt("a", 0)
    world.run_until(task, place)
    late = world.end("a")
    world.step(late)
    world.finish(late)
    world.lose(task, "dropped")
    world.finish(task)
    assert isinstance(task.error, Superseded), world.trace
    world.step(world.begin("a"))
    _copy(world, "a")
    assert all(task.result is not None for task in world.tasks[-2:]), world.trace
    world.end_well()


def one_chunk_at_a_time(version: int, batches: int) -> None:
    """Every try of a slot is late; each copies a chunk all the same, so the slot comes to its end."""
    world = World([(1,) * batches], version=version)
    world.finish(world.open_run("a", 1))
    for _ in range(batches):
        task = world.attempt("a", 0)
        world.finish(task)
        assert len(task.result.receipts) == 1, world.trace
    everything_is_copied(world)


def unknown_commit(version: int, fate: str) -> None:
    """The answer to a commit never comes; the commit is applied, late or dropped."""
    world = World([(1, 2)], version=version)
    world.finish(world.open_run("a", 1))
    task = world.attempt("a", 0)
    world.run_until(task, "commit")
    world.lose(task, fate)
    world.finish(task)
    assert task.result is not None, world.trace
    world.end_well()


def overtaken_driver(version: int, place: str = "append plan") -> Task:
    """A driver stands before `place` while another run is opened, sealed and copied; then it goes on."""
    world = World([(1, 1)], version=version)
    late = world.open_run("a", 1)
    world.run_until(late, place)
    assert late.label.startswith(place), world.trace
    world.finish(world.open_run("b", 1))
    world.finish(late)
    _copy(world, "b")
    world.end_well()
    return late


def overtaken_before_its_commit(version: int) -> None:
    """A driver has looked for a newer run and found none; another run is opened and sealed before its EndTxn comes."""
    world = World([(1, 1)], version=version)
    late = world.open_run("a", 1)
    world.run_until(late, "append plan")
    world.run_until(late, "commit")
    world.finish(world.open_run("b", 1))
    world.finish(late)
    assert isinstance(late.error, Superseded), world.trace
    _copy(world, "b")
    world.end_well()


def driver_fences_late(version: int) -> None:
    """A driver has read the ledger and initialises its writer only after a newer run was sealed."""
    overtaken_driver(version, "init")
