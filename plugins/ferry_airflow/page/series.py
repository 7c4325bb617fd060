"""Figures over time, as the charts of the page request them."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query

from ferry.clock import wall_ms
from ferry.reader.documents import Series
from ferry.reader.questions import OfSeries
from ferry.reader.spells import KEPT_MS
from ferry_airflow.page.page_state import FlowDep
from ferry_airflow.page.run_words import Condition
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

    The runs of a partition are those of its topic, without figures: what each copied of it is in its receipts.
    """
    limit = open_flow.config.rpo
    now_ms = wall_ms()
    since_ms = since(span, now_ms)
    found: Series = open_flow.ask(OfSeries(topic=topic, partition=partition, since_ms=since_ms)).got or Series()
    rows, is_whole = [], partition is None
    for run in found.runs:
        badge = open_flow.badge_of(run.state, run.run, run.ended_ms)
        rows.append(
            {
                "run": run.run,
                "state": badge.word,
                "condition": badge.condition.value,
                "at": run.started_ms,
                "seconds": run.seconds,
                "due": run.due if is_whole else None,
                "records": run.records if is_whole else None,
                "bytes": run.bytes if is_whole else None,
                "latency": run.latency_ms / 1000 if is_whole and run.latency_ms is not None else None,
                "refused": run.refused,
                "idle": not run.due and not run.records and badge.condition is not Condition.BUSY,
                "uncounted": run.uncounted,
                "measured": run.measured,
            }
        )
    times = [*(row[0] for row in found.lag if row), *(run.started_ms for run in found.runs)]
    times += [max(one.since_ms, now_ms - KEPT_MS) for one in found.spells if one.until_ms is not None]
    return {
        "number": found.number,
        "from": since_ms or min(times, default=now_ms),
        "to": now_ms,
        "spells": [
            {"mark": one.mark.value, "of": one.of, "from": one.since_ms, "to": one.until_ms} for one in found.spells
        ],
        "limits": {"lag": limit.seconds, "due": None if is_whole else limit.records},
        "lag": found.lag,
        "runs": rows,
    }
