"""A writer: it asks, `next_step` decides, it sends. Each request goes through the world, which may lose or delay it."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field

from ferry.features.identical.rules import next_step as rules
from ferry.features.identical.rules.values import (
    Confirm,
    Done,
    Fill,
    Hole,
    Limits,
    Look,
    LookAgain,
    Mark,
    Record,
    Refuse,
    Run,
    Seal,
    Send,
    Step,
    View,
    Wait,
)
from tests.pure.identical.broker import OldEpoch, Refused

Act = Callable[[], object]

LANE = 1
"""The producer id of data and of markers: InitProducerId without a transactional id, kept in the ledger."""
SLOT = 7
"""The producer id of the slot's transactional id."""


@dataclass(slots=True, kw_only=True, eq=False)
class Request:
    """Something on its way to a broker. `act` happens when it arrives."""

    label: str
    act: Act
    asked_at: int
    writes: bool = False
    stale: bool = False
    """Whether it goes to a broker that leads no more, because the look was answered there."""
    ready_at: int = 0
    arrived: bool = False
    answer: object = None
    needs: int = 0
    """The high watermark at which the answer is sent."""


@dataclass(frozen=True, slots=True, eq=False)
class Marking:
    """A record of the ledger: up to when its writer sends markers; 0: all were answered. Each record is another one."""

    until: int


ANSWERED = Marking(0)
"""As if there was such a record at the beginning."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """What the ledger answers to a new run."""

    generation: int
    clean: bool
    loose: bool
    receipts: int
    planned_end: int
    first: int = 0
    """Where the source's log begins."""
    firsts: frozenset[int] = frozenset()
    """What the ledger has of earlier writers."""
    marking: Marking = ANSWERED
    """What the newest of earlier writers said of its markers."""
    fence: int = 0
    """Of this run: its slots' transactions commit until the next one."""
    planned_before: int = 0
    """How far the plans of earlier runs reach."""


@dataclass(slots=True)
class Ledger:
    """What runs append to the ledger, which is exact: the protocol of today."""

    newest: int = 0
    clean: bool = True
    loose: bool = False
    receipts: int = 0
    planned: int = 0
    """How far the plan of any run reaches."""
    firsts: set[int] = field(default_factory=set)
    """The first offsets with a record that writers said before they sent something."""
    marking: Marking = ANSWERED
    """What was written last about markers."""
    fences: int = 0
    """How often the slots were fenced: a transaction of before commits no more."""
    covered: list[tuple[int, int]] = field(default_factory=list)
    """Offsets of which receipts say that their records were copied."""

    def claim(self, planned_end: int, first: int = 0) -> Claim:
        """A run begins."""
        found = Claim(
            generation=self.newest + 1,
            clean=self.clean,
            loose=self.loose,
            receipts=self.receipts,
            planned_end=planned_end,
            first=first,
            firsts=frozenset(self.firsts),
            marking=self.marking,
            fence=self.fences + 1,
            planned_before=self.planned,
        )
        self.newest += 1
        self.fences += 1
        self.planned = max(self.planned, planned_end)
        self.clean = False
        return found

    def record_first(self, first: int) -> bool:
        """A writer says with which offset the records begin, before it sends something."""
        self.firsts.add(first)
        return True

    def fence(self, generation: int) -> int | None:
        """A writer fences its own slot, if it is of the newest run."""
        if generation != self.newest:
            return None
        self.fences += 1
        return self.fences

    def record_loose(self) -> bool:
        """A writer says that it becomes loose."""
        self.loose = True
        return True

    def end(self, generation: int, clean: bool) -> bool:
        """A run ends; of an older run it means nothing."""
        if clean and generation == self.newest:
            self.clean, self.loose = True, False
        return True


Records = list[tuple[str | None, int]]


