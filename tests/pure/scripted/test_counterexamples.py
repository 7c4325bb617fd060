"""What goes wrong without a clause of the protocol: the real driver and the real slot double records.

The product has a guard more than the protocol: a slot looks at what the target's logs have since the plan. So records
are doubled only where that is switched off, too. One of the guards is enough.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from unittest.mock import patch

import pytest

from ferry.copy import kafka_slot
from ferry.errors import FerryError
from ferry.kafka.connect.cluster import Cluster
from ferry.lane.behind import Behind
from ferry.model import TopicPartition
from ferry.protocol.names import ledger_topic
from tests.pure.protocol.clauses import no_look, own_slots_fenced, undecided_ignored
from tests.pure.protocol.world import FLOW
from tests.pure.scripted.faults import Fault
from tests.pure.scripted.lane import Lane
from tests.pure.scripted.wire import scripted

LEDGER = ledger_topic(FLOW.source)
WHOLE, DOUBLED = [0, 1], [0, 1, 0, 1]
Switch = Callable[[], AbstractContextManager[object]]
Schedule = Callable[[Lane, Cluster], None]


@contextmanager
def target_unread() -> Iterator[None]:
    """A slot does not look at what the target's logs have since the plan."""

    async def nothing(*_: object) -> Behind:
        return Behind(ends={}, foreign={}, undecided={}, unseen={})

    with patch.object(kafka_slot, "look_behind", nothing):
        yield


def zombie_of_a_wider_run(lane: Lane, elsewhere: Cluster) -> None:
    """A task of slot 1 has begun when a run with one slot copies its partition; then the task goes on."""
    wide = lane.open("wide", 2)
    assert [one.slot for one in wide.slices] == [0, 1]
    held = Fault(api="DescribeConfigs", held=True)
    lane.target.faults.append(held)
    zombie = lane.start(lane.begin(wide), 1, target=elsewhere)
    lane.run_until(lambda: held.happened > 0)
    narrow = lane.open("narrow")
    lane.copy(lane.begin(narrow))
    lane.target.release()
    lane.run_until(lambda: bool(zombie.is_done))


def zombie_of_another_name(lane: Lane, elsewhere: Cluster) -> None:
    """Its receipts are written, its commit arrives after another task has copied."""
    plan = lane.open("r")
    held = Fault(api="EndTxn", held=True)
    lane.target.faults.append(held)
    attempt = lane.begin(plan)
    with patch.object(kafka_slot, "transactional_id", lambda *_: "ferry.earlier-name.live.0"):
        lane.start(attempt, target=elsewhere)
    lane.run_until(lambda: held.happened > 0)
    with suppress(FerryError):
        lane.copy(attempt)
    lane.target.release()


def stale_reads_of_a_retry(lane: Lane, _: Cluster) -> None:
    """An attempt commits; a new leader of the ledger does not say so to the next one."""
    plan = lane.open("r")
    planned = lane.target.log(LEDGER).end
    lane.copy(lane.begin(plan))
    attempt = lane.begin(plan)
    lane.target.behind[TopicPartition(topic=LEDGER, partition=0)] = lane.target.log(LEDGER).end - planned
    with suppress(FerryError):
        lane.copy(attempt)


SCHEDULES: dict[str, tuple[Schedule, Switch]] = {
    "fence of all slots": (zombie_of_a_wider_run, own_slots_fenced),
    "undecided receipts": (zombie_of_another_name, undecided_ignored),
    "last look": (stale_reads_of_a_retry, no_look),
}
versions = pytest.mark.parametrize("version", [pytest.param(1, marks=pytest.mark.slow), 2])
each_schedule = pytest.mark.parametrize(("schedule", "clause"), SCHEDULES.values(), ids=SCHEDULES)


def copied(schedule: Schedule, version: int) -> list[int]:
    """What the last partition of the copy has in the end."""
    lane = Lane([[9], [2]], version=version)
    with scripted(lane.source, lane.target, lane.target) as (_, (source, target, elsewhere)):
        lane.connect([source, target])
        target.loop.run(elsewhere.refresh, None)
        schedule(lane, elsewhere)
    lane.target.deliver_markers()
    return lane.copied(1)


@versions
@each_schedule
def test_records_are_doubled_without_the_guards(schedule: Schedule, clause: Switch, version: int) -> None:
    with clause(), target_unread():
        assert copied(schedule, version) == DOUBLED


@versions
@each_schedule
def test_one_guard_is_enough(schedule: Schedule, clause: Switch, version: int) -> None:
    for off in (clause, target_unread, nullcontext):
        with off():
            assert copied(schedule, version) == WHOLE, off
