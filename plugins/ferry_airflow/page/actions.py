"""Actions: requests of a user that change something, or that need an answer of a cluster.

Each needs Airflow's permission for its DAG, comes from a page of this very server, and leaves a line in Airflow's audit
log.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Literal
from urllib.parse import quote

from fastapi import APIRouter, Body, Depends, HTTPException, Request, status
from fastapi.concurrency import run_in_threadpool
from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

from ferry.clock import wall_ms
from ferry.config.flow.flow import refuse_foreign_topic
from ferry.config.settings import load
from ferry.errors import BadInput
from ferry.model import Flow
from ferry.model.evidence import EvidenceKind
from ferry.model.lane import LaneKind, lane_kind
from ferry.reader.documents import JobStory, Unknown
from ferry.reader.process import NoReader, Slow
from ferry.reader.questions import Begin, Look, OfJob, OfUnknown
from ferry_airflow.drill_fields import foreign_field, nowhere
from ferry_airflow.naming import backfill_dag_id, drill_dag_id, verify_dag_id
from ferry_airflow.page.access import User, refuse
from ferry_airflow.page.airflow_side import audit, dag_states, trigger
from ferry_airflow.page.origin import from_here
from ferry_airflow.page.page_state import FlowDep, OfficeDep, OpenFlow
from ferry_airflow.page.pages import part_of_run, place_of
from ferry_airflow.page.rendering import WANTED, WrongField, airflow_of, fragment
from ferry_airflow.page.shown import moment

WAIT_SECONDS = 15.0
"""How long a request waits for what it has begun. The next request may meet another process of the API server.

It waits in the event loop: threads are few, and Airflow's other requests need them.
"""
LOOK_SECONDS, MOST_LOOK_SECONDS = 0.05, 0.5
SILENT = "The page's reader has not answered in time: check on the flow's page whether it was done, then try again"
TOPIC = Field(default="", max_length=249, pattern=r"^[A-Za-z0-9._-]*$")


router = APIRouter(prefix="/api")
acting = APIRouter(prefix="/flow/{source}/{target}", dependencies=[Depends(from_here)])


class Asked(BaseModel):
    """The body of a request; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


class RunAsked(Asked):
    """Start a run, or plan one; no topics: all that the flow selects."""

    topics: list[Annotated[str, Field(min_length=1, max_length=249)]] = Field(default_factory=list, max_length=1000)


class VerifyAsked(RunAsked):
    """Compare what was copied."""

    mode: Literal["full", "sample", "compacted"] = "full"


class PauseAsked(Asked):
    """Pause a topic; an empty one is the whole flow."""

    topic: str = TOPIC
    why: str = Field(min_length=1, max_length=500)
    until: datetime | None = None


class ResumeAsked(Asked):
    """Resume a topic, or the flow."""

    topic: str = TOPIC


def _lane_of_windows(lane: str) -> str:
    if lane_kind(lane) not in (LaneKind.BACKFILL, LaneKind.APPEND):
        wanted = "backfill-NAME or append-NAME, where NAME has up to 40 letters, digits, hyphens and underscores"
        raise PydanticCustomError(WANTED, "{wanted}", {"wanted": wanted})
    return lane


class BackfillAsked(RunAsked):
    """Copy a window of history into a lane of its own."""

    lane: Annotated[str, AfterValidator(_lane_of_windows)] = "backfill-airflow"
    start: datetime
    end: datetime


class DrillAsked(RunAsked):
    """Rehearse a failover."""

    kind: Literal["tabletop", "shadow", "partial", "full"]
    groups: list[Annotated[str, Field(min_length=1, max_length=255)]] = Field(default_factory=list, max_length=1000)
    reason: str = Field(default="", max_length=500)


@acting.post("/run")
def run(request: Request, open_flow: FlowDep, asked: Annotated[RunAsked, Body()]) -> dict[str, Any]:
    """Start a run of the flow's DAG."""
    refuse(open_flow.rights.run, f"start runs of DAG {open_flow.dag_id}")
    _refuse_foreign_topics(open_flow, asked)
    return _triggered(request, open_flow, "ferry_run", open_flow.dag_id, _topics(asked))


@acting.post("/verify")
def verify(request: Request, open_flow: FlowDep, asked: Annotated[VerifyAsked, Body()]) -> dict[str, Any]:
    """Start a run of the DAG that compares both clusters."""
    dag = verify_dag_id(open_flow.flow)
    refuse(open_flow.rights.verify, f"start runs of DAG {dag}")
    _refuse_foreign_topics(open_flow, asked)
    return _triggered(request, open_flow, "ferry_verify", dag, {"mode": asked.mode, **_topics(asked)})


