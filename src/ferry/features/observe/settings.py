"""The settings of metrics and alerts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from ferry.config.keys import values
from ferry.config.keys.feature import FeatureSettings, setting
from ferry.config.keys.key import FerryKey
from ferry.config.text.problem import BadValue
from ferry.messages.catalogue import sentence


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


def json_object(text: str) -> Mapping[str, object]:
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


METRICS_FOLDER = FerryKey(
    name="ferry.metrics.folder",
    default="",
    values="an absolute path; empty: no metrics are written",
    meaning="where each run leaves the flow's [metrics](alerts.md) in Prometheus's text format: the folder of"
    " node_exporter's textfile collector",
)
PER_PARTITION = FerryKey(
    name="ferry.metrics.per.partition",
    default="false",
    values="`true` or `false`",
    meaning="whether [metrics](metrics.md) of topics are written for each partition instead, with MirrorMaker 2's "
    "label `partition`: some 25 series for each, so size Prometheus for them",
)
LATE_INTERVALS = FerryKey(
    name="ferry.alert.late.intervals",
    default="3",
    values="0 to 1000; 0: not used",
    meaning="how many scheduled runs in a row may fail or be missed before the alert `late`",
)
CALLBACK = FerryKey(
    name="ferry.alert.callback",
    default="",
    values="the import path of a function or of an Airflow notifier; empty: none",
    meaning="what Airflow's tasks call for each [alert](alerts.md#from-airflow)",
)
CALLBACK_ARGUMENTS = FerryKey(
    name="ferry.alert.callback.arguments",
    default="",
    values="a JSON object; empty: none",
    meaning="what the notifier is made with, or the function called with; put secrets into a connection",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertSettings(FeatureSettings):
    """Where a flow's metrics go, and the callback of Airflow's tasks."""

    metrics_folder: str | None = setting(METRICS_FOLDER, folder)
    """Where Prometheus's node_exporter reads text files; None: none are written."""
    metrics_per_partition: bool = setting(PER_PARTITION, values.boolean)
    """Whether metrics of a topic are written for each of its partitions instead."""
    late_intervals: int = setting(LATE_INTERVALS, values.integer(0, 1000))
    """The number of due runs in a row without success that counts as late; 0: they are not counted."""
    callback: str | None = setting(CALLBACK, import_path)
    """Import path of a function or of an Airflow notifier; None: there is no callback."""
    arguments: Mapping[str, object] = setting(CALLBACK_ARGUMENTS, json_object)
    """The arguments with which the callback is made or called."""
