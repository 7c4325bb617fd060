"""What is read: the list of flows, and the pages of one. Every list is cut on the server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar
from urllib.parse import quote

from fastapi import APIRouter, HTTPException, Request, status
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from ferry.ledger.history import PastState
from ferry.model import Flow
from ferry.plan.rules.lag import PartitionLag
from ferry_airflow.naming import OWN
from ferry_airflow.page.access import User, may_see_dag, refuse
from ferry_airflow.page.airflow_side import DagRunRow
from ferry_airflow.page.at_a_glance import chosen, counts, hindrances, outages, sorted_by_mood
from ferry_airflow.page.chart_map import drawn
from ferry_airflow.page.chart_shapes import WIDTH
from ferry_airflow.page.dag_runs import first_reasons, may_see_reasons, runs_beside
from ferry_airflow.page.files import charts_version
from ferry_airflow.page.office import FlowDep, OfficeDep, OpenFlow, flow_of_dag, told_of_file, visible
from ferry_airflow.page.paper import root_of, written
from ferry_airflow.page.run_words import DAG_MOODS, Badge, beside_badge, dag_badge
from ferry_airflow.page.shown import moment
from ferry_airflow.page.snapshot import MOST_REFUSALS, RunDigest, TopicRow
from ferry_airflow.page.told import recurring

router = APIRouter()

A_PAGE = 50
DAG_RUNS_AT_A_GLANCE = 5
"""Airflow's runs of a flow that the list looks at: behind the one that runs, some may be queued."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut(Generic[T]):
    """A page of a list; pages count from 1."""

    rows: Sequence[T]
    page: int
    pages: int
    total: int
    first: int = 1
    """The number of the first row."""

    @classmethod
    def of(cls, rows: Sequence[T], page: int, size: int = A_PAGE) -> Cut[T]:
        """The page, or the last one where there are not so many."""
        pages = max(1, -(-len(rows) // size))
        page = min(max(1, page), pages)
        start = (page - 1) * size
        return cls(rows=rows[start : start + size], page=page, pages=pages, total=len(rows), first=start + 1)


def shown_page(
    request: Request, name: str, open_flow: OpenFlow, tab: str, *, lane: str = "", **what: Any
) -> HTMLResponse:
    """A page of a flow; `lane`: one beside its own, whose runs and receipts have addresses of their own (`base`)."""
    flow = open_flow.flow
    here = place_of(request, flow)
    return written(
        request,
        name,
        it=open_flow,
        seen=open_flow.seen,
        flow=flow,
        here=here,
        base=f"{here}/lane/{quote(lane, safe='')}" if lane else here,
        lane=lane,
        tab="backfills" if lane else tab,
        charts=charts_version(),
        dag_moods=DAG_MOODS,
        **what,
    )


@router.get("/")
def home(request: Request, user: User, office: OfficeDep, q: str = "") -> Response:
    """The map of clusters, and the list of flows, the worst first; `q`: only those with it in their name or state."""
    configured, flows = visible(office, user, runs=DAG_RUNS_AT_A_GLANCE)
    return written(
        request,
        "home.html",
        configured=configured,
        flows=flows,
        rows=sorted_by_mood(chosen(flows, q)),
        counts=counts(flows),
        outages=outages(flows),
        hindrances=hindrances(flows),
        drawing=drawn(flows),
        sheet_width=WIDTH,
        q=q,
        charts="",
    )


@router.get("/dag/{dag}")
def of_dag(request: Request, dag: str, user: User, office: OfficeDep) -> Response:
    """The tab of a DAG: the page of its flow."""
    return _to_flow(request, dag, user, office, "")


@router.get("/dag/{dag}/run/{run:path}")
def of_run(request: Request, dag: str, run: str, user: User, office: OfficeDep) -> Response:
    """The tab of a run: what became of it. Ids of runs are a DAG's own: two DAGs with a schedule have the same."""
    return _to_flow(request, dag, user, office, part_of_run(dag, run))


def _to_flow(request: Request, dag: str, user: User, office: OfficeDep, rest: str) -> Response:
    refuse(may_see_dag(user, dag), f"see DAG {dag}")
    configured = office.flows.now()
    flow = flow_of_dag(configured, dag)
    if flow is None:
        return written(request, "foreign.html", dag=dag, trouble=told_of_file(configured, user).trouble)
    return RedirectResponse(f"{place_of(request, flow)}/{rest}")


def place_of(request: Request, flow: Flow) -> str:
    """The address of a flow's pages."""
    return f"{root_of(request)}/flow/{quote(flow.source)}/{quote(flow.target)}"


def part_of_run(dag: str, run: str) -> str:
    """Where the page of a run of one of a flow's DAGs is within the flow's."""
    whose = "" if dag.startswith(OWN) else f"dag/{quote(dag, safe='')}/"
    return f"{whose}run/{quote(run, safe='')}"


@router.get("/flow/{source}/{target}/")
def overview(request: Request, open_flow: FlowDep) -> Response:
    """How a flow stands: its figures, plots, newest runs, and what is refused."""
    worst = sorted(open_flow.seen.topics, key=_worst)[:8]
    return shown_page(request, "overview.html", open_flow, "overview", worst=worst, runs=merged(open_flow)[:8])


def _worst(row: TopicRow) -> tuple[float, int, str]:
    unknown = float("inf") if row.total.unknown else 0.0
    return -(unknown or row.total.seconds or 0.0), -row.total.records, row.topic


SORTS = {
    "topic": lambda row: row.topic,
    "records": lambda row: (-row.total.records, row.topic),
    "bytes": lambda row: (-row.total.bytes, row.topic),
    "seconds": _worst,
    "partitions": lambda row: (-row.total.partitions, row.topic),
}


@router.get("/flow/{source}/{target}/topics")
def topics(
    request: Request, open_flow: FlowDep, page: int = 1, q: str = "", sort: str = "seconds", paused: bool = False
) -> Response:
    """The flow's topics with their lag; `paused`: only those that are."""
    wanted = q.strip().lower()
    rows = [row for row in open_flow.seen.topics if wanted in row.topic.lower() and (row.paused or not paused)]
    rows.sort(key=SORTS.get(sort, SORTS["seconds"]))
    return shown_page(
        request, "topics.html", open_flow, "topics", cut=Cut.of(rows, page), q=q, sort=sort, paused=paused
    )


@router.get("/flow/{source}/{target}/topic/{topic}")
def one_topic(request: Request, open_flow: FlowDep, topic: str, page: int = 1) -> Response:
    """A topic's partitions with their lag."""
    row = next((row for row in open_flow.seen.topics if row.topic == topic), None)
    if row is None and open_flow.seen.lag_ms:
        raise HTTPException(
            status.HTTP_404_NOT_FOUND,
            f"Flow {open_flow.flow} copies no topic {topic}, or the source does not show it, as of "
            f"{moment(open_flow.seen.lag_ms)}",
        )
    parts: Sequence[PartitionLag] = open_flow.seen.lags.get(topic, ())
    return shown_page(request, "topic.html", open_flow, "topics", topic=topic, row=row, cut=Cut.of(parts, page))


@dataclass(frozen=True, slots=True, kw_only=True)
class EitherRun:
    """A run as the ledger, and as Airflow knows it."""

    name: str
    at_ms: int
    digest: RunDigest | None
    dag_run: DagRunRow | None
    badges: tuple[Badge, ...]
    why: str = ""
    """Why it failed before the ledger knew it."""


def merged(open_flow: OpenFlow) -> list[EitherRun]:
    """Runs of the ledger and of Airflow as one list, newest first."""
    ours = {run.run: run for run in open_flow.seen.runs}
    theirs = {run.run: run for run in open_flow.dag.runs}
    rows = []
    for name in {**theirs, **ours}:
        digest, dag_run = ours.get(name), theirs.get(name)
        begun = dag_run and (dag_run.started or dag_run.queued)
        at_ms = digest.started_ms if digest else int(begun.timestamp() * 1000) if begun else open_flow.seen.looked_ms
        badges = _badges((digest.state, open_flow.badge(digest)) if digest else None, dag_run)
        rows.append(EitherRun(name=name, at_ms=at_ms, digest=digest, dag_run=dag_run, badges=badges))
    return sorted(rows, key=lambda row: -row.at_ms)


def _badges(ours: tuple[PastState, Badge] | None, dag_run: DagRunRow | None) -> tuple[Badge, ...]:
    """Of a run by what the ledger says of it, if it knows it, and Airflow."""
    if ours is None:
        return (dag_badge(dag_run.state),) if dag_run else ()
    besides = beside_badge(ours[0], dag_run.state if dag_run else None)
    return (ours[1], besides) if besides else (ours[1],)


@router.get("/flow/{source}/{target}/runs")
def runs(request: Request, open_flow: FlowDep, user: User, page: int = 1) -> Response:
    """The flow's runs, newest first, and its verifications."""
    beside = runs_beside(user, open_flow.flow, "runs")
    cut = Cut.of(merged(open_flow), page)
    cut = replace(cut, rows=_with_reasons(user, open_flow.dag_id, cut.rows))
    return shown_page(request, "runs.html", open_flow, "runs", cut=cut, beside=beside)


def _with_reasons(user: User, dag: str, rows: Sequence[EitherRun]) -> list[EitherRun]:
    """Runs with why they failed, where the ledger does not know them, for who may see what tasks return."""
    failed = [row.name for row in rows if row.digest is None and row.dag_run and row.dag_run.state == "failed"]
    why = first_reasons(dag, failed) if failed and may_see_reasons(user, dag) else {}
    return [replace(row, why=why.get(row.name, "")) for row in rows]


@router.get("/flow/{source}/{target}/refusals")
def refusals(request: Request, open_flow: FlowDep, page: int = 1) -> Response:
    """What the runs that are known refused, and since when."""
    rows = recurring(open_flow.seen.runs)
    return shown_page(request, "refusals.html", open_flow, "runs", cut=Cut.of(rows, page), most=MOST_REFUSALS)
