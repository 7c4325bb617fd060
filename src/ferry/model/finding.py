"""What `ferry doctor` found: one line for each check."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ferry.model.sentence import sentence_of


class Grade(StrEnum):
    """How a check ended. UNKNOWN: nothing could be found out."""

    PASS = "pass"
    WARN = "warn"
    FAIL = "fail"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One check: what it is about (`file`, `machine` or a flow), its name, its grade, and a sentence.

    The sentence of every grade but PASS has the remedy.
    """

    about: str
    check: str
    grade: Grade
    message: str


def failed(about: str, check: str, why: object) -> Finding:
    """Return a finding that a check failed with an error or a sentence, whose text has the remedy."""
    return Finding(about=about, check=check, grade=Grade.FAIL, message=sentence_of(why))


def unknown(about: str, check: str, why: object) -> Finding:
    """Return a finding that a check could not be made."""
    return Finding(about=about, check=check, grade=Grade.UNKNOWN, message=sentence_of(why))
