"""Counterexamples as schedules: each ends well with all clauses, and badly without the one that closes it.

Shapes: `r` a record of now, `o` an old record, `m` a marker or an aborted record of the source. A writer reads three
records at once. `a` is the first writer, `b` its successor.
"""

from __future__ import annotations

from tests.pure.identical.world import EXPIRATION, LATENESS, LEASE, START, Task, World

OLD = START - 3 * EXPIRATION


def _late(world: World, label: str) -> Task:
    """A writer sends something that stays in the network, and dies."""
    task = world.run_until(world.start(), label)
    assert task.label == label
    world.lose(task, "late", dies=True)
    return task


def _second(world: World, label: str) -> Task:
    """A writer sends one batch, and then something is about to leave."""
    task = world.run_until(world.start(), "send")
    world.advance(task)
    world.run_until(task, label)
    assert task.label == label
    return task


def _end(world: World) -> None:
    while world.late:
        world.deliver_late(0)
    world.end_well()


def compacted_in_between(version: int) -> None:
    """`a` has read 3 and sends it; the source's cleaner removes 3; `b` sees a hole there."""
    world = World("rrrrr", version=version)
    world.lose(_second(world, "send"), "late", dies=True)
    for broker in (0, 1):
        world.source.clean(3, broker)
    b = world.run_until(world.start(), "mark")
    world.advance(b)
    _end(world)


def retained_in_between(version: int) -> None:
    """The same when the source's log start moves."""
    world = World("rrrrrr", version=version)
    world.lose(_second(world, "send"), "late", dies=True)
    for broker in (0, 1):
        world.source.retain(5, broker)
    b = world.run_until(world.start(), "mark")
    world.advance(b)
    _end(world)


def record_is_back(version: int) -> None:
    """`a` passes an absent record by a marker, which is late; `b` reads from a broker that has the record yet."""
    world = World("rrrrr", version=version)
    world.source.clean(3, 0)
    world.lose(_second(world, "mark"), "late", dies=True)
    world.source.leader = 1
    b = world.run_until(world.start(), "send")
    world.advance(b)
    _end(world)


def loose_after_its_successor(version: int) -> None:
    """`a` records that it becomes loose when `b` has already read the ledger."""
    world = World("rrrrr", version=version)
    world.source.clean(3, 0)
    a = _second(world, "record")
    b = world.start()
    world.step(b)  # claims
    world.run_until(a, "mark")
    world.lose(a, "late", dies=True)
    world.source.leader = 1
    world.run_until(b, "send")
    world.advance(b)
    _end(world)


def ended_before_it_was_quiet(version: int) -> None:
    """`b` copies the rest while a batch of `a` is late; a third writer takes its end for a clean one."""
    world = World("rrrr", version=version)
    world.lose(_second(world, "send"), "late", dies=True)
    world.finish(world.start())
    world.source.grow("oo", START, OLD)
    c = world.run_until(world.start(), "send")
    world.advance(c)
    world.run_until(c, "look")
    world.expire()
    _end(world)


def decided_just_before_the_lease_ends(version: int) -> None:
    """`a` has not yet seen `b`: it decides late in its lease, and its marker is late, too."""
    world = World("rrrmr", version=version)
    a = _second(world, "look")
    b = world.start()
    world.step(b)
    world.step(b)
    world.sleep(LEASE - 1)
    world.run_until(a, "mark")
    world.lose(a, "late", dies=True)
    world.run_until(b, "mark")
    if world.now <= START + LEASE - 1 + LATENESS:
        world.advance(b)
        world.run_until(b, "send")
        world.sleep(max(0, START + LEASE - 1 + LATENESS - world.now))
    _end(world)


def marker_late(version: int) -> None:
    """A marker of `a` is late for the whole time that a request may be late."""
    world = World("rrrmr", version=version)
    world.lose(_second(world, "mark"), "late", dies=True)
    b = world.run_until(world.start(), "mark")
    world.advance(b)
    world.run_until(b, "send")
    _end(world)


def asleep_with_a_look(version: int) -> None:
    """`a` falls asleep between its look and its decision, and wakes when `b` is done."""
    world = World("rrrmr", version=version)
    a = _second(world, "read")
    world.step(a)
    world.finish(world.start())
    world.advance(a)
    world.advance(a)
    _end(world)


