"""`config.providers`: the providers that a file declares."""

from __future__ import annotations

import re

from ferry.config import values
from ferry.config.findings import Findings
from ferry.config.layers import Entries
from ferry.config.secrets import ProviderKind, Providers


def read_providers(entries: Entries, findings: Findings) -> Providers:
    """The providers by name: those that need no line, and those that the file declares."""
    kinds = dict(Providers().kinds)
    declared = entries.by_key.get("config.providers")
    for name in values.items(declared.value) if declared is not None else ():
        key = f"config.providers.{name}.class"
        entry = entries.by_key.get(key)
        if entry is None:
            findings.report(declared, "config.providers", f"provider {name!r} has no class; add {key} = ...")
            continue
        try:
            kinds[name] = ProviderKind(entry.value.strip())
        except ValueError:
            known = ", ".join(kind.value.rpartition(".")[2] for kind in ProviderKind)
            findings.report(entry, key, f"provider class {entry.value!r} is not supported; use one of {known}")
    for key, entry in entries.by_key.items():
        if re.fullmatch(r"config\.providers\..*\.param\..*", key):
            # allowed.paths and allowlist.pattern are limits: ignoring them would open what the file closes.
            findings.report(entry, key, "provider parameters are not supported; remove the line or the provider")
    return Providers(kinds=kinds)
