"""The clauses of the way back, each to be switched off; the product has no such switches."""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from unittest.mock import patch

from ferry.features.identical.rules import marked
from ferry.features.identical.rules.values import Look
from tests.pure.identical import offset_writer, return_rules, returning
from tests.pure.identical.marking_clauses import returning as answering

Off = AbstractContextManager[object]


def nothing() -> Off:
    """All clauses are on."""
    return ExitStack()


def both(*clauses: Off) -> Off:
    """Several at once."""
    stack = ExitStack()
    for one in clauses:
        stack.enter_context(one)
    return stack


def old_number() -> Off:
    """A return keeps the lane's producer id."""
    return answering(return_rules, "numbered_again", False)


def number_for_each_run() -> Off:
    """Each run after a return has a producer id of its own."""

    def own(continued: returning.Continued, both: returning.Both) -> int:
        return both.new_producer()

    return patch.object(return_rules, "number_of", own)


def written_again() -> Off:
    """A return that is done again writes another record."""
    return answering(return_rules, "kept", False)


def unguarded() -> Off:
    """A return does not ask what may arrive."""
    return answering(return_rules, "guarded", False)


def written_again_unguarded() -> Off:
    """Both."""
    return both(written_again(), unguarded())


def guarded_before_the_fence() -> Off:
    """A return asks what may arrive, and fences the lane then."""
    return answering(return_rules, "guards_first", True)


def committed_by_all() -> Off:
    """A process that was overtaken writes its record, too."""
    return answering(return_rules, "commits", True)


def uncompared_in_runs() -> Off:
    """Only the step compares the last records."""
    return answering(return_rules, "compares_in_runs", False)


def uncompared() -> Off:
    """Neither the step nor a run compares the last records."""
    return both(uncompared_in_runs(), answering(return_rules, "compares", False))


def any_end() -> Off:
    """A lane continues wherever its target ends, and the last records are not compared."""
    return both(uncompared(), answering(return_rules, "fits", True))


def any_tail() -> Off:
    """A run accepts records of other producers at the end."""
    return answering(return_rules, "takes_any_tail", True)


def own_tail() -> Off:
    """A run accepts its own records alone at the end, also before it has written one."""
    return answering(return_rules, "takes_any_tail", False)


def open_for_ever() -> Off:
    """A lane that a switch has stopped copies, if it is started by hand."""
    return answering(return_rules, "closes", False)


def read_without_end() -> Off:
    """Runs into the clients' cluster read their source also after the end that they have planned."""

    def further(end: int, way: returning.Way) -> int:
        return end + 100 * (way is way.both.primary)

    return patch.object(return_rules, "planned_to", further)


def open_without_end() -> Off:
    """Both."""
    return both(open_for_ever(), read_without_end())


def unwaited() -> Off:
    """Clients write before the late batches of the lane have arrived."""
    return answering(return_rules, "waits", False)


def from_receipts() -> Off:
    """A lane's records are taken to begin where its receipts end."""

    def of_receipts(receipts: int, until: int) -> int:
        return receipts

    return patch.object(return_rules, "counts_from", of_receipts)


def as_a_first_copy() -> Off:
    """The first run of a lane takes what is before its first record for empty records."""

    def up_to(until: int) -> int:
        return until

    return both(from_receipts(), patch.object(return_rules, "empty_until", up_to))


def leaders_log() -> Off:
    """The end of the leader's log is taken for the end, replicated or not."""
    look_for = returning.Way.look_for

    def unsettled(self: returning.Way, asked_at: int, producer: int) -> tuple[Look, bool]:
        seen, stale = look_for(self, asked_at, producer)
        return replace(seen, end=self.target.end, settled=True, tail=None), stale

    def has_all(self: returning.Side, start: int, end: int) -> bool:
        return True

    return both(patch.object(returning.Way, "look_for", unsettled), patch.object(returning.Side, "has_all", has_all))


def anywhere() -> Off:
    """The base offset of an answer is not compared."""
    return answering(offset_writer, "misplaced", False)


def sent_ahead() -> Off:
    """A batch is sent although the one before it was not answered."""
    return answering(offset_writer, "continues", True)


def numbers_are_offsets() -> Off:
    """The first record has its offset for a number, also after a marker."""

    def of(look: Look) -> int:
        return look.end

    return patch.object(marked, "next_sequence", of)
