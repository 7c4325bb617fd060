"""Figures over time, as the charts of the page request them."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query

from ferry.clock import wall_ms
from ferry.reader.charts import Missed, Series
from ferry.reader.questions import OfSeries
from ferry.reader.spells import KEPT_MS, missed_of
from ferry_airflow.page.access import User
from ferry_airflow.page.dag_runs import may_see_reasons, newest_reasons
from ferry_airflow.page.page_state import FlowDep, OpenFlow
from ferry_airflow.page.run_words import Condition
from ferry_airflow.page.threads import page_router
from ferry_airflow.page.time_range import ALL, TimeRange, since

router = page_router(prefix="/api")


@router.get("/flow/{source}/{target}/series")
def flow_series(
    open_flow: FlowDep,
    user: User,
    topic: str | None = None,
    partition: Annotated[int | None, Query(ge=0)] = None,
    span: TimeRange = ALL,
) -> dict[str, Any]:
    """Return measured lag, and the known runs, oldest first; of a flow, or of one of its topics, within a time.

    - A null separates two points of lag between which nothing was measured.
    - `measured` of a run: whether lag was measured when it ran; `uncounted`: whether the ledger has forgotten receipts.
    - `limits` are the recovery point's; that of records is of each partition.
    - `spells` are times of outages and pauses; one without an end lasts. An outage may have begun at `after`, and have
      lasted until `before`; null: that is not known.
    - `from` and `to` are the ends of the axis of time that all charts have.

    The runs of a partition are those of its topic, without figures: what each copied of it is in its receipts.
    """
    limit = open_flow.config.rpo
    now_ms = wall_ms()
    since_ms = since(span, now_ms)
    missed = missed_by(open_flow, user, now_ms - KEPT_MS)
    asked = OfSeries(topic=topic, partition=partition, since_ms=since_ms, missed=missed)
    found: Series = open_flow.ask(asked).got or Series()
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
            {
                "mark": one.mark.value,
                "of": one.of,
                "from": one.since_ms,
                "to": one.until_ms,
                "after": one.after_ms,
                "before": one.before_ms,
            }
            for one in found.spells
        ],
        "limits": {"lag": limit.seconds, "due": None if is_whole else limit.records},
        "lag": found.lag,
        "runs": rows,
    }


def missed_by(open_flow: OpenFlow, user: User, since_ms: int) -> tuple[Missed, ...]:
    """Return when tasks of the flow's runs tried a cluster without an answer; none if the user may not see that."""
    if not open_flow.dag.known or not may_see_reasons(user, open_flow.dag_id):
        return ()
    aliases = (open_flow.flow.source, open_flow.flow.target)
    tried = (missed_of(one.text, one.at_ms, aliases) for one in newest_reasons(open_flow.dag_id, since_ms))
    return tuple(one for one in tried if one is not None)
