"""Who is alerted about a flow, and when."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from ferry.config.text.problem import BadValue
from ferry.messages.catalogue import sentence


@dataclass(frozen=True, slots=True, kw_only=True)
class Alerts:
    """Where a flow's metrics go, and the callback of Airflow's tasks."""

    metrics_folder: str | None = None
    """Where Prometheus's node_exporter reads text files; None: none are written."""
    metrics_per_partition: bool = False
    """Whether metrics of a topic are written for each of its partitions instead."""
    late_intervals: int = 3
    """The number of due runs in a row without success that counts as late; 0: they are not counted."""
    callback: str | None = None
    """Import path of a function or of an Airflow notifier; None: there is no callback."""
    arguments: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))
    """The arguments with which the callback is made or called."""


def folder(text: str) -> str | None:
    """Read an absolute path; empty: none."""
    path = text.strip()
    if path and not path.startswith("/"):
        raise BadValue(sentence("value.folder.not-absolute", path=path))
    return path or None


def import_path(text: str) -> str | None:
    """Read `package.module.name`; empty: none. It is imported where it is called, not here."""
    path = text.strip()
    if path and ("." not in path or not all(part.isidentifier() for part in path.split("."))):
        raise BadValue(sentence("value.import-path", path=path))
    return path or None


def arguments(text: str) -> Mapping[str, object]:
    """Read a JSON object; empty: no arguments."""
    if not text.strip():
        return MappingProxyType({})
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadValue(sentence("value.not-json", error=str(error))) from None
    if not isinstance(found, dict):
        raise BadValue(sentence("value.not-json-object"))
    return MappingProxyType(found)
