"""The deployment that the tasks of this Airflow belong to."""

from __future__ import annotations

from airflow.sdk.configuration import conf

from ferry.config.flow.deployment import of_airflow


def airflow_deployment() -> str:
    """Return the default id in this Airflow, equal on all workers (`ferry.config.flow.deployment.of_airflow`)."""
    base_url = conf.get("api", "base_url", fallback="") or ""
    return of_airflow(base_url, conf.get("core", "execution_api_server_url", fallback="") or "")
