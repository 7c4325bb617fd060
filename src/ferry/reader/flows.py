"""The flows of the page: those of the file that FERRY_CONFIG names, read again when it changes."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ferry.config.flow.flow import FlowConfig
from ferry.config.local_clusters import CLUSTERS_VARIABLE, local_clusters
from ferry.config.settings import Settings, load
from ferry.errors import FerryError
from ferry.model import Flow

CONFIG_VARIABLE = "FERRY_CONFIG"


@dataclass(frozen=True, slots=True, kw_only=True)
class Configured:
    """The content of the file; `trouble` is why there is none."""

    flows: tuple[FlowConfig, ...] = ()
    """The flows into the local clusters."""
    enabled: frozenset[Flow] = frozenset()
    """The names of all enabled flows, also of those that are not local."""
    path: Path | None = None
    trouble: str = ""
    stamp: tuple[int, int] = (0, 0)
    """Changes when the file does."""

    def lacks(self, flow: Flow) -> str:
        """Return why a flow is not among `flows`, with the remedy."""
        if self.trouble:
            return self.trouble
        file = self.path or "the file of the flows"
        if flow in self.enabled:
            return (
                f"{file} enables flow {flow}, but {flow.target} is not a local cluster ({CLUSTERS_VARIABLE}): see the"
                f" page of an Airflow near {flow.target}"
            )
        return f"{file} has no enabled flow {flow}: add {flow}.enabled = true and its topics"


class Flows:
    """The configuration as this process sees it."""

    def __init__(self, check: Callable[[Settings], None] = lambda _: None) -> None:
        """`check` raises BadInput for anything else that is wrong with a file."""
        self._check = check
        self._lock = threading.Lock()
        self._known = Configured()

    def now(self) -> Configured:
        """Return the flows of the file as it is now; never raises for anything that is wrong with it."""
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
                self._known = self._read(path, stamp)
            return self._known

    def _read(self, path: Path, stamp: tuple[int, int]) -> Configured:
        try:
            settings = load(path)
            self._check(settings)
            near = settings.near(local_clusters(os.environ.get(CLUSTERS_VARIABLE)))
        except FerryError as error:
            return Configured(path=path, trouble=str(error), stamp=stamp)
        enabled = frozenset(one.flow for one in settings.flows)
        return Configured(path=path, flows=near.flows, enabled=enabled, stamp=stamp)
