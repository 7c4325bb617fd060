"""A source, a target, writers and the network between them; the invariants as named functions."""

from __future__ import annotations

from dataclasses import replace

from ferry.features.identical.rules.values import Code, Done, Hole, Limits, Look, Refuse, Run, Send, Tail
from tests.pure.identical.broker import Coordinator, NotLeader, Partition, Refused, WrongState
from tests.pure.identical.source import Source
from tests.pure.identical.writer import (
    LANE,
    SLOT,
    Act,
    Asking,
    Claim,
    Cluster,
    Ledger,
    Marking,
    Records,
    Request,
    Writer,
)

LEASE, LATENESS, EXPIRATION = 3, 6, 40
LIMITS = Limits(
    lease=LEASE,
    lateness=LATENESS,
    expiration=EXPIRATION,
    keeps_acknowledged=True,
    markers_allowed=True,
    slack=1,
    bulk_from=5,
)
FOREIGN = 99
START = 1_000


class Endless(AssertionError):
    """A writer does not end, although there are no faults."""


class Task:
    """A writer under way, with the request that it waits for."""

    def __init__(self, name: str, writer: Writer) -> None:
        self.name = name
        self.writer = writer
        self.slept = 0
        self._asking: Asking = writer.copy()
        self.pending: Request | None = next(self._asking)

    @property
    def label(self) -> str:
        """What it waits for."""
        return self.pending.label if self.pending is not None else "ended"

    def resume(self, answer: object) -> None:
        """The answer, an error, or None for none."""
        try:
            self.pending = self._asking.send(answer)
        except StopIteration:
            self.pending = None

    def die(self) -> None:
        """The process is gone."""
        self.pending = None


class Near(Cluster):
    """The world as one writer sees it."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.limits = world.limits
        self.ledger = world.ledger
        self.ahead = world.ahead

    def clock(self) -> int:
        """The clock that counts sleep."""
        return self.world.now - self.paused

    def wall(self) -> int:
        """The wall clock."""
        return self.world.now + self.ahead

    def request(self, label: str, act: Act, *, writes: bool = False, stale: bool = False) -> Request:
        """A request, with the time at which the connection was alive for certain."""
        return Request(label=label, act=act, asked_at=self.world.now, writes=writes, stale=stale)

    def claim(self) -> Claim:
        """Append the run to the ledger."""
        source = self.world.source
        return self.world.early(self.ledger.claim(source.end, source.starts[source.leader]))

    def look(self, asked_at: int) -> tuple[Look, bool]:
        """ListOffsets, a fetch of the last batches, DescribeProducers."""
        return self.world.look(asked_at)

    def read(self, start: int) -> tuple[Run | Hole | None, Records]:
        """Fetch from the source."""
        return self.world.source.read(start)

    def initialise(self) -> int:
        """InitProducerId."""
        return self.world.slot.initialise()

    def send(self, step: Send, records: Records, epoch: int = 0) -> int:
        """Produce, not transactional."""
        return self.world.target.produce(LANE, epoch, step.sequence, records, transactional=False)

    def delete(self, before: int) -> int:
        """DeleteRecords."""
        self.world.target.delete_records(LANE, before)
        return self.world.target.log_start

    def agrees(self, start: int, end: int) -> bool:
        """A reading of both sides."""
        world = self.world
        return all(
            one.value is not None or (one.marker and world.source.truth[offset] is None)
            for offset, one in list(enumerate(world.target.entries))[start:end]
        )

    def mark(self, count: int, epoch: int = 0) -> int:
        """WriteTxnMarkers, `count` times the same one; one answer for all of them, which hides the error of one."""
        for _ in range(count - (self.world.partial and count > 1)):
            self.world.target.mark(LANE, epoch, coordinator=0, now=self.world.now, commit=False)
        return self.world.target.end

    def seal(self, epoch: int) -> int:
        """WriteTxnMarkers with the slot's producer id and newest epoch."""
        return self.world.target.mark(SLOT, epoch, coordinator=0, now=self.world.now, commit=True)

    def add(self, epoch: int) -> int:
        """AddPartitionsToTxn."""
        self.world.slot.begin(epoch)
        return epoch

    def fill(self, epoch: int, count: int) -> int:
        """Produce in the transaction; the coordinator verifies it."""
        slot = self.world.slot
        if slot.epoch != epoch or not slot.member or slot.closing is not None:
            raise WrongState
        return self.world.target.produce(SLOT, epoch, 0, [(None, self.world.now)] * count, transactional=True)


