"""The settings of consumer groups that runs do not need: when Airflow writes offsets between runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ferry.config.keys import values
from ferry.config.keys.feature import FeatureSettings, setting
from ferry.config.keys.key import FerryKey
from ferry.messages.catalogue import sentence

if TYPE_CHECKING:
    from ferry.config.flow.flow import FlowConfig

SCHEDULE = FerryKey(
    name="ferry.groups.schedule",
    default="",
    values="cron, an Airflow preset, `@continuous` or `none`; empty: there is no such DAG",
    meaning="when Airflow writes the offsets of groups [between runs](groups.md#between-runs), by the DAG "
    "`ferry_groups__{source}__{target}`; `none`: only when it is triggered",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupsDag:
    """The DAG of a flow that writes offsets of groups between runs."""

    schedule: str | None
    """Cron or Airflow preset; None: it is only triggered."""


NONE = "none"


def groups_schedule(text: str) -> str:
    """Read a schedule, or `none` for a DAG that is only triggered; empty: there is no DAG."""
    return values.schedule(text) or NONE if text.strip() else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupsSettings(FeatureSettings):
    """What the file says of group offsets between runs."""

    schedule: str = setting(SCHEDULE, groups_schedule)
    """Cron or Airflow preset, or `none` for a DAG that is only triggered; empty: there is no DAG."""

    @property
    def dag(self) -> GroupsDag | None:
        """The DAG that writes them; None: there is none."""
        if not self.schedule:
            return None
        return GroupsDag(schedule=None if self.schedule == NONE else self.schedule)

    def without_effect(self, flow: FlowConfig) -> Mapping[str, str]:
        """Return the schedule, with the reason, if the flow writes no group offsets."""
        if not self.schedule or flow.syncs_groups:
            return {}
        return {SCHEDULE.name: sentence("line.no-effect.groups", why=flow.unsynced)}
