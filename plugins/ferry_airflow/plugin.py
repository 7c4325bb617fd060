"""Ferry's plugin of Airflow: what Airflow has to know by name.

An entry point of the wheel names it, for plugins of providers are not loaded as long as `lazy_load_providers` is on.
"""

from __future__ import annotations

from airflow.plugins_manager import AirflowPlugin

from ferry_airflow.timetable import WindowTimetable


class FerryPlugin(AirflowPlugin):
    """Brings the timetable of backfills, which Airflow reads back from its database."""

    name = "ferry"
    timetables = [WindowTimetable]  # noqa: RUF012 - as Airflow declares it
