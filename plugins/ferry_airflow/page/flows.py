"""The flows that the page is about: those of the file that FERRY_CONFIG names, read again when it changes."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from pathlib import Path

from ferry.config.flow.flow import FlowConfig
from ferry.config.nearby import CLUSTERS_VARIABLE, local_clusters
from ferry.config.settings import load
from ferry.errors import FerryError
from ferry_airflow.connection import settings_for
from ferry_airflow.naming import refuse_same_ids

CONFIG_VARIABLE = "FERRY_CONFIG"


@dataclass(frozen=True, slots=True, kw_only=True)
class Configured:
    """What the file says; `trouble` is why it says nothing."""

    flows: tuple[FlowConfig, ...] = ()
    path: Path | None = None
    trouble: str = ""
    stamp: tuple[int, int] = (0, 0)
    """Changes when the file does."""


class Flows:
    """The configuration as the API server sees it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known = Configured()

    def now(self) -> Configured:
        """The flows of the file as it is now; never raises for what is wrong with it."""
        named = os.environ.get(CONFIG_VARIABLE)
        if not named:
            return Configured(trouble=f"{CONFIG_VARIABLE} is not set in the environment of Airflow's API server")
        path = Path(named).absolute()
        try:
            state = path.stat()
        except OSError as error:
            return Configured(path=path, trouble=f"{path} cannot be read: {error.strerror}")
        stamp = state.st_mtime_ns, state.st_size
        with self._lock:
            if self._known.path != path or self._known.stamp != stamp:
                self._known = _read(path, stamp)
            return self._known


def _read(path: Path, stamp: tuple[int, int]) -> Configured:
    try:
        settings = load(path)
        refuse_same_ids(flow.flow for flow in settings.flows)
        settings = settings.near(local_clusters(os.environ.get(CLUSTERS_VARIABLE)))
    except FerryError as error:
        return Configured(path=path, trouble=str(error), stamp=stamp)
    return Configured(path=path, flows=settings.flows, stamp=stamp)


def connected(path: Path, flow: FlowConfig) -> FlowConfig:
    """The flow with what Airflow's connections say of its clusters; raises BadInput where one is missing or wrong."""
    return settings_for(path, str(flow.flow)).flow(str(flow.flow))
