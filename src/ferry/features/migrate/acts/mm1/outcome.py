"""What happened to one option of MirrorMaker 1."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Fate(Enum):
    """What the new file does with an option."""

    KEPT = "kept"
    """The option is in the new file, perhaps with another name."""
    ALWAYS = "always"
    """Ferry always works like that, or more safely."""
    GONE = "gone"
    """It was for a part of MirrorMaker 1 that Ferry does not have."""
    UNKNOWN = "unknown"
    """No version of MirrorMaker 1 or its clients reads it."""
    LOOK = "look"
    """It did something that the new file cannot express: the operator must decide."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The place of an option. `file` is None for the command line, `line` is None for an option that is missing."""

    file: str | None = None
    line: int | None = None

    def __str__(self) -> str:
        if self.file is None:
            return "command line"
        return self.file if self.line is None else f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One option as it was given, and what happened to it. A secret's value is hidden in `value` and `became`."""

    place: Place
    option: str
    value: str
    fate: Fate
    became: str = ""
    """`key = value` of the new file; empty if nothing was written."""
    why: str
