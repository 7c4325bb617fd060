"""What is wrong, or may be wrong, in a configuration file: always with file, line, key and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum


class Severity(Enum):
    """An error stops every command; a warning is shown and the file is used."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One finding. `line` is None when the finding is that something is missing."""

    file: str
    line: int | None
    key: str
    severity: Severity
    message: str
    """What is wrong, with the value read, and the remedy; never a secret's value."""
    correction: tuple[str, ...] | None = field(default=None, repr=False)
    """What to write instead of the entry (at the top, where something is missing): comments, then one entry at most.

    Several problems of one line have the same, whole correction. None: there is no clear correction.
    """
    planned: bool = False
    """Whether each plan decides it by what the file does not have, such as a pause.

    Then `ferry config check` and `ferry doctor` alone show the warning: it would come with each command, and stay.
    """

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{place}: {self.key}: {self.message}"


def in_file_order(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Return each finding once, in file order, and an error before the warnings of its line.

    `--fix` takes the first correction of a line.
    """
    return tuple(sorted(dict.fromkeys(problems), key=lambda one: (one.line or 0, one.severity is not Severity.ERROR)))


def once_per_slip(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Return the first of the problems that correct a line in the same way.

    An error comes before a warning about the same slip.
    """
    firsts: dict[object, Problem] = {}
    for one in problems:
        slip = (one.line, one.correction) if one.line is not None and one.correction else one
        firsts.setdefault(slip, one)
    return tuple(firsts.values())


class BadValue(ValueError):
    """A value cannot be read; the text is the second half of a sentence and ends with the remedy."""

    def __init__(self, message: str, *, instead: str | None = None) -> None:
        """`instead` is the value that was meant, where that is clear."""
        super().__init__(message)
        self.message = message
        self.instead = instead
