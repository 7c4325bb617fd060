"""Two clusters with one log, clients that are moved between them, and a lane each way: the way back of ADR 57.

Each lane is a `World`: its target is the log of one cluster, its source that of the other one. Clients write to one of
them. A switch moves them, and the step `return` lets the other lane begin, by a record in its ledger.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field, replace

from ferry.features.identical.rules import next_step as rules
from ferry.features.identical.rules import stamped
from ferry.features.identical.rules.late import Sender, reaching
from ferry.features.identical.rules.values import Code, Done, Hole, Look, Refuse, Run, Send, Tail
from tests.pure.identical import return_rules as clauses
from tests.pure.identical.broker import Coordinator, Entry, OldEpoch, Partition
from tests.pure.identical.marking_writer import MarkingWriter
from tests.pure.identical.offset_writer import OffsetWriter
from tests.pure.identical.source import READ_AT_ONCE
from tests.pure.identical.world import LATENESS, LEASE, LIMITS, START, Near, Task, World
from tests.pure.identical.writer import SLOT, Asking, Claim, Ledger, Marking, Records, Request
from tests.pure.scripted.lane import place

CLIENT, STRAY = 90, 91
A, B = 0, 1


# What the ledgers have.


@dataclass(frozen=True, slots=True, kw_only=True)
class Continued:
    """Both logs have the same offsets up to `until`; the lane writes after that under `producer`."""

    until: int
    producer: int


@dataclass(slots=True, kw_only=True)
class Started:
    """A run, up to where it planned, and when the next one began."""

    planned_end: int
    after: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReturnClaim(Claim):
    """What the ledger answers to a run of such a lane."""

    continued: Continued | None
    closed: bool
    sent: bool


@dataclass(slots=True)
class ReturnLedger(Ledger):
    """The ledger of a lane, with the records of returns."""

    continued: Continued | None = None
    closed: bool = False
    """Whether a switch has stopped the lane, and no return came after it."""
    sent: bool = False
    """Whether a run said that it sends batches."""
    runs: list[Started] = field(default_factory=list)
    """Those since a switch has stopped the lane last: it has seen to it that nothing of earlier ones arrives."""

    def open(self, now: int, planned_end: int) -> ReturnClaim:
        """A run begins; -1: one that only fences."""
        found = self.claim(max(0, planned_end))
        if self.runs and self.runs[-1].after is None:
            self.runs[-1].after = now
        planned = -1 if self.closed and clauses.closes() else planned_end
        self.runs.append(Started(planned_end=planned))
        return ReturnClaim(
            generation=found.generation,
            clean=found.clean,
            loose=found.loose,
            receipts=found.receipts,
            planned_end=planned_end,
            marking=found.marking,
            fence=found.fence,
            continued=self.continued,
            closed=self.closed,
            sent=self.sent,
        )

    def record_sent(self) -> bool:
        """A run says that it is about to send a batch."""
        self.sent = True
        return True

    def share(self, generation: int, continued: Continued | None) -> bool:
        """The record of a return, in the transaction of its run; None: the one that there is. The lane is open then."""
        if not clauses.commits(generation, self.newest):
            raise OldEpoch("a newer run has fenced it")
        self.continued = continued or self.continued
        self.closed = False
        return True


class Log:
    """One cluster's log as the source of the lane to the other one: what readers get of it."""

    def __init__(self, log: Partition) -> None:
        self.log = log

    @property
    def end(self) -> int:
        """The high watermark."""
        return self.log.hw

    def read(self, start: int) -> tuple[Run | Hole | None, Records]:
        """What is at an offset."""
        entries = self.log.entries[start : self.end]
        records: list[tuple[str | None, int]] = []
        for one in entries[:READ_AT_ONCE]:
            if one.value is None:
                break
            records.append((one.value, one.timestamp))
        if records:
            return Run(count=len(records), oldest=min(timestamp for _, timestamp in records)), records
        count = next((at for at, one in enumerate(entries) if one.value is not None), len(entries))
        return (Hole(end=start + count, seen=True), []) if count else (None, [])


