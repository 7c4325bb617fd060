"""Switchover, failover and failback of a flow as DAGs that an operator triggers; no schedule starts them.

```
preview >> approve >> open >> one task per step >> report
                              drain >> assets
```

`preview` shows what will happen and checks whether it can. `approve` waits for a person (Required Actions). Without an
approval in time nothing happens. `open` writes into the ledger who approved and when. Each step is written there, too:
a task that was killed or cleared continues at the next step, and so does `ferry switchover|failover|failback --id`.
`assets` updates the assets of what `drain` copied, also when `drain` failed.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, BaseOperator, Param, TriggerRule
from airflow.sdk.definitions.param import ParamsDict

from ferry.config.flow.flow import FlowConfig
from ferry.features.switch.settings import SwitchSettings
from ferry.model.switch import STEPS, Step, SwitchOptions, Verb
from ferry_airflow.assets import flow_alias
from ferry_airflow.form import approval_params, flag, leaving_params, measured_param, topics_to_leave, waiting_params
from ferry_airflow.measures import SECONDS
from ferry_airflow.naming import switch_dag_id
from ferry_airflow.overrides import NOTHING, Overrides, ferry_dag
from ferry_airflow.switch_operators import (
    APPROVE,
    ASSETS,
    OPEN,
    PREVIEW,
    REPORT,
    SwitchApprovalOperator,
    SwitchAssetsOperator,
    SwitchDrainOperator,
    SwitchOpenOperator,
    SwitchPreviewOperator,
    SwitchReportOperator,
    SwitchStepOperator,
)

RETRY_DELAY = timedelta(seconds=10)
"""Short, because an operator is waiting."""
_OUTSIDE_THE_POOL = frozenset({Step.READINESS, Step.QUIET})
"""Steps that only read: the flow's own runs continue meanwhile."""
_CHECKED = "when the checks are made; empty: as the file says."
_WHAT = {
    Verb.SWITCHOVER: "Moves clients from {source} to {target} as planned: nothing is lost",
    Verb.FAILOVER: "Moves clients to {target} although {source} may be gone: what is lost is counted",
    Verb.FAILBACK: "Moves clients back to {source}, after what {target} got since the switch is there",
}


def switch_dag(
    flow: FlowConfig, path: Path, verb: Verb, back: FlowConfig | None = None, overrides: Overrides = NOTHING
) -> DAG:
    """Return the DAG of one verb; `back` is the opposite flow, if the file has one: a failback goes along it."""
    via = (back or flow) if verb is Verb.FAILBACK else flow
    names: dict[str, Any] = {"config": str(path), "flow": str(flow.flow), "verb": verb.value}
    with ferry_dag(
        switch_dag_id(verb.value, flow.flow),
        verb.value,
        flow.flow,
        overrides,
        description=_WHAT[verb].format(source=flow.flow.source, target=flow.flow.target),
        doc_md=__doc__,
        schedule=None,
        is_paused_upon_creation=False,  # nothing starts it by itself, and an operator who needs it must not wait
        # It uses the pool of the flow that it goes along, whose own run goes first: a switch does not begin between a
        # plan and its copy.
        default_args={"retry_delay": RETRY_DELAY, "priority_weight": 1, "weight_rule": "absolute"},
    ) as dag:
        preview = SwitchPreviewOperator(task_id=PREVIEW, retries=flow.airflow.retries, **names)
        approve = SwitchApprovalOperator(
            task_id=APPROVE,
            subject=f"{verb.value} of {flow.flow}",
            approvers=flow.of(SwitchSettings).approvers,
            retries=0,
            ignore_downstream_trigger_rules=True,
            **names,
        )
        opened = SwitchOpenOperator(task_id=OPEN, retries=flow.airflow.retries, pool=via.airflow.pool, **names)
        preview >> approve >> opened
        last: Any = opened
        for step in STEPS[verb]:
            common = {"task_id": step.value, "retries": flow.airflow.retries, **names}
            common |= {} if step in _OUTSIDE_THE_POOL else {"pool": via.airflow.pool}
            task: BaseOperator
            if step is Step.DRAIN:
                task = SwitchDrainOperator(conn_id=via.airflow.spark_conn_id, **common)
            else:
                task = SwitchStepOperator(step=step.value, **common)
            last >> task
            last = task
            if step is Step.DRAIN and via.airflow.updates_assets:
                # As a teardown it runs however the drain ends, and does not count for the run's state.
                outlets = [flow_alias(via.flow)]
                retries = flow.airflow.retries
                task >> SwitchAssetsOperator(task_id=ASSETS, outlets=outlets, retries=retries, **names).as_teardown()
        report = SwitchReportOperator(
            task_id=REPORT, retries=flow.airflow.retries, trigger_rule=TriggerRule.ALL_DONE, **names
        )
        last >> report
    # Set last: each task would have its own copy of the form, which is most of the cost of reading the file.
    dag.params = ParamsDict(overrides.form(_params(verb)))
    return dag


def _params(verb: Verb) -> dict[str, Any]:
    """Return the trigger form."""
    default = SwitchOptions()
    form: dict[str, Any] = {
        **approval_params("switch"),
        **leaving_params(),
        "remove_write_block": flag(
            "Remove write block", "Delete ACLs that deny WRITE on a single topic of the cluster that is switched to."
        ),
        "smoke": flag("Smoke test", "Write and read a scratch topic after the switch.", default=default.smoke),
        "reverse": flag("Start the flow back", "Copy back from then on.", default=default.reverse),
        "interrupt": flag("Interrupt", "End a run of the flow that is active or was killed."),
    }
    if verb is not Verb.FAILOVER:
        form |= {
            "max_records": Param(
                None,
                type=["null", "integer"],
                minimum=0,
                title="RPO in records",
                description=f"Records that a partition may lack {_CHECKED}",
            ),
            "max_seconds": measured_param(SECONDS, "RPO in seconds", f"Age of what a partition may lack {_CHECKED}"),
            **waiting_params(),
        }
    if verb is Verb.FAILOVER:
        form["leave_unknown"] = flag(
            "Leave unknown groups", "Continue even if the ledger does not list all groups of the source."
        )
    if verb is Verb.FAILBACK:
        form["leave_topics"] = topics_to_leave()
        form["output"] = Param(
            None,
            type=["null", "string"],
            title="Stranded records to",
            description="A new file for records that the cluster had before the switch and that were not copied. Its "
            "full path on the worker, below ferry.report.dir or ferry.report.dirs; by default next to the reports.",
        )
    return form