class World:
    """One partition of one lane."""

    def __init__(self, shape: str, *, version: int = 2, limits: Limits = LIMITS) -> None:
        self.now = START
        self.limits = limits
        self.source = Source(shape, START, START - 3 * EXPIRATION)
        self.target = Partition()
        self.slot = Coordinator(SLOT, version)
        self.ledger = Ledger()
        self.tasks: list[Task] = []
        self.late: list[Request] = []
        self.replicating = True
        self.stale_end: int | None = None
        self.trace: list[str] = []
        self.doubling = False
        """Whether the coordinator gets no answer to its markers."""
        self.doubled = False
        self.partial = False
        """Whether one marker of several in a request fails."""
        self.shown: Marking | None = None
        """What the next reading of the ledger shows of markers, if its end is an early one."""
        self.ahead = 0
        """How fast the wall clocks are of the writers that begin next."""
        self.completed_at = 0
        """When the slot's last transaction was complete."""
        self.checking = True

    def start(self) -> Task:
        """A run begins, whatever else is under way."""
        task = Task("abcdefghijklmnop"[len(self.tasks)], Writer(cluster=Near(self)))
        self.tasks.append(task)
        return task

    def early(self, claim: Claim) -> Claim:
        """What a reading of the ledger shows whose end is that of a broker which leads no more."""
        shown, self.shown = self.shown, None
        return claim if shown is None else replace(claim, marking=shown)

    def look(self, asked_at: int) -> tuple[Look, bool]:
        """What the leader shows, or one that leads no more."""
        stale, self.stale_end = self.stale_end, None
        log = self.target
        end = log.hw if stale is None else min(stale, log.hw)
        state = log.states.get(LANE)
        sequence = (state.batches[-1][1] + 1 if state.batches else 0) if state is not None else None
        settled = stale is not None or log.hw == log.end
        timestamp = state.timestamp if state is not None else 0
        seen = Look(
            at=asked_at, end=end, settled=settled, tail=self._tail(end), state_sequence=sequence, state_ms=timestamp
        )
        return seen, stale is not None

    def _tail(self, end: int) -> Tail | None:
        entries = self.target.entries
        readable = range(self.target.log_start, end)
        if not readable:
            return None
        lane = [offset for offset in readable if entries[offset].producer == LANE]
        data = [offset for offset in lane if not entries[offset].marker]
        slot = [offset for offset in readable if entries[offset].producer == SLOT]
        right: bool | None = None
        if data and entries[data[-1]].value is not None and (there := self.source.has(data[-1])) is not None:
            right = there.value == entries[data[-1]].value
        timestamp = 0
        if lane:
            batch = entries[lane[-1]].base
            of_batch = [entries[lane[-1]]] if entries[lane[-1]].marker else entries[batch : lane[-1] + 1]
            timestamp = max(one.timestamp for one in of_batch)
        return Tail(
            producer=entries[end - 1].producer,
            timestamp=timestamp,
            next_sequence=entries[data[-1]].sequence + 1 if data else None,
            right=right,
            unsealed=bool(slot) and not entries[slot[-1]].commit,
        )

    # What happens.

    def step(self, task: Task) -> None:
        """The request arrives; at the next step its answer."""
        request = task.pending
        if request is None or request.ready_at > self.now:
            return
        if not request.arrived:
            self._arrive(task.name, request)
        elif isinstance(request.answer, Refused) or request.needs <= self.target.hw:
            task.resume(request.answer)
        self.settle()

    def _arrive(self, name: str, request: Request) -> None:
        self.trace.append(f"{self.now} {name} {request.label}")
        request.arrived = True
        if request.writes and self.now - request.asked_at > LATENESS:
            request.answer = NotLeader("the connection was closed")
            return
        before = self.target.end
        try:
            if request.stale:
                raise NotLeader
            request.answer = request.act()
        except Refused as error:
            request.answer = error
            self.trace.append(f"   {error!r}")
            return
        request.needs = self.target.end if self.target.end > before or request.label == "send" else 0

    def lose(self, task: Task, fate: str, *, dies: bool) -> None:
        """No answer: the request is `dropped`, was `applied`, or comes `late`."""
        request = task.pending
        if request is None or request.label == "wait":
            if dies:
                task.die()
            return
        self.trace.append(f"{self.now} {task.name} {request.label} {fate}, {'dies' if dies else 'continues'}")
        if not request.arrived:
            if fate == "applied":
                self._arrive(task.name, request)
            elif fate == "late":
                self.late.append(request)
        if dies:
            task.die()
        else:
            task.resume(None)
        self.settle()

    def deliver_late(self, index: int) -> None:
        """A request of the past arrives."""
        request = self.late.pop(index)
        self._arrive("late", request)
        self.settle()

    def sleep(self, time: int) -> None:
        """Time passes."""
        self.now += time
        self.trace.append(f"{self.now}")

    def deliver_marker(self, *, doubled: bool = False) -> None:
        """The coordinator's marker arrives; `doubled`: its answer is lost, so it is sent once more."""
        slot = self.slot
        epoch = slot.closing
        if epoch is None or slot.written is not None:
            return
        self.trace.append(f"{self.now} marker {epoch}{' doubled' if doubled else ''}")
        slot.deliver(self.target, self.now)
        if doubled and not self.doubled:
            self.doubled = True
            now = self.now

            def again() -> int:
                return self.target.mark(SLOT, epoch, coordinator=0, now=now, commit=False, version=slot.version)

            self.late.append(Request(label="marker again", act=again, asked_at=now, writes=True))
        self.settle()

    def settle(self) -> None:
        """Followers fetch, transactions complete."""
        if self.replicating:
            self.target.hw = self.target.end
        under_way = self.slot.closing is not None
        self.slot.follow(self.target)
        if self.slot.closing is None:
            self.doubled = False
            if under_way:
                self.completed_at = self.now
        self.check()

    def expire(self) -> None:
        """The broker's periodic check of producer state."""
        self.trace.append(f"{self.now} expire")
        self.target.expire(self.now, EXPIRATION)

    def delete(self) -> None:
        """Ferry moves the target's log start; a seal stays while a marker may come once more."""
        self.trace.append(f"{self.now} DeleteRecords")
        slot = [offset for offset, entry in enumerate(self.target.entries) if entry.producer == SLOT]
        keeps = bool(slot) and self.keeps_seal()
        self.target.delete_records(LANE, slot[-1] if keeps else self.target.end)

    def keeps_seal(self) -> bool:
        """Whether a marker of the slot's transactions may come once more."""
        return self.slot.closing is not None or self.now <= self.completed_at + LATENESS

    def fail_over(self, kept: int) -> None:
        """Another replica leads; what was not committed may be gone, and answers are."""
        end = max(self.target.hw, self.target.end - kept)
        while end > self.target.hw and not self.target.entries[end - 1].last:
            end -= 1
        self.trace.append(f"{self.now} leader change, end {end}")
        self.target.fail_over(end)
        self.target.hw = end  # ListOffsets answers OFFSET_NOT_AVAILABLE until then (KIP-207)
        for task in self.tasks:
            if task.pending is not None and task.pending.arrived and task.pending.writes and task.pending.needs > 0:
                task.resume(None)
        self.settle()

    # What must hold.

    def check(self) -> None:
        """Each record at its offset with its content; nothing passed that was there; nothing past the source's end."""
        if not self.checking:
            return
        assert self.target.end <= self.ledger.planned, self.say("the target is past what was planned")
        for offset, entry in enumerate(self.target.entries):
            if entry.value is None:
                assert self.source.may_be_passed(offset), self.say(f"the record at {offset} was passed")
            else:
                there = self.source.truth[offset]
                assert there is not None, self.say(f"a record at {offset}, where the source has none")
                assert there.value == entry.value, self.say(f"record {entry.value} at offset {offset}")
        for start, end in self.ledger.covered:
            for offset in range(start, end):
                entry = self.target.entries[offset]
                hole = entry.marker and self.source.truth[offset] is None
                assert entry.value is not None or hole, self.say(f"a receipt, and no record at {offset}")

    def say(self, what: str) -> str:
        return "\n".join([*self.trace, f"wrong: {what}", " ".join(self._shown())])

    def _shown(self) -> list[str]:
        return [one.value or ("M" if one.marker else "_") for one in self.target.entries]

    # Writers without faults.

    def run_until(self, task: Task, label: str) -> Task:
        """A writer continues until a request waits to be sent, or for a while."""
        for _ in range(60):
            if task.pending is None or (task.label == label and not task.pending.arrived):
                return task
            self.advance(task)
        return task

    def advance(self, task: Task) -> None:
        """One step without faults: markers arrive, waiting takes its time."""
        if task.pending is not None and task.pending.ready_at > self.now:
            self.sleep(task.pending.ready_at - self.now)
        self.step(task)
        self.deliver_marker(doubled=self.doubling)

    def finish(self, task: Task) -> Done | Refuse | None:
        """A writer continues without faults."""
        for _ in range(400):
            if task.pending is None:
                return task.writer.outcome
            self.advance(task)
        raise Endless(self.say("no end"))

    def end_well(self) -> None:
        """Faults stop: a new run copies the rest, and nothing old disturbs it afterwards."""
        self.replicating, self.stale_end, self.doubling = True, None, False
        self.settle()
        task = self.start()
        outcome = self.finish(task)
        assert isinstance(outcome, Done), self.say(f"{outcome}")
        assert self.target.end == self.source.end, self.say("not all is there")
        for other in self.tasks:
            self.finish(other)
            found = other.writer.outcome
            # A broker that leads no more may show less than the receipts.
            assert not isinstance(found, Refuse) or found.code is Code.LOST, self.say(f"{other.name}: {found}")
        while self.late:
            self.deliver_late(0)
