"""Identical offsets as a state machine: any interleaving of writers and faults, one request at a time."""

from __future__ import annotations

from unittest.mock import patch

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.internal.conjecture.providers import HypothesisProvider
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

from tests.pure.identical.world import EXPIRATION, Task, World

MAX_RUNS = 4
STEPS = 30

indexes = st.integers(0, 5)
shapes = st.text("rrrom", min_size=1, max_size=6) | st.sampled_from(
    ["mmmmmmrr", "mmmmmmro", "rrmmmmmmmor", "mrmrmr", "rrrrrr", "oooooo", "rmmro"]
)
places = st.sampled_from(["send", "send", "mark", "mark", "fill", "seal", "record", "end", "init", "look", "read"])
times = st.sampled_from([1, 2, 3, 6, 9, 39, 41])


class IdenticalMachine(RuleBasedStateMachine):
    """Faults never shift, double or lose a record, and once they stop all is copied."""

    def __init__(self) -> None:
        super().__init__()
        self.world: World

    @initialize(shape=shapes, version=st.sampled_from([1, 2]), doubling=st.booleans())
    def begin(self, shape: str, version: int, doubling: bool) -> None:
        """A source with something in it, an empty target; `doubling`: the coordinator's markers come twice."""
        self.world = World(shape, version=version)
        self.world.doubling = doubling

    def live(self) -> list[Task]:
        """Writers that wait for something, the youngest first."""
        return [task for task in reversed(self.world.tasks) if task.pending is not None]

    def chosen(self, index: int) -> Task:
        """One of the live writers."""
        live = self.live()
        return live[index % len(live)]

    @precondition(lambda self: len(self.world.tasks) < MAX_RUNS)
    @rule(place=places)
    def start(self, place: str) -> None:
        """A run begins and continues to a place."""
        self.world.run_until(self.world.start(), place)

    @precondition(lambda self: self.live())
    @rule(index=indexes, place=places)
    def go_on(self, index: int, place: str) -> None:
        """A writer continues to a place."""
        task = self.chosen(index)
        self.world.advance(task)
        self.world.run_until(task, place)

    @precondition(lambda self: self.live())
    @rule(index=indexes)
    def step(self, index: int) -> None:
        """A request arrives, or its answer."""
        self.world.step(self.chosen(index))

    @precondition(lambda self: self.live())
    @rule(index=indexes, fate=st.sampled_from(["late", "late", "applied", "dropped"]), dies=st.booleans())
    def trouble(self, index: int, fate: str, dies: bool) -> None:
        """A request stays without an answer; it may arrive, now or later."""
        self.world.lose(self.chosen(index), fate, dies=dies)

    @precondition(lambda self: self.world.late)
    @rule(index=indexes)
    def deliver_late(self, index: int) -> None:
        """A request of the past arrives."""
        self.world.deliver_late(index % len(self.world.late))

    @rule(time=times)
    def sleep(self, time: int) -> None:
        """Everybody is asleep."""
        self.world.sleep(time)

    @rule()
    def expire(self) -> None:
        """A broker drops old producer state."""
        self.world.expire()

    @precondition(lambda self: self.world.slot.closing is not None)
    @rule(doubled=st.booleans())
    def deliver_marker(self, doubled: bool) -> None:
        """The coordinator's marker arrives, maybe twice."""
        self.world.deliver_marker(doubled=doubled)

    @precondition(lambda self: self.world.slot.member)
    @rule()
    def time_out(self) -> None:
        """The coordinator aborts a transaction that takes too long."""
        self.world.trace.append("transaction timeout")
        self.world.slot.time_out()

    @rule(on=st.booleans())
    def replicate(self, on: bool) -> None:
        """Followers stop fetching, or fetch again."""
        self.world.replicating = on
        self.world.settle()

    @rule(kept=st.integers(0, 3))
    def fail_over(self, kept: int) -> None:
        """Another replica leads."""
        self.world.fail_over(kept)

    @precondition(lambda self: any(task.label == "look" for task in self.live()))
    @rule(back=st.integers(0, 3))
    def stale(self, back: int) -> None:
        """The next look is answered by a broker that leads no more."""
        self.world.stale_end = max(0, self.world.target.hw - back)

    @rule(offset=indexes, broker=st.integers(0, 1), both=st.booleans())
    def clean(self, offset: int, broker: int, both: bool) -> None:
        """The source's cleaner removes a record, on one broker or on both."""
        for one in (0, 1) if both else (broker,):
            self.world.source.clean(offset, one)

    @rule(start=indexes, broker=st.integers(0, 1))
    def retain(self, start: int, broker: int) -> None:
        """The source's log start moves on one broker."""
        self.world.source.retain(min(start, self.world.source.end - 1), broker)

    @rule(leader=st.integers(0, 1))
    def source_leader(self, leader: int) -> None:
        """Another broker leads the source's partition."""
        self.world.source.leader = leader

    @precondition(lambda self: self.world.source.end < 9)
    @rule(shape=st.text("rmo", min_size=1, max_size=2))
    def grow(self, shape: str) -> None:
        """More is written at the source."""
        self.world.source.grow(shape, self.world.now, self.world.now - 3 * EXPIRATION)

    @rule()
    def delete(self) -> None:
        """Ferry moves the target's log start."""
        self.world.delete()

    def teardown(self) -> None:
        """Whatever happened: a run without faults copies the rest."""
        if hasattr(self, "world"):
            self.world.end_well()


class LaterMachine(IdenticalMachine):
    """The source's log may begin after 0."""

    @precondition(lambda self: not self.world.tasks)
    @rule(starts=st.tuples(indexes, indexes))
    def begin_later(self, starts: tuple[int, int]) -> None:
        """The source's log does not begin at 0, and where depends on the broker."""
        for broker, start in enumerate(starts):
            self.world.source.retain(min(start, self.world.source.end - 1), broker)

    def end_faults(self) -> None:
        """Faults stop, each writer ends, and all that is late arrives."""
        it = self.world
        it.replicating, it.stale_end = True, None
        it.settle()
        for task in [*it.tasks, it.start()]:
            it.finish(task)
        while it.late:
            it.deliver_late(0)


def search(machine: type[RuleBasedStateMachine], number: int, examples: int) -> None:
    """Run a machine by a seed: the search is the same in each profile and process.

    Hypothesis draws constants of the modules that were imported, which depend on the tests before this one. So a seed
    would not be enough: here it draws none.
    """

    class SeededMachine(machine):  # type: ignore[misc, valid-type]
        pass

    limits = settings(
        settings.get_profile("default"),
        max_examples=examples,  # another number is another search
        stateful_step_count=STEPS,
        database=None,
        derandomize=False,
        print_blob=False,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
    )
    with patch.object(HypothesisProvider, "_maybe_draw_constant", lambda *_, **__: None):
        run_state_machine_as_test(seed(number)(SeededMachine), settings=limits)
