"""The protocol as a state machine: any interleaving of several runs, attempts and faults, one request at a time."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from ferry.errors import Unreachable
from tests.pure.protocol.calls import Task
from tests.pure.protocol.world import World

MAX_RUNS = 4
MAX_TASKS = 6
MAX_STEPS = 60

indexes = st.integers(0, 5)
fates = st.sampled_from(["late", "applied", "dropped"])
behinds = st.sampled_from([0, 0, 0, 1, 2, 3, 4, 6, 9, 99])
shapes = st.sampled_from([((1,),), ((1, 1), (2,)), ((1, 0, 2), (2, 1)), ((3,), (1,), (0, 1))])
openings = st.sampled_from(["end", "end", "look", "fence", "append fenced", "fetch", "append plan"])
attempts = st.sampled_from(["end", "commit", "look", "produce", "init", "read", "receipts", "positions", "rest"])


class ProtocolMachine(RuleBasedStateMachine):
    """Faults never lose, double or reorder a record for a read_committed reader, and the receipts are true."""

    def __init__(self) -> None:
        super().__init__()
        self.world: World
        self.runs = 0

    @initialize(shape=shapes, version=st.sampled_from([1, 2]), chunk_batches=st.integers(1, 2))
    def begin(self, shape: tuple[tuple[int, ...], ...], version: int, chunk_batches: int) -> None:
        """A source with something in it, an empty target."""
        self.world = World(shape, version=version, chunk_batches=chunk_batches)

    def live(self) -> list[Task]:
        """Tasks that wait for something, the youngest first."""
        return [task for task in reversed(self.world.tasks) if not task.done]

    def chosen(self, index: int) -> Task:
        """One of the live tasks."""
        live = self.live()
        return live[index % len(live)]

    def proceed(self, task: Task, place: str, behind: int, tarry: bool) -> None:
        """A task runs on to a place; `behind`: the ledger looks shorter meanwhile; `tarry`: no marker arrives."""
        for _ in range(MAX_STEPS):
            if task.done:
                return
            self.world.step(task, behind if task.label == "read" else 0)
            if not tarry:
                self.world.deliver_markers()
            if task.label.startswith(place):
                return

    @precondition(lambda self: self.runs < MAX_RUNS)
    @rule(
        name=st.sampled_from("abc"), slots=st.integers(1, 3), max_records=st.sampled_from([None, 1, 3]), place=openings
    )
    def open_run(self, name: str, slots: int, max_records: int | None, place: str) -> None:
        """A driver begins; a name may come again, as when Airflow retries its plan task."""
        self.runs += 1
        task = self.world.open_run(name, slots, max_records)
        self.proceed(task, place, 0, tarry=False)

    @precondition(lambda self: self.runs < MAX_RUNS)
    @rule(name=st.sampled_from("abcs"), index=indexes, place=openings)
    def skip(self, name: str, index: int, place: str) -> None:
        """Somebody passes a batch by hand, whatever is under way."""
        self.runs += 1
        self.proceed(self.world.skip(name, index % len(self.world.source)), place, 0, tarry=False)

    @precondition(lambda self: len(self.live()) < MAX_TASKS and self.world.planned())
    @rule(index=indexes, place=attempts, behind=behinds, tarry=st.booleans(), anew=st.booleans())
    def attempt(self, index: int, place: str, behind: int, tarry: bool, anew: bool) -> None:
        """A task of a slot starts, whatever else is under way for it; `anew`: by a copy step of its own."""
        planned = self.world.planned()
        run, slot = planned[-1 - index % len(planned)]
        if anew:
            self.world.step(self.world.begin(run))
        self.proceed(self.world.attempt(run, slot), place, behind, tarry)

    @precondition(lambda self: len(self.live()) < MAX_TASKS and self.world.planned())
    @rule(index=indexes, place=openings)
    def end(self, index: int, place: str) -> None:
        """A driver calls its copy step off; it may be late, and another has begun."""
        planned = self.world.planned()
        self.proceed(self.world.end(planned[-1 - index % len(planned)][0]), place, 0, tarry=False)

    @precondition(lambda self: self.live())
    @rule(index=indexes, place=attempts | openings, behind=behinds, tarry=st.booleans())
    def go_on(self, index: int, place: str, behind: int, tarry: bool) -> None:
        """Somebody who waited goes on."""
        self.proceed(self.chosen(index), place, behind, tarry)

    @precondition(lambda self: self.live())
    @rule(index=indexes, behind=behinds)
    def step(self, index: int, behind: int) -> None:
        """One request is answered."""
        task = self.chosen(index)
        self.world.step(task, behind if task.label == "read" else 0)

    @precondition(lambda self: self.live())
    @rule(index=indexes, fate=fates, then=st.sampled_from(["goes on", "dies", "gives up"]))
    def trouble(self, index: int, fate: str, then: str) -> None:
        """A request stays without an answer, and its sender dies or gives up; it may arrive, now or later."""
        task = self.chosen(index)
        if then == "dies":
            self.world.crash(task, fate)
        else:
            self.world.lose(task, fate, Unreachable("no answer") if then == "gives up" else None)

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

    @precondition(lambda self: self.world.target.open_transactions())
    @rule(index=indexes)
    def expire(self, index: int) -> None:
        """The coordinator ends a transaction that took too long."""
        self.world.expire(index % len(self.world.target.open_transactions()))

    @rule(what=st.sampled_from(["delete", "overwrite", "compact"]), index=indexes)
    def meddle(self, what: str, index: int) -> None:
        """The position group is deleted or committed over; the log cleaner visits the ledger."""
        if what == "delete":
            self.world.delete_positions()
        elif what == "overwrite":
            self.world.overwrite_position(index % len(self.world.source), index)
        else:
            self.world.compact()

    def teardown(self) -> None:
        """Whatever happened: a run without faults copies the rest, and nothing old disturbs it."""
        if hasattr(self, "world") and not self.world.broken:
            self.world.end_well()
