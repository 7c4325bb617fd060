"""The new file while it is written: lines with their origin, and as text that Java reads back unchanged."""

from __future__ import annotations

from dataclasses import dataclass, field

from ferry.mm1.outcome import Place

_IN_KEYS = {char: f"\\{char}" for char in "\\ :=#!"}
_CONTROLS = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One entry. `origin` is where its value was read; None for a value that the conversion chose."""

    key: str
    value: str
    remark: str
    origin: Place | None


@dataclass(slots=True, kw_only=True)
class Sheet:
    """Headed groups of lines, in the order they are added."""

    title: list[str]
    groups: list[tuple[str, list[Line]]] = field(default_factory=list)

    def head(self, heading: str) -> None:
        """Begin a group."""
        self.groups.append((heading, []))

    def add(self, key: str, value: str, remark: str = "", origin: Place | None = None) -> None:
        """Add an entry to the last group; `remark` becomes a comment line above it."""
        self.groups[-1][1].append(Line(key=key, value=value, remark=remark, origin=origin))

    def get(self, key: str) -> Line | None:
        """The line of `key`, if it has been added."""
        return next((line for _, lines in self.groups for line in lines if line.key == key), None)

    def text(self) -> str:
        """The whole file."""
        out = [_comment(line) for line in self.title]
        for heading, lines in self.groups:
            out += ["", _comment(heading)]
            for line in lines:
                if line.remark:
                    out.append(_comment(line.remark))
                out.append(entry(line.key, line.value))
        return "\n".join(out) + "\n"


def entry(key: str, value: str) -> str:
    """`key = value`, escaped so that `java.util.Properties` reads both back as they are."""
    escaped = value.replace("\\", "\\\\")
    stripped = escaped.lstrip(" ")
    escaped = "\\ " * (len(escaped) - len(stripped)) + stripped
    for char, written in _CONTROLS.items():
        escaped = escaped.replace(char, written)
    plain = "".join(_IN_KEYS.get(char, _CONTROLS.get(char, char)) for char in key)
    return f"{plain} = {escaped}"


def _comment(text: str) -> str:
    # A line end would end the comment, and what follows would be read as an entry.
    return "# " + " ".join(text.split())
