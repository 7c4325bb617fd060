"""The clauses of writers of compacted topics, each of them switched off."""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack
from unittest.mock import patch

from ferry.features.identical.rules.values import Hole, Run
from tests.pure.identical import exclusive_writer, marking_writer
from tests.pure.identical.marking_clauses import returning


def data_unleased() -> AbstractContextManager[object]:
    """Data is sent whether the ledger says so or not; markers are not."""

    def markers_alone(ahead: Run | Hole) -> bool:
        return isinstance(ahead, Hole)

    return patch.object(exclusive_writer, "leased", markers_alone)


def markers_unleased() -> AbstractContextManager[object]:
    """Markers are sent whether the ledger says so or not; data is not."""

    def data_alone(ahead: Run | Hole) -> bool:
        return isinstance(ahead, Run)

    return patch.object(exclusive_writer, "leased", data_alone)


def written_at_once() -> AbstractContextManager[object]:
    """A writer that is not quiet sends data: the broker compares it. It still marks when it is quiet alone."""

    def sends(ahead: Run | Hole, *, quiet: bool) -> bool:
        return quiet or isinstance(ahead, Run)

    return patch.object(exclusive_writer, "writes", sends)


def own_data_forgotten() -> AbstractContextManager[object]:
    """A writer continues after a batch that was not answered."""

    def markers_alone(ahead: Run | Hole, answer: object) -> bool:
        return answer is None and isinstance(ahead, Hole)

    return patch.object(exclusive_writer, "stops", markers_alone)


def own_markers_forgotten() -> AbstractContextManager[object]:
    """A writer continues after a marker that was not answered."""

    def data_alone(ahead: Run | Hole, answer: object) -> bool:
        return answer is None and isinstance(ahead, Run)

    return patch.object(exclusive_writer, "stops", data_alone)


def lease_ended_by_all() -> AbstractContextManager[object]:
    """Receipts of a writer that is not quiet say that all requests were answered."""
    return returning(marking_writer, "closes", True)


def lease_ended_early() -> AbstractContextManager[object]:
    """All receipts say that all was answered, and the writer continues."""
    return returning(exclusive_writer, "ends_lease", True)


def other_kinds_forgotten() -> AbstractContextManager[object]:
    """A writer does not ask whether writers of another kind were before it."""
    return returning(exclusive_writer, "takes_over", False)


def clocks_unknown() -> AbstractContextManager[object]:
    """A writer compares *until* with its wall clock, however wrong that is."""
    return returning(exclusive_writer, "clock_fits", True)


def set_forward() -> AbstractContextManager[object]:
    """A writer takes the time of a reading from its wall clock alone."""

    def of_the_wall(wall: int, since_boot: int) -> int:
        return wall

    return patch.object(exclusive_writer, "no_later", of_the_wall)


def end_kept() -> AbstractContextManager[object]:
    """A writer continues at the end that it knew, after a transaction that was not committed."""
    return returning(exclusive_writer, "reads_again", False)


def repeats_refused() -> AbstractContextManager[object]:
    """A batch that a broker took for a repeat is a shifted one."""
    return returning(exclusive_writer, "is_repeat", False)


def repeats_sent_again() -> AbstractContextManager[object]:
    """A batch that a broker took for a repeat is sent again, with its number."""
    return returning(exclusive_writer, "renumbers", False)


def records_compared() -> AbstractContextManager[object]:
    """A record at the target, that the source has no more, is wrong."""
    return returning(exclusive_writer, "keeps_record", False)


def markers_compared() -> AbstractContextManager[object]:
    """A marker at the target, where the source shows a record, is wrong."""
    return returning(exclusive_writer, "keeps_marker", False)


def transactions_late() -> ExitStack:
    """A transaction of the slot commits after its writer was fenced: the ledger was read before it was sent."""
    stack = ExitStack()
    stack.enter_context(returning(marking_writer, "all_seen", True))
    stack.enter_context(returning(marking_writer, "fenced", False))
    return stack


def plans_trusted() -> AbstractContextManager[object]:
    """A writer is quiet, too, if the log ends where the plans of all earlier runs do, or later."""

    def reached(end: int, planned: int) -> bool:
        return end >= planned > 0

    return patch.object(exclusive_writer, "shows_all", reached)


def looks_after_data() -> AbstractContextManager[object]:
    """A writer reads the log after a batch that was not answered, not after markers, and continues if it is there."""

    def data(ahead: Run | Hole) -> bool:
        return isinstance(ahead, Run)

    return patch.object(exclusive_writer, "looks", data)


def stops_at_once() -> AbstractContextManager[object]:
    """A writer stops after each request that was not answered."""
    return returning(exclusive_writer, "looks", False)