# The lanes.


class Side(Near):
    """A lane as one of its writers sees it."""

    world: Way

    def __init__(self, world: Way) -> None:
        super().__init__(world)
        self.way = world
        self.lane = world.ledger
        self.producer = -1
        self.until = -1

    def claim(self) -> Claim:
        """A run that copies."""
        way = self.way
        found = self.lane.open(way.now, clauses.planned_to(way.other.target.hw, way))
        if (shown := way.shown) is not None:
            way.shown, found = None, replace(found, marking=shown)
        return found

    def fence(self) -> ReturnClaim:
        """A run that copies nothing."""
        return self.lane.open(self.way.now, -1)

    def look(self, asked_at: int) -> tuple[Look, bool]:
        """A reading of the target."""
        return self.way.look_for(asked_at, self.producer)

    def read(self, start: int) -> tuple[Run | Hole | None, Records]:
        """Fetch from the source."""
        return Log(self.way.other.target).read(start)

    def send(self, step: Send, records: Records, epoch: int = 0) -> int:
        """Produce."""
        return self.way.target.produce(self.producer, epoch, step.sequence, records, transactional=False)

    def mark(self, count: int, epoch: int = 0) -> int:
        """WriteTxnMarkers."""
        for _ in range(count - (self.way.partial and count > 1)):
            self.way.target.mark(self.producer, epoch, coordinator=0, now=self.way.now, commit=False)
        return self.way.target.end

    def delete(self, before: int) -> int:
        """DeleteRecords."""
        self.way.target.delete_records(self.producer, before)
        return self.way.target.log_start

    def has_all(self, start: int, end: int) -> bool:
        """Whether the target has the source's records at these offsets, under the lane's producer id."""
        ours = self.way.target.entries
        return self.same(start, end) and all(one.producer == self.producer for one in ours[start:end])

    def same(self, start: int, end: int) -> bool:
        """Whether both logs have the same from `start` to `end`: the same record, or none for readers."""
        ours, theirs = self.way.target.entries[start:end], self.way.other.target.entries[start:end]
        return len(ours) == len(theirs) and all(
            one.value == other.value for one, other in zip(ours, theirs, strict=True)
        )

    def same_last(self, end: int) -> bool:
        """Whether both logs have the same record as the last one before `end`; a log that has no record has no other.

        What cannot be read any more is not the same.
        """
        ours, theirs = self.way.target, self.way.other.target
        readable = reversed(range(ours.log_start, end))
        last = next((at for at in readable if ours.entries[at].value is not None), end)
        return theirs.hw >= end and (last == end or (theirs.log_start <= last and self.same(last, end)))


