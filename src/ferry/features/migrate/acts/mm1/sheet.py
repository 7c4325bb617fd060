"""The new file while it is written: lines with their origin, and the text that Java reads back unchanged."""

from __future__ import annotations

from dataclasses import dataclass, field

from ferry.config.text.properties import written
from ferry.features.migrate.acts.mm1.outcome import Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One entry. `origin` is where its value was read; None for a value that the conversion chose."""

    key: str
    value: str
    remark: str
    origin: Place | None


@dataclass(slots=True, kw_only=True)
class Sheet:
    """Groups of lines with headings, in the order in which they are added."""

    title: list[str]
    groups: list[tuple[str, list[Line]]] = field(default_factory=list)

    def head(self, heading: str) -> None:
        """Begin a group."""
        self.groups.append((heading, []))

    def add(self, key: str, value: str, remark: str = "", origin: Place | None = None) -> None:
        """Add an entry to the last group; `remark` becomes a comment line above it."""
        self.groups[-1][1].append(Line(key=key, value=value, remark=remark, origin=origin))

    def get(self, key: str) -> Line | None:
        """Return the line of `key`, if it was added."""
        return next((line for _, lines in self.groups for line in lines if line.key == key), None)

    def text(self) -> str:
        """Return the whole file."""
        out = [_comment(line) for line in self.title]
        for heading, lines in self.groups:
            out += ["", _comment(heading)]
            for line in lines:
                if line.remark:
                    out.append(_comment(line.remark))
                out.append(written(line.key, line.value))
        return "\n".join(out) + "\n"


def _comment(text: str) -> str:
    # A line end would end the comment, and the rest would be read as an entry.
    return "# " + " ".join(text.split())
