"""What became of one option of MirrorMaker 1."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Fate(Enum):
    """What the new file does with an option."""

    KEPT = "kept"
    """It is in the new file, perhaps by another name."""
    ALWAYS = "always"
    """Ferry works like that, or more safely, whatever anybody writes."""
    GONE = "gone"
    """It steered a part of MirrorMaker 1 that Ferry does not have."""
    UNKNOWN = "unknown"
    """No version of MirrorMaker 1 or its clients read it."""
    LOOK = "look"
    """It did something that the new file cannot say: somebody has to decide."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where an option stands. `file` is None for the command line, `line` for what is not there."""

    file: str | None = None
    line: int | None = None

    def __str__(self) -> str:
        if self.file is None:
            return "command line"
        return self.file if self.line is None else f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One option as it was given, and what became of it. A secret's value is hidden in `value` and `became`."""

    place: Place
    option: str
    value: str
    fate: Fate
    became: str = ""
    """`key = value` of the new file; empty when nothing was written."""
    why: str
