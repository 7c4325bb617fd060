"""Actions: requests of a user that change something, or that need an answer of a cluster.

Each needs Airflow's permission for its DAG, comes from a page of this very server, and leaves a line in Airflow's audit
log. Those of features are in `ferry_airflow.page.features`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Annotated, Any, TypeVar

from fastapi import Body, HTTPException, Request, status
from pydantic import Field

from ferry.clock import wall_ms
from ferry.errors import BadInput
from ferry.page.cut import Cut
from ferry.reader.documents import JobStory, TopicRow
from ferry.reader.process import NoReader, Slow
from ferry.reader.questions import Begin, Look, OfJob, OfTopics
from ferry.words import ms_of
from ferry_airflow.naming import other_dags
from ferry_airflow.page.access import User, may_clear, refuse
from ferry_airflow.page.airflow_side import audit, clear_failed
from ferry_airflow.page.details import is_dealt
from ferry_airflow.page.filters import counted
from ferry_airflow.page.page_state import FlowDep, OfficeDep, OpenFlow
from ferry_airflow.page.pages import part_of_run, place_of
from ferry_airflow.page.rendering import WrongField, fragment
from ferry_airflow.page.starting import (
    Asked,
    PlaceAsked,
    RunAsked,
    acting_router,
    names_to_pick,
    only_checked,
    refuse_foreign,
    refuse_foreign_place,
    refuse_foreign_topics,
    topics_of,
    triggered,
    zoned,
)
from ferry_airflow.page.threads import in_page_threads, page_router

WAIT_SECONDS = 15.0
"""How long a request waits for what it has begun. The next request may meet another process of the API server.

It waits in the event loop: threads are few, and Airflow's other requests need them.
"""
LOOK_SECONDS, MOST_LOOK_SECONDS = 0.05, 0.5
SILENT = "The page's reader has not answered in time: check on the flow's page whether it was done, then try again"
T = TypeVar("T")
LONGEST_ID = 250
"""The longest id of a DAG or of a run in Airflow."""
TOPIC = Field(default="", max_length=249, pattern=r"^[A-Za-z0-9._-]*$")


router = page_router()
acting = acting_router()


class PauseAsked(Asked):
    """Pause a topic; an empty one is the whole flow."""

    topic: str = TOPIC
    why: str = Field(min_length=1, max_length=500)
    until: datetime | None = None


class ResumeAsked(Asked):
    """Resume a topic, or the flow."""

    topic: str = TOPIC


@acting.post("/run")
def run(request: Request, open_flow: FlowDep, asked: Annotated[RunAsked, Body()]) -> dict[str, Any]:
    """Start a run of the flow's DAG."""
    refuse(open_flow.rights.run, f"start runs of DAG {open_flow.dag_id}")
    refuse_foreign_topics(open_flow, asked)
    return triggered(request, open_flow, "ferry_run", open_flow.dag_id, topics_of(asked))


@acting.post("/dry-run", status_code=status.HTTP_202_ACCEPTED)
async def dry_run(request: Request, open_flow: FlowDep, asked: Annotated[RunAsked, Body()]) -> dict[str, Any]:
    """Plan a run and show the plan; nothing is written."""
    refuse(open_flow.rights.run, f"plan runs of DAG {open_flow.dag_id}")
    await in_page_threads(refuse_foreign_topics)(open_flow, asked)
    begin = Begin(who=open_flow.user, what="plan", event="ferry_dry_run", topics=tuple(asked.topics))
    return await begun(request, open_flow, topics_of(asked), begin)


@acting.post("/pause", status_code=status.HTTP_202_ACCEPTED)
async def pause(request: Request, open_flow: FlowDep, asked: Annotated[PauseAsked, Body()]) -> dict[str, Any]:
    """Pause the flow, or a topic, from the next plan on."""
    refuse(open_flow.rights.pause, f"change DAG {open_flow.dag_id}")
    now = wall_ms()
    until = 0 if asked.until is None else ms_of(zoned(asked.until))
    if asked.until is not None and until <= now:
        raise WrongField("until", "The end of the pause is in the past")
    if not asked.why.strip():
        raise WrongField("why", "Give the reason, for other operators")
    if asked.topic:
        refuse_foreign("topic", open_flow, asked.topic)
    begin = Begin(
        who=open_flow.user,
        what="pause",
        event="ferry_pause",
        topic=asked.topic,
        why=asked.why.strip(),
        since_ms=now,
        until_ms=until,
    )
    return await begun(request, open_flow, {"topic": asked.topic, "why": begin.why}, begin)


@acting.post("/resume", status_code=status.HTTP_202_ACCEPTED)
async def resume(request: Request, open_flow: FlowDep, asked: Annotated[ResumeAsked, Body()]) -> dict[str, Any]:
    """End a pause."""
    refuse(open_flow.rights.pause, f"change DAG {open_flow.dag_id}")
    begin = Begin(who=open_flow.user, what="resume", event="ferry_resume", topic=asked.topic)
    return await begun(request, open_flow, {"topic": asked.topic}, begin)


