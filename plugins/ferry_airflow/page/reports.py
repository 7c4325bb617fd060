"""The reports of drills and switches that tell of a flow: others' may lie in the same folder, and stay hidden."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Path, Request, status
from fastapi.responses import Response

from ferry.config.flow.flow import FlowConfig
from ferry.errors import BadInput, Corrupt
from ferry.features.evidence.acts.folder import Checked, check_folder
from ferry.features.evidence.acts.store import store_of
from ferry.features.evidence.rules.chain import page_name, report_name
from ferry.features.evidence.rules.codec import decode_report
from ferry.model import Flow
from ferry.model.evidence import EvidenceKind, EvidenceReport
from ferry_airflow.page.access import User
from ferry_airflow.page.dag_runs import runs_beside
from ferry_airflow.page.deep import INT64, STALE_SECONDS
from ferry_airflow.page.office import FlowDep
from ferry_airflow.page.pages import Cut, shown_page

router = APIRouter(prefix="/flow/{source}/{target}")

SANDBOX = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'"
"""A report is a page that somebody else may have written into the folder: it is shown, and can do nothing."""


def tells_of(evidence: EvidenceReport, flow: Flow) -> bool:
    """Whether a report is for who may see this flow.

    Of a failback the report names the way that clients took, which is against the flow that was failed back.
    """
    return evidence.flow == flow or (evidence.kind is EvidenceKind.FAILBACK and evidence.flow == flow.back)


@router.get("/reports")
def reports(request: Request, open_flow: FlowDep, user: User, page: int = 1) -> Response:
    """Reports of drills and switches, newest first. One that cannot be read is listed: it breaks the chain of all."""
    work = partial(_reports, open_flow.config)
    found = open_flow.watcher.answer_aside(("reports",), work, fresh_seconds=STALE_SECONDS)
    rows: list[Checked] = list(reversed(found.got or ()))
    own = [one for one in rows if one.kept.report is None or tells_of(one.kept.report.evidence, open_flow.flow)]
    lists: dict[str, Any] = {
        "cut": Cut.of(own, page),
        "others": len(rows) - len(own),
        "beside": runs_beside(user, open_flow.flow, "reports"),
    }
    return shown_page(request, "reports.html", open_flow, "reports", answer=found, **lists)


@router.get("/report/{number}")
def one_report(open_flow: FlowDep, number: Annotated[int, Path(ge=0, le=INT64)]) -> Response:
    """A report's page as it lies in the folder; it may run no script and load nothing.

    404 alike for one that is not there, that tells of another flow, and of which nobody can read whose it is.
    """
    work = partial(_page_of, open_flow.config, report_name(number))
    found = open_flow.watcher.answer_aside(("report", number), work, fresh_seconds=STALE_SECONDS)
    if found.waiting:
        why = f"{page_name(report_name(number))} is being read; this page loads itself again."
        raise HTTPException(status.HTTP_503_SERVICE_UNAVAILABLE, why, headers={"Refresh": "1", "Retry-After": "1"})
    if found.got is None:
        why = found.error or f"Flow {open_flow.flow} has no report {number} that can be read"
        raise HTTPException(status.HTTP_404_NOT_FOUND, why)
    return Response(found.got, media_type="text/html; charset=utf-8", headers={"Content-Security-Policy": SANDBOX})


def _reports(flow: FlowConfig) -> list[Checked]:
    return check_folder(store_of(flow.report.folder), None)


def _page_of(flow: FlowConfig, name: str) -> bytes | None:
    """None where this flow has no such report."""
    store = store_of(flow.report.folder)
    try:
        report = decode_report(store.read(name), name)
        return store.read(page_name(name)) if tells_of(report.evidence, flow.flow) else None
    except (OSError, BadInput, Corrupt):
        return None
