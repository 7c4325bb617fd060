"""Schedules of writers of compacted topics: each ends well, and badly without a clause of its own.

`a` is the first writer, `b` its successor.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from ferry.features.identical.rules.values import Done
from tests.pure.identical import clauses
from tests.pure.identical import exclusive_clauses as off
from tests.pure.identical import marking_clauses as marking_off
from tests.pure.identical.compacted_world import CompactedWorld
from tests.pure.identical.marking_writer import MARKING
from tests.pure.identical.test_markers import QUIET, deposed, ended, grow, not_replicated
from tests.pure.identical.test_tasks import again
from tests.pure.identical.world import Task

Clause = Callable[[], AbstractContextManager[object]]
Schedule = Callable[[], None]


def sent(it: CompactedWorld, task: Task, label: str) -> Task:
    """A writer continues until one request is about to leave, after its first batch was answered."""
    it.run_until(task, "send")
    it.advance(task)
    return it.run_until(task, label)


def compact(it: CompactedWorld, *offsets: int) -> None:
    """The source's cleaners remove records, on both brokers."""
    for offset in offsets:
        for broker in (0, 1):
            it.source.clean(offset, broker)


class Uncopied(Exception):
    """A run without faults did not copy the rest."""


def rest(it: CompactedWorld, *tasks: Task) -> None:
    """Writers end, what is late arrives, and a run that is quiet copies the rest."""
    ended(it, *tasks)
    it.ahead = 0
    it.sleep(2 * QUIET)
    if not isinstance(outcome := it.finish(it.start()), Done):
        raise Uncopied(it.say(f"{outcome}"))
    assert it.target.end == it.source.end


def copied(shape: str, more: str) -> CompactedWorld:
    """A run has copied all that there was, and ended. Then there is more."""
    it = CompactedWorld(shape)
    assert isinstance(it.finish(it.start()), Done)
    grow(it, more)
    return it


def passes(it: CompactedWorld) -> Task:
    """Another writer begins, and passes a hole if it may; then what is late arrives."""
    task = it.run_until(it.start(), "mark")
    it.advance(task)
    while it.late:
        it.deliver_late(0)
    return task


def compacted_in_between(wait: int = 0) -> None:
    """`a` sends record 3, late, and dies. The source's cleaner removes 3, and `b` passes it."""
    it = copied("rrr", "rrrr")
    it.lose(it.run_until(it.start(), "send"), "late", dies=True)
    compact(it, 3)
    it.sleep(wait)
    rest(it, passes(it))


def compacted_in_between_long_ago() -> None:
    """The same, and `b` begins when `a` may write no more."""
    compacted_in_between(MARKING)


def later_than_idle_connections() -> None:
    """The same, and `b` begins when the connection of `a` was closed."""
    compacted_in_between(QUIET)


def zombie_with_a_marker() -> None:
    """`a` marks 1, late, and dies. `b` begins."""
    it = copied("r", "rrr")
    compact(it, 1)
    it.lose(it.run_until(it.start(), "mark"), "late", dies=True)
    rest(it, it.start())


def record_is_back() -> None:
    """`a` marks 3, late, and dies. After *until*, `b` reads from a broker that has 3 yet: the log ends at a record."""
    it = CompactedWorld("rrrrrrr")
    it.source.clean(3, 0)
    it.lose(it.run_until(it.start(), "mark"), "late", dies=True)
    it.source.leader = 1
    it.sleep(MARKING)
    rest(it, it.start())


def own_marker_late() -> None:
    """`a` gets no answer to its marker."""
    it = CompactedWorld("rrrrrrr")
    compact(it, 3)
    a = it.run_until(it.start(), "mark")
    it.lose(a, "late", dies=False)
    rest(it, a)


def own_marker_late_and_the_ledger_silent() -> None:
    """The same, and the ledger does not answer `a` when it is about to stop, so `a` reads again."""
    it = CompactedWorld("rrrrr")
    compact(it, 0, 1)
    a = it.run_until(it.start(), "mark")
    it.lose(a, "late", dies=False)
    it.lose(it.run_until(a, "confirm"), "dropped", dies=False)
    rest(it, a)


def own_batch_late() -> None:
    """`a` gets no answer to record 3, and the source's cleaner removes it."""
    it = CompactedWorld("rrrrrrr")
    a = sent(it, it.start(), "send")
    it.lose(a, "late", dies=False)
    compact(it, 3)
    it.advance(it.run_until(a, "mark"))
    it.deliver_late(0)
    rest(it, a)


