"""The file that works: every slip with a clear meaning corrected, everything else unchanged."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ferry.config.login.connection import Lookup, nobody
from ferry.config.reading.examine import Examined, examine, examine_once
from ferry.config.reading.rewrite import Rewrite
from ferry.config.text.problem import Problem, Severity, in_file_order
from ferry.config.text.properties import Property, is_comment, is_continued, lines_of, parse_all


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixed:
    """A corrected text. `corrected` are the problems that were corrected, one for each line of the old file."""

    text: str
    corrected: tuple[Problem, ...]
    """What was corrected, in the order of the old file's lines; `correction` is what the new file has there."""
    left: Examined
    """The problems that are left, by file and line of the old file."""
    left_text: str
    """The text of `left`: the corrected entries on the lines of the old file, and after them what it lacks."""
    examined: Examined
    """The content of the new file, by its own name and lines."""

    @property
    def works(self) -> bool:
        """Whether no error is left."""
        return not any(problem.severity is Severity.ERROR for problem in self.left.problems)


def fix(text: str, file: str, out: str | None = None, lookup: Lookup = nobody) -> Fixed:
    """Correct what can be corrected without asking; `out` is the new file's name.

    Raises BadInput when a policy class of the user fails on a name of the file. If the new text differed from the old
    one by more than was reported, it would not work: the first such line is an error.
    """
    rewrite = Rewrite.corrected(text, lambda current: examine_once(current, file, lookup).problems)
    current = rewrite.numbered()
    left = examine(current, file, lookup)
    problems = [rewrite.placed(problem) for problem in left.problems]
    fixed = rewrite.text("\r\n" if "\r\n" in text else "\n")
    added = [line for problem in rewrite.problems() if problem.line is None for line in problem.correction or ()]
    wrong = rewrite.stuck or unreported_change(text, fixed, rewrite.corrections(), added)
    if wrong is not None:
        problems.append(_by_hand(text, file, wrong))
    return Fixed(
        text=fixed,
        corrected=tuple(rewrite.problems()),
        left=replace(left, problems=in_file_order(problems)),
        left_text=current,
        examined=examine(fixed, out or file, lookup),
    )


def _by_hand(text: str, file: str, line: int) -> Problem:
    key = next((entry.key for entry in parse_all(text)[0] if entry.line <= line <= entry.last_line), "?")
    message = "cannot be corrected without a change of meaning here or on other lines; correct it by hand"
    return Problem(file=file, line=line, key=key, severity=Severity.ERROR, message=message)


def unreported_change(
    old: str, new: str, corrections: Mapping[int, tuple[str, ...]], added: Sequence[str] = ()
) -> int | None:
    """Return the first line of `old` by which the entries of `new` differ in more than was reported.

    None when there is no such line. `corrections` are by line of `old`, `added` the entries before all others. Each
    entry of `new` must be one of these or one of `old`, in the same order. No correction may drop a part of the value
    that it corrects.
    """
    got = [(entry.key, entry.value) for entry in parse_all(new)[0]]
    at = 0
    for line, entries in _expected(old, corrections, added):
        if got[at : at + len(entries)] != entries:
            return line
        at += len(entries)
    if at < len(got):
        return max(corrections, default=1)
    fits = {entry.line: entry for entry in parse_all(old)[0]}
    return next((line for line, lines in corrections.items() if not _keeps(fits.get(line), lines, new)), None)


def _expected(
    old: str, corrections: Mapping[int, tuple[str, ...]], added: Sequence[str]
) -> Iterator[tuple[int, list[tuple[str, str]]]]:
    """Yield the entries that `new` must have, by the lines of `old` that they replace."""
    physical = lines_of(old)
    yield 1, [(entry.key, entry.value) for line in added for entry in parse_all(line)[0]]
    joined: list[str] = []
    for entry in parse_all(old)[0]:
        lines = [*joined, *corrections.get(entry.line, physical[entry.line - 1 : entry.last_line])]
        # A correction may let the value continue with the next entry, as its writer meant: the two are then one.
        joined = lines if entry.line in corrections and lines and is_continued(lines[-1]) else []
        if not joined:
            yield entry.line, [(one.key, one.value) for one in parse_all("\n".join(lines))[0]]
    if joined:
        yield len(physical), [(one.key, one.value) for one in parse_all("\n".join(joined))[0]]


def _keeps(entry: Property | None, correction: tuple[str, ...], new: str) -> bool:
    """Return whether all words of the value are still there.

    They are in the correction, or in another entry where the entry is removed.
    """
    if entry is None:
        return False
    texts = [" ".join(correction)]
    if all(map(is_comment, correction)):
        # It repeats another entry, whose comment is now on a line of its own.
        comments = " ".join(line for line in lines_of(new) if is_comment(line))
        texts += [f"{comments} {other.key} {other.raw}" for other in parse_all(new)[0]]
    return any(_holds(text, value) for text in texts for value in (entry.raw, entry.value))


def _holds(text: str, part: str) -> bool:
    """Return whether `text` has the words of `part`, or, where signs were set between them, its letters and digits.

    Case does not count: a key that was torn apart is a part of the value, and its alias may have been corrected.
    """
    text, part = text.lower(), part.lower()
    words = set(re.findall(r"\w+", part)) <= set(re.findall(r"\w+", text))
    return words or not Counter(re.findall(r"\w", part)) - Counter(re.findall(r"\w", text))
