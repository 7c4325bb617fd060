"""The findings while a file is read: problems, and where each effective value comes from."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from ferry.config.keys.catalogue import is_acted_on, may_be_shown
from ferry.config.reading.typos import has_comment, shown, without_comment
from ferry.config.text.problem import BadValue, Problem, Severity
from ferry.config.text.properties import Property, written
from ferry.config.text.secret_refs import LookedUp, without_values
from ferry.config.text.secrets import HIDDEN, Providers, has_reference, shown_address, shown_command, shown_host
from ferry.errors import BadInput
from ferry.model import facts_of, with_text

T = TypeVar("T")

_USER = re.compile(r"(?<=://)[^/@,\s]+(?=@)")
"""User and password of an address, as a folder of reports in a store may have them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One effective value: its name without alias or flow, the text read, and the line it comes from."""

    name: str
    value: str
    line: int | None
    """None when no line sets it, so that the default counts."""
    key: str | None = None
    """The key as that line spells it."""

    @property
    def is_acted_on(self) -> bool:
        """Whether runs act on it."""
        return is_acted_on(self.name)

    @classmethod
    def of(cls, name: str, entry: Property | None, default: str) -> Setting:
        """Return the value of a line, or the default; a secret is hidden."""
        if entry is None:
            return cls(name=name, value=default, line=None)
        value = entry.value if may_be_shown(entry.key) else HIDDEN
        if entry.key.endswith(".url") and not has_reference(value):
            value = shown_host(value) if name.startswith("ferry.switch.") else shown_address(value)
        if entry.key.endswith(".command") and not has_reference(value):
            value = shown_command(value)
        value = _USER.sub(HIDDEN, value)
        return cls(name=name, value=value, line=entry.line, key=entry.key)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unneeded:
    """A line that Ferry knows and does not need."""

    line: int
    key: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """Collects what is wrong with one file, each finding once; `in_file_order` selects and orders what is reported."""

    file: str
    problems: list[Problem] = field(default_factory=list)
    seen: set[Problem] = field(default_factory=set, repr=False)

    @property
    def has_errors(self) -> bool:
        return any(problem.severity is Severity.ERROR for problem in self.problems)

    def corrects(self, key: str) -> bool:
        """Return whether a correction that is found already writes a line with `key`."""
        return any(line.startswith(f"{key} = ") for one in self.problems for line in one.correction or ())

    def report(
        self,
        entry: Property | None,
        key: str,
        message: str,
        severity: Severity = Severity.ERROR,
        *,
        correction: tuple[str, ...] | None = None,
        planned: bool = False,
    ) -> None:
        """Add a problem; see Problem for the parts."""
        if entry is not None and correction and entry.last_line > entry.line:
            message = with_text(message, f"{message}; by hand, because the entry has several lines")
        problem = Problem(
            file=self.file,
            line=entry.line if entry is not None else None,
            key=key,
            severity=severity,
            message=message,
            correction=correction,
            planned=planned,
        )
        # A top-level value is read once for each flow; one finding is enough.
        if problem not in self.seen:
            self.seen.add(problem)
            self.problems.append(problem)

    def warn(
        self,
        entry: Property | None,
        key: str,
        message: str,
        *,
        correction: tuple[str, ...] | None = None,
        planned: bool = False,
    ) -> None:
        """Add a problem that stops nothing."""
        self.report(entry, key, message, Severity.WARNING, correction=correction, planned=planned)

    def read(self, entry: Property | None, default: T, convert: Callable[[str], T], providers: Providers) -> T:
        """Return the entry's value, or the default when there is none.

        For a bad value, report a problem and return the default.
        """
        if entry is None:
            return default
        try:
            looked_up: list[LookedUp] = []
            value = providers.resolved(entry.key, entry.value, looked_up)
        except BadInput as error:
            said = error.args[0]
            self.report(entry, entry.key, with_text(said, str(dict(facts_of(said)).get("why", said))))
            return default
        try:
            return convert(value)
        except BadValue as error:
            correction = without_comment(entry)
            hint = ""
            if has_comment(entry):
                apart = f": {shown(correction)}" if correction is not None else " before the entry, by hand"
                hint = f" (text after a value is part of it: put the comment on a line of its own{apart})"
            elif error.instead is not None and not looked_up:
                correction = (written(entry.key, error.instead),)
                hint = f": {shown(correction)}"
            message = without_values(str(error), looked_up)
            # A resolved value may be secret: its facts are not reported.
            said = with_text(error.message, f"{message}{hint}", () if looked_up else None)
            self.report(entry, entry.key, said, correction=correction)
            return default
