"""Pages to read: the list of flows, and the pages of one. Every list is cut on the server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import quote

from fastapi import HTTPException, Request, status
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from ferry.clock import wall_ms
from ferry.model import Flow
from ferry.page.cut import Cut
from ferry.reader.documents import Answer, Line, TopicStory
from ferry.reader.limits import MOST_REFUSALS
from ferry.reader.questions import OfClusters, OfRefusals, OfTopic, OfTopics
from ferry_airflow.naming import OWN, drill_dag_id
from ferry_airflow.page.access import User, may_clear, may_see_dag, refuse
from ferry_airflow.page.airflow_side import UNDER_WAY, DagRunRow, DagState, dag_states
from ferry_airflow.page.chart_map import drawn
from ferry_airflow.page.chart_shapes import WIDTH
from ferry_airflow.page.clients import clients_of, clients_of_all
from ferry_airflow.page.cluster_cards import cards_of, silent_now
from ferry_airflow.page.dag_runs import approvals, first_reasons, may_see_reasons, reasons_of, runs_beside
from ferry_airflow.page.files import charts_version
from ferry_airflow.page.filters import moment, ms_of
from ferry_airflow.page.flow_summary import SORTS, chosen, counts, hindrances, outages, sorted_by, sorted_by_use
from ferry_airflow.page.page_state import (
    FlowDep,
    OfficeDep,
    OpenFlow,
    flow_of_dag,
    office_of,
    verbs_of,
    visible,
    visible_file,
    with_failures,
    with_runs,
)
from ferry_airflow.page.rendering import root_of, written
from ferry_airflow.page.retries import with_retries
from ferry_airflow.page.retry_words import Retry, before_of, now_of
from ferry_airflow.page.run_list import EitherRun, Fold, chosen_runs, folded, merged, words_of
from ferry_airflow.page.run_words import DAG_CONDITIONS, RETRYING
from ferry_airflow.page.sparkline import sparklines
from ferry_airflow.page.tabs import Tab
from ferry_airflow.page.threads import page_router
from ferry_airflow.page.time_range import ALL, CHOICES, Chosen, TimeRange, since

router = page_router()
TABS = (
    Tab(place=10, name="overview", path="/"),
    Tab(place=20, name="topics"),
    Tab(place=30, name="runs"),
)

WORST = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Retried:
    """The tasks of an active run that Airflow tries again, as its card shows them."""

    dag: str
    run: str
    tasks: tuple[tuple[Retry, str], ...]
    """Each with a sentence on the try that is under way or comes next; empty: the head of the page has it."""
    silent: tuple[Line, ...]
    """The clusters and brokers that do not answer at present."""


DAG_RUNS_AT_A_GLANCE = 5
"""Airflow's runs of a flow that the list reads: after the one that runs, some may be queued."""


def shown_page(
    request: Request,
    name: str,
    open_flow: OpenFlow,
    tab: str,
    *,
    lane: str = "",
    span: Chosen = ALL,
    has_why: bool = False,
    retried: Retried | None = None,
    **what: Any,
) -> HTMLResponse:
    """Return a page of a flow; `lane`: another lane, whose runs and receipts have addresses of their own (`base`).

    `span` is the time that its charts show. `has_why`: it shows why the run failed of which the flow's state is.
    `retried`: the tasks of the run under way that it shows.
    """
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
        tabs=office_of(request).tabs,
        charts=charts_version(),
        dag_conditions=DAG_CONDITIONS,
        span=span,
        spans=CHOICES,
        has_why=has_why,
        retried=retried,
        **what,
    )


@router.get("/")
def home(request: Request, user: User, office: OfficeDep, q: str = "", sort: str = "") -> Response:
    """Show the map of clusters, and the list of flows, the worst first; `q`: a part of their name or state.

    `sort`: a key of `SORTS`, by which they are sorted instead.
    """
    configured, flows = visible(office, user, runs=DAG_RUNS_AT_A_GLANCE)
    return written(
        request,
        "home.html",
        configured=configured,
        flows=flows,
        rows=sorted_by(chosen(flows, q), sort),
        counts=counts(flows),
        outages=outages(flows),
        hindrances=hindrances(flows),
        drawing=drawn(sorted_by_use(flows)),
        asks=approvals(user, [one.flow for one in flows]),
        clients=clients_of_all(flows, configured.enabled),
        sheet_width=WIDTH,
        reasons=reasons_in_list(user, flows),
        q=q,
        sort=sort if sort in SORTS else "",
        charts="",
    )


@router.get("/dag/{dag}")
def of_dag(request: Request, dag: str, user: User, office: OfficeDep) -> Response:
    """Redirect the tab of a DAG to the page of its flow."""
    return _to_flow(request, dag, user, office, "")


@router.get("/dag/{dag}/run/{run:path}")
def of_run(request: Request, dag: str, run: str, user: User, office: OfficeDep) -> Response:
    """Redirect the tab of a run to its page.

    Run ids are unique within a DAG only: two DAGs with a schedule share them.
    """
    return _to_flow(request, dag, user, office, part_of_run(dag, run))


