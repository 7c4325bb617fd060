"""A flow's metrics in a file of Prometheus's text format, for node_exporter's textfile collector.

Each flow has one file, which is replaced whole. It keeps the values of counters. If it is lost, they start at zero,
which Prometheus treats as a restart.
"""

from __future__ import annotations

import fcntl
import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import Metric as Family
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from ferry.config.flow.flow import FlowConfig
from ferry.features.observe.rules.of_run import only_of
from ferry.features.observe.rules.samples import METRICS, Labels, Values
from ferry.features.observe.settings import AlertSettings
from ferry.files import is_full, write_whole
from ferry.model import lane_kind

log = logging.getLogger(__name__)

READABLE = 0o644
"""The file's mode: node_exporter runs as another user."""
_PATTERN = "ferry__*.prom"
"""The file names of all flows."""
_TOTAL = "_total"


def metrics_file(folder: Path, flow: FlowConfig) -> Path:
    """Return the path of a flow's metrics in a folder; a lane other than `live` has a file of its own."""
    lane = "" if flow.lane == "live" else f"__{flow.lane}"
    return folder / f"{_stem(flow)}{lane}.prom"


def _stem(flow: FlowConfig) -> str:
    return f"ferry__{flow.flow.source}__{flow.flow.target}"


def metrics_files(folder: Path) -> list[Path]:
    """Return the metrics files in a folder, sorted. Raises OSError, also for a closed folder (`glob` finds none)."""
    return sorted(path for path in folder.iterdir() if path.match(_PATTERN))


def files_of_others(folder: Path, flows: Sequence[FlowConfig]) -> list[str]:
    """Return the names of the metrics files in a folder that are of none of these flows. Raises OSError.

    A file of a backfill, a drill or an append is its flow's.
    """
    own = {metrics_file(folder, flow).name for flow in flows}
    lanes = tuple(f"{_stem(flow)}__" for flow in flows)
    found = (path.name for path in metrics_files(folder))
    return [name for name in found if name not in own and not _is_of_lane(name, lanes)]


def _is_of_lane(name: str, begins: Sequence[str]) -> bool:
    lanes = (name.removeprefix(begin).removesuffix(".prom") for begin in begins if name.startswith(begin))
    return any(lane_kind(lane) is not None for lane in lanes)


def update(flow: FlowConfig, change: Callable[[Values], Values]) -> None:
    """Change the flow's metrics, if the file names a folder for them. If they cannot be written, that is a warning.

    Monitoring must not fail a run that is done. The alert for an absent metric reports it.
    """
    named = flow.of(AlertSettings).metrics_folder
    if named is None:
        return
    folder = Path(named)
    path = metrics_file(folder, flow)
    try:
        with _locked(folder):
            write_whole(path, exposition(change(only_of(_read(path), flow))), mode=READABLE)
    except OSError as error:
        remedy = "make room there" if is_full(error) else "make it a folder that you may write"
        log.warning("metrics are not written to %s (%s): %s", path, error.strerror, remedy)


def exposition(values: Values) -> str:
    """Return the text of a file with these values."""
    registry = CollectorRegistry()
    registry.register(_Collected(values))
    return generate_latest(registry).decode()


def parse(text: str) -> Values:
    """Parse the text that `exposition` returns. Raises ValueError for any other text."""
    return {
        (sample.name.removesuffix(_TOTAL), tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def families(values: Values) -> Iterator[Family]:
    """Return the values as Prometheus's families, in the order of the declaration."""
    by_name: dict[str, list[tuple[Labels, float]]] = {}
    for (name, labels), value in values.items():
        by_name.setdefault(name, []).append((labels, value))
    for metric in METRICS:
        if metric.name in by_name:
            family = Family(metric.name, metric.meaning, "counter" if metric.counts else "gauge")
            for labels, value in sorted(by_name[metric.name]):
                family.add_sample(metric.written, dict(labels), value)
            yield family


class _Collected(Collector):
    def __init__(self, values: Values) -> None:
        self._values = values

    def collect(self) -> Iterator[Family]:
        return families(self._values)


def _read(path: Path) -> Values:
    try:
        return parse(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        log.warning("metrics in %s cannot be read (%s): its counters start again at 0", path, error)
        return {}


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Let one process write at a time. The lock is on the folder, so that node_exporter finds no lock file in it."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX)
        yield
    finally:
        os.close(opened)
