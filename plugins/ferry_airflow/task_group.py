"""The tasks of one micro-run: of the flow's own DAG, or as a task group in a DAG of another author."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from airflow.sdk import TaskGroup, TriggerRule

from ferry.config.flow.flow import FlowConfig
from ferry.config.local_clusters import CLUSTERS_VARIABLE, local_clusters
from ferry.config.settings import Settings, load
from ferry.errors import BadInput
from ferry.model import VerifyMode
from ferry_airflow.assets import flow_alias
from ferry_airflow.base import RETRY_DELAY
from ferry_airflow.naming import CONFIG_VARIABLE, PLAN, dag_id
from ferry_airflow.operators import FerryCheckpointOperator, FerryCopyOperator, FerryPlanOperator, FerryReportOperator
from ferry_airflow.verify_operators import FerryVerifyRunOperator


def ferry_task_group(
    flow: str, config: Path | str | None = None, *, group_id: str | None = None, **kwargs: Any
) -> TaskGroup:
    """Return the tasks of one micro-run of a flow, as a task group of the DAG that is being made.

    `flow` is `source->target`, of the file `config`, or else of the one that FERRY_CONFIG names. The group's id is
    `ferry__{source}__{target}` unless given. `kwargs` are TaskGroup's own, such as `tooltip` or `default_args`.

    Ferry's id of the run is `{DAG}@{group}@{Airflow's run id}`, so that it is not a run of another DAG or group. Raises
    BadInput when there is no such file or flow, or the file holds an error; Airflow shows that as an import error.
    """
    path = config_path(config)
    found = of_this_site(load(path)).flow(flow)
    kwargs["default_args"] = {"retry_delay": RETRY_DELAY, **(kwargs.get("default_args") or {})}
    # An alias may have dots, a task group may not.
    own = dag_id(found.flow).replace(".", "-")
    with TaskGroup(group_id or own, **kwargs) as group:
        run_tasks(found, path)
    return group


def config_path(config: Path | str | None) -> Path:
    """Return the configuration file that is named, or else that FERRY_CONFIG names; BadInput if neither is."""
    named = config or os.environ.get(CONFIG_VARIABLE)
    if not named:
        raise BadInput(f"no configuration file is named: set {CONFIG_VARIABLE} in the environment of Airflow")
    return Path(named).absolute()


def of_this_site(settings: Settings) -> Settings:
    """Return the flows into the local clusters, if FERRY_CLUSTERS names them, else all."""
    return settings.near(local_clusters(os.environ.get(CLUSTERS_VARIABLE)))


def run_tasks(flow: FlowConfig, path: Path) -> None:
    """Put the tasks of one micro-run into the DAG or task group that is being made."""
    airflow = flow.airflow
    common: dict[str, Any] = {"config": str(path), "flow": str(flow.flow), "retries": airflow.retries}
    plan = FerryPlanOperator(task_id=PLAN, pool=airflow.pool, **common)
    copy = FerryCopyOperator(task_id="copy", conn_id=airflow.spark_conn_id, pool=airflow.pool, **common)
    # It works on what is copied, even if `copy` failed: groups need not wait for the rest.
    checkpoint = FerryCheckpointOperator(
        task_id="checkpoint",
        pool=airflow.pool,
        trigger_rule=TriggerRule.ALL_DONE_MIN_ONE_SUCCESS,
        outlets=[flow_alias(flow.flow)] if airflow.updates_assets else None,
        **common,
    )
    # Its own complaints fail at once; a retry is for a ledger that does not answer.
    report = FerryReportOperator(task_id="report", trigger_rule=TriggerRule.ALL_DONE, **common)
    plan >> copy >> checkpoint >> report
    plan >> checkpoint  # without a plan there is nothing to translate by
    if flow.verification.mode is not VerifyMode.OFF:
        # It writes one record to the ledger and needs no slot of the pool: it runs at the same time as `checkpoint`.
        verify = FerryVerifyRunOperator(
            task_id="verify",
            conn_id=airflow.spark_conn_id,
            trigger_rule=TriggerRule.ALL_DONE_MIN_ONE_SUCCESS,
            **common,
        )
        copy >> verify >> report
        plan >> verify
