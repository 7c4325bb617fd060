"""What `up` and `down` would do, without starting, stopping or writing anything."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from ferry.dev.cluster import RunningCluster, attach, known_as, status
from ferry.dev.jars import jars, java
from ferry.dev.spec import ClusterSpec


class Would(StrEnum):
    """What happens to a cluster."""

    MAKE = "make"
    START = "start"
    LEAVE = "leave"


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """A cluster, and what `up` would do with it."""

    name: str
    version: str
    brokers: int
    would: Would


def preview_up(specs: Sequence[ClusterSpec], home: Path) -> tuple[Preview, ...]:
    """Return which clusters `up_all` would make, start on their data, or leave running.

    Raises:
        BadInput: jars or Java are missing, or `home` has a name with another spec.
    """
    java()
    found = []
    for spec in specs:
        jars(spec.version)
        found.append(
            Preview(
                name=spec.name, version=spec.version, brokers=spec.brokers, would=_would(known_as(spec, home.resolve()))
            )
        )
    return tuple(found)


def preview_down(home: Path, names: Iterable[str] | None = None) -> tuple[str, ...]:
    """Return the clusters that `down` would stop.

    Raises:
        BadInput: `home` does not have one of `names`.
    """
    if names is None:
        return tuple(cluster.name for cluster in status(home))
    return tuple(attach(home, name).name for name in names)


def _would(known: RunningCluster | None) -> Would:
    if known is None:
        return Would.MAKE
    return Would.LEAVE if all(broker.is_alive() for broker in known.brokers) else Would.START
