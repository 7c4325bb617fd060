"""The modelled writer of compacted topics: it also passes absent records, and nothing of another writer can be late.

One writer at a time writes to the target, data and markers. It does so up to a time that the ledger has (*until*). A
successor writes nothing before that time and a lateness are over, unless the ledger says that all was answered.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from ferry.features.identical.rules import marked
from ferry.features.identical.rules import next_step as rules
from ferry.features.identical.rules.marked import no_later
from ferry.features.identical.rules.values import Code, Done, Hole, Look, Refuse, Run, Send
from tests.pure.identical import marking_writer
from tests.pure.identical.broker import Entry
from tests.pure.identical.marking_writer import CHUNK, MARKERS_AT_ONCE, MARKING, MarkingWriter, clock_fits
from tests.pure.identical.source import Written
from tests.pure.identical.writer import LANE, Asking, Claim, Ledger, Marking, Records, Request


def leased(ahead: Run | Hole) -> bool:
    """Whether something is written only up to the time that the ledger has: data as well as markers."""
    return True


def writes(ahead: Run | Hole, *, quiet: bool) -> bool:
    """Whether a writer may write, data or markers."""
    return quiet


def stops(ahead: Run | Hole, answer: object) -> bool:
    """Whether a writer stops at this partition because its request may arrive late."""
    return answer is None


def looks(ahead: Run | Hole) -> bool:
    """Whether a writer reads the log after a request that was not answered, and continues if that is there."""
    return True


def shows_all(end: int, planned: int) -> bool:
    """Whether a log's end shows that nothing of earlier runs is late, whose plans reach up to `planned`."""
    return False


def ends_lease(*, last: bool) -> bool:
    """Whether receipts say that all requests were answered: after them the writer writes no more."""
    return last


def takes_over(claim: Claim) -> bool:
    """Whether writers of another kind may have sent something: what they send is not said in the ledger."""
    return bool(claim.firsts) and not isinstance(claim.marking, Exclusive)


def reads_again(*, committed: bool) -> bool:
    """Whether a writer reads the target again: others may have written if a transaction was not committed."""
    return not committed


def is_repeat(base: int, end: int) -> bool:
    """Whether the broker took a batch for a repeat of an older one: nothing was appended."""
    return base < end


def renumbers() -> bool:
    """Whether the next batch is number 0 of the next epoch when the broker took one for a repeat.

    A broker compares it with no older one then. With fewer records, it may be taken for a repeat again.
    """
    return True


def keeps_record(entry: Entry, there: Written | None) -> bool:
    """Whether a record at the target is right: the source's, or the lane's where the source has none any more."""
    return entry.producer == LANE if there is None else there.value == entry.value


def keeps_marker(entry: Entry, there: Written | None) -> bool:
    """Whether a marker at the target is right: another broker of the source may have had no record there."""
    return entry.producer == LANE


@dataclass(frozen=True, slots=True, eq=False)
class Exclusive(Marking):
    """A record of the ledger by a writer of this kind: up to when it writes; 0: all was answered."""


