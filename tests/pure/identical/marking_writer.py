"""The modelled writer that also passes holes of the source, by markers: the lean form of ADR 57's items 2, 4, 5 and 8.

It never waits. At a hole for which it is not quiet it stops, and a later run continues.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, field, replace

from ferry.features.identical.rules import marked, stamped
from ferry.features.identical.rules import next_step as rules
from ferry.features.identical.rules.values import Code, Done, Hole, Look, Refuse, Run
from tests.pure.identical.broker import OldEpoch
from tests.pure.identical.offset_writer import OffsetWriter
from tests.pure.identical.writer import Asking, Claim, Ledger, Marking, Request

MARKING = 3
"""How long a writer may send markers after its record of that in the ledger."""
MARKERS_AT_ONCE = 2
"""The most markers of a request: a longer hole takes several."""
CHUNK = 3
"""Answers after which receipts are written."""


def stops(answer: object) -> bool:
    """Whether a writer stops at this partition because its markers may arrive late."""
    return answer is None


def opens() -> bool:
    """Whether a writer says in the ledger that it is about to send markers."""
    return True


def trusts_readings(read_at: int, until: int) -> bool:
    """Whether a reading alone shows that no marker is late: a broker that leads no more may have answered it."""
    return False


def closes(*, quiet: bool) -> bool:
    """Whether receipts say that all markers were answered: also those of earlier writers."""
    return quiet


def fenced(fence: int, newest: int) -> bool:
    """Whether a transaction of the slot cannot commit any more."""
    return fence != newest


def proves() -> bool:
    """Whether an answer shows that the markers are where they should be.

    The broker has one answer for all of a request, and it names no offset.
    """
    return False


def forgets(marking: Marking, known: set[Marking]) -> bool:
    """Whether a record about markers is of another writer, so that what this one knew holds no more."""
    return marking not in known


def all_seen(marking: Marking, known: set[Marking]) -> bool:
    """Whether a writer may commit what it says of markers: it has seen all that was said before."""
    return marking in known


def clock_fits(ahead: int) -> bool:
    """Whether a writer may become quiet by its wall clock, by what the ledger's broker shows of that."""
    return ahead == 0


def outlasted(wall: int, said_until: int) -> bool:
    """Whether the time in the ledger is over, by the wall clock: the other clock may have been stopped."""
    return wall >= said_until


def only_seen(hole: Hole) -> bool:
    """Whether all readers of the source see this hole: markers and aborted records, not compacted or deleted ones."""
    return hole.seen


def record_follows(logged: int, first: int) -> bool:
    """Whether a record follows the empty ones before `first`: a marker does not keep the state of the log."""
    return logged > first


