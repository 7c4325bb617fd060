"""Places for reports that a form may name."""

from __future__ import annotations

import os
from pathlib import Path

from ferry.config.flow.report import ReportConfig, local_path


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
