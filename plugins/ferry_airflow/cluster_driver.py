"""A driver that runs in the Spark cluster (deploy mode `cluster`): what became of it, and how it is ended.

The Spark provider's own operator asks YARN and Kubernetes. It holds no connection data but its connection's name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator

CLUSTER_MODE = "cluster"
YARN_ADDRESS = "yarn_resourcemanager_webapp_address"
"""The field of a Spark connection that has the address of YARN's REST API."""
KUBERNETES_STATE = "k8s_driver_status"
"""The provider's key in the task's state for how a pod ended, of whichever driver."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverState:
    """What the cluster manager says of a driver."""

    state: str
    is_active: bool
    succeeded: bool


def asking(task: SparkSubmitOperator) -> dict[str, Any]:
    """Return the arguments of a task's operator that another process needs to ask for its driver; none is a secret."""
    return {
        "yarn_track_via_rm_api": task._yarn_track_via_rm_api,  # noqa: SLF001 - the operator has no other names
        "track_driver_via_k8s_api": task._track_driver_via_k8s_api,  # noqa: SLF001
        "keytab": task.keytab,
        "principal": task.principal,
    }


def state_of(conn_id: str, driver: str, options: Mapping[str, Any]) -> DriverState:
    """Ask the cluster manager for a driver. Raises what the provider's clients do when there is no answer."""
    task = _operator(conn_id, options)
    state = task.get_job_status(driver, {})
    return DriverState(state=state, is_active=task.is_job_active(state), succeeded=task.is_job_succeeded(state))


def ended_driver(conn_id: str, driver: str, options: Mapping[str, Any]) -> None:
    """End a driver; one that has ended stays so. What it committed stays, and its open chunks end by the next run."""
    end_driver(_operator(conn_id, options), driver)


def end_driver(task: SparkSubmitOperator, driver: str) -> None:
    """End the driver of a task's operator by the cluster manager's API."""
    hook = task._hook or task._get_hook()  # noqa: SLF001 - the provider has no other name, here and below
    if hook._is_yarn:  # noqa: SLF001
        hook._kill_yarn_application(driver)  # noqa: SLF001
    else:
        namespace, pod = task._parse_k8s_external_id(driver)  # noqa: SLF001
        hook._connection["namespace"], hook._kubernetes_driver_pod = namespace, pod  # noqa: SLF001
        hook._delete_driver_pod()  # noqa: SLF001


def driver_key(job: str, arguments: tuple[str, ...]) -> str:
    """Return the key of a job's driver in the task's state: a task may start several jobs, one after the other."""
    return f"ferry_driver_{sha256(repr((job, arguments)).encode()).hexdigest()[:16]}"


def _operator(conn_id: str, options: Mapping[str, Any]) -> SparkSubmitOperator:
    return SparkSubmitOperator(task_id="driver", conn_id=conn_id, deploy_mode=CLUSTER_MODE, **options)
