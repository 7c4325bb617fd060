"""The timetable of a backfill's DAG: every tick begins a window, and none starts a run by itself."""

from __future__ import annotations

from datetime import datetime

import pendulum
from airflow.timetables.base import DagRunInfo, TimeRestriction
from airflow.timetables.trigger import CronPartitionTimetable


class WindowTimetable(CronPartitionTimetable):
    """Partitions by cron in UTC: the partition's date is where its window begins, the next tick where it ends.

    Airflow's own backfill makes the runs, or a user does with a partition key; the scheduler makes none.
    """

    def next_dagrun_info_v2(
        self, *, last_dagrun_info: DagRunInfo | None, restriction: TimeRestriction
    ) -> DagRunInfo | None:
        """Return None: history is only copied on request."""
        return None

    def end_of(self, start: datetime) -> datetime:
        """Return where the window that begins at `start` ends."""
        return self._get_next(pendulum.instance(start))
