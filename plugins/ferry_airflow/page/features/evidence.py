"""The reports of drills and switches about a flow: those of others may be in the same folder, and stay hidden."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import HTTPException, Path, Request, status
from fastapi.responses import Response

from ferry.features.evidence.rules.chain import page_name, pdf_name, report_name
from ferry.features.evidence.rules.page import OfReport, OfReports, ReportsStory
from ferry_airflow.page.access import User
from ferry_airflow.page.dag_runs import runs_beside
from ferry_airflow.page.details import NOTHING
from ferry_airflow.page.page_state import FlowDep, OfficeDep, verbs_of
from ferry_airflow.page.pages import shown_page
from ferry_airflow.page.starting import INT64
from ferry_airflow.page.tabs import Tab
from ferry_airflow.page.threads import page_router

router = page_router(prefix="/flow/{source}/{target}")
TABS = (Tab(place=70, name="reports"),)

SANDBOX = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'"
"""Another process may have written a report into the folder: its page is shown, and can do nothing."""


@router.get("/reports")
def reports(request: Request, open_flow: FlowDep, user: User, office: OfficeDep, page: int = 1) -> Response:
    """Show reports of drills and switches, newest first. An unreadable one is listed: it breaks the chain of all."""
    answer = open_flow.ask(OfReports(page=page))
    story: ReportsStory | None = answer.got
    lists: dict[str, Any] = {
        "cut": story.reports if story else NOTHING,
        "others": story.others if story else 0,
        "pdf_of": _pdf_of,
        "beside": runs_beside(user, open_flow.flow, "reports"),
        "verbs": verbs_of(open_flow, office),
    }
    return shown_page(request, "reports.html", open_flow, "reports", answer=answer, **lists)


@router.get("/report/{number}")
def one_report(
    open_flow: FlowDep, number: Annotated[int, Path(ge=0, le=INT64)], form: Literal["html", "pdf"] = "html"
) -> Response:
    """Return a report's page as it is in the folder, which may run no script and load nothing; or its PDF, to be saved.

    A PDF that the folder lacks is drawn now, without a signature. The answer is 404 if the report does not exist, is
    about another flow or cannot be read, or if its PDF cannot be drawn.
    """
    headers = {"Content-Security-Policy": SANDBOX}
    if form == "html":
        return Response(_shown(open_flow, number), media_type="text/html; charset=utf-8", headers=headers)
    headers["Content-Disposition"] = f'attachment; filename="{_pdf_of(number)}"'
    return Response(_shown(open_flow, number, is_pdf=True), media_type="application/pdf", headers=headers)


def _pdf_of(number: int) -> str:
    """Return the name of a report's PDF."""
    return pdf_name(report_name(number))


def _shown(open_flow: FlowDep, number: int, *, is_pdf: bool = False) -> bytes:
    """Return the page or the PDF of a report. Raises HTTPException if it is not there, or not read yet."""
    found = open_flow.ask(OfReport(number=number, is_pdf=is_pdf))
    if found.waiting:
        why = f"{page_name(report_name(number))} is being read; this page loads itself again."
        if is_pdf:  # a browser that saves a file keeps the page from which it came
            why = f"{_pdf_of(number)} is being read: the browser saves it in a moment, and this page stays."
        raise HTTPException(status.HTTP_503_SERVICE_UNAVAILABLE, why, headers={"Refresh": "1", "Retry-After": "1"})
    if found.got is None:
        what = f"PDF of report {number}" if is_pdf else f"report {number}"
        why = found.error or f"Flow {open_flow.flow} has no {what} that can be read"
        raise HTTPException(status.HTTP_404_NOT_FOUND, why)
    content: bytes = found.got.content
    return content
