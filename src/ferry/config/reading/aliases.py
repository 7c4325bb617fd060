"""`clusters`: the aliases that a file declares."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ferry.config.keys import values
from ferry.config.keys.catalogue import keys_of
from ferry.config.keys.layers import ROLES, Entries
from ferry.config.keys.own import FERRY_KEYS_BY_NAME
from ferry.config.keys.places import Place
from ferry.config.reading.findings import Findings
from ferry.config.reading.typos import alias_meant, torn_apart, without_comment
from ferry.config.text.secrets import Providers
from ferry.messages.catalogue import sentence

_ALIAS = re.compile(r"[A-Za-z0-9._-]+")
_NAMES = "use letters, digits, dot, underscore and hyphen only"
_COMMENT = re.compile(r"(?:^|\s+)[#!]")
_OLD_KEYS = ("zookeeper.connect", "zk.connect", "groupid", "mirror.topics.whitelist", "broker.list", "producer.type")
"""Keys in the files of MirrorMaker 1, and of no other tool."""


def read_aliases(entries: Entries, findings: Findings, providers: Providers) -> tuple[str, ...]:
    """Return the aliases in file order; what is wrong with the line, or its absence, is a finding."""
    entry = entries.by_key.get("clusters")
    if entry is None:
        return _report_missing(entries, findings)
    no_alias: tuple[str, ...] = ()
    aliases = findings.read(entry, no_alias, values.items, providers)
    if not aliases:
        findings.report(entry, "clusters", sentence("line.clusters.none"))
    commented = next((at for at, alias in enumerate(aliases) if _COMMENT.search(alias)), None)
    if commented is not None:
        findings.report(
            entry,
            "clusters",
            sentence("line.clusters.comment", alias=aliases[commented], names=_NAMES),
            correction=without_comment(entry),
        )
        # What is before the comment is what was meant: the lines of these clusters are right.
        last = _COMMENT.split(aliases[commented], maxsplit=1)[0]
        aliases = (*aliases[:commented], *((last,) if last else ()))
    for alias in aliases:
        if not _ALIAS.fullmatch(alias):
            findings.report(entry, "clusters", sentence("line.clusters.name", alias=alias, names=_NAMES))
        elif aliases.count(alias) > 1:
            once = ", ".join(dict.fromkeys(aliases))
            findings.report(
                entry, "clusters", sentence("line.clusters.twice", alias=alias), correction=(f"clusters = {once}",)
            )
    return tuple(dict.fromkeys(alias for alias in aliases if _ALIAS.fullmatch(alias)))


def _report_missing(entries: Entries, findings: Findings) -> tuple[str, ...]:
    """Report that `clusters` is missing; return the aliases that the other lines name, so that these can be checked."""
    old = next((entries.by_key[key] for key in _OLD_KEYS if key in entries.by_key), None)
    if old is not None:
        findings.report(
            old,
            old.key,
            sentence("line.clusters.mm1"),
        )
        return ()
    own = [entry for entry in entries.by_key.values() if _is_of_one_client(entry.key)]
    if own and len(own) == len(entries.by_key):
        message = "is a file of one client, and clusters is missing; name the file of MirrorMaker 2"
        findings.report(own[0], own[0].key, sentence("line.clusters.mm1-key", what=message))
        return ()
    aliases = _named(entries)
    line = f"clusters = {', '.join(aliases or ('primary', 'backup'))}"
    others = () if len(aliases) > 1 else _mentioned(entries, aliases)
    if others:
        line = f"clusters = {', '.join((*aliases, *others))}"
        if len(aliases) + len(others) == 1:
            line += ", and the other clusters after a comma"
        findings.report(None, "clusters", sentence("line.missing", line=line))
    else:
        findings.report(None, "clusters", sentence("line.missing", line=line), correction=(line,) if aliases else None)
    return (*aliases, *others)


def _named(entries: Entries) -> tuple[str, ...]:
    """Return the clusters whose brokers are named, then those that only flows name.

    Other spellings of the same cluster are left out.
    """
    keys = [key for key in entries.by_key if key.endswith(".bootstrap.servers") and "->" not in key]
    named = [re.sub(r"(\.(consumer|producer|admin))?\.bootstrap\.servers$", "", key) for key in keys]
    aliases = [alias for alias in dict.fromkeys(named) if _ALIAS.fullmatch(alias)]
    # A blank at the arrow is reported separately.
    torn = (torn_apart(entry) for entry in entries.by_key.values())
    keys = [read[0] if read is not None else key for key, read in zip(entries.by_key, torn, strict=True)]
    return _with_new(aliases, (alias for key in keys for alias in _ends(key)))


def _mentioned(entries: Entries, aliases: tuple[str, ...]) -> tuple[str, ...]:
    """Return clusters of which only other settings are there, such as a login: the text before a key of a cluster."""
    found = (_before(key) for key in entries.by_key if "->" not in key and not _is_of_flow(key))
    return _with_new(list(aliases), (alias for alias in found if alias is not None))[len(aliases) :]


def _with_new(aliases: list[str], more: Iterable[str]) -> tuple[str, ...]:
    """Return the aliases with those of `more` that are no other spelling of one of them."""
    for alias in more:
        if _ALIAS.fullmatch(alias) and not any(alias_meant(alias, (known,)) for known in aliases):
            aliases.append(alias)
    return tuple(aliases)


def _before(key: str) -> str | None:
    """Return the text before the name of a key that counts after an alias."""
    parts = key.split(".")
    for end in range(1, len(parts)):
        alias, name = ".".join(parts[:end]), ".".join(parts[end:])
        if Place(owner=f"{alias}.", flow=None, alias=alias, name=name).known() is not None:
            return alias
    return None


def _ends(key: str) -> tuple[str, ...]:
    """Return source and target of a key after `S->T.`: the target ends where the name of a known key begins."""
    source, arrow, rest = key.partition("->")
    if not arrow:
        return ()
    parts = rest.split(".")
    ends = (end for end in range(1, len(parts)) if _is_of_flow(".".join(parts[end:])))
    return source, ".".join(parts[: next(ends, 1)])


def _is_of_flow(name: str) -> bool:
    return name in FERRY_KEYS_BY_NAME or Place(owner="", flow=None, alias=None, name=name).known() is not None


def _is_of_one_client(key: str) -> bool:
    """Return whether a client reads `key` without a prefix, as in the files for MirrorMaker 1."""
    return key == "block.on.buffer.full" or any(key in keys_of(role) for role in ROLES)
