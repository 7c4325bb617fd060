"""Answers questions of the operator's page about reports, from their folder."""

from __future__ import annotations

from ferry.config.flow.flow import FlowConfig
from ferry.errors import BadInput, Corrupt
from ferry.features.evidence.acts.folder import Checked, check_folder
from ferry.features.evidence.acts.store import store_of
from ferry.features.evidence.rules.chain import page_name, pdf_name, report_name
from ferry.features.evidence.rules.codec import decode_report
from ferry.features.evidence.rules.page import OfReport, OfReports, ReportPage, ReportsStory, report_line, tells_of
from ferry.page.cut import Cut, lines
from ferry.page.part import FromFiles, shared


def _check(flow: FlowConfig, _: OfReports) -> list[Checked]:
    return check_folder(store_of(flow.report.folder), None)


def _reports(flow: FlowConfig, asked: OfReports, found: list[Checked]) -> ReportsStory:
    own = [one for one in reversed(found) if one.kept.report is None or tells_of(one.kept.report.evidence, flow.flow)]
    cut = lines(Cut.of(own, asked.page), lambda one: report_line(one.kept, one.problem))
    return ReportsStory(reports=cut, others=len(found) - len(own))


def page_of(flow: FlowConfig, asked: OfReport) -> bytes | None:
    """Return the page or the PDF of a report; None if this flow has no such report."""
    store, name = store_of(flow.report.folder), report_name(asked.number)
    try:
        report = decode_report(store.read(name), name)
        shown = pdf_name(name) if asked.is_pdf else page_name(name)
        return store.read(shown) if tells_of(report.evidence, flow.flow) else None
    except (OSError, BadInput, Corrupt):
        return None


PAGE = (
    FromFiles(of=OfReports, find=_check, show=_reports, same=shared),
    FromFiles(of=OfReport, find=page_of, show=lambda _, __, content: ReportPage(content=content)),
)
