"""The part of a flow's configuration that planning obeys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ferry.config.guards import Guards
from ferry.model import Flow
from ferry.policy import ReplicationPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Limits are bytes, records and seconds of one run; None is no limit."""

    flow: Flow
    lane: str
    policy: ReplicationPolicy
    max_tasks: int
    max_bytes: int | None
    max_records: int | None
    max_seconds: int
    replication_factor: int
    config_excluded: Callable[[str], bool]
    sync_configs: bool
    policy_name: str = "the replication policy"
    way_back: Callable[[str], tuple[Flow, ...]] = lambda _: ()
    """The other flows that would bring a source topic's records back to be copied again, in order; none: empty."""
    merges: Callable[[str], bool] = lambda _: False
    """Whether a source topic's target is shared with other flows (`ferry.merge.topics`)."""
    guards: Guards = field(default_factory=Guards)
    only: frozenset[str] | None = None
    """Source topics that this run is narrowed to; None is all."""
