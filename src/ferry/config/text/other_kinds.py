"""Files that are given for a properties file and are of another kind."""

from __future__ import annotations

import re
from itertools import pairwise

_OPENINGS = {"{": "JSON", "[": "JSON, or has sections", "<": "XML"}
_NOTHING = re.compile(r"\s*([#!].*)?")
_NAME_ALONE = re.compile(r"[^\s:=]+:\s*")
_DEEPER = re.compile(r"\s+(- |[^\s:=]+:)|- ")


def other_kind(text: str) -> tuple[int, str] | None:
    """Return the line from which a text is of another kind, and which one: JSON, XML or YAML; None if it is not.

    Java would read it as properties all the same, with keys such as `{"clusters"` and `-`. A colon after a key is no
    sign of YAML, as properties may have one. A name alone with a deeper line after it is, where no line has a `=`.
    """
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if not _NOTHING.fullmatch(line)]
    if not lines:
        return None
    number, first = lines[0]
    opening = first.lstrip()[0]
    if opening in _OPENINGS:
        return number, _OPENINGS[opening]
    if first.rstrip() == "---":
        return number, "YAML"
    if any("=" in line for _, line in lines):
        return None
    for (number, line), (_, following) in pairwise(lines):
        if _NAME_ALONE.fullmatch(line) and _DEEPER.match(following):
            return number, "YAML"
    return None
