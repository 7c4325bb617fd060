"""The clauses of writers that pass holes by markers, each of them switched off."""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from unittest.mock import patch

from ferry.features.identical.rules import marked
from ferry.features.identical.rules.values import Look
from tests.pure.identical import clauses, marking_writer
from tests.pure.identical.world import World


def returning(of: object, name: str, value: object) -> AbstractContextManager[object]:
    """A rule answers the same whatever it is asked."""
    return patch.object(of, name, lambda *_, **__: value)


def at_once() -> AbstractContextManager[object]:
    """Holes are passed although markers may be late."""
    return returning(marked, "is_quiet", True)


def lateness_not_awaited() -> AbstractContextManager[object]:
    """A writer is quiet as soon as no earlier one may send markers."""

    def at(until: int, lateness: int) -> int:
        return until

    return patch.object(marked, "quiet_from", at)


def repeated() -> AbstractContextManager[object]:
    """A writer continues after a marker that was not answered."""
    return returning(marking_writer, "stops", False)


def own_markers_forgotten() -> AbstractContextManager[object]:
    """A writer that continues after it stopped has forgotten why."""

    def earlier(earlier_until: int, own_until: int) -> int:
        return earlier_until

    return patch.object(marked, "after_silence", earlier)


def unopened() -> AbstractContextManager[object]:
    """A writer does not say in the ledger that it is about to send markers."""
    return returning(marking_writer, "opens", False)


def opened_for_ever() -> AbstractContextManager[object]:
    """A writer sends markers also when the time in the ledger is over."""

    def open_once(now: int, until: int) -> bool:
        return until > 0

    stack = ExitStack()
    stack.enter_context(patch.object(marked, "may_send", open_once))
    stack.enter_context(wall_clock_ignored())
    return stack


def reading_trusted() -> AbstractContextManager[object]:
    """A reading that ends before a record makes a writer quiet, whichever broker answered it."""

    def trusts(read_at: int, until: int) -> bool:
        return read_at >= until

    return patch.object(marking_writer, "trusts_readings", trusts)


def repeats_trusted() -> AbstractContextManager[object]:
    """Each batch that is answered makes a writer quiet, however early its reading was."""
    return returning(marked, "shows_all_markers", True)


def closed_by_all() -> AbstractContextManager[object]:
    """Receipts of a writer that is not quiet say that all markers were answered."""
    return returning(marking_writer, "closes", True)


def transactions_late() -> AbstractContextManager[object]:
    """A transaction of the slot may commit after its writer continued."""
    return returning(marking_writer, "fenced", False)


def ledger_read_once() -> AbstractContextManager[object]:
    """A writer does not read the ledger again before it commits."""
    return returning(marking_writer, "all_seen", True)


def clocks_unknown() -> AbstractContextManager[object]:
    """A writer becomes quiet by its wall clock, however fast that is."""
    return returning(marking_writer, "clock_fits", True)


def wall_clock_ignored() -> AbstractContextManager[object]:
    """A writer compares the time in the ledger with the clock that counts sleep alone."""
    return returning(marking_writer, "outlasted", False)


def set_back() -> AbstractContextManager[object]:
    """A writer says until when it sends markers by its wall clock alone."""

    def of_the_wall(wall: int, since_boot: int) -> int:
        return wall

    return patch.object(marked, "no_earlier", of_the_wall)


def absent_passed() -> AbstractContextManager[object]:
    """Deleted records are passed as markers of the source are."""
    return returning(marking_writer, "only_seen", True)


def marker_follows() -> AbstractContextManager[object]:
    """Empty records are deleted when a marker follows, not a record."""
    stack = clauses.all_deleted()
    stack.enter_context(returning(marking_writer, "record_follows", True))
    return stack


def answers_believed() -> AbstractContextManager[object]:
    """The answer to markers proves that they are where they should be."""
    return returning(marking_writer, "proves", True)


def numbers_for_ever() -> AbstractContextManager[object]:
    """A writer uses the number of a producer state however soon that expires."""
    return returning(marked, "usable_until", None)


def leaders_log() -> AbstractContextManager[object]:
    """The end of the leader's log is taken for the end, replicated or not."""
    look = World.look

    def unsettled(self: World, asked_at: int) -> tuple[Look, bool]:
        seen, stale = look(self, asked_at)
        return replace(seen, end=self.target.end, settled=True, tail=None), stale

    return patch.object(World, "look", unsettled)
