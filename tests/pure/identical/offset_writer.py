"""The modelled writer whose sequence numbers are offsets: it reads once, and continues by the answers that it gets.

Where the source's log does not begin at 0, it writes empty records up to there, and deletes them when records follow.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from ferry.features.identical.rules import empty, stamped
from ferry.features.identical.rules import next_step as rules
from ferry.features.identical.rules.values import Code, Done, Hole, Look, Refuse, Run, Send
from tests.pure.identical.source import READ_AT_ONCE
from tests.pure.identical.writer import LANE, Asking, Claim, Records, Request, Writer


def continues(answer: object) -> bool:
    """Whether a batch is sent after one whose answer is not its base offset."""
    return False


def misplaced(base: int, offset: int) -> bool:
    """Whether an answer shows that the batch is elsewhere than at its offset."""
    return base != offset


def confirms() -> bool:
    """Whether a writer asks for a newer run after it wrote to the ledger with which offset the records begin."""
    return True


def deletable(end: int, first: int) -> bool:
    """Whether the empty records before `first` may be deleted from a log that ends at `end`: not up to its end."""
    return end > first


@dataclass(slots=True)
class OffsetWriter(Writer):
    """One run's writer. It never waits, and writes its receipts when all data is there."""

    first: int = 0
    noted: bool = False
    tidied: bool = False
    asked_ms: int = 0
    """When the last reading was asked for, by the wall clock."""

    def copy(self) -> Asking:
        """Copy until nothing is left, something is refused, or a newer run is there."""
        asked_at = self.cluster.clock()
        claim = yield self.cluster.request("claim", self.cluster.claim)
        if not isinstance(claim, Claim):
            return
        self.generation, self.receipts, self.planned_end = claim.generation, claim.receipts, claim.planned_end
        self.confirmed_at = asked_at
        self.noted = self.receipts > 0
        self.first = claim.first if not self.noted else 0
        if self.begins_elsewhere(claim):
            yield from self.refuse(Refuse(Code.MOVED))
        self.begin(claim)
        while self.outcome is None and not self.superseded:
            yield from self.keep()
            if not self.superseded:
                yield from self.once()

    def begins_elsewhere(self, claim: Claim) -> bool:
        """Whether an earlier writer may have begun with another first offset, and there are no receipts yet."""
        return not self.noted and empty.other_first(self.first, claim.firsts) is not None

    def begin(self, claim: Claim) -> None:
        """Take what else the ledger shows."""

    def keep(self) -> Asking:
        """Ask the ledger again when half of the lease is over."""
        if self.cluster.clock() >= self.confirmed_at + self.cluster.limits.lease // 2:
            yield from self.confirm()

    def once(self) -> Asking:
        """One reading of the target, and all batches that follow from it."""
        asked_at, self.asked_ms = self.cluster.clock(), self.cluster.wall()
        seen = yield self.cluster.request("look", lambda: self.cluster.look(asked_at))
        if not isinstance(seen, tuple):
            return
        look: Look = self.shown(seen[0])
        stale: bool = seen[1]
        if not rules.settled(look):
            return
        wrong = stamped.wrong_with(look, receipts_end=self.receipts, planned_end=self.planned_end, producer=LANE)
        if wrong is not None:
            yield from self.refuse(Refuse(wrong))
            return
        if not self.cluster.agrees(self.receipts or self.first, look.end):
            yield from self.refuse(Refuse(Code.SHIFTED))
        else:
            self.take(look)
            yield from self.go_on(look.end, asked_at, stale)

    def shown(self, look: Look) -> Look:
        """What the writer sees of a reading."""
        return look

    def take(self, look: Look) -> None:
        """Keep what else a reading shows."""

    def sequence_at(self, end: int) -> int:
        """The sequence number of the next record, which gets the offset `end`."""
        return stamped.sequence_of(end)

    def passed(
        self, end: int, hole: Hole, known_at: int, stale: bool
    ) -> Generator[Request, object, tuple[int, int] | None]:
        """Pass a hole: where the log ends then, and since when that is known. None: it is to be read again."""
        yield from self.refuse(Refuse(Code.MARKERS))
        return None

    def appended(self, end: int, run: Run) -> Asking:
        """A batch of these records was answered, and the log ends at `end`; `run.oldest` is its largest timestamp."""
        yield from ()

    def expires(self, end: int) -> bool:
        """Whether the next sequence number may not be used any more."""
        return False

    def ahead(self, end: int) -> Generator[Request, object, object]:
        """What comes next: empty records, or what the source has."""
        if end < self.first:
            count = min(READ_AT_ONCE, self.first - end)
            return Run(count=count, oldest=self.cluster.clock()), [(None, self.cluster.clock())] * count
        return (yield self.cluster.request("read", lambda: self.cluster.read(end)))

    def note(self) -> Generator[Request, object, bool]:
        """Write to the ledger with which offset the records begin, and ask for a newer run; whether there is none."""
        first = self.first
        if (yield self.cluster.request("note", lambda: self.cluster.ledger.record_first(first))) is True:
            asked_at = self.cluster.clock()
            if confirms():
                yield from self.confirm()
            self.noted = not confirms() or (self.confirmed_at >= asked_at and not self.superseded)
        return self.noted

    def tidy(self, end: int) -> Asking:
        """Delete the empty records, before there are receipts."""
        first = self.first
        if first and not self.receipts and deletable(end, first) and not self.tidied:
            answer = yield self.cluster.request("delete", lambda: self.cluster.delete(first), writes=True)
            self.tidied = isinstance(answer, int)

    def go_on(  # noqa: PLR0911 - each return reads again
        self, end: int, known_at: int, stale: bool
    ) -> Asking:
        """Send one batch after the other; `known_at`: since when the log is known to end at `end`."""
        cluster, limits = self.cluster, self.cluster.limits
        while end < self.planned_end:
            yield from self.tidy(end)
            found = yield from self.ahead(end)
            if not isinstance(found, tuple) or found[0] is None:
                return
            ahead: Run | Hole = found[0]
            records: Records = found[1]
            if isinstance(ahead, Hole):
                after = yield from self.passed(end, ahead, known_at, stale)
                if after is None:
                    return
                end, known_at = after
                continue
            count = min(ahead.count, self.planned_end - end)
            newest = Run(count=count, oldest=max(timestamp for _, timestamp in records[:count]))
            yield from self.keep()
            if self.superseded:
                return
            if not rules.strict(newest, self.view(ahead), limits):
                yield from self.refuse(Refuse(Code.STATE_TOO_SHORT))
                return
            if self.expires(end):
                yield from self.stop(end, Code.EXPIRES)
                return
            if not (self.noted or (yield from self.note())):
                return
            now = cluster.clock()
            if stamped.is_outdated(known_at, now, limits.lease) or rules.lease_over(self.view(ahead), limits):
                return
            step = Send(end, count, self.sequence_at(end))
            answer = yield cluster.request(
                "send",
                lambda: cluster.send(step, records[: step.count]),  # noqa: B023 - it is the newest step
                writes=True,
                stale=stale,
            )
            if isinstance(answer, int) and misplaced(answer, end):
                yield from self.refuse(Refuse(Code.SHIFTED))
                return
            if not isinstance(answer, int) and not continues(answer):
                return
            end, known_at = end + count, now
            yield from self.appended(end, newest)
        yield from self.finish(end)

    def stop(self, end: int, code: Code) -> Asking:
        """Leave the rest to a later run."""
        yield from self.refuse(Refuse(code))

    def finish(self, end: int) -> Asking:
        """All is there: delete the empty records, and write the receipts."""
        cluster = self.cluster
        yield from self.tidy(end)
        if (yield cluster.request("end", lambda: self.cluster.ledger.end(self.generation, True))) is not None:
            ledger = self.cluster.ledger
            ledger.covered.append((self.receipts or self.first, end))
            ledger.receipts = max(ledger.receipts, end)
            self.outcome = Done(clean=True)
