"""Figures over time, as the charts of the page request them."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query

from ferry.clock import wall_ms
from ferry.reader.documents import Series
from ferry.reader.questions import OfSeries
from ferry_airflow.page.page_state import FlowDep
from ferry_airflow.page.threads import page_router
from ferry_airflow.page.time_range import ALL, TimeRange, since

router = page_router(prefix="/api")


@router.get("/flow/{source}/{target}/series")
def flow_series(
    open_flow: FlowDep,
    topic: str | None = None,
    partition: Annotated[int | None, Query(ge=0)] = None,
    span: TimeRange = ALL,
) -> dict[str, Any]:
    """Return measured lag, and the known runs, oldest first; of a flow, or of one of its topics, within a time.

    - A null separates two points of lag between which nothing was measured.
    - `measured` of a run: whether lag was measured when it ran; `uncounted`: whether the ledger has forgotten receipts.
    - `limits` are the recovery point's; that of records is of each partition.
    - `spells` are times of outages and pauses; one without an end lasts.
    - `from` and `to` are the ends of the axis of time that all charts have.

    For a partition there is only its lag: what each run copied of it is in its receipts.
    """
    limit = open_flow.config.rpo
    now_ms = wall_ms()
    since_ms = since(span, now_ms)
    found: Series = open_flow.ask(OfSeries(topic=topic, partition=partition, since_ms=since_ms)).got or Series()
    rows = []
    for run in found.runs:
        badge = open_flow.badge_of(run.state, run.run, run.ended_ms)
        rows.append(
            {
                "run": run.run,
                "state": badge.word,
                "condition": badge.condition.value,
                "at": run.started_ms,
                "seconds": run.seconds,
                "due": run.due,
                "records": run.records,
                "bytes": run.bytes,
                "latency": None if run.latency_ms is None else run.latency_ms / 1000,
                "refused": run.refused,
                "idle": not run.due and not run.records,
                "uncounted": run.uncounted,
                "measured": run.measured,
            }
        )
    times = [*(row[0] for row in found.lag if row), *(run.started_ms for run in found.runs)]
    return {
        "number": found.number,
        "from": since_ms or min(times, default=now_ms),
        "to": now_ms,
        "spells": [
            {"mark": one.mark.value, "of": one.of, "from": one.since_ms, "to": one.until_ms} for one in found.spells
        ],
        "limits": {"lag": limit.seconds, "due": None if partition is None else limit.records},
        "lag": found.lag,
        "runs": rows,
    }
