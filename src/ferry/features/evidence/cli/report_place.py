"""The option for a report's folder, and the place of the report as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from ferry.features.evidence.acts.folder import Written

ReportOption = Annotated[
    str | None,
    typer.Option("--report", metavar="DIR", help="The folder for the report, or its URL. Overrides ferry.report.dir."),
]


def written_json(written: Written | None) -> dict[str, Any] | None:
    """Return the place of a report as the documented JSON object; None if there is none."""
    return None if written is None else written.document
