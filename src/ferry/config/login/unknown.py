"""Airflow connections that this process does not know."""

from __future__ import annotations

VARIABLE = "AIRFLOW_CONN_{}"
"""The variable of the environment that has a connection in JSON, by the connection's id in capitals."""


def unknown_here(conn_id: str) -> str:
    """Return why a cluster cannot be reached where its connection is not known, and what to do."""
    return (
        f"Airflow connection {conn_id!r} is only available to Airflow's tasks; set {VARIABLE.format(conn_id.upper())} "
        "to the connection in JSON to use it here"
    )