class Way(World):
    """A lane into one of the clusters."""

    ledger: ReturnLedger
    other: Way
    kind: type[ReturningOffsets]

    def __init__(self, both: Both, name: str, producer: int) -> None:
        self.both = both
        self.name = name
        self.producer = producer
        """The lane's id, before a return."""
        self.limits = LIMITS
        self.target = Partition()
        self.slot = Coordinator(SLOT, 2)
        self.ledger = ReturnLedger()
        self.tasks: list[Task] = []
        self.late: list[Request] = []
        self.replicating = True
        self.stale_end: int | None = None
        self.doubling = self.doubled = self.partial = False
        self.shown: Marking | None = None
        self.ahead = self.completed_at = 0
        self.checking = True
        self.trace = both.trace
        self.stray_from: int | None = None
        """From where on the log may have records that the other one does not have."""
        self.retained = 0
        """Up to where retention has deleted its records."""

    @property
    def now(self) -> int:
        """The time."""
        return self.both.now

    @now.setter
    def now(self, to: int) -> None:
        self.both.now = to

    def start(self) -> Task:
        """A run begins."""
        return self._begun(self.both.kind(cluster=Side(self)))

    def turn(self) -> Task:
        """The step `return` of the newest switch begins, maybe again."""
        return self._begun(Turn(cluster=Side(self), cut=self.both.cut))

    def _begun(self, writer: ReturningOffsets | Turn) -> Task:
        task = Task(f"{self.name}{len(self.tasks)}", writer)  # type: ignore[arg-type]
        self.tasks.append(task)
        return task

    def look_for(self, asked_at: int, producer: int) -> tuple[Look, bool]:
        """What the leader shows, or one that leads no more."""
        stale, self.stale_end = self.stale_end, None
        log = self.target
        end = log.hw if stale is None else min(stale, log.hw)
        state = log.states.get(producer)
        sequence = (state.batches[-1][1] + 1 if state.batches else 0) if state is not None else None
        settled = stale is not None or log.hw == log.end
        tail = None
        if end > log.log_start:
            last = log.entries[end - 1]
            data = [one for one in log.entries[:end] if one.producer == producer and not one.marker]
            next_sequence = data[-1].sequence + 1 if data else None
            tail = Tail(producer=last.producer, timestamp=0, next_sequence=next_sequence, right=None, unsealed=False)
        state_ms = state.timestamp if state is not None else 0
        return Look(
            at=asked_at, end=end, settled=settled, tail=tail, state_sequence=sequence, state_ms=state_ms
        ), stale is not None

    def until(self) -> int:
        """Until when a batch of the lane may arrive that the broker would not compare and refuse."""
        ledger, log = self.ledger, self.target
        continued = ledger.continued
        producer = continued.producer if continued is not None else self.producer
        begins = continued.until if continued is not None else 0
        own = log.end == begins or log.entries[-1].producer == producer
        compared = log.end if own and log.hw == log.end else -1
        found = [
            (Sender(after=None, ends={place(): one.planned_end}), one.after)
            for one in ledger.runs
            if ledger.sent and one.planned_end >= 0
        ]
        left = [after for sender, after in found if reaching([sender], place(), compared)]
        return max((LEASE + LATENESS + 1 + (self.now if after is None else after) for after in left), default=0)

    def write(self, kind: str, age: int = 0, producer: int = CLIENT) -> None:
        """A client writes a record (`r`), or a hole (`m`)."""
        at = self.target.end
        value = None if kind == "m" else f"{at}{'x' if producer == STRAY else ''}.{self.both.switches}"
        self.target.entries.append(
            Entry(
                producer=producer,
                epoch=0,
                timestamp=self.now - age,
                value=value,
                base=at,
                marker=value is None,
                sequence=at,
            )
        )
        self.target.follow(at)
        self.trace.append(f"{self.now} {'stray' if producer == STRAY else 'client'} {kind} at {self.name} {at}")
        if producer == CLIENT:
            assert at == len(self.both.truth), self.say(f"a client's record at {at}, not {len(self.both.truth)}")
            self.both.truth.append(value)
        elif self.stray_from is None:
            self.stray_from = at
        self.settle()

    def retain(self, start: int) -> None:
        """Retention deletes what is before `start`."""
        self.target.log_start = self.retained = start

    def lose_end(self, count: int) -> None:
        """An unclean election loses acknowledged records."""
        self.trace.append(f"{self.now} {self.name} loses {count}")
        self.target.fail_over(self.target.end - count)

    def fail_over(self, kept: int) -> None:
        """Another replica leads; records that were not acknowledged may be gone."""
        super().fail_over(kept)
        if self is self.both.primary:
            del self.both.truth[self.target.end :]
        elif self.stray_from is not None and self.target.end <= self.stray_from >= self.both.cut:
            self.stray_from = None

    def check(self) -> None:
        """Each record that a lane wrote is right at its offset. After a stray one, one batch at most is not."""
        truth = self.both.truth
        strays: set[int] = set()
        assert self.target.log_start == self.retained, self.say("records of the clients were deleted")
        for at, one in enumerate(self.target.entries):
            if one.producer not in self.both.lanes or (at < len(truth) and truth[at] == one.value):
                continue
            strays.add(one.base if one.base >= 0 else at)
            astray = self.stray_from is not None and at >= self.stray_from
            assert len(strays) == astray, self.say(f"{self.name}: record {one.value} at {at}")
        for start, end in self.ledger.covered:
            for at in range(start, end):
                right = at < self.target.end and at < len(truth) and self.target.entries[at].value == truth[at]
                assert right, self.say(f"{self.name}: a receipt, and another record at {at}")
            apart = self.stray_from is not None and self.stray_from < start
            assert not apart, self.say(f"{self.name}: a receipt after a record that is only there")

    def _shown(self) -> list[str]:
        ends = [self.both.truth, *([one.value for one in way.target.entries] for way in self.both.ways)]
        return [f"{name} {some}" for name, some in zip(["all", "A", "B"], ends, strict=True)]


