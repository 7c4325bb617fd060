"""Drills of a flow as a DAG that an operator triggers: a rehearsed failover that ends in a report.

```
preview >> approve >> rehearse
                   >>  drill  >> assets
```

The form says which drill. Tabletop and shadow do not touch production and need no approval: `rehearse` does them while
the flow's runs continue. Partial and full need an approval, and `drill` does them in the flow's pool. The last line of
the log names the place of the report, and so does the return value. `assets` updates the assets of what a partial or
full drill copied, also when the drill failed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from airflow.sdk import DAG, Param
from airflow.sdk.definitions.param import ParamsDict

from ferry.config.flow.flow import FlowConfig
from ferry.features.switch.settings import SwitchSettings
from ferry.model.evidence import EvidenceKind
from ferry_airflow.assets import flow_alias
from ferry_airflow.drill_operators import (
    DrillApprovalOperator,
    DrillAssetsOperator,
    DrillOperator,
    DrillPreviewOperator,
    RehearsalOperator,
)
from ferry_airflow.form import (
    LONGEST_GROUP,
    approval_params,
    flag,
    leaving_params,
    measured_param,
    names_param,
    topics_param,
    topics_to_leave,
    waiting_params,
)
from ferry_airflow.measures import BYTES, SECONDS
from ferry_airflow.naming import DRILL, drill_dag_id
from ferry_airflow.overrides import NOTHING, Overrides, ferry_dag
from ferry_airflow.switch_operators import APPROVE, ASSETS, PREVIEW

REHEARSE = "rehearse"


def drill_dag(flow: FlowConfig, path: Path, back: FlowConfig | None = None, overrides: Overrides = NOTHING) -> DAG:
    """Return the DAG of the flow's drills; a drill is not retried automatically.

    `back` is the opposite flow, if the file has one: a full drill returns along it.
    """
    copying = [one for one in (flow, back) if one is not None and one.airflow.updates_assets]
    names: dict[str, Any] = {"config": str(path), "flow": str(flow.flow), "retries": 0}
    with ferry_dag(
        drill_dag_id(flow.flow),
        "drill",
        flow.flow,
        overrides,
        description=f"Rehearses a failover from {flow.flow.source} to {flow.flow.target}, with a report",
        doc_md=__doc__,
        schedule=None,
        is_paused_upon_creation=False,  # nothing starts it by itself
        default_args={"priority_weight": 1, "weight_rule": "absolute"},
    ) as dag:
        preview = DrillPreviewOperator(task_id=PREVIEW, **names)
        approve = DrillApprovalOperator(
            task_id=APPROVE,
            subject=f"{{{{ params.kind }}}} drill of {flow.flow}",
            approvers=flow.of(SwitchSettings).approvers,
            ignore_downstream_trigger_rules=True,
            **names,
        )
        rehearse = RehearsalOperator(task_id=REHEARSE, **names)
        drill = DrillOperator(task_id=DRILL, conn_id=flow.airflow.spark_conn_id, pool=flow.airflow.pool, **names)
        preview >> approve >> [rehearse, drill]
        if copying:
            # As a teardown it runs however the drill ends, and the run's state is the drill's.
            outlets = [flow_alias(one.flow) for one in copying]
            drill >> DrillAssetsOperator(task_id=ASSETS, outlets=outlets, **names).as_teardown()
    # Set last, as in the DAG of a switch: each task would have its own copy of the form.
    dag.params = ParamsDict(overrides.form(_params(flow)))
    return dag


def _params(flow: FlowConfig) -> dict[str, Any]:
    """Return the trigger form."""
    return {
        "kind": Param(
            EvidenceKind.TABLETOP.value,
            type="string",
            enum=[kind.value for kind in EvidenceKind if kind.is_drill],
            title="Drill",
            description="tabletop: count what a failover would lose; shadow: copy to scratch topics, compare, "
            "remove; partial: some topics and their groups, on the live copies; full: move clients there and back.",
        ),
        **approval_params("full drill"),
        "report": Param(
            None,
            type=["null", "string"],
            title="Report to",
            description="A folder below ferry.report.dir, or one of ferry.report.dirs; empty: ferry.report.dir.",
        ),
        "topics": topics_param(
            flow, "Source topics", ". Shadow: empty for all; partial: empty for all that the groups read."
        ),
        "groups": names_param(
            "Groups",
            "Partial: consumer groups, one per line; empty: all that have offsets in the topics.",
            LONGEST_GROUP,
        ),
        "from": Param(
            None,
            type=["null", "string"],
            title="From",
            description="Shadow: where to begin: earliest, a time with its zone, offsets; empty: an hour ago.",
        ),
        "max_bytes": measured_param(BYTES, "Most bytes", "Shadow: copy no more than this."),
        "clean": flag("Clean up first", "Shadow: first remove what a killed drill left."),
        **leaving_params(),
        "leave_topics": topics_to_leave(),
        **waiting_params(),
        "stay_seconds": measured_param(SECONDS, "Stay", "Full: how long to wait before the failback begins.", 0),
    }