@acting.post("/backfill")
def backfill(request: Request, open_flow: FlowDep, asked: Annotated[BackfillAsked, Body()]) -> dict[str, Any]:
    """Start a run of the DAG of windows."""
    dag = backfill_dag_id(open_flow.flow)
    refuse(open_flow.rights.backfill, f"start runs of DAG {dag}")
    if not open_flow.has_window_dag:
        why = f"Flow {open_flow.flow} has no DAG of windows: its file says ferry.backfill.windows = none"
        raise HTTPException(status.HTTP_409_CONFLICT, why)
    start, end = _zoned(asked.start), _zoned(asked.end)
    if end <= start:
        raise WrongField(
            "end", f"The window ends at {end.isoformat()} and begins at {start.isoformat()}: exchange them"
        )
    _refuse_foreign_topics(open_flow, asked)
    window = {"from": start.isoformat(), "to": end.isoformat()}
    return _triggered(request, open_flow, "ferry_backfill", dag, {"lane": asked.lane, **window, **_topics(asked)})


@acting.post("/drill")
def drill(request: Request, open_flow: FlowDep, asked: Annotated[DrillAsked, Body()]) -> dict[str, Any]:
    """Start a run of the DAG of drills; one that touches production waits there for an approval."""
    dag = drill_dag_id(open_flow.flow)
    refuse(open_flow.rights.drill, f"start runs of DAG {dag}")
    if asked.kind == "partial" and not asked.topics and not asked.groups:
        raise WrongField("topics", "A partial drill needs topics or groups of the source: name one")
    foreign = foreign_field(EvidenceKind(asked.kind), {"topics": asked.topics, "groups": asked.groups})
    if foreign is not None:
        name, why = foreign
        raise WrongField(name, why[0].upper() + why[1:])
    _refuse_foreign_topics(open_flow, asked)
    _refuse_drill(open_flow, asked.kind)
    more = {key: value for key, value in (("groups", asked.groups), ("reason", asked.reason)) if value}
    return _triggered(request, open_flow, "ferry_drill", dag, {"kind": asked.kind, **_topics(asked), **more})


@acting.post("/dry-run", status_code=status.HTTP_202_ACCEPTED)
async def dry_run(request: Request, open_flow: FlowDep, asked: Annotated[RunAsked, Body()]) -> dict[str, Any]:
    """Plan a run and show the plan; nothing is written."""
    refuse(open_flow.rights.run, f"plan runs of DAG {open_flow.dag_id}")
    _refuse_foreign_topics(open_flow, asked)
    begin = Begin(who=open_flow.user, what="plan", event="ferry_dry_run", topics=tuple(asked.topics))
    return await _begun(request, open_flow, _topics(asked), begin)


@acting.post("/pause", status_code=status.HTTP_202_ACCEPTED)
async def pause(request: Request, open_flow: FlowDep, asked: Annotated[PauseAsked, Body()]) -> dict[str, Any]:
    """Pause the flow, or a topic, from the next plan on."""
    refuse(open_flow.rights.pause, f"change DAG {open_flow.dag_id}")
    now = wall_ms()
    until = 0 if asked.until is None else int(_zoned(asked.until).timestamp() * 1000)
    if asked.until is not None and until <= now:
        raise WrongField("until", "The end of the pause is in the past")
    if not asked.why.strip():
        raise WrongField("why", "Give the reason, for other operators")
    if asked.topic:
        _refuse_foreign("topic", open_flow, asked.topic)
    begin = Begin(
        who=open_flow.user,
        what="pause",
        event="ferry_pause",
        topic=asked.topic,
        why=asked.why.strip(),
        since_ms=now,
        until_ms=until,
    )
    return await _begun(request, open_flow, {"topic": asked.topic, "why": begin.why}, begin)


@acting.post("/resume", status_code=status.HTTP_202_ACCEPTED)
async def resume(request: Request, open_flow: FlowDep, asked: Annotated[ResumeAsked, Body()]) -> dict[str, Any]:
    """End a pause."""
    refuse(open_flow.rights.pause, f"change DAG {open_flow.dag_id}")
    begin = Begin(who=open_flow.user, what="resume", event="ferry_resume", topic=asked.topic)
    return await _begun(request, open_flow, {"topic": asked.topic}, begin)


@router.get("/job/{number}")
def job(request: Request, number: str, user: User, office: OfficeDep) -> dict[str, Any]:
    """Return the state of a job that the same user has begun."""
    found = office.reader.ask("", OfJob(job=number))
    story: JobStory | None = found.got
    if story is None:
        raise HTTPException(status.HTTP_503_SERVICE_UNAVAILABLE, found.error or SILENT)
    if story.who != user.get_name() or not story.job:
        raise HTTPException(status.HTTP_404_NOT_FOUND, "That is not known any more: the page shows what came of it")
    return _told(request, story)


