"""The file that works: every slip whose meaning is clear put right, everything else left as it was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ferry.config.connection import Lookup, nobody
from ferry.config.examine import Examined, examine
from ferry.config.problem import Problem, Severity
from ferry.config.properties import lines_of, parse

_PASSES = 50
"""A line with several slips needs one pass for each; far more than that is an error of this module."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed:
    """A corrected text. `corrected` are the problems that are gone, one for each line of the old file."""

    text: str
    corrected: tuple[Problem, ...]
    """By line of the old file; `correction` is what stands there in the new one."""
    left: Examined
    """What is left, by file and line of the old file."""
    left_text: str
    """What `left` was read from: the corrected entries on the lines of the old file, what it lacks behind them."""
    examined: Examined
    """The same, by file and line of the new one."""

    @property
    def works(self) -> bool:
        """Whether no error is left."""
        return not any(problem.severity is Severity.ERROR for problem in self.left.problems)


def fix(text: str, file: str, out: str | None = None, lookup: Lookup = nobody) -> Fixed:
    """Correct what can be corrected without asking; `out` is the new file's name. Raises BadInput as `examine` does."""
    draft = _Draft(lines=[_Line(text=line) for line in lines_of(text)])
    chosen: list[Problem] = []
    for _ in range(_PASSES):
        current = draft.numbered()
        examined = examine(current, file, lookup)
        chosen = _one_per_line(examined.problems)
        if not chosen:
            fixed = draft.text("\r\n" if "\r\n" in text else "\n", draft.first_entry(current, file))
            return Fixed(
                text=fixed,
                corrected=tuple(draft.corrected(file)),
                left=replace(examined, problems=tuple(map(draft.placed, examined.problems))),
                left_text=current,
                examined=examine(fixed, out or file, lookup),
            )
        ends = {entry.line: entry.last_line for entry in parse(current, file)}
        for problem in chosen:
            draft.apply(problem, ends.get(problem.line or 0, 0))
    raise AssertionError(f"{file}: corrections go round in a circle: {chosen[-1]}")


def _one_per_line(problems: Sequence[Problem]) -> list[Problem]:
    """The first correction of each line. A line to add waits for the others: what is missing may only be misspelt."""
    chosen: dict[int, Problem] = {}
    for problem in problems:
        if problem.correction is not None and problem.line is not None:
            chosen.setdefault(problem.line, problem)
    if chosen:
        return list(chosen.values())
    return [problem for problem in problems if problem.correction is not None][:1]


@dataclass(slots=True, kw_only=True)
class _Line:
    """A line of the old file. `text` is None when it is gone; `above` are comments that take none of the numbers."""

    text: str | None
    above: list[str] = field(default_factory=list)
    gone: list[Problem] = field(default_factory=list)

    def written(self) -> list[str]:
        return self.above if self.text is None else [*self.above, self.text]


@dataclass(slots=True, kw_only=True)
class _Draft:
    """The text between two passes: its lines keep their numbers, so that every pass speaks of those of the old file."""

    lines: list[_Line]
    added: list[_Line] = field(default_factory=list)
    """What the old file lacks. It goes to the top in the end, and until then behind all lines that have numbers."""

    def numbered(self) -> str:
        """The text for the next pass; the blank line ends an entry that the last line leaves open."""
        lines = [line.text or "" for line in self.lines]
        if self.added:
            lines += ["", *(line.text or "" for line in self.added)]
        return "\n".join(lines)

    def placed(self, problem: Problem) -> Problem:
        """The problem as one of the old file: a line that was added has no number there."""
        at = problem.line
        return problem if at is None or at <= len(self.lines) else replace(problem, line=None)

    def apply(self, problem: Problem, last: int) -> None:
        """Write the problem's correction in the place of its entry, which ends on line `last`."""
        line = self._line(problem.line)
        correction = problem.correction or ()
        line.above += [text for text in correction if text.startswith("#")]
        line.text = next((text for text in correction if not text.startswith("#")), None)
        line.gone.append(self.placed(problem))
        for rest in self.lines[problem.line or 0 : last]:
            rest.text = None

    def _line(self, number: int | None) -> _Line:
        if number is None:
            self.added.append(_Line(text=None))
            return self.added[-1]
        return [*self.lines, _Line(text=""), *self.added][number - 1]

    def corrected(self, file: str) -> list[Problem]:
        """What is gone, by line of the old file."""
        found = []
        for line in (*self.added, *self.lines):
            if line.gone:
                first = line.gone[0]
                errors = any(problem.severity is Severity.ERROR for problem in line.gone)
                found.append(
                    Problem(
                        file=file,
                        line=first.line,
                        key=first.key,
                        severity=Severity.ERROR if errors else Severity.WARNING,
                        message="; then: ".join(problem.message for problem in line.gone),
                        correction=tuple(line.written()),
                    )
                )
        return found

    def first_entry(self, current: str, file: str) -> int:
        """The number of lines before the first entry: comments at the top stay there."""
        return min((entry.line for entry in parse(current, file)), default=1) - 1

    def text(self, line_end: str, top: int) -> str:
        """The whole new file; what was added stands behind the first `top` lines."""
        blocks = [*self.lines[:top], *self.added, *self.lines[top:]]
        return line_end.join(text for line in blocks for text in line.written())
