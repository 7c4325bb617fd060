"""The DAG that compares both clusters of a flow, by hand from its form or by `ferry.verify.schedule`.

One task, a Spark job. It reads both clusters and writes to neither; it is red when they differ, or when not all that
was asked for could be compared. Its log shows differences with sizes and digests of records, never their keys
and values.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from airflow.sdk import DAG, Param

from ferry.config.flow.flow import FlowConfig
from ferry_airflow.base import RETRY_DELAY, START
from ferry_airflow.form import LONGEST_TOPIC, flag, names_param
from ferry_airflow.naming import FULL, MODES, verify_dag_id
from ferry_airflow.overrides import NOTHING, Overrides, ferry_dag
from ferry_airflow.verify_operators import FerryVerifyOperator

_SAMPLE = 10


def verify_dag(flow: FlowConfig, path: Path, overrides: Overrides = NOTHING) -> DAG:
    """Return the verify DAG of a flow of the file `path`."""
    with ferry_dag(
        verify_dag_id(flow.flow),
        "verify",
        flow.flow,
        overrides,
        form=_params(),
        description=f"Compares what was copied of {flow.flow.source} to {flow.flow.target} on both clusters",
        doc_md=__doc__,
        schedule=flow.verification.schedule,
        start_date=START,
        # Without a schedule nothing starts by itself, and a run by hand should not wait until the DAG is unpaused.
        is_paused_upon_creation=False if flow.verification.schedule is None else None,
        default_args={"retry_delay": RETRY_DELAY},
    ) as dag:
        FerryVerifyOperator(
            task_id="verify",
            config=str(path),
            flow=str(flow.flow),
            conn_id=flow.airflow.spark_conn_id,
            retries=flow.airflow.retries,
        )
    return dag


def _bound(title: str, which: str) -> Param:
    return Param(
        None,
        type=["null", "string"],
        title=title,
        description=f"{which}: a time with its zone, such as 2026-01-31T06:00:00Z, or a source offset of the one "
        "partition; empty: all.",
    )


def _params() -> dict[str, Any]:
    """Return the trigger form: what is compared, and how."""
    return {
        # No list to choose from: topics that the file no longer names are compared, too.
        "topics": names_param(
            "Topics", "Source topics to compare, one per line; empty: all that was copied.", LONGEST_TOPIC
        ),
        "partition": Param(
            None,
            type=["null", "integer"],
            minimum=0,
            title="Partition",
            description="Only this partition of the topic; offsets below need it.",
        ),
        "from": _bound("From", "Where to begin"),
        "to": _bound("To", "Where to end, before it"),
        "mode": Param(
            FULL,
            type="string",
            enum=list(MODES),
            title="Mode",
            description="full: every record; sample: one of N segments of each partition; compacted: every topic by "
            "the latest record of each key, as topics with cleanup.policy compact are in any mode.",
        ),
        "without_ledger": flag("Without the ledger", "Compare by content: for topics that another replicator copied."),
        "sample": Param(
            _SAMPLE,
            type="integer",
            minimum=1,
            title="One of",
            description="In mode sample: how many segments there are to each one that is compared.",
        ),
    }