def _to_flow(request: Request, dag: str, user: User, office: OfficeDep, rest: str) -> Response:
    refuse(may_see_dag(user, dag), f"see DAG {dag}")
    configured = office.flows.now()
    flow = flow_of_dag(configured, dag)
    if flow is None:
        return written(request, "foreign.html", dag=dag, trouble=visible_file(configured, user).trouble)
    return RedirectResponse(f"{place_of(request, flow)}/{rest}")


def place_of(request: Request, flow: Flow) -> str:
    """Return the address of a flow's pages."""
    return f"{root_of(request)}/flow/{quote(flow.source)}/{quote(flow.target)}"


def part_of_run(dag: str, run: str) -> str:
    """Return where the page of a run of one of a flow's DAGs is within the flow's."""
    whose = "" if dag.startswith(OWN) else f"dag/{quote(dag, safe='')}/"
    return f"{whose}run/{quote(run, safe='')}"


@router.get("/flow/{source}/{target}/")
def overview(request: Request, open_flow: FlowDep, user: User, office: OfficeDep, span: TimeRange = ALL) -> Response:
    """Show the state of a flow: its figures, plots, newest runs, and what is refused."""
    answer, asked = open_flow.ask(OfTopics(size=WORST)), open_flow.ask(OfClusters())
    worst = answer.got.rows if answer.got else ()
    ended = (one for one in open_flow.dag.runs if one.state not in UNDER_WAY)
    failed = next((one for one in ended if one.run == open_flow.standing.run), None)
    reasons, last = reasons_for(user, open_flow.dag_id, failed), open_flow.ended_run
    is_its = last is not None and failed is not None and last.run == failed.run
    under_way = open_flow.dag.under_way
    below = [one.message for one in last.refusals] + [text for _, text in last.undone] if last and is_its else []
    return shown_page(
        request,
        "overview.html",
        open_flow,
        "overview",
        span=span,
        answer=answer,
        worst=worst,
        sparks=sparklines(worst),
        runs=folded(_all_runs(open_flow))[:WORST],
        has_why=bool(reasons),
        retried=retried_of(open_flow, open_flow.dag_id, under_way, in_head=True, asked=asked),
        reasons=beyond(reasons, below),
        clears=may_continue(open_flow, user, open_flow.dag_id, failed),
        asks=approvals(user, [open_flow.flow]).get(open_flow.flow, ()),
        clients=clients_of(open_flow, office, user),
        cards=cards_of(open_flow.flow, asked, open_flow.seen.troubles, wall_ms()),
        are_asked=asked.waiting,
        verbs=verbs_of(open_flow, office),
    )


def with_own_retries(user: User, dag: str, row: DagRunRow) -> DagRunRow:
    """Return a run of another of the flow's DAGs with its tasks that are tried again, as far as a user may see them."""
    return with_retries(user, {dag: DagState(known=True, runs=(row,))})[dag].runs[0]


def retried_of(
    open_flow: OpenFlow, dag: str, row: DagRunRow | None, *, in_head: bool, asked: Answer | None = None
) -> Retried | None:
    """Return the tasks of a run that are tried again; None if there are none, or the user may not see them.

    `in_head`: the page shows in its head which try of the first one is under way. `asked`: how the clusters are; if it
    is not given, the reader is asked.
    """
    if row is None or row.retry is None:
        return None
    state = open_flow.dag if dag == open_flow.dag_id else dag_states({dag: 0})[dag]
    sentences = [
        ""
        if in_head and one is row.retry
        else f"{now_of(one, paused=state.paused, now_ms=wall_ms())} {before_of(one)}."
        for one in row.retries
    ]
    asked = asked or open_flow.ask(OfClusters())
    silent = silent_now(open_flow.flow, open_flow.seen.troubles, asked, wall_ms())
    return Retried(dag=dag, run=row.run, tasks=tuple(zip(row.retries, sentences, strict=True)), silent=silent)


def reasons_for(user: User, dag: str, dag_run: DagRunRow | None) -> tuple[tuple[str, str], ...]:
    """Return why tasks of a run failed, if the user may see what they return."""
    if dag_run is None or dag_run.state == "success" or not may_see_reasons(user, dag):
        return ()
    return reasons_of(dag, dag_run.run)


def beyond(reasons: Sequence[tuple[str, str]], shown: Sequence[str]) -> list[tuple[str, str]]:
    """Return the reasons that repeat none of the sentences which the page shows elsewhere."""
    return [(task, why) for task, why in reasons if not any(one and one in why for one in shown)]