def own_marker_late(version: int) -> None:
    """`a` gets no answer to its marker, and continues."""
    world = World("rrrmr", version=version)
    a = _second(world, "mark")
    world.lose(a, "late", dies=False)
    world.run_until(a, "mark")
    world.advance(a)
    _end(world)


def own_old_batch_late(version: int) -> None:
    """`a` gets no answer to an old batch and sends it again; the producer state expires by its timestamp."""
    world = World("ooo", version=version)
    a = world.run_until(world.start(), "send")
    world.lose(a, "late", dies=False)
    world.run_until(a, "send")
    world.advance(a)
    world.run_until(a, "end")
    world.expire()
    _end(world)


def old_batch_late(version: int) -> None:
    """The first batch of `a` is old and late; `b` sends it, too, and the producer state expires."""
    world = World("ooo", version=version)
    _late(world, "send")
    b = world.run_until(world.start(), "send")
    world.advance(b)
    world.run_until(b, "end")
    world.expire()
    _end(world)


def old_records_after_new_ones(version: int) -> None:
    """`a` sends old records after new ones, late; `b` sends them, and the producer state expires."""
    world = World("rrrooor", version=version)
    world.lose(_second(world, "send"), "late", dies=True)
    b = world.run_until(world.start(), "send")
    world.advance(b)
    world.expire()
    _end(world)


def marker_not_replicated(version: int) -> None:
    """The marker of `a` is in the leader's log, above the high watermark."""
    world = World("rrrmr", version=version)
    a = _second(world, "mark")
    world.replicating = False
    world.lose(a, "applied", dies=True)
    b = world.run_until(world.start(), "mark")
    world.advance(b)
    _end(world)


def batch_not_replicated(version: int) -> None:
    """A batch of `a` is in the leader's log, above the high watermark, and DescribeProducers shows its sequence."""
    world = World("rrrrrr", version=version)
    a = _second(world, "send")
    world.replicating = False
    world.lose(a, "applied", dies=True)
    b = world.run_until(world.start(), "send")
    world.advance(b)
    _end(world)


def stale_leader(version: int) -> None:
    """`b` waited until it is quiet; a broker that leads no more, and lacks the marker of `a`, answers its look."""
    world = World("rrrmr", version=version)
    a = _second(world, "mark")
    world.lose(a, "applied", dies=True)
    b = world.start()
    world.step(b)
    world.step(b)
    world.sleep(LEASE + LATENESS + 1)
    world.run_until(b, "look")
    world.stale_end = 3
    world.run_until(b, "mark")
    world.advance(b)
    _end(world)


def marker_twice(version: int) -> None:
    """The coordinator gets no answer to its marker and sends it once more; the second one comes late."""
    world = World("mmmmmmr", version=version)
    a = world.run_until(world.start(), "fill")
    world.step(a)
    world.step(a)
    world.step(a)  # InitProducerId
    world.deliver_marker(doubled=True)
    world.run_until(a, "send")
    _end(world)


def marker_twice_at_once(version: int) -> None:
    """The second marker comes before the look."""
    world = World("mmmmmmr", version=version)
    a = world.run_until(world.start(), "fill")
    world.step(a)
    world.step(a)
    world.step(a)
    world.deliver_marker(doubled=True)
    world.deliver_late(0)
    _end(world)


def transaction_left_open(version: int) -> None:
    """`a` dies in its transaction; the coordinator ends it when `b` is done."""
    world = World("mmmmmmr", version=version)
    a = world.run_until(world.start(), "fill")
    world.lose(a, "dropped", dies=True)
    world.finish(world.start())
    world.slot.time_out()
    world.deliver_marker()
    _end(world)


def deleted_and_loaded_again(version: int) -> None:
    """DeleteRecords, and a leader that reads its producer state from what is left; a batch of `a` is late."""
    world = World("rrrrrr", version=version)
    world.lose(_second(world, "send"), "late", dies=True)
    b = world.run_until(world.start(), "send")
    world.advance(b)
    world.run_until(b, "end")
    world.delete()
    world.fail_over(0)
    _end(world)


def seal_deleted(version: int) -> None:
    """DeleteRecords takes the seal, a leader reads its producer state from what is left, and a second marker comes."""
    world = World("mmmmmmrr", version=version)
    a = world.run_until(world.start(), "fill")
    for _ in range(3):
        world.step(a)
    world.deliver_marker(doubled=True)
    world.finish(a)
    world.delete()
    world.fail_over(0)
    _end(world)
