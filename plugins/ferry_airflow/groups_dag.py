"""The DAG that writes offsets of a flow's consumer groups between its micro-runs, by `ferry.groups.schedule`.

One task of seconds, without Spark. It translates the offsets that groups have now at the source by what is copied by
now, as `ferry groups sync` does, also while a micro-run copies. So a group that moves to the target reads less again
than by the last micro-run. It is red when a group could not be written.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from airflow.sdk import DAG

from ferry.config.flow.flow import FlowConfig
from ferry.features.groups.settings import GroupsDag
from ferry_airflow.base import RETRY_DELAY, START
from ferry_airflow.form import LONGEST_GROUP, flag, names_param
from ferry_airflow.groups_operators import FerrySyncGroupsOperator
from ferry_airflow.naming import GROUPS, SYNC, groups_dag_id
from ferry_airflow.overrides import NOTHING, Overrides, ferry_dag


def groups_dag(flow: FlowConfig, path: Path, settings: GroupsDag, overrides: Overrides = NOTHING) -> DAG:
    """Return the DAG that writes group offsets of a flow of the file `path`.

    Its task is not in the flow's pool, where it would wait until a long copy has ended.
    """
    with ferry_dag(
        groups_dag_id(flow.flow),
        GROUPS,
        flow.flow,
        overrides,
        form=_params(),
        description=f"Writes offsets of consumer groups of {flow.flow.source} on {flow.flow.target} between micro-runs",
        doc_md=__doc__,
        schedule=settings.schedule,
        start_date=START,
        # Without a schedule nothing starts by itself, and a run by hand should not wait until the DAG is unpaused.
        is_paused_upon_creation=False if settings.schedule is None else None,
        default_args={"retry_delay": RETRY_DELAY},
    ) as dag:
        FerrySyncGroupsOperator(task_id=SYNC, config=str(path), flow=str(flow.flow), retries=flow.airflow.retries)
    return dag


def _params() -> dict[str, Any]:
    """Return the trigger form: which groups, and whether anything is written."""
    return {
        "groups": names_param("Groups", "Consumer groups, one per line; empty: all of the flow.", LONGEST_GROUP),
        "dry_run": flag("Dry run", "Only show what would be written now; nothing is written anywhere."),
    }
