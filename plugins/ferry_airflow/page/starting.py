"""Requests of a user that start a run of a DAG: their bodies, what is refused, and the answer."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import APIRouter, Depends, HTTPException, Request, status
from pydantic import BaseModel, ConfigDict, Field

from ferry.config.flow.flow import refuse_foreign_topic
from ferry.errors import BadInput
from ferry.model import Flow
from ferry.reader.documents import Answer, TopicStory, Unknown
from ferry.reader.questions import Look, OfTopic, OfUnknown
from ferry_airflow.naming import other_dags
from ferry_airflow.page.airflow_side import audit, dag_states, trigger
from ferry_airflow.page.dag_runs import kind_of, needs_approval
from ferry_airflow.page.filters import moment
from ferry_airflow.page.origin import from_here
from ferry_airflow.page.page_state import OpenFlow
from ferry_airflow.page.pages import part_of_run, place_of
from ferry_airflow.page.rendering import WrongField, airflow_of
from ferry_airflow.page.threads import page_router

INT32, INT64 = 2**31 - 1, 2**63 - 1
"""The largest partition and the largest offset."""


def acting_router() -> APIRouter:
    """Return a router for actions on a flow. It refuses requests that come from a page of another server."""
    return page_router(prefix="/api/flow/{source}/{target}", dependencies=[Depends(from_here)])


class Asked(BaseModel):
    """The body of a request; unknown fields are refused."""

    model_config = ConfigDict(extra="forbid")


class RunAsked(Asked):
    """Start a run, or plan one; no topics: all that the flow selects."""

    topics: list[Annotated[str, Field(min_length=1, max_length=249)]] = Field(default_factory=list, max_length=1000)


def topics_of(asked: RunAsked) -> dict[str, Any]:
    return {"topics": asked.topics} if asked.topics else {}


def zoned(time: datetime) -> datetime:
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def refuse_foreign(field: str, open_flow: OpenFlow, topic: str) -> None:
    try:
        refuse_foreign_topic(open_flow.config, topic)
    except BadInput as error:
        raise WrongField(field, str(error)) from error


def refuse_foreign_topics(open_flow: OpenFlow, asked: RunAsked) -> None:
    """Refuse topics that the flow does not copy, or that the source did not show at the last poll."""
    for topic in asked.topics:
        refuse_foreign("topics", open_flow, topic)
    found = open_flow.ask(OfUnknown(topics=tuple(asked.topics))) if asked.topics else None
    if found and found.got and not found.is_asked:
        unknown: Unknown = found.got
        raise WrongField(
            "topics",
            f"At {moment(unknown.lag_ms)} cluster {open_flow.flow.source} had no topic {unknown.topic}, or did not "
            "show it: correct the name or, if it was created since, try again in a few seconds",
        )


def refuse_foreign_partition(field: str, open_flow: OpenFlow, topic: str, partition: int) -> None:
    """Refuse a partition of a source topic that the topic did not have at the last poll.

    Nothing is refused before a poll, nor while the page cannot look: the topic may have grown since.
    """
    seen = open_flow.seen
    if not seen.lag_ms or seen.troubles or seen.hindrances:
        return
    story: TopicStory | None = open_flow.ask(OfTopic(topic=topic)).got
    row = story.row if story else None
    if row is not None and partition >= row.total.partitions:
        raise WrongField(
            field,
            f"At {moment(seen.lag_ms)} topic {topic} of {open_flow.flow.source} had the partitions 0 to "
            f"{row.total.partitions - 1}: correct the number or, if it has grown since, try again in a few seconds",
        )


class PlaceAsked(Asked):
    """An offset of a partition of the source, or (`back`) of the target."""

    topic: str = Field(min_length=1, max_length=249, pattern=r"^[A-Za-z0-9._-]+$")
    partition: int = Field(ge=0, le=INT32)
    offset: int = Field(ge=0, le=INT64)
    back: bool = False


def refuse_foreign_place(open_flow: OpenFlow, asked: PlaceAsked) -> None:
    """Refuse a partition that a topic of the source does not have.

    No topic is refused: the flow may have copied it under an earlier file. Nor is an offset, because logs grow. The
    answer names what is not there.
    """
    if not asked.back:
        refuse_foreign_partition("partition", open_flow, asked.topic, asked.partition)


def names_to_pick(answer: Answer, names: Mapping[str, int | None], total: int) -> dict[str, Any]:
    """Return names that a form offers, each with its number of partitions if that is known, of `total` there are."""
    return {"names": [*names.items()], "total": total, "waiting": answer.waiting, "error": answer.error}


def only_checked(request: Request) -> bool:
    """Return whether a request only asks what would be refused, while its form is filled in (`?check=true`)."""
    return request.query_params.get("check") == "true"


def triggered(
    request: Request, open_flow: OpenFlow, event: str, dag: str, conf_of_run: Mapping[str, Any]
) -> dict[str, Any]:
    """Start a run of a DAG, once all else of the request was checked; nothing if that is all that was asked for."""
    if only_checked(request):
        return {}
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
    in_airflow = f"{airflow_of(request)}/dags/{quote(dag, safe='')}"
    links = [{"text": started, "href": page, "top": False}]
    text = f"A {_named(open_flow.flow, dag, conf_of_run)} of {open_flow.flow} is queued: {started}."
    if state.paused:
        text += f" It waits until DAG {dag} is unpaused in Airflow."
        links.append({"text": dag, "href": in_airflow, "top": True})
    is_asked = needs_approval(open_flow.flow, dag, conf_of_run)
    if is_asked:
        text += " It waits for an approval after its checks: answer it under Required Actions in Airflow."
        actions = f"{in_airflow}/runs/{quote(started, safe='')}/required_actions"
        links.append({"text": "Required Actions", "href": actions, "top": True})
    return {"run": started, "dag": dag, "waits": state.paused or is_asked, "text": text, "links": links}


def _named(flow: Flow, dag: str, conf: Mapping[str, Any]) -> str:
    """Return what a run is: a run of the flow, or the kind of a run of another of its DAGs."""
    kind = other_dags(flow).get(dag)
    if kind is None:
        return "run"
    return f"dry run of a {kind}" if conf.get("dry_run") else kind_of(kind, conf)