def own_old_batch_late() -> None:
    """`a` gets no answer to old records. They are there at once if they are sent again; then the state expires."""
    it = CompactedWorld("oooooo")
    a = it.run_until(it.start(), "send")
    it.lose(a, "late", dies=False)
    it.advance(it.run_until(a, "send"))
    it.expire()
    it.deliver_late(0)
    rest(it, a)


def ended_too_early() -> None:
    """`a` gets no answer to record 3, and stops. Its last receipts are there. `b` begins."""
    it = CompactedWorld("rrrrrrr")
    a = sent(it, it.start(), "send")
    it.lose(a, "late", dies=False)
    it.finish(a)
    compact(it, 3)
    rest(it, passes(it))


def ended_by_another() -> None:
    """`a` sends record 3, late, and dies. `b` is not quiet, and writes receipts of what is there. `c` begins."""
    it = CompactedWorld("rrrrrrr")
    it.lose(sent(it, it.start(), "send"), "late", dies=True)
    it.finish(it.start())
    compact(it, 3)
    rest(it, passes(it))


def receipts_in_between() -> None:
    """`a` writes receipts and continues. Its next batch is late, and it dies. `b` begins."""
    it = CompactedWorld("r" * 12)
    a = it.run_until(it.start(), "commit")
    it.advance(a)
    it.lose(it.run_until(a, "send"), "late", dies=True)
    compact(it, 9)
    rest(it, passes(it))


def receipts_late() -> None:
    """The last receipts of `a` are late, and it dies. `b` sends, late, and dies. Then the receipts arrive."""
    it = CompactedWorld("rrr")
    it.lose(it.run_until(it.start(), "commit"), "late", dies=True)
    it.sleep(QUIET)
    grow(it, "rrrr")
    it.lose(it.run_until(it.start(), "send"), "late", dies=True)
    it.deliver_late(0)
    compact(it, 3)
    rest(it, passes(it))


def ledger_read_early() -> None:
    """`a` marks 3, late. `b` reads the ledger up to an end that is before the record of that."""
    it = copied("rrr", "rrrr")
    before = it.ledger.marking
    compact(it, 3)
    it.lose(it.run_until(it.start(), "mark"), "late", dies=True)
    it.shown = before
    rest(it, it.start())


def fast_clock() -> None:
    """`a` marks 3, late. The wall clock of `b` is fast."""
    it = CompactedWorld("rrrrrrr")
    compact(it, 3)
    it.lose(it.run_until(it.start(), "mark"), "late", dies=True)
    it.ahead = QUIET
    rest(it, it.start())


def slow_clock() -> None:
    """The wall clock of `a` is slow, so it says too early a time. It marks 3, late. `b` begins."""
    it = CompactedWorld("rrrrrrr")
    compact(it, 3)
    it.ahead = -QUIET
    a = it.run_until(it.start(), "mark")
    it.ahead = 0
    if a.pending is not None:
        it.lose(a, "late", dies=True)
    rest(it, it.start())


def stopped_guest() -> None:
    """`a` says until when it writes, and its machine is stopped. `b` copies all. The machine of `a` continues."""
    it = copied("r", "rrr")
    compact(it, 1)
    a = it.run_until(it.start(), "open")
    it.step(a)
    it.sleep(QUIET)
    a.writer.cluster.paused += QUIET
    it.finish(it.start())
    rest(it, a)


def clock_set_back() -> None:
    """The wall clock of `a` is set back before it says until when it writes. It marks 0, late. `b` begins."""
    it = CompactedWorld("rrrr")
    compact(it, 0)
    a = it.run_until(it.start(), "read")
    a.writer.cluster.ahead -= 2 * QUIET
    it.lose(it.run_until(a, "mark"), "late", dies=True)
    rest(it, it.start())


def clock_set_forward() -> None:
    """`a` marks 3, late. The wall clock of `b` is set forward before it reads the target again."""
    it = CompactedWorld("rrrrrrr")
    compact(it, 3)
    it.lose(it.run_until(it.start(), "mark"), "late", dies=True)
    b = it.run_until(it.start(), "look")
    b.writer.cluster.ahead += 2 * QUIET
    it.lose(b, "dropped", dies=False)
    rest(it, b)


def one_of_two_fails() -> None:
    """The broker appends one of two markers, and answers success."""
    it = CompactedWorld("rrrrrr")
    compact(it, 1, 2)
    it.partial = True
    a = it.start()
    for _ in range(20):
        it.advance(a)
    it.partial = False
    rest(it, a)