@dataclass(slots=True)
class ExclusiveWriter(MarkingWriter):
    """One run's writer at a partition of a compacted topic."""

    clock_known: bool = False
    """Whether the ledger's broker showed that the wall clock is right."""
    others_until: int = 0
    """Up to when writers of another kind may send something; 0: there are none, or the ledger says it already."""
    planned_before: int = 0
    """How far the plans of earlier runs reach."""
    epoch: int = 0
    """The epoch of the lane's producer id."""
    renumbered: bool = False
    """Whether the next batch begins another numbering."""

    def begin(self, claim: Claim) -> None:
        """Take what the ledger shows of earlier writers, and of the clock."""
        MarkingWriter.begin(self, claim)
        self.clock_known = clock_fits(self.cluster.ahead)
        self.planned_before = claim.planned_before
        if takes_over(claim):
            self.others_until = max(claim.marking.until, self.cluster.wall() + self.cluster.limits.lease)
            self.quiet = False

    def begins_elsewhere(self, claim: Claim) -> bool:
        """Whether there may be empty records: this writer passes what is before the source's log by markers."""
        self.first = 0
        return not self.noted and any(claim.firsts)

    def take(self, look: Look) -> None:
        """The next sequence number; a reading that is late enough makes the writer quiet."""
        self.sequence, self.epoch = marked.next_sequence(look), self.cluster.epoch()
        self.read_at = no_later(self.asked_ms, self.began[0] + look.at - self.began[1])
        timed = marked.is_quiet(self.read_at, self.earlier_until, self.cluster.limits.lateness or 0)
        timed = (self.clock_known and timed) or shows_all(look.end, self.planned_before)
        self.quiet = self.quiet or (timed and not self.others_until)

    def go_on(self, end: int, known_at: int, stale: bool) -> Asking:
        """Write one thing after the other, from the end that was read."""
        while end < self.planned_end:
            found = yield from self.ahead(end)
            if not isinstance(found, tuple) or found[0] is None:
                return
            ahead: Run | Hole = found[0]
            if not self.clock_known or not writes(ahead, quiet=self.quiet):
                yield from self.stop(end, Code.NOT_QUIET)
                return
            if isinstance(ahead, Hole) and not self.cluster.limits.markers_allowed:
                yield from self.stop(end, Code.MARKERS)
                return
            after = yield from self.wrote(end, ahead, found[1], stale)
            if after is None:
                return
            end = after
        yield from self.finish(end)

    def wrote(
        self, end: int, ahead: Run | Hole, records: Records, stale: bool
    ) -> Generator[Request, object, int | None]:
        """Write what comes next; where the log ends then. None: it is to be read again, or the writer stops."""
        if leased(ahead) and not self.in_time() and not (yield from self.open()):
            return None
        if not (self.noted or (yield from self.note())) or (leased(ahead) and not self.in_time()):
            return None
        epoch = self.epoch
        if isinstance(ahead, Hole):
            count = min(MARKERS_AT_ONCE, min(ahead.end, self.planned_end) - end)
            answer = yield self.cluster.request(
                "mark", lambda: self.cluster.mark(count, epoch), writes=True, stale=stale
            )
        else:
            count = min(ahead.count, self.planned_end - end)
            if self.renumbered:
                epoch, self.sequence = epoch + 1, 0
                self.epoch = epoch
            step = Send(end, count, self.sequence)
            answer = yield self.cluster.request(
                "send", lambda: self.cluster.send(step, records[:count], epoch), writes=True, stale=stale
            )
        if answer is None and looks(ahead) and (yield from self.ends(end + count)):
            answer = end
        elif stops(ahead, answer):
            self.quiet, self.earlier_until = False, marked.after_silence(self.earlier_until, self.said_until)
            yield from self.stop(end, Code.NOT_QUIET)
            return None
        if not isinstance(answer, int):
            return None
        return (yield from self.took(end, ahead, count, answer))

    def took(self, end: int, ahead: Run | Hole, count: int, answer: int) -> Generator[Request, object, int | None]:
        """What an answer shows; where the log ends then."""
        if isinstance(ahead, Hole):
            if not (marking_writer.proves() or (yield from self.ends(end + count))):
                return None
        elif is_repeat(answer, end):
            self.renumbered = renumbers()
            return None
        elif answer != end:
            yield from self.refuse(Refuse(Code.SHIFTED))
            return None
        else:
            self.sequence, self.renumbered = self.sequence + count, False
        self.answers += 1
        after = end + count
        if self.answers % CHUNK == 0:
            yield from self.receipts_up_to(after, last=False)
            if self.superseded or reads_again(committed=self.covered == after):
                return None
        return after

    def ends(self, end: int) -> Generator[Request, object, bool]:
        """Whether the log ends there, by another reading, whichever broker answers it."""
        asked_at = self.cluster.clock()
        seen = yield self.cluster.request("look", lambda: self.cluster.look(asked_at))
        if not isinstance(seen, tuple):
            return False
        look: Look = seen[0]
        return rules.settled(look) and look.end == end

    def in_time(self) -> bool:
        """Whether both clocks show that the writer may write."""
        cluster = self.cluster
        return marked.may_send(cluster.clock(), self.own_until) and not marking_writer.outlasted(
            cluster.wall(), self.said_until
        )

    def open(self) -> Generator[Request, object, bool]:
        """Say in the ledger, by a transaction of the slot, up to when this writer writes; whether that is known."""
        said, own_until = self.from_now()
        self.known.add(said)

        def act(ledger: Ledger) -> None:
            ledger.marking = said

        if not (yield from self.transaction("open", act)):
            return False
        self.own_until, self.said_until = own_until, said.until
        return True

    def from_now(self) -> tuple[Exclusive, int]:
        """What the ledger is to say if the writer writes from now on, and up to when by the clock that counts sleep."""
        now = self.cluster.clock()
        until = marked.no_earlier(self.cluster.wall(), self.began[0] + now - self.began[1]) + MARKING
        return Exclusive(until), now + MARKING

    def receipts_up_to(self, end: int, *, last: bool) -> Asking:
        """Receipts, and until when the writer writes, in one transaction of the slot; `last`: it writes no more."""
        begin = self.covered
        said, own_until = self.from_now()
        says = marking_writer.closes(quiet=self.quiet)
        if says and ends_lease(last=last):
            said = Exclusive(0)
        elif self.others_until:
            said, says = Exclusive(self.others_until), True
        self.known.add(said)

        def act(ledger: Ledger) -> None:
            if end > begin:
                ledger.covered.append((begin, end))
            ledger.receipts = max(ledger.receipts, end)
            if says:
                ledger.marking = said

        if not (yield from self.transaction("commit", act)):
            return
        self.covered = self.receipts = end
        if self.others_until:
            self.earlier_until, self.others_until = max(self.earlier_until, self.others_until), 0
        elif says:
            self.own_until, self.said_until = (0, 0) if last else (own_until, max(said.until, self.said_until))

    def stop(self, end: int, code: Code) -> Asking:
        """Write receipts up to there, and leave the rest to a later run."""
        if end > self.covered or (self.quiet and self.said_until) or self.others_until:
            yield from self.receipts_up_to(max(end, self.covered), last=True)
        yield from self.refuse(Refuse(code))

    def finish(self, end: int) -> Asking:
        """All is there."""
        yield from self.receipts_up_to(end, last=True)
        if self.covered == end:
            self.outcome = Done(clean=True)
