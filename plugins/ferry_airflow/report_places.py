"""Places for reports and exports that a form of Airflow may name."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ferry.config.flow.flow import FlowConfig
from ferry.config.flow.report import DIRS, FOLDER, ReportConfig, local_path


def is_allowed_place(reports: ReportConfig, named: str) -> bool:
    """Return whether a form may name a place for its report.

    It may name the file's places, and what is below a folder of them, with links followed. A URL must be the same
    as a whole: which parts of it lead elsewhere depends on its scheme.
    """
    places = (reports.folder, *reports.dirs)
    local = local_path(named)
    if local is None:
        return named.rstrip("/") in {place.rstrip("/") for place in places}
    folders = [path for place in places if (path := local_path(place)) is not None and path.is_absolute()]
    path = Path(os.path.realpath(local))
    return local.is_absolute() and any(path.is_relative_to(os.path.realpath(folder)) for folder in folders)


def nowhere(flow: FlowConfig, form: Mapping[str, Any]) -> str | None:
    """Return why a report cannot go where the form or the file says; None when it can.

    Either an operator could not find it there, or the form may not name that place.
    """
    asked = str(form.get("report") or "")
    if asked and not is_allowed_place(flow.report, asked):
        return not_allowed("report", asked)
    named = asked or flow.report.folder
    if "://" in named or Path(named).is_absolute():
        return None
    return (
        f"{FOLDER} ({named}) is not a full path, so it would depend on each worker's folder: give {FOLDER} a full path "
        "or a URL, or name one in the form"
    )


def not_allowed(field: str, named: str) -> str:
    """Return that a form may not name a place, and what to do.

    The right to trigger a DAG is not a right to write anywhere.
    """
    return (
        f"{field}: {named} is not a place that the form may name: name {FOLDER}, a folder below it, or a place that "
        f"the file lists in {DIRS}"
    )
