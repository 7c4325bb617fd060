"""Checks this machine: versions, Spark, Java, Airflow, and the folders that the file names."""

from __future__ import annotations

import importlib.util
import os
import platform
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, entry_points, version
from pathlib import Path

from ferry.config.flow.flow import FlowConfig
from ferry.config.flow.report import local_path
from ferry.features.doctor.rules.findings import MACHINE, of_metrics_files
from ferry.features.observe.acts.textfile import files_of_others
from ferry.features.observe.settings import AlertSettings
from ferry.jvm import LEAST_JAVA, java_version
from ferry.model.finding import Finding, Grade, failed, unknown

LIBRARIES = (
    "ferry-replicator",
    "kafka-python",
    "confluent-kafka",
    "pyspark",
    "apache-airflow",
    "apache-airflow-providers-apache-spark",
)
CHECKS = "ferry.checks"
"""Entry points of other packages of the project: each takes the flows, and yields `OtherCheck` rows."""

OtherCheck = tuple[str, bool | None, str]
"""A check's name, whether it passed (None: not known), and a sentence."""


def versions() -> dict[str, str | None]:
    """Return the versions of Python and of the libraries that matter; None: not installed."""
    found: dict[str, str | None] = {"python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = None
    return found


def look_at_machine(flows: Sequence[FlowConfig], every: Sequence[FlowConfig]) -> Iterator[Finding]:
    """Yield what was found of this machine for some flows; `every` are all of the file."""
    known = versions()
    there = ", ".join(f"{name} {number}" for name, number in known.items() if number is not None)
    yield Finding(about=MACHINE, check="versions", grade=Grade.PASS, message=there)
    yield _spark(flows)
    yield from _folders(flows)
    yield from _metrics_files(flows, every)
    yield from _others(flows)


def _spark(flows: Iterable[FlowConfig]) -> Finding:
    """Return whether a run can begin a Spark on this machine, as far as a flow needs one."""
    needy = [str(flow.flow) for flow in flows if flow.records.transforms]
    which = f" ({', '.join(needy)} have transforms)" if needy else ""
    if importlib.util.find_spec("pyspark") is None:
        message = "PySpark is not installed: copies run as processes of this machine"
        if not needy:
            return Finding(about=MACHINE, check="spark", grade=Grade.PASS, message=message)
        remedy = "install ferry-replicator[spark] to run them here"
        return Finding(about=MACHINE, check="spark", grade=Grade.WARN, message=f"{message}{which}; {remedy}")
    java = java_version()
    if java is None or java < LEAST_JAVA:
        here = "no Java was found" if java is None else f"Java {java} was found"
        message = f"{here}, and Spark needs {LEAST_JAVA} or newer{which}: install it, or set JAVA_HOME"
        return Finding(about=MACHINE, check="spark", grade=Grade.WARN, message=message)
    message = f"PySpark and Java {java} are here"
    return Finding(about=MACHINE, check="spark", grade=Grade.PASS, message=message)


def _folders(flows: Iterable[FlowConfig]) -> Iterator[Finding]:
    """Yield whether this user may write to each folder that the file names for reports and metrics."""
    folders: dict[str, str] = {}
    for flow in flows:
        if flow.report.is_named and local_path(flow.report.folder) is not None:
            folders.setdefault(flow.report.folder, "ferry.report.dir")
        metrics = flow.of(AlertSettings).metrics_folder
        if metrics is not None:
            folders.setdefault(metrics, "ferry.metrics.folder")
    for folder, key in folders.items():
        path = local_path(folder) or Path(folder)
        try:
            there, is_folder = _nearest(path)
        except OSError as error:  # also if a folder above it is closed to this user
            why = f"{error.strerror or type(error).__name__}; correct the key, or the permissions"
            yield failed(MACHINE, key, f"folder {folder}: {why}")
            continue
        if is_folder and os.access(there, os.W_OK | os.X_OK):
            how = "can be written" if there == path else "can be created"
            yield Finding(about=MACHINE, check=key, grade=Grade.PASS, message=f"folder {folder} {how}")
        else:
            why = "may not be written by this user" if is_folder else "is not a folder"
            yield failed(MACHINE, key, f"folder {folder}: {there} {why}; correct the key, or the permissions")


def _metrics_files(flows: Iterable[FlowConfig], every: Sequence[FlowConfig]) -> Iterator[Finding]:
    """Yield whether each folder of metrics has files of no flow. One that does not exist has none."""
    named = (flow.of(AlertSettings).metrics_folder for flow in flows)
    for folder in dict.fromkeys(one for one in named if one is not None):
        try:
            yield of_metrics_files(folder, files_of_others(Path(folder), every))
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            why = f"folder {folder} cannot be listed: {error.strerror}; correct the key, or the permissions"
            yield unknown(MACHINE, "metrics files", why)


def _nearest(path: Path) -> tuple[Path, bool]:
    """Return the path, or the nearest one above it that exists, and whether that is a folder.

    Raises OSError if that cannot be found out.
    """
    for place in (path, *path.absolute().parents):
        with suppress(FileNotFoundError, NotADirectoryError):
            return place, stat.S_ISDIR(place.stat().st_mode)
    return Path("/"), True


def _others(flows: Sequence[FlowConfig]) -> Iterator[Finding]:
    found = entry_points(group=CHECKS)
    if not found:
        why = "Ferry's Airflow package is not installed here: run ferry doctor where Airflow runs"
        yield unknown(MACHINE, "airflow", why)
    for entry in found:
        checks: Callable[[Sequence[FlowConfig]], Iterable[OtherCheck]] = entry.load()
        for name, passed, message in checks(flows):
            grade = Grade.UNKNOWN if passed is None else Grade.PASS if passed else Grade.FAIL
            yield Finding(about=MACHINE, check=name, grade=grade, message=message)
