"""The beginning and the end of commands with a report.

The folder is checked first. The figures and the report's place are printed last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ferry.cli.command import Context
from ferry.cli.output import echo, print_error
from ferry.config.flow.report import ReportConfig
from ferry.errors import FerryError, OutcomeUnknown
from ferry.features.evidence.acts.store import why_unwritten
from ferry.features.evidence.cli.report_place import written_json
from ferry.features.evidence.rules.codec import evidence_json
from ferry.features.evidence.rules.lines import report_lines_of
from ferry.model.evidence import EvidenceOutcome, EvidenceReport

if TYPE_CHECKING:
    from ferry.features.evidence.acts.folder import ReportFolder, Written


def prepared(config: ReportConfig, folder: str | None) -> ReportFolder:
    """Open the folder for the report. Raises Refused or BadInput if the report cannot be written there."""
    from ferry.features.evidence.acts.folder import ReportFolder  # noqa: PLC0415 - brings cryptography

    reports = ReportFolder.of(config, folder)
    reports.prepare()
    return reports


def ended(context: Context, evidence: EvidenceReport, folder: ReportFolder | None, failure: FerryError | None) -> int:
    """Write the report, print the result, and return the exit code."""
    written, unwritten = None, False
    try:
        written = None if folder is None else folder.write(evidence)
    except (OSError, OutcomeUnknown) as error:
        unwritten = True
        where = "" if folder is None else folder.where
        why = why_unwritten(error) if isinstance(error, OSError) else f"{error}"
        sentence = (
            f"the report could not be written to {where} ({why}): keep this answer, because it cannot be measured again"
        )
        print_error(sentence)
    context.answer(
        lambda: {**evidence_json(evidence), "report": written_json(written)}, lambda: _show(evidence, written)
    )
    if evidence.outcome is EvidenceOutcome.SUCCESS and not unwritten:
        return 0
    return 1 if failure is None else failure.exit_code


def _show(evidence: EvidenceReport, written: Written | None) -> None:
    for line in report_lines_of(evidence):
        echo(line)
    if written is not None:
        echo(written.sentence)
