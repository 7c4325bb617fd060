"""Where the properties of a client were written, so that an error about one of them names file, line and key."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ferry.config.text.properties import Property
from ferry.model import facts_of, located, with_text

_NAME = re.compile(r"[a-z][a-z0-9]*(\.[a-z0-9]+)+(?=[:= ])")
_ASKED_BY = (
    ("ssl.truststore.", ("ssl.truststore.location", "ssl.truststore.certificates")),
    ("ssl.key", ("ssl.keystore.location", "ssl.keystore.key", "ssl.keystore.certificate.chain")),
    ("sasl.", ("sasl.mechanism", "security.protocol")),
    ("ssl.", ("security.protocol",)),
)
"""Properties by the beginning of their name, and those that make them necessary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The entry of a file that sets a property; `line` None: it is missing there."""

    file: str
    line: int | None
    key: str

    def __str__(self) -> str:
        return f"{self.file}: {self.key}" if self.line is None else f"{self.file}:{self.line}: {self.key}"


def origins_of(file: str, entries: Mapping[str, Property]) -> dict[str, Origin]:
    """Return the origin of each property, by its Java name."""
    return {name: Origin(file=file, line=entry.line, key=entry.key) for name, entry in entries.items()}


def named_in(message: str) -> str | None:
    """Return the property that an error of a client begins with, by its Java name.

    It is the fact `key` of a sentence that has one: a name without a dot, as `acks`, is seen by that alone.
    """
    key = dict(facts_of(message)).get("key")
    if isinstance(key, str) and message.startswith((f"{key}: ", f"{key}=")):
        return key
    match = _NAME.match(message)
    return None if match is None else match.group()


def origin_of(name: str, origins: Mapping[str, Origin], alias: str) -> Origin | None:
    """Return where the property is written; where it is missing, the line that makes it necessary. None: none does."""
    if name in origins:
        return origins[name]
    for beginning, askers in _ASKED_BY:
        asker = next((asker for asker in askers if asker in origins), None)
        if not name.startswith(beginning) or asker is None:
            continue
        origin = origins[asker]
        owner = origin.key.removesuffix(asker) or f"{alias}."
        return Origin(file=origin.file, line=origin.line, key=f"{owner}{name}")
    return None


def placed(message: str, origins: Mapping[str, Origin], alias: str) -> str:
    """Return an error of a client of cluster `alias` with the place before it, as `ferry config check` shows it."""
    name = named_in(message)
    origin = None if name is None else origin_of(name, origins, alias)
    if name is None or origin is None:
        return located(f"cluster {alias}", message)
    return located(str(origin), said_of(name, message))


def said_of(name: str, message: str) -> str:
    """Return the rest of a sentence about a property, whose place is named before it, with its code and facts."""
    rest = message.removeprefix(name)
    for mark in (": ", "="):
        if rest.startswith(mark):
            return with_text(message, rest.removeprefix(mark).lstrip())
    return message
