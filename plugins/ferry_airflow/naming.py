"""Names that Ferry gives to things in Airflow. It does not import Airflow, so that importing it is cheap."""

from __future__ import annotations

from collections.abc import Iterable

from ferry.errors import BadInput
from ferry.model import Flow
from ferry.model.evidence import EvidenceKind

CONFIG_VARIABLE = "FERRY_CONFIG"
"""The environment variable that names the configuration file for all of Airflow's processes."""

MODES = FULL, SAMPLE, COMPACTED = "full", "sample", "compacted"
"""The modes of the verify DAG's form."""

IN_PRODUCTION = (EvidenceKind.PARTIAL, EvidenceKind.FULL)
"""Drills that need an approval."""

GROUPS = "groups"
"""The role of the DAG of a flow that writes offsets of consumer groups, and the beginning of its ids in the ledger."""

OWN = "ferry__"
"""The beginning of the id of the DAG of a flow's micro-runs, and of no other DAG."""

VERBS = ("switchover", "failover", "failback")

PLAN = "plan"
"""The task that opens a micro-run."""
REASON = "ferry_reason"
"""The XCom in which a task that fails keeps the reason, in one sentence."""
ASKED_WRONG = "ferry_asked_wrong"
"""The XCom that a task also keeps when what the run was asked for is wrong."""
DRILL = "drill"
"""The task that does a drill which touches production."""
RUNS = "ferry_runs"
"""The XCom in which a drill keeps the ids of the runs of the live lane that it opened."""
SYNC = "sync"
"""The task that writes offsets of consumer groups between runs."""
TELLING = ("verify", SYNC, "rehearse", "drill", "report")
"""Tasks of a flow's other DAGs that return the outcome of the run, for programs."""


def dag_id(flow: Flow) -> str:
    """Return the id of a flow's DAG."""
    return f"{OWN}{flow.source}__{flow.target}"


def micro_run_id(own: str, dag: str, group: str, run: str) -> str:
    """Return Ferry's id of what an Airflow run copies: Airflow's ids are unique within a DAG only.

    A run of the DAG `own` keeps Airflow's id. The id of any other begins with its DAG, and with the task group that its
    tasks are in (empty: none). Airflow allows no "@" in any of these, so no two of them are one run.
    """
    return run if (dag, group) == (own, "") else "@".join(part for part in (dag, group, run) if part)


def sync_id(dag: str, task: str, run: str) -> str:
    """Return the id under which the ledger keeps what a sync of groups replaces; the same in each try of a task.

    It is none of a micro-run: Airflow allows no "@" in the names of which `micro_run_id` makes those.
    """
    return f"{GROUPS}@{dag}@{task}@{run}"


def refuse_same_ids(flows: Iterable[Flow]) -> None:
    """Raise BadInput if two flows would have the same DAG ids.

    One of them would lose its DAGs, and rights on one would be rights on both.
    """
    known: dict[str, Flow] = {}
    for flow in flows:
        other = known.setdefault(dag_id(flow), flow)
        if other != flow:
            raise BadInput(
                f"flows {other} and {flow} would both have the DAG {dag_id(flow)}: give one of their clusters an alias "
                "without two underscores in a row"
            )


def verify_dag_id(flow: Flow) -> str:
    """Return the id of the DAG that compares all that a flow has copied."""
    return f"ferry_verify__{flow.source}__{flow.target}"


def groups_dag_id(flow: Flow) -> str:
    """Return the id of the DAG that writes offsets of a flow's consumer groups between runs."""
    return f"ferry_groups__{flow.source}__{flow.target}"


def switch_dag_id(verb: str, flow: Flow) -> str:
    """Return the id of the DAG that switches along a flow, or back."""
    return f"ferry_{verb}__{flow.source}__{flow.target}"


def backfill_dag_id(flow: Flow) -> str:
    """Return the id of the DAG of a flow's windows."""
    return f"ferry_backfill__{flow.source}__{flow.target}"


def drill_dag_id(flow: Flow) -> str:
    """Return the id of the DAG that rehearses a failover of a flow."""
    return f"ferry_drill__{flow.source}__{flow.target}"


def other_dags(flow: Flow) -> dict[str, str]:
    """Return the ids of a flow's DAGs other than that of its micro-runs, and the name of a run of each."""
    return {
        verify_dag_id(flow): "verification",
        groups_dag_id(flow): "group sync",
        backfill_dag_id(flow): "backfill",
        drill_dag_id(flow): "drill",
        **{switch_dag_id(verb, flow): verb for verb in VERBS},
    }
