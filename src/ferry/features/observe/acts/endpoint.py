"""The metrics of a folder over HTTP, for hosts without node_exporter. Each scrape reads the files again."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from ferry.errors import BadInput
from ferry.features.observe.acts.textfile import families, metrics_files, parse
from ferry.features.observe.rules.samples import Labels

log = logging.getLogger(__name__)

ERROR = "ferry_scrape_error"
_TOLD = "1 when the folder, or one of its files, could not be read; what could be is there"


class FolderCollector(Collector):
    """The values in all files of a folder, as one family for each metric."""

    def __init__(self, folder: Path) -> None:
        """Choose the folder; it is read at each collection."""
        self._folder = folder

    def collect(self) -> Iterator[Metric]:
        """Read the files. It never raises: an unreadable file is a warning, and 1 in `ferry_scrape_error`."""
        values: dict[tuple[str, Labels], float] = {}
        failed, paths = False, list[Path]()
        try:
            paths = metrics_files(self._folder)
        except OSError as error:
            log.warning("metrics in %s cannot be read: %s", self._folder, error)
            failed = True
        for path in paths:
            try:
                values |= parse(path.read_text(encoding="utf-8"))
            except (OSError, ValueError) as error:
                log.warning("metrics in %s cannot be read: %s", path, error)
                failed = True
        yield from families(values)
        yield GaugeMetricFamily(ERROR, _TOLD, value=float(failed))


def serve(folder: Path, address: str, port: int) -> tuple[Any, Thread]:
    """Begin to answer at `http://address:port/metrics`.

    Return the server, whose `server_port` is the port, and its thread. Raises BadInput if the folder does not exist, or
    if nothing can listen at the address and port.
    """
    if not os.path.isdir(folder):  # noqa: PTH112 - Path.is_dir raises below a closed folder
        raise BadInput(f"{folder} is not a folder: make it, and let ferry.metrics.folder name it")
    registry = CollectorRegistry(auto_describe=False)
    registry.register(FolderCollector(folder))
    try:
        return start_http_server(port, addr=address, registry=registry)
    except OSError as error:
        raise BadInput(f"nothing can listen at {address}:{port} ({error.strerror or error}): choose another") from None
