"""Which deployment the tasks of this Airflow belong to."""

from __future__ import annotations

from airflow.sdk.configuration import conf

from ferry.config.flow.deployment import of_airflow


def airflow_deployment() -> str:
    """The default id in this Airflow: the same on all of its workers (`ferry.config.flow.deployment.of_airflow`)."""
    base_url = conf.get("api", "base_url", fallback="") or ""
    return of_airflow(base_url, conf.get("core", "execution_api_server_url", fallback="") or "")
