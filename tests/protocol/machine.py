"""The protocol as a state machine: any interleaving of several runs, attempts and faults, one request at a time."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from tests.protocol.calls import Task
from tests.protocol.world import World

MAX_RUNS = 4
MAX_TASKS = 6
MAX_STEPS = 60

indexes = st.integers(0, 11)
fates = st.sampled_from(["applied", "late", "dropped"])
places = st.sampled_from(["look", "commit", "produce", "positions", "receipts", "append plan", "read", "end"])
shapes = st.sampled_from([((2, 1),), ((1, 1), (2,)), ((1, 0, 2), (2, 1)), ((3,), (1,), (0, 1))])


class ProtocolMachine(RuleBasedStateMachine):
    """Faults never lose, double or reorder a record for a read_committed reader, and the receipts are true."""

    def __init__(self) -> None:
        super().__init__()
        self.world: World

    @initialize(shape=shapes, version=st.sampled_from([1, 2]), chunk_batches=st.integers(1, 2))
    def begin(self, shape: tuple[tuple[int, ...], ...], version: int, chunk_batches: int) -> None:
        """A source with something in it, an empty target."""
        self.world = World(shape, version=version, chunk_batches=chunk_batches)
        self.runs = 0

    def live(self) -> list[Task]:
        """Tasks that wait for something."""
        return [task for task in self.world.tasks if not task.done]

    def chosen(self, index: int) -> Task:
        """One of the live tasks, the youngest first."""
        live = self.live()
        return live[-1 - index % len(live)]

    @precondition(lambda self: self.runs < MAX_RUNS)
    @rule(name=st.sampled_from("abc"), slots=st.integers(1, 3), max_records=st.sampled_from([None, 1, 3]))
    def open_run(self, name: str, slots: int, max_records: int | None) -> None:
        """A driver starts; a name may come again, as when Airflow retries its plan task."""
        self.runs += 1
        self.world.open_run(name, slots, max_records)

    @precondition(lambda self: len(self.live()) < MAX_TASKS and self.world.planned())
    @rule(index=indexes)
    def attempt(self, index: int) -> None:
        """An attempt starts, whatever else is under way for the slot."""
        planned = self.world.planned()
        self.world.attempt(*planned[-1 - index % len(planned)])

    @precondition(lambda self: self.live())
    @rule(index=indexes, count=st.integers(1, 8))
    def step(self, index: int, count: int) -> None:
        """Some requests of a task are answered."""
        task = self.chosen(index)
        for _ in range(count):
            if not task.done:
                self.world.step(task)

    @precondition(lambda self: self.live())
    @rule(index=indexes, place=places, tarry=st.booleans())
    def run_to(self, index: int, place: str, tarry: bool) -> None:
        """A task runs on to a critical place; markers may tarry meanwhile."""
        task = self.chosen(index)
        for _ in range(MAX_STEPS):
            if task.done:
                break
            self.world.step(task)
            if not tarry:
                self.world.deliver_markers()
            if task.label.startswith(place):
                break

    @precondition(lambda self: any(task.label == "read" for task in self.live()))
    @rule(index=indexes, behind=st.integers(1, 9))
    def read_stale(self, index: int, behind: int) -> None:
        """After a leader change the ledger seems shorter than it is."""
        reading = [task for task in self.live() if task.label == "read"]
        self.world.step(reading[-1 - index % len(reading)], behind)

    @precondition(lambda self: self.live())
    @rule(index=indexes, fate=fates)
    def lose(self, index: int, fate: str) -> None:
        """A request stays without an answer."""
        self.world.lose(self.chosen(index), fate)

    @precondition(lambda self: self.live())
    @rule(index=indexes, fate=fates)
    def crash(self, index: int, fate: str) -> None:
        """A process dies."""
        self.world.crash(self.chosen(index), fate)

    @precondition(lambda self: self.world.late)
    @rule(index=indexes)
    def deliver_late(self, index: int) -> None:
        """A request of the past arrives."""
        self.world.deliver_late(index % len(self.world.late))

    @precondition(lambda self: self.world.target.markers())
    @rule(index=indexes)
    def deliver_marker(self, index: int) -> None:
        """A marker arrives at one partition."""
        self.world.deliver_marker(index % len(self.world.target.markers()))

    @precondition(lambda self: self.world.target.markers())
    @rule()
    def deliver_markers(self) -> None:
        """All markers arrive."""
        self.world.deliver_markers()

    @precondition(lambda self: self.world.target.open_transactions())
    @rule(index=indexes)
    def expire(self, index: int) -> None:
        """The coordinator ends a transaction that took too long."""
        self.world.expire(index % len(self.world.target.open_transactions()))

    @rule()
    def delete_positions(self) -> None:
        """The position group is deleted."""
        self.world.delete_positions()

    @rule(index=indexes, source_next=st.integers(0, 4))
    def overwrite_position(self, index: int, source_next: int) -> None:
        """Somebody commits over a position."""
        self.world.overwrite_position(index % len(self.world.source), source_next)

    @rule()
    def compact(self) -> None:
        """The log cleaner visits the ledger."""
        self.world.compact()

    def teardown(self) -> None:
        """Whatever happened: a run without faults copies the rest, and nothing old disturbs it."""
        if hasattr(self, "world") and not self.world.broken:
            self.world.end_well()
