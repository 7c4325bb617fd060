"""The setting of the operator's page that shows records."""

from __future__ import annotations

from dataclasses import dataclass

from ferry.config.keys import values
from ferry.config.keys.feature import FeatureSettings, setting
from ferry.config.keys.key import FerryKey

PAGE_RECORDS = FerryKey(
    name="ferry.page.records",
    default="false",
    values="`true` or `false`",
    meaning="whether the page in Airflow shows [records](page.md#records) of this flow, to users who have Airflow's "
    "permission on `Ferry Records`; they may see what a transform masks",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordSettings(FeatureSettings):
    """What the file says of records on the page."""

    on_page: bool = setting(PAGE_RECORDS, values.boolean)
    """Whether the page shows records of the flow."""