class Cluster:
    """What a writer can ask; the world answers."""

    limits: Limits
    ledger: Ledger
    ahead: int = 0
    """How fast the writer's wall clock is."""
    paused: int = 0
    """For how long its machine was stopped: the clock that counts sleep did not count that."""

    def clock(self) -> int:
        """The writer's clock."""
        raise NotImplementedError

    def wall(self) -> int:
        """The writer's wall clock."""
        raise NotImplementedError

    def request(self, label: str, act: Act, *, writes: bool = False, stale: bool = False) -> Request:
        """A request that was not sent yet."""
        raise NotImplementedError

    def claim(self) -> Claim:
        """A run record, the plan, and what the ledger shows."""
        raise NotImplementedError

    def look(self, asked_at: int) -> tuple[Look, bool]:
        """A reading of the target, and whether a broker that leads no more answered it."""
        raise NotImplementedError

    def read(self, start: int) -> tuple[Run | Hole | None, Records]:
        """The source."""
        raise NotImplementedError

    def initialise(self) -> int:
        """InitProducerId for the slot's transactional id."""
        raise NotImplementedError

    def epoch(self) -> int:
        """The epoch of the lane's producer id that the last reading showed."""
        raise NotImplementedError

    def send(self, step: Send, records: Records, epoch: int = 0) -> int:
        """Produce."""
        raise NotImplementedError

    def delete(self, before: int) -> int:
        """DeleteRecords; where the log begins then."""
        raise NotImplementedError

    def agrees(self, start: int, end: int) -> bool:
        """Whether the target has the source's records at these offsets."""
        raise NotImplementedError

    def mark(self, count: int, epoch: int = 0) -> int:
        """WriteTxnMarkers."""
        raise NotImplementedError

    def seal(self, epoch: int) -> int:
        """WriteTxnMarkers with the slot's producer id."""
        raise NotImplementedError

    def add(self, epoch: int) -> int:
        """AddPartitionsToTxn."""
        raise NotImplementedError

    def fill(self, epoch: int, count: int) -> int:
        """Produce inside the slot's transaction."""
        raise NotImplementedError


Asking = Generator[Request, object, None]


