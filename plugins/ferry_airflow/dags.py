"""The DAGs of a flow, built from the configuration file alone: parsing asks no cluster, no Spark and no secret.

```
plan >> copy >> checkpoint >> report
        copy >>   verify   >> report
```

- `plan` opens the run and seals its plan in the ledger.
- `copy` is a Spark job that does what the plan says.
- `checkpoint` translates the offsets of consumer groups by what is copied, whatever `copy` left.
- `verify` compares what the run has copied. It is there where the file says `ferry.verify`.
- `report` runs in any case, and fails when anything was refused or is missing.

They share nothing but the run id.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, TriggerRule, get_parsing_context

from ferry.config.flow.flow import FlowConfig
from ferry.config.local_clusters import CLUSTERS_VARIABLE, local_clusters
from ferry.config.settings import load
from ferry.errors import BadInput
from ferry.features.lanes.settings import BackfillSettings
from ferry.model import Flow, VerifyMode
from ferry.model.switch import Verb
from ferry_airflow.alerts import deadline
from ferry_airflow.assets import flow_alias, schedule_of
from ferry_airflow.backfill import backfill_dag
from ferry_airflow.base import RETRY_DELAY, START
from ferry_airflow.drill_dag import drill_dag
from ferry_airflow.form import TO_COPY, budget_params, topics_param
from ferry_airflow.naming import backfill_dag_id, dag_id, drill_dag_id, refuse_same_ids, switch_dag_id, verify_dag_id
from ferry_airflow.operators import FerryCheckpointOperator, FerryCopyOperator, FerryPlanOperator, FerryReportOperator
from ferry_airflow.switch_dags import switch_dag
from ferry_airflow.verify_dag import verify_dag
from ferry_airflow.verify_operators import FerryVerifyRunOperator

CONFIG_VARIABLE = "FERRY_CONFIG"


def flow_dags(config: Path | str | None = None) -> dict[str, DAG]:
    """Return the DAGs of every enabled flow of the file `config` (else of the file that FERRY_CONFIG names), by DAG id.

    Each flow has one for its micro-runs, and one that compares all that it has copied. Three switch its clients, and
    one rehearses a failover. With `ferry.backfill.windows` it has one for windows of history. FERRY_CLUSTERS
    limits them to flows into the local clusters, so that several data centres share one file.

    A DAG file needs two lines: import this function, and `globals().update(flow_dags())`. Raises BadInput when there is
    no such file or it holds an error; Airflow shows that as an import error.
    """
    named = config or os.environ.get(CONFIG_VARIABLE)
    if not named:
        raise BadInput(f"no configuration file is named: set {CONFIG_VARIABLE} in the environment of Airflow")
    path = Path(named).absolute()
    settings = load(path)
    every = {flow.flow: flow for flow in settings.flows}
    refuse_same_ids(every)
    builders: dict[str, Callable[[], DAG]] = {}
    for flow in settings.near(local_clusters(os.environ.get(CLUSTERS_VARIABLE))).flows:
        back = every.get(Flow(source=flow.flow.target, target=flow.flow.source))
        builders |= _builders(flow, path, back)
    # A task parses the file for its own DAG only: with a hundred flows the others would cost it seconds.
    asked = get_parsing_context().dag_id
    wanted = builders if asked not in builders else {asked: builders[asked]}
    return {name: build() for name, build in wanted.items()}


def _builders(flow: FlowConfig, path: Path, back: FlowConfig | None) -> dict[str, Callable[[], DAG]]:
    """Return the builder of each of a flow's DAGs, by its id; `back` is the opposite flow, if the file has one."""
    found: dict[str, Callable[[], DAG]] = {dag_id(flow.flow): partial(_flow_dag, flow, path)}
    if (windows := flow.of(BackfillSettings).windows) is not None:
        found[backfill_dag_id(flow.flow)] = partial(backfill_dag, flow, path, windows)
    found[verify_dag_id(flow.flow)] = partial(verify_dag, flow, path)
    for verb in Verb:
        found[switch_dag_id(verb.value, flow.flow)] = partial(switch_dag, flow, path, verb, back)
    found[drill_dag_id(flow.flow)] = partial(drill_dag, flow, path)
    return found


def _flow_dag(flow: FlowConfig, path: Path) -> DAG:
    airflow = flow.airflow
    with DAG(
        dag_id(flow.flow),
        description=f"Copies topics of {flow.flow.source} to {flow.flow.target} in exactly-once micro-runs",
        doc_md=__doc__,
        schedule=schedule_of(flow, path),
        start_date=START,
        catchup=False,
        max_active_runs=1,
        params=_params(),
        deadline=deadline(flow, path),
        tags=["ferry", flow.flow.source, flow.flow.target],
        default_args={"owner": "ferry", "retry_delay": RETRY_DELAY},
    ) as dag:
        plan = FerryPlanOperator(
            task_id="plan", config=str(path), flow=str(flow.flow), retries=airflow.retries, pool=airflow.pool
        )
        copy = FerryCopyOperator(
            task_id="copy",
            config=str(path),
            flow=str(flow.flow),
            conn_id=airflow.spark_conn_id,
            retries=airflow.retries,
            pool=airflow.pool,
        )
        # It works on what is copied, even if `copy` failed: groups need not wait for the rest.
        checkpoint = FerryCheckpointOperator(
            task_id="checkpoint",
            config=str(path),
            flow=str(flow.flow),
            retries=airflow.retries,
            pool=airflow.pool,
            trigger_rule=TriggerRule.ALL_DONE_MIN_ONE_SUCCESS,
            outlets=[flow_alias(flow.flow)] if airflow.updates_assets else None,
        )
        # Its own complaints fail at once; a retry is for a ledger that does not answer.
        report = FerryReportOperator(
            task_id="report",
            config=str(path),
            flow=str(flow.flow),
            retries=airflow.retries,
            trigger_rule=TriggerRule.ALL_DONE,
        )
        plan >> copy >> checkpoint >> report
        plan >> checkpoint  # without a plan there is nothing to translate by
        if flow.verification.mode is not VerifyMode.OFF:
            # It writes one record to the ledger and needs no slot of the pool: it runs at the same time as
            # `checkpoint`.
            verify = FerryVerifyRunOperator(
                task_id="verify",
                config=str(path),
                flow=str(flow.flow),
                conn_id=airflow.spark_conn_id,
                retries=airflow.retries,
                trigger_rule=TriggerRule.ALL_DONE_MIN_ONE_SUCCESS,
            )
            copy >> verify >> report
            plan >> verify
    return dag


def _params() -> dict[str, Any]:
    """Return the trigger form: what one run may be narrowed to."""
    return {"topics": topics_param(TO_COPY), **budget_params()}