class ClearAsked(Asked):
    """Run the failed tasks of a run again, and those after them; if none failed, the skipped ones."""

    dag: str = Field(max_length=LONGEST_ID)
    run: str = Field(max_length=LONGEST_ID)


@acting.post("/clear")
def clear(request: Request, open_flow: FlowDep, user: User, asked: Annotated[ClearAsked, Body()]) -> dict[str, Any]:
    """Clear the failed tasks of a run of one of the flow's DAGs, or else the skipped ones, and all after them."""
    dag, run = asked.dag, asked.run
    if dag != open_flow.dag_id and dag not in other_dags(open_flow.flow):
        raise HTTPException(status.HTTP_404_NOT_FOUND, f"Flow {open_flow.flow} has no DAG {dag}")
    refuse(may_clear(user, dag), f"clear tasks of DAG {dag}")
    if only_checked(request):
        return {}
    try:
        count = clear_failed(dag, run)
    except BadInput as error:
        raise HTTPException(status.HTTP_409_CONFLICT, str(error)) from error
    audit(open_flow.user, "ferry_clear", dag, run, {"flow": str(open_flow.flow), "tasks": count})
    open_flow.ask(Look())
    page = f"{place_of(request, open_flow.flow)}/{part_of_run(dag, run)}"
    text = f"{counted(count, 'task')} of run {run} {'is' if count == 1 else 'are'} cleared: Airflow runs them again."
    return {"run": run, "dag": dag, "text": text, "links": [{"text": run, "href": page, "top": False}]}


@router.get("/api/flow/{source}/{target}/topics")
def topics_to_pick(open_flow: FlowDep, q: str = "", back: bool = False) -> dict[str, Any]:
    """Return topics of the source, or (`back`) their copies, with `q` in their names, each with its partitions.

    A copy has those of its source topic. Those of a topic that is repartitioned are not known here.
    """
    answer = open_flow.ask(OfTopics(q=q, sort="topic", copies=back))
    cut: Cut[TopicRow] | None = answer.got

    def partitions(row: TopicRow) -> int | None:
        return None if back and is_dealt(open_flow.config, row.topic, None) else row.total.partitions

    names = {row.target if back else row.topic: partitions(row) for row in cut.rows} if cut else {}
    return names_to_pick(answer, names, cut.total if cut else 0)


@acting.post("/offsets")
def place_checked(open_flow: FlowDep, asked: Annotated[PlaceAsked, Body()]) -> dict[str, Any]:
    """Return nothing, or what is wrong with a form that asks for an offset, while it is filled in."""
    refuse_foreign_place(open_flow, asked)
    return {}


@router.get("/api/job/{number}")
def job(request: Request, number: str, user: User, office: OfficeDep) -> dict[str, Any]:
    """Return the state of a job that the same user has begun."""
    found = office.reader.ask("", OfJob(job=number))
    story: JobStory | None = found.got
    if story is None:
        raise HTTPException(status.HTTP_503_SERVICE_UNAVAILABLE, found.error or SILENT)
    if story.who != user.get_name() or not story.job:
        raise HTTPException(status.HTTP_404_NOT_FOUND, "That is not known any more: the page shows what came of it")
    return _answer(request, story)


def _answer(request: Request, found: JobStory) -> dict[str, Any]:
    """Return the state of a job as JSON, with its plan as HTML."""
    html = fragment(request, "plan.html", plan=found.plan) if found.plan else ""
    if found.checks:
        html = fragment(request, "checks.html", checks=found.checks)
    return {"job": found.job, "done": found.done, "error": found.error, "text": found.text, "html": html}


router.include_router(acting)


async def begun(request: Request, open_flow: OpenFlow, extra: Mapping[str, Any], asked: Begin) -> dict[str, Any]:
    """Have the reader begin something for a user; return its state after WAIT_SECONDS at most."""
    if only_checked(request):
        return {}

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

    story = await awaited(begin, asked_again, lambda found: found.done)
    return await in_page_threads(_answer)(request, story)


async def awaited(ask: Callable[[], T], again: Callable[[T], T], is_done: Callable[[T], bool]) -> T:
    """Return the first answer that is done, or the last one after WAIT_SECONDS.

    `again` asks once more, by the last answer. Both are called in threads of the page; between two calls the request
    waits in the event loop.
    """
    found = await in_page_threads(ask)()
    until, rest = asyncio.get_running_loop().time() + WAIT_SECONDS, LOOK_SECONDS
    while not is_done(found) and asyncio.get_running_loop().time() < until:
        await asyncio.sleep(rest)
        rest = min(MOST_LOOK_SECONDS, 1.5 * rest)
        found = await in_page_threads(again)(found)
    return found
