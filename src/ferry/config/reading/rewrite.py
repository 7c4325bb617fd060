"""The way from a text to a file that works: corrections are written pass by pass, and lines keep their numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ferry.config.reading.typos import shown
from ferry.config.text.problem import Problem, Severity
from ferry.config.text.properties import is_comment, is_continued, lines_of, parse_all
from ferry.messages.catalogue import sentence
from ferry.model import Sentence, code_of, facts_of, with_text

_PASSES = 50
"""A line with several slips needs one pass for each; one that needs far more is corrected in a circle."""


@dataclass(slots=True, kw_only=True)
class _Line:
    """A line of the old file.

    `text` is None when it is removed; `above` are comments that have no number of their own.
    """

    text: str | None
    above: list[str] = field(default_factory=list)
    gone: list[Problem] = field(default_factory=list)

    def written(self) -> list[str]:
        return self.above if self.text is None else [*self.above, self.text]


@dataclass(slots=True, kw_only=True)
class Rewrite:
    """The text between two passes. Every pass names the lines of the old file."""

    lines: list[_Line]
    added: list[_Line] = field(default_factory=list)
    """What the old file lacks.

    It is placed at the top in the end; until then it follows all lines that have numbers.
    """
    stuck: int | None = None
    """A line that is corrected in a circle."""

    @classmethod
    def corrected(cls, text: str, look: Callable[[str], Sequence[Problem]]) -> Rewrite:
        """Write the corrections of what `look` finds, until it finds none. Raises what `look` raises."""
        rewrite = cls(lines=[_Line(text=line) for line in lines_of(text)])
        chosen: list[Problem] = []
        for _ in range(_PASSES):
            current = rewrite.numbered()
            ends = {entry.line: entry.last_line for entry in parse_all(current)[0]}
            chosen = _one_per_line(look(current), ends)
            if not chosen:
                return rewrite
            for problem in chosen:
                rewrite._apply(problem)
        rewrite.stuck = chosen[0].line or 1
        return rewrite

    def numbered(self) -> str:
        """Return the text for the next pass; the blank line ends an entry that the last line leaves open."""
        lines = [line.text or "" for line in self.lines]
        if self.added:
            lines += ["", *(line.text or "" for line in self.added)]
        return "\n".join(lines)

    def placed(self, problem: Problem) -> Problem:
        """Return the problem as one of the old file: a line that was added has no number there."""
        at = problem.line
        return problem if at is None or at <= len(self.lines) else replace(problem, line=None)

    def corrections(self) -> Mapping[int, tuple[str, ...]]:
        """Return what is in the place of each corrected line, by its number in the old file."""
        return {at: tuple(line.written()) for at, line in enumerate(self.lines, start=1) if line.gone}

    def problems(self) -> list[Problem]:
        """Return the corrected problems, one for each line of the old file, with what is there now."""
        found = []
        for line in (*self.added, *self.lines):
            if line.gone:
                first = line.gone[0]
                errors = any(problem.severity is Severity.ERROR for problem in line.gone)
                whole = tuple(line.written())
                said = list(dict.fromkeys(with_whole(problem, whole).message for problem in line.gone))
                found.append(
                    replace(
                        first,
                        severity=Severity.ERROR if errors else Severity.WARNING,
                        message=said[0] if len(said) == 1 else _joined(said),
                        correction=whole,
                    )
                )
        return found

    def text(self, line_end: str) -> str:
        """Return the whole new file. Added lines are before the first entry, so that comments at the top stay there."""
        top = min((entry.line for entry in parse_all(self.numbered())[0]), default=1) - 1
        blocks = [*self.lines[:top], *self.added, *self.lines[top:]]
        return line_end.join(text for line in blocks for text in line.written())

    def _apply(self, problem: Problem) -> None:
        line = self._line(problem.line)
        correction = problem.correction or ()
        line.above += [text for text in correction if is_comment(text)]
        line.text = next((text for text in correction if not is_comment(text)), None)
        line.gone.append(self.placed(problem))

    def _line(self, number: int | None) -> _Line:
        if number is None:
            self.added.append(_Line(text=None))
            return self.added[-1]
        return [*self.lines, _Line(text=""), *self.added][number - 1]


def _joined(said: Sequence[str]) -> Sentence:
    """Return what was wrong with one line, slip by slip; the fact `of` has their codes, in the same order."""
    facts = {"what": "; then: ".join(said), "of": ", ".join(map(code_of, said))}
    return sentence("line.several", **facts)


def with_whole(problem: Problem, whole: tuple[str, ...]) -> Problem:
    """Return the problem with the correction of its whole line: two slips on one line are not corrected separately."""
    if not whole or not problem.correction or whole == problem.correction:
        return problem
    one, every = shown(problem.correction), shown(whole)
    facts = facts_of(problem.message)
    changed = tuple((name, fact.replace(one, every) if isinstance(fact, str) else fact) for name, fact in facts)
    message = with_text(problem.message, problem.message.replace(one, every), changed)
    return replace(problem, correction=whole, message=message)


def _one_per_line(problems: Sequence[Problem], ends: Mapping[int, int]) -> list[Problem]:
    """Return the first correction of each line.

    A line to add waits for the others, because what is missing may only be misspelt. An entry of several lines is left
    to its writer. A line that must continue a corrected one waits for that one.
    """
    chosen: dict[int, Problem] = {}
    for problem in problems:
        line = problem.line
        if problem.correction is not None and line is not None and ends.get(line, line) == line:
            chosen.setdefault(line, problem)
    for line, problem in tuple(chosen.items()):
        if problem.correction and is_continued(problem.correction[-1]):
            chosen.pop(line + 1, None)
    if chosen:
        return list(chosen.values())
    return [problem for problem in problems if problem.correction is not None and problem.line is None][:1]
