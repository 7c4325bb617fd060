"""`config.providers`: the providers that a file declares, and what they may read."""

from __future__ import annotations

import re
from pathlib import Path

from ferry.config.keys import values
from ferry.config.keys.layers import Entries
from ferry.config.reading.findings import Findings
from ferry.config.text.lookups import look_up
from ferry.config.text.problem import BadValue
from ferry.config.text.properties import Property
from ferry.config.text.regex import NotExpressible, compile_java
from ferry.config.text.secrets import Limits, ProviderKind, Providers
from ferry.messages.catalogue import sentence

_PARAMETER = re.compile(r"config\.providers\.([^.]+)\.param\.(.+)")
_PATHS, _PATTERN = "allowed.paths", "allowlist.pattern"


def read_providers(entries: Entries, findings: Findings) -> Providers:
    """Return the providers by name: those that need no line, and those that the file declares."""
    kinds = dict(Providers().kinds)
    declared = entries.by_key.get("config.providers")
    for name in values.items(declared.value) if declared is not None else ():
        key = f"config.providers.{name}.class"
        entry = entries.by_key.get(key)
        if entry is None:
            findings.report(declared, "config.providers", sentence("line.provider.no-class", name=name, key=key))
            continue
        try:
            kinds[name] = ProviderKind(entry.value.strip())
        except ValueError:
            known = ", ".join(kind.value.rpartition(".")[2] for kind in ProviderKind)
            findings.report(entry, key, sentence("line.provider.class", name=entry.value, known=known))
    return Providers(kinds=kinds, limits=_limits(entries, findings, kinds), look_up=look_up)


def _limits(entries: Entries, findings: Findings, kinds: dict[str, ProviderKind]) -> dict[str, Limits]:
    """Return the limits of the providers; a parameter that was ignored would open what the file closes.

    So each parameter is kept or refused.
    """
    limits: dict[str, Limits] = {}
    nowhere = Providers(kinds={})
    no_path: tuple[Path, ...] = ()
    for key, entry in entries.by_key.items():
        match = _PARAMETER.fullmatch(key)
        if match is None:
            continue
        name, parameter = match.groups()
        if parameter == _PATTERN and kinds.get(name) is ProviderKind.ENV:
            limits[name] = Limits(allowlist=findings.read(entry, None, _pattern, nowhere))
        elif parameter == _PATHS and kinds.get(name) in (ProviderKind.FILE, ProviderKind.DIRECTORY):
            limits[name] = Limits(allowed_paths=findings.read(entry, no_path, _paths, nowhere))
        else:
            _refuse(findings, entry, name, kinds)
    return limits


def _refuse(findings: Findings, entry: Property, name: str, kinds: dict[str, ProviderKind]) -> None:
    if name not in kinds:
        message = sentence("line.provider.not-declared", name=name)
    else:
        known = _PATTERN if kinds[name] is ProviderKind.ENV else _PATHS
        message = sentence("line.provider.parameter", name=name, known=known)
    findings.report(entry, entry.key, message)


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return compile_java(text)
    except NotExpressible as error:
        raise BadValue(sentence("value.pattern", pattern=text, error=str(error))) from None


def _paths(text: str) -> tuple[Path, ...]:
    paths = tuple(Path(item) for item in values.items(text))
    for path in paths:
        if not path.is_absolute():
            raise BadValue(sentence("value.path.not-absolute", path=str(path)))
    if not paths:
        raise BadValue(sentence("value.paths.empty"))
    return paths
