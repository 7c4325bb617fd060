"""How the job ended, from the driver to the task that started it: one small JSON file in a folder of the task's.

An exit code has no sentence, and Spark's output ends with whatever Spark printed last.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from ferry.errors import BadInput, Corrupt, FerryError, Refused, Superseded
from ferry.files import write_whole

FINAL = (BadInput, Refused, Superseded, Corrupt)
"""Errors that a retry meets again."""


class Terminated(BaseException):
    """SIGTERM came to a job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEnd:
    """Why the job failed; `final` when another try meets it again."""

    sentence: str
    final: bool


def write_end(path: Path, error: FerryError) -> bool:
    """Leave the error at `path`, whole or not at all; return whether it is there."""
    try:
        write_whole(path, json.dumps(asdict(JobEnd(sentence=str(error), final=isinstance(error, FINAL)))))
    except OSError:
        return False
    return True


def end_of_job(path: Path) -> JobEnd | None:
    """Return what the driver left at `path`; None when it ended without an error, or before it could write one."""
    try:
        return JobEnd(**json.loads(path.read_text()))
    except FileNotFoundError:
        return None
