"""Who is told how a flow fares, and when."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from ferry.config.text.problem import BadValue
from ferry.messages.catalogue import sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class Alerts:
    """Where a flow's metrics go, and the callback that Airflow's tasks call."""

    metrics_folder: str | None = None
    """Where Prometheus's node_exporter looks for text files; None: none are written."""
    metrics_per_partition: bool = False
    """Whether what is told per topic is told per partition instead."""
    late_intervals: int = 3
    """So many times in a row a run was due and none succeeded; 0: nobody counts."""
    callback: str | None = None
    """Import path of a function or of an Airflow notifier; None: nobody is called."""
    arguments: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))
    """What the callback is made or called with."""


def folder(text: str) -> str | None:
    """An absolute path; empty: none."""
    path = text.strip()
    if path and not path.startswith("/"):
        raise BadValue(sentence("value.folder.not-absolute", path=path))
    return path or None


def import_path(text: str) -> str | None:
    """`package.module.name`; empty: none. It is imported where it is called, not here."""
    path = text.strip()
    if path and ("." not in path or not all(part.isidentifier() for part in path.split("."))):
        raise BadValue(sentence("value.import-path", path=path))
    return path or None


def arguments(text: str) -> Mapping[str, object]:
    """A JSON object; empty: no arguments."""
    if not text.strip():
        return MappingProxyType({})
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadValue(sentence("value.not-json", error=str(error))) from None
    if not isinstance(found, dict):
        raise BadValue(sentence("value.not-json-object"))
    return MappingProxyType(found)
