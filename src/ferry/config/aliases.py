"""`clusters`: the aliases that a file declares."""

from __future__ import annotations

import re

from ferry.config import values
from ferry.config.catalogue import keys_of
from ferry.config.findings import Findings
from ferry.config.layers import ROLES, Entries
from ferry.config.secrets import Providers
from ferry.config.slips import COMMENT_BEHIND, without_comment

_ALIAS = re.compile(r"[A-Za-z0-9._-]+")
_OLD_KEYS = ("zookeeper.connect", "zk.connect", "groupid", "mirror.topics.whitelist", "broker.list", "producer.type")
"""Keys of the files that MirrorMaker 1 takes, and no other tool."""


def read_aliases(entries: Entries, findings: Findings, providers: Providers) -> tuple[str, ...]:
    """The aliases in file order; what is wrong with the line, or its absence, is a finding."""
    entry = entries.by_key.get("clusters")
    if entry is None:
        _report_missing(entries, findings)
        return ()
    no_alias: tuple[str, ...] = ()
    aliases = findings.read(entry, no_alias, values.items, providers)
    if not aliases:
        findings.report(entry, "clusters", "names no cluster; write for example clusters = primary, backup")
    for alias in aliases:
        if not _ALIAS.fullmatch(alias):
            comment = " (put a comment on a line of its own)" if COMMENT_BEHIND.search(alias) else ""
            findings.report(
                entry,
                "clusters",
                f"alias {alias!r} is not a name; use letters, digits, dot, underscore and hyphen only{comment}",
                correction=without_comment(entry),
            )
        elif aliases.count(alias) > 1:
            once = ", ".join(dict.fromkeys(aliases))
            findings.report(
                entry, "clusters", f"alias {alias!r} is listed twice; keep one", correction=(f"clusters = {once}",)
            )
    return tuple(dict.fromkeys(alias for alias in aliases if _ALIAS.fullmatch(alias)))


def _report_missing(entries: Entries, findings: Findings) -> None:
    old = next((entries.by_key[key] for key in _OLD_KEYS if key in entries.by_key), None)
    if old is not None:
        findings.report(
            old,
            old.key,
            "is a key of MirrorMaker 1, and clusters is missing; let ferry config import-mm1 write the file",
        )
        return
    own = [entry for entry in entries.by_key.values() if _is_of_one_client(entry.key)]
    if own and len(own) == len(entries.by_key):
        message = "is a file of one client, and clusters is missing; name the file of MirrorMaker 2"
        findings.report(own[0], own[0].key, f"{message}, or let ferry config import-mm1 write it")
        return
    keys = [key for key in entries.by_key if key.endswith(".bootstrap.servers") and "->" not in key]
    named = [re.sub(r"(\.(consumer|producer|admin))?\.bootstrap\.servers$", "", key) for key in keys]
    aliases = [alias for alias in dict.fromkeys(named) if _ALIAS.fullmatch(alias)]
    line = f"clusters = {', '.join(aliases) or 'primary, backup'}"
    findings.report(None, "clusters", f"is missing; add {line}", correction=(line,) if aliases else None)


def _is_of_one_client(key: str) -> bool:
    """Whether a client reads `key` without a prefix, as in the files that MirrorMaker 1 is given."""
    return key == "block.on.buffer.full" or any(key in keys_of(role) for role in ROLES)
