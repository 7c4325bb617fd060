"""Reports on the operator's page: its questions about them, and the answers. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from ferry.features.evidence.rules.chain import Kept
from ferry.features.evidence.rules.figures import beside_the_loss
from ferry.model import Flow
from ferry.model.evidence import EvidenceKind, EvidenceReport
from ferry.page.cut import Cut
from ferry.page.question import Question


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportSummary:
    """A summary of a report."""

    kind: str
    outcome: str
    began_ms: int
    lost_records: int | None
    per_way: bool
    """Whether the lost records are not one number, because each way of a full drill has its own."""
    beside: str
    """What the target lacks, the loss apart; empty: nothing, the loss was not measured, or the summary has it."""
    rto_s: float | None
    summary: str
    who: str
    """Who started it: a user of Airflow, if one is known, or a person at a terminal, or a DAG."""
    reason: str
    """Why, in that user's words; empty: it is not recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportLine:
    """A report of the folder; `report` is None if it cannot be read: `trouble` is why."""

    number: int
    has_page: bool
    has_pdf: bool
    """Whether the folder has its PDF."""
    draws_pdf: bool
    """Whether a PDF is drawn when it is asked for, because the folder has none."""
    is_signed: bool
    report: ReportSummary | None
    trouble: str
    problem: str
    """What is wrong with the chain at this report."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportsStory:
    """A page of a flow's reports, newest first; `others` are in the same folder, about other flows."""

    reports: Cut[ReportLine]
    others: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OfReports(Question[ReportsStory]):
    """A page of the reports that are about the flow."""

    page: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportPage:
    """The page of a report, or its PDF."""

    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class OfReport(Question[ReportPage]):
    """The page of a report, or its PDF (`is_pdf`), as it is in the folder. A PDF that is not there is drawn."""

    number: int
    is_pdf: bool = False


def tells_of(evidence: EvidenceReport, flow: Flow) -> bool:
    """Return whether a report may be shown to users who may see this flow.

    The report of a failback names the direction of the clients' move, which is opposite to the flow that was failed
    back.
    """
    return evidence.flow == flow or (evidence.kind is EvidenceKind.FAILBACK and evidence.flow == flow.back)


def report_line(kept: Kept, problem: str, *, draws_pdf: bool) -> ReportLine:
    """Return a report for the list of all; `draws_pdf` is whether PDFs can be drawn."""
    report = kept.report
    return ReportLine(
        number=kept.number,
        has_page=bool(kept.page_sha256),
        has_pdf=kept.has_pdf,
        draws_pdf=draws_pdf and not kept.has_pdf and report is not None,
        is_signed=bool(report and report.signer),
        report=_summary(report.evidence) if report else None,
        trouble=kept.trouble,
        problem=problem,
    )


def _summary(evidence: EvidenceReport) -> ReportSummary:
    beside = beside_the_loss(evidence.passed_over) if evidence.losses_at_ms else ""
    return ReportSummary(
        kind=evidence.kind.value,
        outcome=evidence.outcome.value,
        began_ms=evidence.began_ms,
        lost_records=evidence.lost_records,
        per_way=bool(evidence.ways),
        beside="" if beside in evidence.summary else beside,
        rto_s=evidence.rto_s,
        summary=evidence.summary,
        who=evidence.asked_by or evidence.who,
        reason=evidence.reason,
    )
