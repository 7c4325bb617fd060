"""Names that Ferry gives to things of Airflow. Knows no Airflow, so that importing it is cheap."""

from __future__ import annotations

from ferry.model import Flow


def dag_id(flow: Flow) -> str:
    """The id of a flow's DAG."""
    return f"ferry__{flow.source}__{flow.target}"
