"""Switchover, failover and failback of a flow as DAGs that somebody triggers; nothing starts them by itself.

```
preview >> approve >> open >> one task per step >> report
```

`preview` shows what will happen and checks whether it can. `approve` waits for a person (Required Actions); refused, or
without an answer in time, nothing has happened. `open` writes into the ledger who approved and when. Each step is
written there, too, so a task that was killed or cleared goes on where the switch stands, and so does
`ferry switchover|failover|failback --id`.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

from airflow.sdk import DAG, Param, TriggerRule
from airflow.sdk.definitions.param import ParamsDict

from ferry.config.flow.flow import FlowConfig
from ferry.decide.switch.steps import STEPS
from ferry.model.switch import Step, SwitchOptions, Verb
from ferry_airflow.naming import switch_dag_id
from ferry_airflow.switch_operators import (
    APPROVE,
    OPEN,
    PREVIEW,
    REPORT,
    SwitchApprovalOperator,
    SwitchOpenOperator,
    SwitchPreviewOperator,
    SwitchReportOperator,
    SwitchStepOperator,
)

RETRY_DELAY = timedelta(seconds=10)
"""Somebody is waiting."""
APPROVAL_SECONDS = 3600
_OUTSIDE_THE_POOL = frozenset({Step.READINESS, Step.QUIET})
"""Steps that only look: the flow's own runs go on meanwhile."""
_WHAT = {
    Verb.SWITCHOVER: "Moves clients from {source} to {target} as planned: nothing is lost",
    Verb.FAILOVER: "Moves clients to {target} although {source} may be gone: what is lost is counted",
    Verb.FAILBACK: "Moves clients back to {source}, after what {target} got since the switch is there",
}


def switch_dags(flow: FlowConfig, path: Path) -> list[DAG]:
    """One DAG for each verb."""
    return [_switch_dag(flow, path, verb) for verb in Verb]


def _switch_dag(flow: FlowConfig, path: Path, verb: Verb) -> DAG:
    names = {"config": str(path), "flow": str(flow.flow), "verb": verb.value}
    with DAG(
        switch_dag_id(verb.value, flow.flow),
        description=_WHAT[verb].format(source=flow.flow.source, target=flow.flow.target),
        doc_md=__doc__,
        schedule=None,
        catchup=False,
        max_active_runs=1,
        is_paused_upon_creation=False,  # nothing starts it by itself, and who needs it is in a hurry
        tags=["ferry", verb.value, flow.flow.source, flow.flow.target],
        # In the flow's pool its own run goes first: a switch does not begin between a plan and its copy.
        default_args={"owner": "ferry", "retry_delay": RETRY_DELAY, "priority_weight": 1, "weight_rule": "absolute"},
    ) as dag:
        preview = SwitchPreviewOperator(task_id=PREVIEW, retries=flow.retries, **names)
        approve = SwitchApprovalOperator(
            task_id=APPROVE,
            subject=f"{verb.value} of {flow.flow}",
            body=(
                "{{ params.reason or 'No reason was given.' }}\n\nTriggered by "
                "{{ dag_run.triggering_user_name or 'somebody' }}.\n\n"
                f"{{{{ ti.xcom_pull(task_ids='{PREVIEW}') }}}}"
            ),
            retries=0,
            ignore_downstream_trigger_rules=True,
        )
        opened = SwitchOpenOperator(task_id=OPEN, retries=flow.retries, pool=flow.pool, **names)
        preview >> approve >> opened
        last: Any = opened
        for step in STEPS[verb]:
            pool = {} if step in _OUTSIDE_THE_POOL else {"pool": flow.pool}
            task = SwitchStepOperator(task_id=step.value, step=step.value, retries=flow.retries, **pool, **names)
            last >> task
            last = task
        report = SwitchReportOperator(task_id=REPORT, retries=flow.retries, trigger_rule=TriggerRule.ALL_DONE, **names)
        last >> report
    # Put in last: each task would have a copy of the form of its own, which is most of what reading the file costs.
    dag.params = ParamsDict(_params(verb))
    return dag


def _switch_param(default: bool, title: str, description: str) -> Param:
    return Param(default=default, type="boolean", title=title, description=description)


def _seconds(default: float, title: str, description: str) -> Param:
    return Param(default, type="number", minimum=0, title=title, description=description)


def _params(verb: Verb) -> dict[str, Any]:
    """The trigger form."""
    default = SwitchOptions()
    form: dict[str, Any] = {
        "dry_run": _switch_param(False, "Dry run", "Only show the steps and the checks; nobody is asked."),
        "reason": Param(
            None, type=["null", "string"], maxLength=500, title="Reason", description="Shown to whoever approves."
        ),
        "id": Param(
            None,
            type=["null", "string"],
            pattern="^[A-Za-z0-9._-]{1,100}$",
            title="Go on with",
            description="The id of a switch that is not finished; empty: a new one.",
        ),
        "approval_timeout_seconds": Param(
            APPROVAL_SECONDS,
            type="integer",
            minimum=1,
            title="Approval within",
            description="Seconds; after them nothing is switched.",
        ),
        "leave_groups": Param(
            None,
            type=["null", "array"],
            items={"type": "string", "minLength": 1, "maxLength": 255},
            title="Groups to leave",
            description="Consumer groups that are not moved, one per line.",
        ),
        "leave_active": _switch_param(
            False, "Leave active groups", "Leave groups that have members, instead of refusing."
        ),
        "remove_write_block": _switch_param(
            False, "Remove write block", "Delete ACLs that deny WRITE on the topics of the cluster that is switched to."
        ),
        "smoke": _switch_param(default.smoke, "Smoke test", "Write and read a scratch topic after the switch."),
        "reverse": _switch_param(default.reverse, "Start the reverse flow", "Copy back from then on."),
        "interrupt": _switch_param(False, "Interrupt", "End a run of the flow that is at work, or was killed."),
    }
    if verb is not Verb.FAILOVER:
        form |= {
            "quiet_seconds": _seconds(
                default.quiet_seconds, "Quiet for", "Seconds without new records before producers count as stopped."
            ),
            "quiet_timeout_seconds": _seconds(
                default.quiet_timeout_seconds, "Quiet within", "Seconds to wait for that at most."
            ),
            "drain_timeout_seconds": _seconds(
                default.drain_timeout_seconds, "Drained within", "Seconds for the last records at most."
            ),
        }
    if verb is Verb.FAILBACK:
        form["export"] = Param(
            None,
            type=["null", "string"],
            title="Stranded records to",
            description="A new file on the worker, by its full path, for records that the cluster had before the "
            "switch and nobody copied; by default beside the reports.",
        )
    return form
