"""`clusters`: the aliases that a file declares."""

from __future__ import annotations

import re

from ferry.config import values
from ferry.config.catalogue import keys_of
from ferry.config.findings import Findings
from ferry.config.keys import FERRY_KEYS_BY_NAME
from ferry.config.layers import ROLES, Entries
from ferry.config.places import Place
from ferry.config.secrets import Providers
from ferry.config.slips import alias_meant, without_comment

_ALIAS = re.compile(r"[A-Za-z0-9._-]+")
_NAMES = "use letters, digits, dot, underscore and hyphen only"
_COMMENT = re.compile(r"(?:^|\s+)[#!]")
_OLD_KEYS = ("zookeeper.connect", "zk.connect", "groupid", "mirror.topics.whitelist", "broker.list", "producer.type")
"""Keys of the files that MirrorMaker 1 takes, and no other tool."""


def read_aliases(entries: Entries, findings: Findings, providers: Providers) -> tuple[str, ...]:
    """The aliases in file order; what is wrong with the line, or its absence, is a finding."""
    entry = entries.by_key.get("clusters")
    if entry is None:
        return _report_missing(entries, findings)
    no_alias: tuple[str, ...] = ()
    aliases = findings.read(entry, no_alias, values.items, providers)
    if not aliases:
        findings.report(entry, "clusters", "names no cluster; write for example clusters = primary, backup")
    commented = next((at for at, alias in enumerate(aliases) if _COMMENT.search(alias)), None)
    if commented is not None:
        findings.report(
            entry,
            "clusters",
            f"alias {aliases[commented]!r} is not a name; {_NAMES} (put a comment on a line of its own)",
            correction=without_comment(entry),
        )
        # What stands before the comment is what was meant: the lines of these clusters are right.
        last = _COMMENT.split(aliases[commented], maxsplit=1)[0]
        aliases = (*aliases[:commented], *((last,) if last else ()))
    for alias in aliases:
        if not _ALIAS.fullmatch(alias):
            findings.report(entry, "clusters", f"alias {alias!r} is not a name; {_NAMES}")
        elif aliases.count(alias) > 1:
            once = ", ".join(dict.fromkeys(aliases))
            findings.report(
                entry, "clusters", f"alias {alias!r} is listed twice; keep one", correction=(f"clusters = {once}",)
            )
    return tuple(dict.fromkeys(alias for alias in aliases if _ALIAS.fullmatch(alias)))


def _report_missing(entries: Entries, findings: Findings) -> tuple[str, ...]:
    """Say that `clusters` is missing; answer the aliases that the other lines name, so that these can be looked at."""
    old = next((entries.by_key[key] for key in _OLD_KEYS if key in entries.by_key), None)
    if old is not None:
        findings.report(
            old,
            old.key,
            "is a key of MirrorMaker 1, and clusters is missing; let ferry config import-mm1 write the file",
        )
        return ()
    own = [entry for entry in entries.by_key.values() if _is_of_one_client(entry.key)]
    if own and len(own) == len(entries.by_key):
        message = "is a file of one client, and clusters is missing; name the file of MirrorMaker 2"
        findings.report(own[0], own[0].key, f"{message}, or let ferry config import-mm1 write it")
        return ()
    aliases = _named(entries)
    line = f"clusters = {', '.join(aliases or ('primary', 'backup'))}"
    findings.report(None, "clusters", f"is missing; add {line}", correction=(line,) if aliases else None)
    return aliases


def _named(entries: Entries) -> tuple[str, ...]:
    """The clusters whose brokers are named, then those that only flows name, without other spellings of the same."""
    keys = [key for key in entries.by_key if key.endswith(".bootstrap.servers") and "->" not in key]
    named = [re.sub(r"(\.(consumer|producer|admin))?\.bootstrap\.servers$", "", key) for key in keys]
    aliases = [alias for alias in dict.fromkeys(named) if _ALIAS.fullmatch(alias)]
    for alias in (alias for key in entries.by_key for alias in _ends(key)):
        if _ALIAS.fullmatch(alias) and not any(alias_meant(alias, (known,)) for known in aliases):
            aliases.append(alias)
    return tuple(aliases)


def _ends(key: str) -> tuple[str, ...]:
    """Source and target of a key behind `S->T.`: the target ends where the name of a known key begins."""
    source, arrow, rest = key.partition("->")
    if not arrow:
        return ()
    parts = rest.split(".")
    ends = (end for end in range(1, len(parts)) if _is_of_flow(".".join(parts[end:])))
    return source, ".".join(parts[: next(ends, 1)])


def _is_of_flow(name: str) -> bool:
    return name in FERRY_KEYS_BY_NAME or Place(owner="", flow=None, alias=None, name=name).known() is not None


def _is_of_one_client(key: str) -> bool:
    """Whether a client reads `key` without a prefix, as in the files that MirrorMaker 1 is given."""
    return key == "block.on.buffer.full" or any(key in keys_of(role) for role in ROLES)
