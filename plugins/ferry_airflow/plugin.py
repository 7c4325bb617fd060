"""Ferry's plugin for Airflow: what Airflow has to know by name.

An entry point of the wheel names it, because plugins of providers are not loaded as long as `lazy_load_providers` is
on.
"""

from __future__ import annotations

from airflow.plugins_manager import AirflowPlugin

from ferry_airflow.page.mount import PREFIX, Page, views
from ferry_airflow.timetable import WindowTimetable


class FerryPlugin(AirflowPlugin):
    """Provides the timetable of backfills, which Airflow reads back from its database, and the page (docs/page.md)."""

    name = "ferry"
    timetables = [WindowTimetable]  # noqa: RUF012 - as Airflow declares it
    fastapi_apps = [{"app": Page(), "url_prefix": PREFIX, "name": "Ferry"}]  # noqa: RUF012 - as above
    external_views = views()