def reasons_in_list(user: User, flows: Sequence[OpenFlow]) -> dict[Flow, str]:
    """Return by flow why its state is so, if the user may see it: the first reason of a failed run, or of a try."""
    retries = ((one.flow, one.retry_of(one.standing.run)) for one in flows if one.standing.word == RETRYING.word)
    tried = {flow: retry.why for flow, retry in retries if retry and retry.why}
    failed = {
        (one.dag_id, run.run): one.flow
        for one in flows
        for run in one.dag.runs
        if run.run == one.standing.run and run.state == "failed" and may_see_reasons(user, one.dag_id)
    }
    return tried | {failed[at]: why for at, why in first_reasons(list(failed)).items()}


def may_continue(open_flow: OpenFlow, user: User, dag: str, dag_run: DagRunRow | None) -> bool:
    """Return whether a run may be cleared to continue from where it failed.

    A drill that is cleared is refused. Once a newer micro-run has begun, it copies what an older one did not. A run
    that was asked for something that does not exist would fail again.
    """
    if dag_run is None or dag_run.state != "failed" or dag_run.asked_wrong or dag == drill_dag_id(open_flow.flow):
        return False
    if dag != open_flow.dag_id:
        return may_clear(user, dag)
    newest, last = open_flow.dag.runs[:1], open_flow.seen.last_run
    begun_ms = ms_of(dag_run.started or dag_run.queued) or 0
    is_newest = bool(newest) and newest[0].run == dag_run.run
    is_last = last is None or last.run == dag_run.run or last.started_ms < begun_ms
    return is_newest and is_last and open_flow.rights.clear


@router.get("/flow/{source}/{target}/topics")
def topics(
    request: Request, open_flow: FlowDep, page: int = 1, q: str = "", sort: str = "seconds", paused: bool = False
) -> Response:
    """Show the flow's topics with their lag; `paused`: only those that are."""
    answer = open_flow.ask(OfTopics(page=page, q=q, sort=sort, paused=paused))
    what: dict[str, Any] = {
        "answer": answer,
        "cut": answer.got or Cut.of((), 1),
        "sparks": sparklines(answer.got.rows if answer.got else ()),
        "q": q,
        "sort": sort,
        "paused": paused,
    }
    return shown_page(request, "topics.html", open_flow, "topics", **what)


@router.get("/flow/{source}/{target}/topic/{topic}")
def one_topic(request: Request, open_flow: FlowDep, topic: str, page: int = 1, span: TimeRange = ALL) -> Response:
    """Show a topic's partitions with their lag."""
    answer = open_flow.ask(OfTopic(topic=topic, page=page))
    story: TopicStory = answer.got or TopicStory(row=None, parts=Cut.of((), 1))
    if answer.got and story.row is None and open_flow.seen.lag_ms:
        raise HTTPException(
            status.HTTP_404_NOT_FOUND,
            f"Flow {open_flow.flow} copies no topic {topic}, or the source does not show it, as of "
            f"{moment(open_flow.seen.lag_ms)}",
        )
    what: dict[str, Any] = {"answer": answer, "topic": topic, "row": story.row, "cut": story.parts}
    return shown_page(request, "topic.html", open_flow, "topics", span=span, **what)


@router.get("/flow/{source}/{target}/runs")
def runs(
    request: Request,
    open_flow: FlowDep,
    user: User,
    page: int = 1,
    state: str = "",
    copied: bool = False,
    span: TimeRange = ALL,
) -> Response:
    """Show the flow's runs, newest first, and its verifications; of one `state`, and those that `copied` something."""
    within = chosen_runs(_all_runs(with_failures(open_flow)), state="", copied=copied, since_ms=since(span, wall_ms()))
    cut = Cut.of(folded(chosen_runs(within, state=state, copied=False, since_ms=0)), page)
    cut = replace(cut, rows=_with_reasons(user, open_flow.dag_id, cut.rows))
    what: dict[str, Any] = {"cut": cut, "words": words_of(within), "state": state, "copied": copied}
    beside = runs_beside(user, open_flow.flow, "runs")
    return shown_page(request, "runs.html", open_flow, "runs", span=span, beside=beside, **what)


def _all_runs(open_flow: OpenFlow) -> list[EitherRun]:
    """Return the runs of the ledger and of Airflow, each with its state in both."""
    return merged(with_runs(open_flow, [run.run for run in open_flow.seen.runs]))


def _with_reasons(user: User, dag: str, rows: Sequence[Fold]) -> list[Fold]:
    """Return runs with why they failed in Airflow, if the user may see what tasks return."""
    failed = [(dag, run.name) for row in rows for run in row if run.is_failed]
    why = first_reasons(failed) if failed and may_see_reasons(user, dag) else {}
    return [tuple(replace(run, why=why.get((dag, run.name), "")) for run in row) for row in rows]


@router.get("/flow/{source}/{target}/refusals")
def refusals(request: Request, open_flow: FlowDep, page: int = 1) -> Response:
    """Show what the known runs refused, and since when."""
    answer = open_flow.ask(OfRefusals(page=page))
    what: dict[str, Any] = {"answer": answer, "cut": answer.got or Cut.of((), 1), "most": MOST_REFUSALS}
    return shown_page(request, "refusals.html", open_flow, "runs", **what)
