"""Paths into JSON: the part of JSONPath (RFC 9535) that leads by names, and to all items."""

from __future__ import annotations

import re

from ferry.config.text.problem import BadValue
from ferry.messages.catalogue import sentence

Path = tuple[str | None, ...]
"""Names one after the other; None is any name of an object and any place of a list (`*`)."""

_PART = re.compile(r"\.([^.\[\]*'\"\s]+)|\.(\*)|\[(\*)\]|\['([^'\\]*)'\]|\[\"([^\"\\]*)\"\]")


def parse_path(text: str) -> Path:
    """Parse `$.a.b`, `$['a b']`, `$.list[*].x`, `$.*`. Raises BadValue."""
    found: list[str | None] = []
    at = 1
    while at < len(text):
        part = _PART.match(text, at)
        if part is None:
            break
        found.append(next((name for name in (part.group(1), part.group(4), part.group(5)) if name is not None), None))
        at = part.end()
    if not text.startswith("$") or not found or at != len(text):
        raise BadValue(sentence("value.json-path", value=text))
    return tuple(found)


def written_path(name: str) -> str:
    """Return the path of a field at the top level, whatever its name."""
    return f'$["{name}"]' if "'" in name else f"$['{name}']"