def marker_not_replicated() -> None:
    """The leader alone has a marker, and fails (`not_replicated`)."""
    it = CompactedWorld("rrrrrrr")
    compact(it, 3)
    rest(it, not_replicated(it))


def deposed_leader() -> None:
    """A broker that leads no more shows an earlier end (`deposed`)."""
    it = CompactedWorld("rrrrrrr")
    compact(it, 3)
    rest(it, deposed(it))


def compacted_since() -> None:
    """`a`, which takes the topic for one that is not compacted, sends record 3, late. Then the topic is compacted."""
    it = CompactedWorld("rrrrrrr")
    it.lose(sent(it, it.start_other(), "send"), "late", dies=True)
    compact(it, 3)
    rest(it, passes(it))


def numbered_twice(first: str, second: str, third: str) -> None:
    """The state expires before a hole, so numbers begin at 0 again. Another broker has both kinds of batches."""
    it = copied(first, second)
    it.forget()
    it.finish(it.start())
    it.fail_over(0)
    grow(it, third)
    rest(it, it.start())


def two_numberings() -> None:
    """Batches of several records have the same numbers twice."""
    numbered_twice("rrrrrr", "mrrr", "rrr")


def two_numberings_of_single_records() -> None:
    """A hole follows each record: no batch may have more, and none fewer."""
    numbered_twice("rmrmrm", "mr", "mrmr")


def compacted_after_a_crash() -> None:
    """`a` sends three records, and dies before its receipts. The source's cleaner removes one."""
    it = CompactedWorld("rrrrrr")
    it.lose(sent(it, it.start(), "send"), "dropped", dies=True)
    compact(it, 1)
    rest(it)


def another_broker_after_a_crash() -> None:
    """`a` passes a record that one broker has removed, and dies before its receipts. Another broker has it."""
    it = CompactedWorld("rrrrrr")
    it.source.clean(0, 0)
    it.lose(it.run_until(it.start(), "send"), "dropped", dies=True)
    it.source.leader = 1
    rest(it)


SCHEDULES: list[tuple[Clause, Schedule]] = [
    (off.data_unleased, compacted_in_between),
    (off.markers_unleased, zombie_with_a_marker),
    (marking_off.at_once, compacted_in_between),
    (marking_off.at_once, zombie_with_a_marker),
    (marking_off.lateness_not_awaited, compacted_in_between_long_ago),
    (clauses.connections_forever, later_than_idle_connections),
    (off.written_at_once, record_is_back),
    (off.own_markers_forgotten, own_marker_late),
    (marking_off.own_markers_forgotten, own_marker_late_and_the_ledger_silent),
    (off.own_data_forgotten, own_batch_late),
    (off.own_data_forgotten, own_old_batch_late),
    (off.lease_ended_by_all, ended_too_early),
    (off.lease_ended_by_all, ended_by_another),
    (off.lease_ended_early, receipts_in_between),
    (off.transactions_late, receipts_late),
    (marking_off.ledger_read_once, ledger_read_early),
    (off.clocks_unknown, fast_clock),
    (off.clocks_unknown, slow_clock),
    (marking_off.wall_clock_ignored, stopped_guest),
    (marking_off.set_back, clock_set_back),
    (off.set_forward, clock_set_forward),
    (marking_off.answers_believed, one_of_two_fails),
    (marking_off.leaders_log, marker_not_replicated),
    (clauses.stale_looks_sent, deposed_leader),
    (off.other_kinds_forgotten, compacted_since),
]
REFUSING: list[tuple[Clause, Schedule]] = [
    (off.repeats_refused, two_numberings),
    (off.repeats_sent_again, two_numberings),
    (off.repeats_refused, two_numberings_of_single_records),
    (off.repeats_sent_again, two_numberings_of_single_records),
    (off.records_compared, compacted_after_a_crash),
    (off.markers_compared, another_broker_after_a_crash),
]
"""Without its clause such a schedule ends with a partition that is refused, or copied no further."""


def committed_after_another_task() -> None:
    """`a` is asleep in a transaction. `b`, a task of the same run, copies all. `a` gets no answer, and is at a hole."""
    it = CompactedWorld("rrrrrrrrrrr")
    compact(it, 9)
    a = it.run_until(it.start(), "commit")
    it.sleep(QUIET)
    it.finish(again(it))
    it.lose(a, "dropped", dies=False)
    rest(it, a)