@dataclass(slots=True)
class Writer:
    """One run's writer at the partition."""

    cluster: Cluster
    outcome: Done | Refuse | None = None
    generation: int = 0
    confirmed_at: int = 0
    quiet_at: int = 0
    filler_quiet_at: int = 0
    filling: bool = False
    """Whether the slot may have had a transaction here since its last InitProducerId."""
    own_loose: bool = False
    expected: int | None = None
    epoch: int | None = None
    loose: bool = False
    receipts: int = 0
    planned_end: int = 0
    superseded: bool = False
    steps: list[Step] = field(default_factory=list)

    def copy(self) -> Asking:
        """Copy until nothing is left, or a newer run is there."""
        cluster = self.cluster
        asked_at = cluster.clock()
        claim = yield cluster.request("claim", cluster.claim)
        if not isinstance(claim, Claim):
            return
        self.generation, self.loose, self.receipts = claim.generation, claim.loose, claim.receipts
        self.planned_end, self.confirmed_at, self.filling = claim.planned_end, asked_at, not claim.clean
        self.quiet_at = rules.quiet_after_takeover(cluster.clock(), claim.clean, cluster.limits)
        while self.outcome is None and not self.superseded:
            if self.epoch is None:
                yield from self.initialise()
            else:
                yield from self.once()

    def initialise(self) -> Asking:
        """Fence the slot's transactional id, which ends its transaction."""
        if self.cluster.clock() >= self.confirmed_at + self.cluster.limits.lease:
            yield from self.confirm()
            return
        answer = yield self.cluster.request("init", self.cluster.initialise, writes=True)
        if isinstance(answer, int):
            self.epoch = answer
            if self.filling:
                self.filler_quiet_at = rules.quiet_after(self.cluster.clock(), self.cluster.limits)
                self.filling = False

    def confirm(self) -> Asking:
        """Ask the ledger for a newer run."""
        asked_at = self.cluster.clock()
        newest = yield self.cluster.request("confirm", lambda: self.cluster.ledger.newest)
        if isinstance(newest, int):
            self.superseded = newest != self.generation
            self.confirmed_at = asked_at

    def once(self) -> Asking:
        """One look and one step."""
        cluster = self.cluster
        asked_at = cluster.clock()
        seen = yield cluster.request("look", lambda: cluster.look(asked_at))
        if not isinstance(seen, tuple):
            return
        look: Look = seen[0]
        stale: bool = seen[1]
        found = yield cluster.request("read", lambda: cluster.read(look.end))
        if not isinstance(found, tuple):
            return
        ahead: Run | Hole | None = found[0]
        records: Records = found[1]
        view = self.view(ahead)
        step = rules.next_step(look, view, cluster.limits)
        self.steps.append(step)
        yield from self.act(step, look.end, records, stale, quiet=rules.quiet(look, view))

    def act(self, step: Step, end: int, records: Records, stale: bool, *, quiet: bool) -> Asking:
        """Do what was decided."""
        cluster = self.cluster
        match step:
            case Send():
                yield from self.write(
                    "send",
                    lambda: cluster.send(step, records[: step.count]),
                    stale,
                    end + step.count if quiet else None,
                    step,
                )
            case Mark(count):
                yield from self.write("mark", lambda: cluster.mark(count), stale, end + count)
            case Seal():
                epoch = self.epoch or 0
                yield from self.write("seal", lambda: cluster.seal(epoch), stale, None)
            case Fill(count):
                yield from self.fill(count, stale)
            case Wait(until):
                request = cluster.request("wait", lambda: True)
                request.ready_at = until
                yield request
            case Confirm():
                yield from self.confirm()
            case Record():
                yield from self.become_loose()
            case LookAgain():
                pass
            case Done(clean):
                yield cluster.request("end", lambda: cluster.ledger.end(self.generation, clean))
                self.outcome = step
            case Refuse():
                yield from self.refuse(step)

    def view(self, ahead: Run | Hole | None) -> View:
        """What it has read except for the target's log."""
        return View(
            now=self.cluster.clock(),
            confirmed_at=self.confirmed_at,
            quiet_at=self.quiet_at,
            filler_quiet_at=self.filler_quiet_at,
            loose=self.loose or self.own_loose,
            own_loose=self.own_loose,
            receipts_end=self.receipts,
            planned_end=self.planned_end,
            expected_end=self.expected,
            producer=LANE,
            fillers=frozenset({SLOT}),
            ahead=ahead,
        )

    def refuse(self, step: Refuse) -> Asking:
        """Refuse, unless a newer run is there: then the log grew by that one's plan."""
        newest = yield self.cluster.request("confirm", lambda: self.cluster.ledger.newest)
        if isinstance(newest, int):
            self.superseded = newest != self.generation
            self.outcome = None if self.superseded else step

    def become_loose(self) -> Asking:
        """Say so in the ledger, and look whether a newer run has begun before."""
        if (yield self.cluster.request("record", self.cluster.ledger.record_loose)) is True:
            yield from self.confirm_loose()

    def confirm_loose(self) -> Asking:
        """Only a read that was asked for after the record shows that no successor read the ledger without it."""
        newest = yield self.cluster.request("confirm", lambda: self.cluster.ledger.newest)
        if isinstance(newest, int):
            self.superseded = newest != self.generation
            self.own_loose = not self.superseded

    def write(self, label: str, act: Act, stale: bool, expected: int | None, send: Send | None = None) -> Asking:
        """Append once; without an answer it may still arrive."""
        self.expected = None
        request = self.cluster.request(label, act, writes=True, stale=stale)
        answer = yield request
        if isinstance(answer, int):
            if send is not None and (code := rules.after_send(send, answer)) is not None:
                yield from self.refuse(Refuse(code))
                return
            if send is not None and answer < send.offset:
                return
            if send is not None:
                self.receipts = max(self.receipts, send.offset + send.count)
                self.cluster.ledger.receipts = max(self.cluster.ledger.receipts, self.receipts)
            self.expected = expected
        elif isinstance(answer, OldEpoch):
            self.epoch = None
        elif not isinstance(answer, Refused):
            self.quiet_at = max(self.quiet_at, rules.quiet_after(request.asked_at, self.cluster.limits))

    def fill(self, count: int, stale: bool) -> Asking:
        """A transaction of empty records; what comes next aborts it: InitProducerId."""
        epoch, self.filling = self.epoch or 0, True
        yield from self.write("add", lambda: self.cluster.add(epoch), False, None)
        if self.epoch is not None:
            yield from self.write("fill", lambda: self.cluster.fill(epoch, count), stale, None)
        self.expected, self.epoch = None, None
