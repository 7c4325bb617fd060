"""The requests of the page's benchmark for each GET route.

Pure, so that a test compares them with the page's routes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from long_ledger import FLOW

from ferry_airflow.naming import dag_id, verify_dag_id

FLOW_PAGE = f"/flow/{FLOW.source}/{FLOW.target}"
DEALT = "dealt"
"""The topic whose records are repartitioned."""
ANY_FLOW = "/flow/{source}/{target}"
ANY_LANE = f"{ANY_FLOW}/lane/{{lane}}"
ANY_PARTITION = "partition/{topic}/{partition}"
ANY_RECEIPT = "receipt/{topic}/{partition}/{start}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Values that are known once there is a page: ids, and the addresses that other pages lead to."""

    run: str
    job: str
    report: str
    charts: str
    receipt: str
    """A receipt of a topic that is copied now."""
    old_receipt: str
    """A receipt of the topic with the long past."""


def addresses(found: Found) -> Mapping[str, list[str]]:
    """Return the addresses to request of each route: first pages, last ones, and those that have most to show."""
    run, dag = found.run, dag_id(FLOW)
    live = f"{FLOW_PAGE}/lane/live"
    series = f"/api{FLOW_PAGE}/series"
    translated = "?topic=wide-050&partition=7&offset=1"
    back = f"?topic={FLOW.source}.wide-050&partition=7&offset=1&back=true"
    return {
        "/": ["/"],
        "/words": ["/words"],
        "/dag/{dag}": [f"/dag/{dag}"],
        "/dag/{dag}/run/{run:path}": [f"/dag/{dag}/run/{run}"],
        f"{ANY_FLOW}/": [f"{FLOW_PAGE}/"],
        f"{ANY_FLOW}/dag/{{dag}}/run/{{run:path}}": [f"{FLOW_PAGE}/dag/{verify_dag_id(FLOW)}/run/none"],
        f"{ANY_FLOW}/topics": [f"{FLOW_PAGE}/topics{query}" for query in ("", "?sort=bytes&page=2", "?q=wide-09")],
        f"{ANY_FLOW}/topic/{{topic}}": [f"{FLOW_PAGE}/topic/wide-000{query}" for query in ("", "?page=2")],
        f"{ANY_FLOW}/runs": [f"{FLOW_PAGE}/runs"],
        f"{ANY_FLOW}/refusals": [f"{FLOW_PAGE}/refusals"],
        f"{ANY_FLOW}/run/{{run:path}}": [
            f"{FLOW_PAGE}/run/{run}{query}" for query in ("", "?page=200", "?q=wide-09", "?q=nothing")
        ],
        f"{ANY_FLOW}/{ANY_PARTITION}": [
            f"{FLOW_PAGE}/partition/{place}"
            for place in (
                *("wide-050/7", "history/42", "history/42?page=100"),
                *(f"{DEALT}/7{query}" for query in ("", "?parts=2", "?offset=1", "?offset=1&key=7")),
            )
        ],
        f"{ANY_FLOW}/{ANY_RECEIPT}": [found.receipt, found.old_receipt],
        f"{ANY_FLOW}/offsets": [f"{FLOW_PAGE}/offsets{query}" for query in ("", translated, back)],
        f"{ANY_FLOW}/groups": [f"{FLOW_PAGE}/groups{query}" for query in ("", "?page=5", "?q=page-07")],
        f"{ANY_FLOW}/backfills": [f"{FLOW_PAGE}/backfills"],
        # The same pages of a lane by its name: of the live one, which has most; the lane itself does not exist.
        ANY_LANE: [f"{FLOW_PAGE}/lane/backfill-none"],
        f"{ANY_LANE}/run/{{run:path}}": [f"{live}/run/{run}"],
        f"{ANY_LANE}/{ANY_PARTITION}": [
            f"{live}/partition/history/42?page=100",
            f"{live}/partition/{DEALT}/7?offset=1",
        ],
        f"{ANY_LANE}/{ANY_RECEIPT}": [found.old_receipt.replace(FLOW_PAGE, live)],
        f"{ANY_LANE}/offsets": [f"{live}/offsets{translated}"],
        f"{ANY_FLOW}/reports": [f"{FLOW_PAGE}/reports"],
        f"{ANY_FLOW}/report/{{number}}": [f"{FLOW_PAGE}/report/{found.report}"],
        f"/api{ANY_FLOW}/topics": [f"/api{FLOW_PAGE}/topics{query}" for query in ("", "?q=wide-09")],
        f"/api{ANY_FLOW}/groups": [f"/api{FLOW_PAGE}/groups{query}" for query in ("", "?q=9")],
        f"/api{ANY_FLOW}/series": [series, f"{series}?topic=wide-000", f"{series}?topic=wide-000&partition=7"],
        "/api/job/{number}": [f"/api/job/{found.job}"],
        "/static/{name}": [f"/static/{name}" for name in ("ferry.css", "ferry.js", "act.js", "theme.js")],
        "/icon/{name}": ["/icon/light.svg", "/icon/dark.svg"],
        "/charts/{version}.js": [found.charts],
    }
