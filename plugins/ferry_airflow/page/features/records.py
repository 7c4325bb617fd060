"""Shows one record of the source next to its copy: what applications wrote, to users who may see it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import Body, HTTPException, Request, status
from pydantic import Field

from ferry.features.records.rules.one_record import SAID
from ferry.features.records.rules.page import OfRecord, RecordStory
from ferry.features.records.settings import PAGE_RECORDS
from ferry.model import TopicPartition
from ferry.reader.documents import Answer
from ferry.reader.process import NoReader, Slow
from ferry_airflow.page import actions
from ferry_airflow.page.access import RECORDS, refuse
from ferry_airflow.page.airflow_side import audit
from ferry_airflow.page.page_state import FlowDep, OpenFlow
from ferry_airflow.page.rendering import fragment
from ferry_airflow.page.starting import PlaceAsked, acting_router, only_checked, refuse_foreign_place
from ferry_airflow.page.threads import in_page_threads

router = acting_router()


class RecordAsked(PlaceAsked):
    """Show the record at an offset of the source, or (`back`) of the target, and the one of the other side."""

    style: Literal["text", "json", "hex"] = "text"
    lane: str = Field(default="", max_length=249)


@router.post("/record")
async def record(request: Request, open_flow: FlowDep, asked: Annotated[RecordAsked, Body()]) -> dict[str, Any]:
    """Read a record and its copy, and show both; each request is in the audit log."""
    _refuse(open_flow)
    refuse_foreign_place(open_flow, asked)
    if only_checked(request):
        return {}
    question = OfRecord(
        place=TopicPartition(topic=asked.topic, partition=asked.partition),
        offset=asked.offset,
        backward=asked.back,
        lane=asked.lane,
        style=asked.style,
    )
    await in_page_threads(_audit)(open_flow, asked)
    answer = await _answered(open_flow, question)
    if answer.error:
        return {"done": True, "error": answer.error, "html": ""}
    if answer.is_asked:
        return {"done": False, "error": "The clusters have not answered yet: ask again in a moment", "html": ""}
    story: RecordStory | None = answer.got
    html = await in_page_threads(fragment)(request, "record.html", story=story, said=SAID) if story else ""
    return {"done": True, "error": "", "html": html}


def _refuse(open_flow: OpenFlow) -> None:
    """Raise 403 unless the file shows records and the user may see them."""
    if not open_flow.shows_records:
        why = f"The file does not show records of flow {open_flow.flow}: set {PAGE_RECORDS.name} = true"
        raise HTTPException(status.HTTP_403_FORBIDDEN, why)
    refuse(open_flow.rights.records, f"see records, which takes GET on {RECORDS}")


def _audit(open_flow: OpenFlow, asked: RecordAsked) -> None:
    where = {"topic": asked.topic, "partition": asked.partition, "offset": asked.offset, "lane": asked.lane}
    side = open_flow.flow.target if asked.back else open_flow.flow.source
    extra = {"flow": str(open_flow.flow), "cluster": side, **where}
    audit(open_flow.user, "ferry_record", open_flow.dag_id, None, extra)


async def _answered(open_flow: OpenFlow, question: OfRecord) -> Answer:
    """Ask the reader until it has a new answer, for actions.WAIT_SECONDS at most; nothing of it is kept here."""

    def ask() -> Answer:
        try:
            return open_flow.reader.act(str(open_flow.flow), question)
        except Slow:
            return Answer(is_asked=True)
        except NoReader as error:
            raise HTTPException(status.HTTP_503_SERVICE_UNAVAILABLE, str(error)) from error

    return await actions.awaited(ask, lambda _: ask(), lambda found: not found.is_asked)
