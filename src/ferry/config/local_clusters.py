"""`--clusters` and FERRY_CLUSTERS: the local clusters. Flows into others belong to another data centre.

Source: option `--clusters` of MirrorMaker 2, with which several data centres share one file.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TypeVar

from ferry.config.flow.flow import FlowConfig
from ferry.errors import BadInput
from ferry.model import Flow

CLUSTERS_VARIABLE = "FERRY_CLUSTERS"

F = TypeVar("F", Flow, FlowConfig)


def local_clusters(text: str | None) -> tuple[str, ...]:
    """Return the aliases in `text`, with blanks or commas between; none: every cluster is local."""
    return tuple(dict.fromkeys(alias for alias in re.split(r"[\s,]+", text or "") if alias))


def check_local(local: Collection[str], known: Collection[str], file: Path | str) -> None:
    """Raise BadInput for a local cluster that the file does not have."""
    for alias in local:
        if alias not in known:
            raise BadInput(
                f"{file}: local cluster {alias!r} (--clusters, {CLUSTERS_VARIABLE}) is not among clusters ="
                f" {', '.join(known)}; correct it"
            )


def into(local: Collection[str], flows: Iterable[F]) -> tuple[F, ...]:
    """Return the flows whose target is local."""
    return tuple(flow for flow in flows if not local or _target(flow) in local)


def _target(flow: Flow | FlowConfig) -> str:
    return flow.flow.target if isinstance(flow, FlowConfig) else flow.target