def _told(request: Request, found: JobStory) -> dict[str, Any]:
    """Return the state of a job as JSON, with its plan as HTML."""
    html = fragment(request, "plan.html", plan=found.plan) if found.plan else ""
    return {"job": found.job, "done": found.done, "error": found.error, "text": found.text, "html": html}


router.include_router(acting)


def _refuse_foreign(field: str, open_flow: OpenFlow, topic: str) -> None:
    try:
        refuse_foreign_topic(open_flow.config, topic)
    except BadInput as error:
        raise WrongField(field, str(error)) from error


def _refuse_foreign_topics(open_flow: OpenFlow, asked: RunAsked) -> None:
    """Refuse topics that the flow does not copy, or that the source did not show at the last poll."""
    for topic in asked.topics:
        _refuse_foreign("topics", open_flow, topic)
    found = open_flow.ask(OfUnknown(topics=tuple(asked.topics))) if asked.topics else None
    if found and found.got and not found.is_asked:
        unknown: Unknown = found.got
        raise WrongField(
            "topics",
            f"At {moment(unknown.lag_ms)} cluster {open_flow.flow.source} had no topic {unknown.topic}, or did not "
            "show it: correct the name or, if it was created since, try again in a few seconds",
        )


def _refuse_drill(open_flow: OpenFlow, kind: str) -> None:
    """Refuse a drill whose DAG would fail because of the flow's file."""
    why = nowhere(open_flow.config, {})
    if why is None and kind == EvidenceKind.FULL:
        back = Flow(source=open_flow.flow.target, target=open_flow.flow.source)
        known = {flow.flow for flow in load(open_flow.path).flows}
        if back not in known:
            why = (
                f"a full drill goes back by flow {back}, which the file does not have: add {back}.enabled = true and "
                "its topics"
            )
    if why is not None:
        raise WrongField("kind", why)


def _topics(asked: RunAsked) -> dict[str, Any]:
    return {"topics": asked.topics} if asked.topics else {}


def _zoned(time: datetime) -> datetime:
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _triggered(
    request: Request, open_flow: OpenFlow, event: str, dag: str, conf_of_run: Mapping[str, Any]
) -> dict[str, Any]:
    state = dag_states({dag: 0})[dag]
    if not state.known:
        why = f"Airflow has no DAG {dag} now, and would not run it: see its import errors"
        raise HTTPException(status.HTTP_409_CONFLICT, why)
    try:
        started = trigger(dag, open_flow.user, conf_of_run)
    except BadInput as error:
        raise HTTPException(status.HTTP_409_CONFLICT, str(error)) from error
    audit(open_flow.user, event, dag, started, {"flow": str(open_flow.flow), **conf_of_run})
    open_flow.ask(Look())
    page = f"{place_of(request, open_flow.flow)}/{part_of_run(dag, started)}"
    links = [{"text": started, "href": page, "top": False}]
    text = f"Run {started} is queued."
    if state.paused:
        text = f"Run {started} is queued, and waits until DAG {dag} is unpaused in Airflow."
        links.append({"text": dag, "href": f"{airflow_of(request)}/dags/{quote(dag, safe='')}", "top": True})
    return {"run": started, "dag": dag, "waits": state.paused, "text": text, "links": links}


async def _begun(request: Request, open_flow: OpenFlow, extra: Mapping[str, Any], asked: Begin) -> dict[str, Any]:
    def begin() -> JobStory:
        audit(open_flow.user, asked.event, open_flow.dag_id, None, {"flow": str(open_flow.flow), **extra})
        try:
            found = open_flow.reader.act(str(open_flow.flow), asked)
        except Slow:
            raise HTTPException(status.HTTP_503_SERVICE_UNAVAILABLE, SILENT) from None
        except NoReader as error:
            raise HTTPException(status.HTTP_503_SERVICE_UNAVAILABLE, str(error)) from error
        story: JobStory | None = found.got
        if story is None:
            raise HTTPException(status.HTTP_503_SERVICE_UNAVAILABLE, found.error or SILENT)
        if story.refused:
            raise HTTPException(status.HTTP_429_TOO_MANY_REQUESTS, story.refused)
        return story

    def asked_again(known: JobStory) -> JobStory:
        found: JobStory | None = open_flow.ask(OfJob(job=known.job)).got
        return found if found is not None and found.job else known

    story = await run_in_threadpool(begin)
    until, rest = asyncio.get_running_loop().time() + WAIT_SECONDS, LOOK_SECONDS
    while not story.done and asyncio.get_running_loop().time() < until:
        await asyncio.sleep(rest)
        rest = min(MOST_LOOK_SECONDS, 1.5 * rest)
        story = await run_in_threadpool(asked_again, story)
    return await run_in_threadpool(_told, request, story)
