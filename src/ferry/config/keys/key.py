"""A key of Ferry's own, and the one that a cluster may have."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FerryKey:
    """One key, written `ferry.x` for all flows or `S->T.ferry.x` for one.

    `default` is the text that the reader parses.
    """

    name: str
    default: str
    values: str
    meaning: str


CONNECTION = FerryKey(
    name="ferry.airflow.conn.id",
    default="",
    values="an Airflow connection id",
    meaning="the connection of type Kafka cluster that replaces the cluster's own settings",
)
"""The only key after a cluster's alias."""
