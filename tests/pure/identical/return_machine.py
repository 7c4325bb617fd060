"""The way back as a state machine: clients that move, writers of both lanes, and faults, in any order."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from ferry.features.identical.rules.values import Code, Done, Refuse
from tests.pure.identical.marking_writer import MARKING
from tests.pure.identical.returning import (
    STRAY,
    A,
    B,
    Both,
    ReturningMarkers,
    ReturningOffsets,
    Way,
)
from tests.pure.identical.world import EXPIRATION, LATENESS, Task

MAX_TASKS, MAX_SWITCHES = 12, 4
QUIET = MARKING + LATENESS + 1

indexes = st.integers(0, 5)
sides = st.sampled_from([A, B])
places = st.sampled_from(["send", "send", "mark", "look", "read", "claim", "guard", "init", "commit", "note", "end"])
fates = st.sampled_from(["late", "late", "applied", "dropped"])


class ReturnMachine(RuleBasedStateMachine):
    """Whatever happens, a lane's record is right at its offset; when faults stop, the way back copies the rest."""

    kind: type[ReturningOffsets] = ReturningOffsets
    shapes = "r"

    def __init__(self) -> None:
        super().__init__()
        self.both = Both(self.kind)

    def live(self) -> list[tuple[Way, Task]]:
        """Writers and steps that wait for something, the youngest first."""
        return [
            (way, task)
            for way in (self.both.copy, self.both.primary)
            for task in reversed(way.tasks)
            if task.pending is not None
        ]

    def room(self) -> bool:
        """Whether another process may begin."""
        return sum(len(way.tasks) for way in self.both.ways) < MAX_TASKS

    def chosen(self, index: int) -> tuple[Way, Task]:
        """One of the live ones."""
        live = self.live()
        return live[index % len(live)]

    @rule(count=st.integers(1, 4), age=st.sampled_from([0, 0, 0, EXPIRATION // 2]), data=st.data())
    def produce(self, count: int, age: int, data: st.DataObject) -> None:
        """Clients write."""
        if len(self.both.truth) < 12:
            self.both.produce(data.draw(st.text(self.shapes, min_size=count, max_size=count)), age)

    @precondition(lambda self: self.room())
    @rule(place=places)
    def start(self, place: str) -> None:
        """A run of the lane that clients left begins, and continues to a place."""
        self.both.copy.run_until(self.both.copy.start(), place)

    @precondition(lambda self: self.room())
    @rule(place=places)
    def start_the_other_way(self, place: str) -> None:
        """A run into the clients' cluster begins."""
        self.both.primary.run_until(self.both.primary.start(), place)

    @precondition(lambda self: self.room() and self.both.switches)
    @rule(place=st.sampled_from(["guard", "look", "init", "commit", "commit", "its end", "its end", "its end"]))
    def turn(self, place: str) -> None:
        """The step `return` begins, maybe again."""
        self.both.copy.run_until(self.both.copy.turn(), place)

    @precondition(lambda self: self.both.switches < MAX_SWITCHES)
    @rule(planned=st.booleans())
    def switch(self, planned: bool) -> None:
        """Clients move, in any case where they may."""
        if planned:
            self.both.switchover()
        else:
            self.both.failover()

    @precondition(lambda self: self.room() and self.both.switches < MAX_SWITCHES)
    @rule(place=places, count=st.integers(0, 4), asleep=st.booleans())
    def switch_and_return(self, place: str, count: int, asleep: bool) -> None:
        """Clients move and write, the way back is open, and its first run is under way. One step may be asleep."""
        it = self.both
        if it.switchover():
            it.produce("r" * count if len(it.truth) < 12 else "")
            if asleep:
                it.copy.run_until(it.copy.turn(), "commit")
            it.copy.finish(it.copy.turn())
            it.copy.run_until(it.copy.start(), place)

    @precondition(lambda self: self.room())
    @rule(place=st.sampled_from(["send", "send", "mark"]), dies=st.booleans())
    def start_late(self, place: str, dies: bool) -> None:
        """A run begins, and what it sends is late."""
        way = self.both.copy
        task = way.run_until(way.start(), place)
        if task.label == place:
            way.lose(task, "late", dies=dies)

    @precondition(lambda self: self.live())
    @rule(index=indexes, place=places)
    def go_on(self, index: int, place: str) -> None:
        """One of them continues to a place."""
        way, task = self.chosen(index)
        way.advance(task)
        way.run_until(task, place)

    @precondition(lambda self: self.live())
    @rule(index=indexes)
    def step(self, index: int) -> None:
        """A request arrives, or its answer."""
        way, task = self.chosen(index)
        way.step(task)

    @precondition(lambda self: self.live())
    @rule(index=indexes, fate=fates, dies=st.booleans())
    def trouble(self, index: int, fate: str, dies: bool) -> None:
        """A request stays without an answer."""
        way, task = self.chosen(index)
        way.lose(task, fate, dies=dies)

    @precondition(lambda self: any(way.late for way in self.both.ways))
    @rule(index=indexes)
    def deliver_late(self, index: int) -> None:
        """A request of the past arrives."""
        late = [(way, at) for way in self.both.ways for at in range(len(way.late))]
        way, at = late[index % len(late)]
        way.deliver_late(at)

    @rule(time=st.sampled_from([1, 1, 2, 3, 6, 9, 21, 41]))
    def sleep(self, time: int) -> None:
        """Everybody is asleep."""
        self.both.primary.sleep(time)

    @rule(
        side=sides, what=st.sampled_from(["expire", "expire", "stop", "fetch", "lead", "stale"]), back=st.integers(0, 3)
    )
    def broker(self, side: int, what: str, back: int) -> None:
        """Producer state expires. Followers stop fetching, or fetch. Another replica leads, or one thinks so."""
        way = self.both.ways[side]
        match what:
            case "expire":
                way.expire()
            case "lead":
                way.fail_over(back)
            case "stale":  # the next look is answered by a broker that leads no more
                way.stale_end = max(0, way.target.hw - back)
            case _:
                way.replicating = what == "fetch"
                way.settle()

    @precondition(lambda self: self.both.switches)
    @rule()
    def stray(self) -> None:
        """A client that did not move writes to the cluster that was left."""
        if self.both.copy.stray_from is None:
            self.both.copy.write("r", producer=STRAY)

    def idle(self) -> bool:
        """Whether the other log ends at the cut-over without a receipt there, and nothing is under way."""
        way, cut = self.both.copy, self.both.cut
        received = max((end for _, end in way.ledger.covered), default=0)
        busy = way.late or any(task.pending is not None for task in way.tasks)
        return way.target.end == cut > received and way.stray_from is None and not busy

    @precondition(lambda self: self.both.switches and self.idle())
    @rule()
    def lose_last(self) -> None:
        """An unclean election loses the last record there, and a client that did not move writes another one."""
        self.both.copy.lose_end(1)
        self.both.copy.write("r", producer=STRAY)

    def teardown(self) -> None:
        """Faults stop, all that is late arrives, and the way back copies the rest."""
        it = self.both
        for way in it.ways:
            way.replicating, way.stale_end, way.partial = True, None, False
            way.settle()
            for task in way.tasks:
                way.finish(task)
            while way.late:
                way.deliver_late(0)
        it.primary.sleep(2 * QUIET)
        way = it.copy
        if way.stray_from is not None:
            return
        if way.ledger.closed and it.switches:
            outcome = way.finish(way.turn())
            if outcome == Refuse(Code.NOT_QUIET):
                way.sleep(2 * QUIET)
                outcome = way.finish(way.turn())
            assert isinstance(outcome, Done), way.say(f"the return of {way.name}: {outcome}")
        outcome = way.finish(way.start())
        if outcome == Refuse(Code.EXPIRES):
            way.sleep(EXPIRATION + 1)
            way.expire()
            outcome = way.finish(way.start())
        good = outcome == Refuse(Code.STATE_TOO_SHORT) or (
            isinstance(outcome, Done) and way.target.end == len(it.truth)
        )
        assert good, way.say(f"not all is at {way.name}: {outcome}")


class MarkingReturnMachine(ReturnMachine):
    """With holes, which markers pass."""

    kind = ReturningMarkers
    shapes = "rrrm"

    @rule(side=sides, on=st.booleans())
    def fail_one_of_several(self, side: int, on: bool) -> None:
        """One marker of several in a request fails, or none does."""
        self.both.ways[side].partial = on

    @rule(side=sides)
    def read_early(self, side: int) -> None:
        """The next reading of the ledger lacks what comes after this moment."""
        way = self.both.ways[side]
        way.shown = way.ledger.marking


class LateSwitchMachine(MarkingReturnMachine):
    """With moves of clients while something of a lane with markers is late."""

    shapes = "rrmm"

    @precondition(lambda self: self.room() and self.both.switches < MAX_SWITCHES and len(self.both.truth) < 12)
    @rule(
        place=st.sampled_from(["send", "send", "mark"]),
        fate=st.sampled_from(["late", "late", "applied"]),
        dies=st.booleans(),
        idle=st.sampled_from([0, 0, EXPIRATION, EXPIRATION - 1, EXPIRATION // 2]),
        slept=st.sampled_from([0, 1, MARKING, LATENESS]),
        planned=st.booleans(),
        reloads=st.booleans(),
        data=st.data(),
    )
    def switch_with_something_late(
        self,
        place: str,
        fate: str,
        dies: bool,
        idle: int,
        slept: int,
        planned: bool,
        reloads: bool,
        data: st.DataObject,
    ) -> None:
        """A run's request gets no answer, maybe after idleness. The next run copies what it can, and clients move."""
        it, way, some = self.both, self.both.copy, st.text(self.shapes, max_size=3)
        way.replicating = True
        way.settle()
        if idle:
            way.finish(way.start())
            way.sleep(idle)
            way.expire()
        it.produce(data.draw(some))
        task = way.run_until(way.start(), place)
        for _ in range(data.draw(st.integers(0, 2))):
            way.advance(task)
            way.run_until(task, place)
        if task.label == place:
            way.lose(task, fate, dies=dies)
        way.sleep(slept)
        way.expire()
        it.produce(data.draw(some))
        way.finish(way.start())
        if it.switchover() if planned else it.failover():
            it.produce(data.draw(some))
            way.expire()
            if reloads:
                way.fail_over(0)
            while way.late:
                way.deliver_late(0)
