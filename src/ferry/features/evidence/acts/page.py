"""Answers questions of the operator's page about reports, from their folder."""

from __future__ import annotations

from ferry.config.flow.flow import FlowConfig
from ferry.errors import BadInput, Corrupt
from ferry.features.evidence.acts.folder import Checked, check_folder, drawn_pdf
from ferry.features.evidence.acts.html import lacks_for_pdf
from ferry.features.evidence.acts.store import Store, store_of
from ferry.features.evidence.rules.chain import page_name, pdf_name, report_name
from ferry.features.evidence.rules.codec import SealedReport, decode_report
from ferry.features.evidence.rules.page import OfReport, OfReports, ReportPage, ReportsStory, report_line, tells_of
from ferry.page.cut import Cut, lines
from ferry.page.part import FromFiles, shared


def _check(flow: FlowConfig, _: OfReports) -> list[Checked]:
    return check_folder(store_of(flow.report.folder), None)


def _reports(flow: FlowConfig, asked: OfReports, found: list[Checked]) -> ReportsStory:
    own = [one for one in reversed(found) if one.kept.report is None or tells_of(one.kept.report.evidence, flow.flow)]
    draws = not lacks_for_pdf()
    cut = lines(Cut.of(own, asked.page), lambda one: report_line(one.kept, one.problem, draws_pdf=draws))
    return ReportsStory(reports=cut, others=len(found) - len(own))


def page_of(flow: FlowConfig, asked: OfReport) -> bytes | None:
    """Return the page or the PDF of a report; None if this flow has no such report.

    A report that was written without a PDF has it drawn now, if the libraries are installed.
    """
    store, name = store_of(flow.report.folder), report_name(asked.number)
    try:
        content = store.read(name)
        report = decode_report(content, name)
        if not tells_of(report.evidence, flow.flow):
            return None
        return _pdf(store, report, name, content) if asked.is_pdf else store.read(page_name(name))
    except (OSError, BadInput, Corrupt):
        return None


def _pdf(store: Store, report: SealedReport, name: str, content: bytes) -> bytes | None:
    try:
        return store.read(pdf_name(name))
    except FileNotFoundError:
        return None if lacks_for_pdf() else drawn_pdf(report, name, content)


PAGE = (
    FromFiles(of=OfReports, find=_check, show=_reports, same=shared),
    FromFiles(of=OfReport, find=page_of, show=lambda _, __, content: ReportPage(content=content)),
)
