"""Values of `${provider:...}` references: no message shows one, whatever the name of its key."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

_BETWEEN = re.compile(r"[\s,;\"'=]+")
_OF_JAAS = re.compile(r"[A-Za-z_][\w.]*\s*=|\b(?:required|requisite|sufficient|optional)\b")
"""The parts of a login module's text that are not values: names of options, and the flag."""
_ENDING = re.compile(r"[._-]?[0-9]+$")
_APART = (r"(?<![A-Za-z0-9_-])(?<![A-Za-z0-9]\.)", r"(?![A-Za-z0-9_-]|\.[A-Za-z0-9])")
"""The limits of a word: a service called kafka is not part of org.apache.kafka."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LookedUp:
    """The value of one reference, or the whole value of `key` that has references in it."""

    key: str
    text: str = field(repr=False)
    reference: str
    """The reference as the file writes it; a message shows this."""


def without_values(message: str, looked_up: Iterable[LookedUp]) -> str:
    """Return `message` with the reference in place of each resolved value, and of each part of one."""
    hidden: dict[str, str] = {}
    for one in looked_up:
        # Only a message about its own key shows how a reader divided a value, and spelt it.
        parts = _read_out_of(one.text) if message.startswith(one.key) else _items(one.text)
        for part in parts:
            hidden.setdefault(part, one.reference)
    if not hidden:
        return message
    longest = "|".join(re.escape(part) for part in sorted(hidden, key=len, reverse=True))
    return re.sub(f"{_APART[0]}({longest}){_APART[1]}", lambda found: hidden[found.group()], message)


def _items(text: str) -> Iterator[str]:
    """Yield the text, and the items of a list or the options of a login in it; a single letter is a word by chance."""
    yield from filter(None, (text, text.strip(), repr(text)[1:-1]))
    values = _OF_JAAS.sub(" ", text) if text.rstrip().endswith(";") else text
    yield from (item for item in _BETWEEN.split(values) if len(item) > 1)


def _read_out_of(text: str) -> Iterator[str]:
    """Yield those items, and what a reader makes of them: a host and a port, a path, a number, capitals."""
    for item in _items(text):
        address = item.rpartition("://")[2]
        host, _, port = address.rpartition(":")
        for part in (item, address, host, port, _ENDING.sub("", address), str(Path(item)), item.lstrip("+0")):
            if len(part) > 1 or part == text:
                yield from (part, part.upper(), part.lower())
