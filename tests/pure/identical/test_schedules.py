"""Each clause of identical offsets closes a counterexample: the schedule ends well with it and badly without it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

import pytest

from tests.pure.identical import clauses, schedules

Clause = Callable[[], ExitStack]
Schedule = Callable[[int], None]

CASES: list[tuple[Clause, Schedule]] = [
    (clauses.markers_at_once, schedules.compacted_in_between),
    (clauses.markers_at_once, schedules.retained_in_between),
    (clauses.markers_at_once, schedules.marker_late),
    (clauses.markers_at_once, schedules.own_marker_late),
    (clauses.data_at_once, schedules.old_batch_late),
    (clauses.data_at_once, schedules.own_old_batch_late),
    (clauses.loose_forgotten, schedules.record_is_back),
    (clauses.absences_unrecorded, schedules.record_is_back),
    (clauses.loose_unconfirmed, schedules.loose_after_its_successor),
    (clauses.timestamps_ignored, schedules.old_records_after_new_ones),
    (clauses.lease_ignored, schedules.asleep_with_a_look),
    (clauses.connections_forever, schedules.marker_late),
    (clauses.unsettled, schedules.marker_not_replicated),
    (clauses.unsettled_and_described, schedules.batch_not_replicated),
    (clauses.always_clean, schedules.ended_before_it_was_quiet),
    (clauses.lease_not_awaited, schedules.decided_just_before_the_lease_ends),
    (clauses.lateness_not_awaited, schedules.marker_late),
    (clauses.own_requests_forgotten, schedules.own_marker_late),
    (clauses.unsealed, schedules.marker_twice),
    (clauses.filled_to_the_brim, schedules.marker_twice_at_once),
    (clauses.stale_looks_sent, schedules.stale_leader),
    (clauses.slot_unfenced, schedules.transaction_left_open),
    (clauses.seal_forgotten, schedules.seal_deleted),
    (clauses.all_deleted, schedules.deleted_and_loaded_again),
]
TABLE = [
    pytest.param(clause, schedule, version, id=f"{clause.__name__}-{schedule.__name__}-v{version}")
    for clause, schedule in CASES
    for version in (1, 2)
]


@pytest.mark.parametrize(("clause", "schedule", "version"), TABLE)
def test_a_clause_closes_its_counterexample(clause: Clause, schedule: Schedule, version: int) -> None:
    schedule(version)
    with clause(), pytest.raises(AssertionError, match="wrong: "):
        schedule(version)
