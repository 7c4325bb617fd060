"""Figures over time, as the charts of the page ask for them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Annotated, Any

from fastapi import APIRouter, Query

from ferry_airflow.page.lag_history import points_of
from ferry_airflow.page.lag_point import LagPoint, Stretches
from ferry_airflow.page.office import FlowDep

router = APIRouter(prefix="/api")

MOST_POINTS = 400
Row = tuple[int, int, int, float | None]
"""Time in ms, records, bytes and seconds behind."""


def rows_of(points: Sequence[LagPoint], looks: Stretches, most: int = MOST_POINTS) -> list[Row | None]:
    """As many points as a chart can show, oldest first, the last one of each stretch among them; None between two."""
    step = max(1, -(-len(points) // most))
    rows: list[Row | None] = []
    for _, part in groupby(points, key=lambda point: looks.number(point.at_ms)):
        rows += [None] if rows else []
        chosen = list(part)[::-1][::step][::-1]
        rows += [(one.at_ms, one.records, one.bytes, one.seconds) for one in chosen]
    return rows


@router.get("/flow/{source}/{target}/series")
def flow_series(
    open_flow: FlowDep, topic: str | None = None, partition: Annotated[int | None, Query(ge=0)] = None
) -> dict[str, Any]:
    """Lag as it was looked at, and the runs that are known, oldest first; of a flow, or of one of its topics.

    Where nobody measured between two points of lag there is a null; `measured` says of a run whether somebody did when
    it ran, `uncounted` whether the ledger has forgotten receipts of it. `limits` are the recovery point's; that of
    records is of each partition. Of a partition only the lag: what each run copied of it is in its receipts.
    """
    seen, limit = open_flow.seen, open_flow.config.rpo
    points = seen.history if topic is None else tuple(points_of(seen.columns, topic, partition))
    looks = Stretches.of(seen.history)
    rows = []
    for run in reversed(seen.runs if partition is None else ()):
        part = run.topics.get(topic) if topic is not None else None
        if topic is not None and part is None:
            continue
        of = part or run
        rows.append(
            {
                "run": run.run,
                "state": (badge := open_flow.badge(run)).word,
                "mood": badge.mood.value,
                "at": run.started_ms,
                "seconds": run.seconds,
                "due": of.due,
                "records": of.records,
                "bytes": of.bytes,
                "latency": None if of.latency_ms is None else of.latency_ms / 1000,
                "refused": run.refused,
                "uncounted": of.uncounted,
                "measured": looks.near(run.started_ms, run.ended_ms),
            }
        )
    return {
        "number": seen.number,
        "limits": {"lag": limit.seconds, "due": None if partition is None else limit.records},
        "lag": rows_of(points, looks),
        "runs": rows,
    }
