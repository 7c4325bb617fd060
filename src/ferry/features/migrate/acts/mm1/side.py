"""One consumer or producer file of MirrorMaker 1: its lines for the new file, and what happened to each of its keys."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import PurePath

from ferry.config.keys.catalogue import find
from ferry.config.keys.layers import is_common_client_key
from ferry.config.keys.own_classes import own_classes
from ferry.config.text.problem import BadValue
from ferry.config.text.properties import Property
from ferry.config.text.secrets import HIDDEN, has_reference, is_secret
from ferry.errors import BadInput
from ferry.features.migrate.acts.mm1.keys import CLASS_KEYS, KeyRule, Meaning
from ferry.features.migrate.acts.mm1.outcome import Fate, Outcome, Place
from ferry.features.migrate.acts.mm1.sheet import Line
from ferry.model import located

_COMMENT_BEHIND = re.compile(r"\s[#!]")


@dataclass(frozen=True, slots=True, kw_only=True)
class SideFile:
    """A properties file: its name as given, its path, and its entries."""

    name: str
    path: PurePath
    """An absolute path: the new file refers to it for passwords."""
    entries: tuple[Property, ...]


@dataclass(slots=True, kw_only=True)
class Side:
    """A file while it is converted. The conversion handles keys with a meaning for the whole flow."""

    file: SideFile
    alias: str
    rules: Sequence[KeyRule]
    copy_secrets: bool
    lines: list[Line] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    entries: dict[str, Property] = field(default_factory=dict)
    """Entries by key; of duplicates the last one, as in Java."""

    def meaning(self, meaning: Meaning) -> Property | None:
        """Return the entry with that meaning, if there is one."""
        names = next((rule.names for rule in self.rules if rule.meaning is meaning), ())
        return next((self.entries[name] for name in names if name in self.entries), None)

    def hides(self, key: str) -> bool:
        """Return whether the value of `key` must be hidden: an unknown key may be a misspelt password key."""
        known = any(key in rule.names for rule in self.rules) or find(key, "consumer", "producer") is not None
        return is_secret(key) or not known

    def place(self, entry: Property) -> Place:
        """Return the place of the entry."""
        return Place(file=self.file.name, line=entry.line)

    def remark(self, entry: Property) -> str:
        """Return the comment above the entry's line in the new file."""
        return f"{self.place(entry)}: {entry.key}"

    def say(self, entry: Property, fate: Fate, why: str, became: str = "") -> None:
        """Record what happened to an entry."""
        shown = HIDDEN if self.hides(entry.key) else entry.value
        self.outcomes.append(
            Outcome(place=self.place(entry), option=entry.key, value=shown, fate=fate, became=became, why=why)
        )

    def overruled(self, entry: Property, winner: str) -> None:
        """Record that another value wins over an entry."""
        self.say(entry, Fate.GONE, f"{winner} says it instead")

    def bad(self, entry: Property, message: str) -> BadInput:
        """Return the error of an entry that cannot be read."""
        return BadInput(located(f"{self.place(entry)}: {entry.key}", message))

    def write(self, entry: Property, key: str, value: str, why: str) -> None:
        """Add a line to the new file, with the cluster's alias.

        A secret becomes a reference, unless it may be copied.
        """
        if not self.hides(entry.key) and _COMMENT_BEHIND.search(entry.value):
            raise self.bad(
                entry,
                f"the value read is {entry.value!r}: text after a value is part of it; put the comment on a line of "
                "its own",
            )
        name = f"{self.alias}.{key}"
        if self.hides(entry.key):
            value = self._reference(entry)
        self.lines.append(Line(key=name, value=value, remark=self.remark(entry), origin=self.place(entry)))
        shown = HIDDEN if self.hides(entry.key) and not has_reference(value) else value
        self.say(entry, Fate.KEPT, why, f"{name} = {shown}")

    def _reference(self, entry: Property) -> str:
        if self.copy_secrets or has_reference(entry.value) or not entry.value:
            return entry.value
        return reference("file", self.file.path, entry.key, str(self.place(entry)))


def reference(provider: str, path: PurePath, name: str, place: str) -> str:
    """Return `${provider:path:name}`. Raises BadInput, which begins with `place`, for a path with `:` or `}`."""
    if set(str(path)) & set(":}"):
        raise BadInput(
            f"{place}: its path {path} is not possible in a reference, because : and }} would end it; move the file, "
            "or add --copy-secrets"
        )
    return f"${{{provider}:{path}:{name}}}"


def read_side(file: SideFile, alias: str, rules: Sequence[KeyRule], *, copy_secrets: bool, servers_given: bool) -> Side:
    """Read the file with the table of its keys. Raises BadInput for a value that cannot be read."""
    side = Side(file=file, alias=alias, rules=rules, copy_secrets=copy_secrets)
    for entry in file.entries:
        earlier = side.entries.get(entry.key)
        if earlier is not None:
            side.say(earlier, Fate.GONE, f"line {entry.line} sets it again, and Java takes the last")
        side.entries[entry.key] = entry
    known: set[str] = set()
    for rule in rules:
        known.update(rule.names)
        found = [side.entries[name] for name in rule.names if name in side.entries]
        _apply(side, rule, found, servers_given=servers_given)
    own = [name for key in CLASS_KEYS if key in side.entries for name in own_classes(side.entries[key].value)]
    for name, entry in side.entries.items():
        if name in known:
            continue
        if is_common_client_key(name):
            side.write(entry, name, entry.value.strip(), "each cluster has its own security settings")
        else:
            side.say(entry, *_unknown(name, known, own))
    return side


def _unknown(name: str, known: Collection[str], own: Sequence[str]) -> tuple[Fate, str]:
    """Return the fate of a key without a rule: it belongs to one of the file's own classes, or is unknown."""
    if own and not get_close_matches(name, known, n=1, cutoff=0.9):
        return (
            Fate.GONE,
            f"no client of MirrorMaker 1 reads it; where it is a key of {', '.join(own)}, it goes with that",
        )
    close = get_close_matches(name, known, n=1, cutoff=0.6)
    hint = f"; did you mean {close[0]}?" if close else ""
    return Fate.UNKNOWN, f"no client of MirrorMaker 1 reads it, so it did nothing{hint}"


def _apply(side: Side, rule: KeyRule, found: Sequence[Property], *, servers_given: bool) -> None:
    if rule.fate is not Fate.KEPT:
        for entry in found:
            if rule.fate is Fate.LOOK and not entry.value.strip():
                side.say(entry, Fate.GONE, "it is empty, so it did nothing")
            else:
                side.say(entry, rule.fate, rule.why)
        return
    for at, entry in enumerate(found):
        if rule.meaning is Meaning.SERVERS and servers_given:
            side.overruled(entry, "the command line")
        elif at > 0:
            side.overruled(entry, f"{found[0].key} on line {found[0].line}")
        elif rule.becomes:
            try:
                value = rule.convert(entry.value)
            except BadValue as error:
                raise side.bad(entry, error.message) from None
            side.write(entry, rule.becomes, value, rule.why)
