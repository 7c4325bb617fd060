"""The file that works: every slip whose meaning is clear put right, everything else left as it was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ferry.config.examine import Examined, examine
from ferry.config.problem import Problem, Severity
from ferry.config.properties import Property, lines_of, parse

_PASSES = 50
"""A line with several slips needs one pass for each; far more than that is an error of this module."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed:
    """A corrected text. `corrected` are the problems that are gone, with the lines that replace theirs."""

    text: str
    corrected: tuple[Problem, ...]
    examined: Examined
    """What the corrected text says."""

    @property
    def works(self) -> bool:
        """Whether no error is left."""
        return not any(problem.severity is Severity.ERROR for problem in self.examined.problems)


def fix(text: str, file: str) -> Fixed:
    """Correct what can be corrected without asking. Raises BadInput as `examine` does."""
    corrected: list[Problem] = []
    for _ in range(_PASSES):
        examined = examine(text, file)
        chosen = _one_per_line(examined.problems)
        if not chosen:
            return Fixed(text=text, corrected=tuple(corrected), examined=examined)
        text = _applied(text, parse(text, file), chosen)
        corrected += chosen
    raise AssertionError(f"{file}: corrections go round in a circle: {corrected[-1]}")


def _one_per_line(problems: Sequence[Problem]) -> list[Problem]:
    """The first correction of each line. A line to add waits for the others: what is missing may only be misspelt."""
    chosen: dict[int, Problem] = {}
    for problem in problems:
        if problem.correction is not None and problem.line is not None:
            chosen.setdefault(problem.line, problem)
    if chosen:
        return list(chosen.values())
    return [problem for problem in problems if problem.correction is not None][:1]


def _applied(text: str, properties: Sequence[Property], chosen: Sequence[Problem]) -> str:
    lines = lines_of(text)
    by_line = {entry.line: entry for entry in properties}
    for problem in sorted(chosen, key=lambda one: one.line or 0, reverse=True):
        correction = problem.correction or ()
        if problem.line is None:
            first = min(by_line, default=1) - 1
            lines[first:first] = correction
        else:
            lines[problem.line - 1 : by_line[problem.line].last_line] = correction
    return ("\r\n" if "\r\n" in text else "\n").join(lines)
