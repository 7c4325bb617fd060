"""Values that came out of `${provider:...}`: no message shows one, whatever the name of its key."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

_BETWEEN = re.compile(r"[\s,;\"'=]+")
_OF_JAAS = re.compile(r"[A-Za-z_][\w.]*\s*=|\b(?:required|requisite|sufficient|optional)\b")
"""What a login module's text has beside values: names of options, and the flag."""
_ENDING = re.compile(r"[._-]?[0-9]+$")
_APART = (r"(?<![A-Za-z0-9_-])(?<![A-Za-z0-9]\.)", r"(?![A-Za-z0-9_-]|\.[A-Za-z0-9])")
"""What no word goes on beyond: a service called kafka is no part of org.apache.kafka."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LookedUp:
    """What one reference, or the whole value of `key` that has references in it, stands for."""

    key: str
    text: str = field(repr=False)
    reference: str
    """As the file writes it; a message shows this."""


def without_values(message: str, looked_up: Iterable[LookedUp]) -> str:
    """`message` with the reference in place of each value that was looked up, and of each part of one."""
    hidden: dict[str, str] = {}
    for one in looked_up:
        # How a reader took a value apart, and spelt it, only a message about its own key tells.
        parts = _read_out_of(one.text) if message.startswith(one.key) else _items(one.text)
        for part in parts:
            hidden.setdefault(part, one.reference)
    if not hidden:
        return message
    longest = "|".join(re.escape(part) for part in sorted(hidden, key=len, reverse=True))
    return re.sub(f"{_APART[0]}({longest}){_APART[1]}", lambda found: hidden[found.group()], message)


def _items(text: str) -> Iterator[str]:
    """The text, and the items of a list or the options of a login in it; a single letter is a word by chance."""
    yield from filter(None, (text, text.strip(), repr(text)[1:-1]))
    values = _OF_JAAS.sub(" ", text) if text.rstrip().endswith(";") else text
    yield from (item for item in _BETWEEN.split(values) if len(item) > 1)


def _read_out_of(text: str) -> Iterator[str]:
    """Those, and what a reader makes of them: a host and a port, a path, a number, capitals."""
    for item in _items(text):
        address = item.rpartition("://")[2]
        host, _, port = address.rpartition(":")
        for part in (item, address, host, port, _ENDING.sub("", address), str(Path(item)), item.lstrip("+0")):
            if len(part) > 1 or part == text:
                yield from (part, part.upper(), part.lower())