class Both:
    """The two clusters; clients are at one of them."""

    def __init__(self, kind: type[ReturningOffsets] | None = None) -> None:
        self.now = START
        self.kind = kind or ReturningOffsets
        self.trace: list[str] = []
        self.truth: list[str | None] = []
        self.lanes = {11, 12}
        self.ways = (Way(self, "A", 11), Way(self, "B", 12))
        self.ways[A].other, self.ways[B].other = self.ways[B], self.ways[A]
        self.ways[A].ledger.closed = True
        """Nothing goes to A while clients are there from the beginning."""
        self.at = A
        self.switches = 0
        self.cut = 0

    @property
    def primary(self) -> Way:
        """Where clients are: the lane into their cluster, and its log."""
        return self.ways[self.at]

    @property
    def copy(self) -> Way:
        """The other one."""
        return self.ways[1 - self.at]

    def produce(self, shape: str, age: int = 0) -> None:
        """Clients write."""
        for kind in shape:
            self.primary.write(kind, age)

    def stop(self, way: Way) -> None:
        """The lane is fenced, and what may arrive late is awaited."""
        way.ledger.open(self.now, -1)
        way.ledger.closed = True
        self.trace.append(f"{self.now} stop {way.name}")
        for _ in range(5):
            until = way.until() if clauses.waits() else 0
            if self.now < until:
                way.sleep(until - self.now)
        way.ledger.runs.clear()

    def switchover(self) -> bool:
        """Clients stop, all is copied, and they continue at the other cluster; False: it was not copied."""
        way = self.copy
        self.trace.append(f"{self.now} switchover to {way.name}")
        for one in self.ways:
            one.replicating = True
            one.settle()
        for _ in range(2):
            if way.target.end != len(self.truth):
                way.finish(way.start())
        if way.target.end != len(self.truth) or way.stray_from is not None:
            return False
        self.stop(way)
        self._move()
        return True

    def failover(self) -> bool:
        """The cluster of the clients is lost, maybe with records that were not copied."""
        way, lost = self.copy, self.primary
        if way.stray_from is not None:
            return False
        self.trace.append(f"{self.now} failover to {way.name}")
        way.replicating = True
        way.settle()
        self.stop(way)
        del self.truth[way.target.end :]
        if lost.target.end > way.target.end:
            lost.stray_from = way.target.end
        self._move()
        return True

    def _move(self) -> None:
        self.at = 1 - self.at
        self.switches += 1
        self.cut = len(self.truth)
        for one in self.ways:
            one.check()

    def new_producer(self) -> int:
        """InitProducerId."""
        self.lanes.add(max(self.lanes) + 1)
        return max(self.lanes)


# Who writes.


