"""The DAGs of a flow, built from the configuration file alone: parsing asks no cluster, no Spark and no secret.

```
plan >> copy >> checkpoint >> report
        copy >>   verify   >> report
plan >> checkpoint
plan >>   verify
```

- `plan` opens the run and seals its plan in the ledger.
- `copy` is a Spark job that does what the plan says.
- `checkpoint` translates the offsets of consumer groups by what is copied, whatever `copy` left.
- `verify` compares what the run has copied. It is there where the file says `ferry.verify`.
- `report` runs in any case, and fails when anything was refused or is missing.

They share nothing but the run id.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Unpack

from airflow.sdk import DAG, get_parsing_context

from ferry.config.flow.flow import FlowConfig
from ferry.config.settings import load
from ferry.features.groups.settings import GroupsSettings
from ferry.features.lanes.settings import BackfillSettings
from ferry.model import Flow
from ferry.model.switch import Verb
from ferry_airflow.alerts import deadline
from ferry_airflow.assets import schedule_of
from ferry_airflow.backfill import backfill_dag
from ferry_airflow.base import RETRY_DELAY, START
from ferry_airflow.drill_dag import drill_dag
from ferry_airflow.form import TO_COPY, budget_params, topics_param
from ferry_airflow.groups_dag import groups_dag
from ferry_airflow.naming import (
    backfill_dag_id,
    dag_id,
    drill_dag_id,
    groups_dag_id,
    refuse_same_ids,
    switch_dag_id,
    verify_dag_id,
)
from ferry_airflow.overrides import DagOverrides, Overrides, ferry_dag
from ferry_airflow.switch_dags import switch_dag
from ferry_airflow.task_group import config_path, of_this_site, run_tasks
from ferry_airflow.verify_dag import verify_dag


def flow_dags(config: Path | str | None = None, **overrides: Unpack[DagOverrides]) -> dict[str, DAG]:
    """Return the DAGs of every enabled flow of the file `config` (else of the file that FERRY_CONFIG names), by DAG id.

    Each flow has one for its micro-runs, and one that compares all that it has copied. Three switch its clients, and
    one rehearses a failover. With `ferry.backfill.windows` it has one for windows of history, and with
    `ferry.groups.schedule` one that writes offsets of consumer groups between its micro-runs. FERRY_CLUSTERS limits
    them to flows into the local clusters, so that several data centres share one file.

    A DAG file needs two lines: import this function, and `globals().update(flow_dags())`. `overrides` hold for all of
    them. Raises BadInput when there is no such file, when it holds an error, and for an override that there is not;
    Airflow shows that as an import error.
    """
    checked, path = Overrides.of(overrides), config_path(config)
    settings = load(path)
    every = {flow.flow: flow for flow in settings.flows}
    refuse_same_ids(every)
    builders: dict[str, Callable[[], DAG]] = {}
    for flow in of_this_site(settings).flows:
        back = every.get(Flow(source=flow.flow.target, target=flow.flow.source))
        builders |= _builders(flow, path, back, checked)
    # A task parses the file for its own DAG only: with a hundred flows the others would cost it seconds.
    asked = get_parsing_context().dag_id
    wanted = builders if asked not in builders else {asked: builders[asked]}
    return {name: build() for name, build in wanted.items()}


def _builders(
    flow: FlowConfig, path: Path, back: FlowConfig | None, overrides: Overrides
) -> dict[str, Callable[[], DAG]]:
    """Return the builder of each of a flow's DAGs, by its id; `back` is the opposite flow, if the file has one."""
    found: dict[str, Callable[[], DAG]] = {dag_id(flow.flow): partial(_flow_dag, flow, path, overrides)}
    if (windows := flow.of(BackfillSettings).windows) is not None:
        found[backfill_dag_id(flow.flow)] = partial(backfill_dag, flow, path, windows, overrides)
    if (of_groups := flow.of(GroupsSettings).dag) is not None and flow.syncs_groups:
        found[groups_dag_id(flow.flow)] = partial(groups_dag, flow, path, of_groups, overrides)
    found[verify_dag_id(flow.flow)] = partial(verify_dag, flow, path, overrides)
    for verb in Verb:
        found[switch_dag_id(verb.value, flow.flow)] = partial(switch_dag, flow, path, verb, back, overrides)
    found[drill_dag_id(flow.flow)] = partial(drill_dag, flow, path, back, overrides)
    return found


def _flow_dag(flow: FlowConfig, path: Path, overrides: Overrides) -> DAG:
    with ferry_dag(
        dag_id(flow.flow),
        "copy",
        flow.flow,
        overrides,
        form=_params(flow),
        description=f"Copies topics of {flow.flow.source} to {flow.flow.target} in exactly-once micro-runs",
        doc_md=__doc__,
        schedule=schedule_of(flow, path),
        start_date=START,
        deadline=deadline(flow, path),
        default_args={"retry_delay": RETRY_DELAY},
    ) as dag:
        run_tasks(flow, path)
    return dag


def _params(flow: FlowConfig) -> dict[str, Any]:
    """Return the trigger form: what one run may be narrowed to."""
    return {"topics": topics_param(flow, *TO_COPY), **budget_params()}