@dataclass(slots=True)
class MarkingWriter(OffsetWriter):
    """One run's writer, with a marker for each offset that is a hole at the source."""

    earlier_until: int = 0
    """Up to when the ledger lets earlier writers send markers; 0: all were answered."""
    own_until: int = 0
    """Up to when this writer sends markers, by the clock that counts sleep."""
    said_until: int = 0
    """The same as the ledger has it, by the wall clock."""
    began: tuple[int, int] = 0, 0
    """When it began, by both clocks."""
    sequence: int = 0
    state_ms: int = 0
    """The last timestamp of the producer state."""
    quiet: bool = False
    read_at: int = 0
    answers: int = 0
    covered: int = 0
    follows: bool = False
    fence: int = 0
    known: set[Marking] = field(default_factory=set)
    """The records about markers that this writer has taken into account: what it found first, and its own."""

    def begin(self, claim: Claim) -> None:
        """Take what the ledger shows of markers."""
        self.covered, self.fence = self.receipts, claim.fence
        self.began = self.cluster.wall(), self.cluster.clock()
        self.learn(claim.marking)

    def learn(self, marking: Marking) -> None:
        """Take what the ledger shows of markers, unless it is known."""
        if not forgets(marking, self.known):
            return
        self.known.add(marking)
        self.earlier_until, self.quiet = marking.until, marking.until == 0

    def shown(self, look: Look) -> Look:
        """A reading does not compare the last batch with the source's: it may be a marker."""
        return look if look.tail is None else replace(look, tail=replace(look.tail, right=None))

    def take(self, look: Look) -> None:
        """The next sequence number; a reading that is late enough makes the writer quiet."""
        self.quiet = self.quiet or trusts_readings(self.asked_ms, self.earlier_until)
        self.read_at = marked.no_later(self.asked_ms, self.began[0] + look.at - self.began[1])
        self.sequence, self.state_ms = marked.next_sequence(look), look.state_ms
        logged = look.tail.next_sequence if look.tail is not None else None
        self.follows = self.follows or record_follows(logged or 0, self.first)
        lateness = self.cluster.limits.lateness or 0
        timed = clock_fits(self.cluster.ahead) and marked.is_quiet(self.read_at, self.earlier_until, lateness)
        self.quiet = self.quiet or timed

    def sequence_at(self, end: int) -> int:
        """The count of records under the producer id."""
        return self.sequence

    def expires(self, end: int) -> bool:
        """Whether the state that has the next number may be gone when the batch arrives, or what is late then."""
        limits = self.cluster.limits
        until = marked.usable_until(end, self.sequence, self.state_ms, limits.expiration - rules.strict_for(limits))
        return until is not None and self.cluster.wall() >= until

    def tidy(self, end: int) -> Asking:
        """Delete the empty records when a record follows."""
        if self.follows:
            yield from OffsetWriter.tidy(self, end)

    def appended(self, end: int, run: Run) -> Asking:
        """The answer proves that the leader answered the reading."""
        self.sequence += run.count
        self.state_ms = run.oldest
        self.follows = self.follows or end > self.first
        shows = clock_fits(self.cluster.ahead) and marked.shows_all_markers(self.read_at, self.earlier_until)
        self.quiet = self.quiet or shows
        yield from self.answered(end)

    def answered(self, end: int) -> Asking:
        """Write receipts after a few answers."""
        self.answers += 1
        if self.answers % CHUNK == 0 and end > max(self.first, self.covered):
            yield from self.tidy(end)
            yield from self.commit(end)

    def commit(self, end: int) -> Asking:
        """Receipts, and that all markers were answered, in one transaction of the slot."""
        begin, all_answered = self.covered or self.first, closes(quiet=self.quiet)
        answered = Marking(0)
        self.known.add(answered)

        def act(ledger: Ledger) -> None:
            ledger.covered.append((begin, end))
            ledger.receipts = max(ledger.receipts, end)
            if all_answered:
                ledger.marking = answered

        if (yield from self.transaction("commit", act)):
            self.covered = self.receipts = end
            self.earlier_until, self.own_until = 0 if self.quiet else self.earlier_until, 0

    def open(self) -> Generator[Request, object, bool]:
        """Say in the ledger, by a transaction of the slot, up to when markers are sent; whether that is known."""
        now = self.cluster.clock()
        until = marked.no_earlier(self.cluster.wall(), self.began[0] + now - self.began[1]) + MARKING
        marking = Marking(until)
        self.known.add(marking)

        def act(ledger: Ledger) -> None:
            ledger.marking = marking

        if not opens() or (yield from self.transaction("open", act)):
            self.own_until, self.said_until = now + MARKING, until
            return True
        return False

    def transaction(self, label: str, act: Callable[[Ledger], None]) -> Generator[Request, object, bool]:
        """A transaction of the slot, which a fence aborts.

        A writer that was fenced ends. Without an answer it fences its slot itself, and reads the ledger.
        """
        fence, ledger = self.fence, self.cluster.ledger

        def committed() -> bool | Marking:
            if fenced(fence, ledger.fences):
                raise OldEpoch("the slot was fenced")
            if not all_seen(ledger.marking, self.known):
                return ledger.marking
            act(ledger)
            return True

        answer = yield self.cluster.request(label, committed)
        if answer is True:
            return True
        self.own_until = 0
        if isinstance(answer, OldEpoch):
            self.superseded = True
            return False
        if isinstance(answer, Marking):
            self.learn(answer)
            return False
        while not isinstance(answer, int) and not self.superseded:
            answer = yield self.cluster.request("fence", lambda: ledger.fence(self.generation))
            yield from self.confirm()
        found = None
        while isinstance(answer, int) and not isinstance(found, Marking) and not self.superseded:
            self.fence = answer
            found = yield self.cluster.request("reread", lambda: ledger.marking)
            yield from self.confirm()
        if isinstance(found, Marking):
            self.learn(found)
        return False

    def passed(  # noqa: PLR0911 - each return reads again or stops
        self, end: int, hole: Hole, known_at: int, stale: bool
    ) -> Generator[Request, object, tuple[int, int] | None]:
        """Pass a hole, or its beginning, by one request; or stop."""
        cluster, limits = self.cluster, self.cluster.limits
        if not only_seen(hole):
            yield from self.refuse(Refuse(Code.ABSENT))
            return None
        if not limits.markers_allowed:
            yield from self.refuse(Refuse(Code.MARKERS))
            return None
        if not self.quiet:
            yield from self.stop(end, Code.NOT_QUIET)
            return None
        yield from self.keep()
        if self.superseded:
            return None
        if not (self.noted or (yield from self.note())):
            return None
        if not marked.may_send(cluster.clock(), self.own_until) and not (yield from self.open()):
            return None
        now = cluster.clock()
        if (
            stamped.is_outdated(known_at, now, limits.lease)
            or rules.lease_over(self.view(hole), limits)
            or not marked.may_send(now, self.own_until)
            or outlasted(cluster.wall(), self.said_until)
        ):
            return None
        count = min(MARKERS_AT_ONCE, min(hole.end, self.planned_end) - end)
        answer = yield cluster.request("mark", lambda: cluster.mark(count), writes=True, stale=stale)
        if stops(answer):
            self.quiet, self.earlier_until = False, marked.after_silence(self.earlier_until, self.said_until)
            yield from self.stop(end, Code.NOT_QUIET)
            return None
        if not isinstance(answer, int) or not (proves() or (yield from self.ends(end + count))):
            return None
        self.state_ms = now
        yield from self.answered(end + count)
        return end + count, now

    def ends(self, end: int) -> Generator[Request, object, bool]:
        """Whether the log ends there, by another reading."""
        asked_at = self.cluster.clock()
        seen = yield self.cluster.request("look", lambda: self.cluster.look(asked_at))
        if not isinstance(seen, tuple):
            return False
        look: Look = seen[0]
        return not seen[1] and rules.settled(look) and look.end == end

    def stop(self, end: int, code: Code) -> Asking:
        """Write receipts up to there, and leave the rest to a later run."""
        if end > max(self.first, self.covered):
            yield from self.tidy(end)
            yield from self.commit(end)
        yield from self.refuse(Refuse(code))

    def finish(self, end: int) -> Asking:
        """All is there."""
        yield from self.tidy(end)
        if self.follows or end > self.first:
            yield from self.commit(end)
            if self.covered != end:
                return
        self.outcome = Done(clean=True)