class ReturningOffsets(OffsetWriter):
    """A writer for a log that has records of clients. Sequence numbers are offsets."""

    cluster: Side

    def copy(self) -> Asking:
        """Copy until nothing is left, something is refused, or a newer run is there."""
        side, asked_at = self.cluster, self.cluster.clock()
        claim = yield side.request("claim", side.claim)
        if not isinstance(claim, ReturnClaim):
            return
        one = claim.continued
        side.producer, side.until = (
            (side.way.producer, -1) if one is None else (clauses.number_of(one, side.way.both), one.until)
        )
        self.generation, self.planned_end, self.confirmed_at = claim.generation, claim.planned_end, asked_at
        self.receipts = clauses.counts_from(claim.receipts, side.until)
        self.noted, self.first = claim.sent, clauses.empty_until(max(0, side.until))
        if claim.closed and clauses.closes():
            self.outcome = Refuse(Code.MOVED)
        self.begin(claim)
        while self.outcome is None and not self.superseded:
            yield from self.keep()
            if not self.superseded:
                yield from self.once()

    def once(self) -> Asking:
        """One reading of the target, and all batches that follow from it."""
        side = self.cluster
        asked_at, self.asked_ms = side.clock(), side.wall()
        seen = yield side.request("look", lambda: side.look(asked_at))
        if not isinstance(seen, tuple):
            return
        look, stale = self.shown(seen[0]), seen[1]
        if not rules.settled(look):
            return
        any_tail = clauses.takes_any_tail(look.end, side.until)
        wrong = stamped.wrong_with(
            replace(look, tail=None) if any_tail else look,
            receipts_end=self.receipts,
            planned_end=self.planned_end,
            producer=side.producer,
        )
        same = look.end != side.until or not clauses.compares_in_runs() or side.same_last(look.end)
        if wrong is None and not (same and (any_tail or side.has_all(self.receipts, look.end))):
            wrong = Code.SHIFTED
        if wrong is not None:
            yield from self.refuse(Refuse(wrong))
            return
        self.take(look)
        yield from self.go_on(look.end, asked_at, stale)

    def note(self) -> Generator[Request, object, bool]:
        """Write to the ledger that a batch is sent, and ask for a newer run."""
        side = self.cluster
        if (yield side.request("note", side.lane.record_sent)) is True:
            asked_at = side.clock()
            yield from self.confirm()
            self.noted = self.confirmed_at >= asked_at and not self.superseded
        return self.noted


class ReturningMarkers(ReturningOffsets, MarkingWriter):
    """Sequence numbers are those that the broker wants: markers pass holes."""


@dataclass(slots=True)
class Turn:
    """The process of the step `return`. It may die, sleep, and be begun again."""

    cluster: Side
    cut: int
    outcome: Done | Refuse | None = None

    def copy(self) -> Asking:
        """Fence the lane, look, and write the record."""
        side = self.cluster
        until: object = 0
        if clauses.guards_first():
            until = yield side.request("guard", side.way.until)
        claim = yield side.request("claim", side.fence)
        if not isinstance(claim, ReturnClaim):
            return
        if clauses.kept(claim.continued, self.cut):
            yield from self.commit(claim, None)
            return
        if clauses.guarded() and not clauses.guards_first():
            until = yield side.request("guard", side.way.until)
        if not isinstance(until, int):
            return
        if self.late(until):
            self.outcome = Refuse(Code.NOT_QUIET)
            return
        asked_at = side.clock()
        seen = yield side.request("look", lambda: side.look(asked_at))
        if not isinstance(seen, tuple):
            return
        look: Look = seen[0]
        if (
            not rules.settled(look)
            or not clauses.fits(look.end, self.cut)
            or (clauses.compares() and not side.same_last(look.end))
        ):
            self.outcome = Refuse(Code.FOREIGN)
            return
        producer = yield side.request("init", side.way.both.new_producer)
        if isinstance(producer, int):
            own = claim.continued.producer if claim.continued is not None else side.way.producer
            one = Continued(until=look.end, producer=producer if clauses.numbered_again() else own)
            yield from self.commit(claim, one)

    def late(self, until: int) -> bool:
        """Whether something may arrive yet."""
        return self.cluster.clock() < until

    def commit(self, claim: ReturnClaim, continued: Continued | None) -> Asking:
        """Write the record, in the transaction of the run."""
        side = self.cluster
        answer = yield side.request("commit", lambda: side.lane.share(claim.generation, continued))
        if answer is True:
            self.outcome = Done(clean=True)
