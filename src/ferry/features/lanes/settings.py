"""The settings of backfills."""

from __future__ import annotations

from dataclasses import dataclass

from ferry.config.keys import values
from ferry.config.keys.feature import FeatureSettings, setting
from ferry.config.keys.key import FerryKey

WINDOWS = FerryKey(
    name="ferry.backfill.windows",
    default="@daily",
    values="cron, an Airflow preset that repeats, or `none`",
    meaning="where the windows of the DAG `ferry_backfill__{source}__{target}` begin and end, in UTC "
    "([backfill](backfill.md#from-airflow)); `none`: there is no such DAG",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BackfillSettings(FeatureSettings):
    """What the file says of a flow's backfills."""

    windows: str | None = setting(WINDOWS, values.windows)
    """Cron or Airflow preset, in UTC: each tick begins a window of the backfill's DAG; None: there is no such DAG."""
