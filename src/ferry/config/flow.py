"""A flow as the file describes it: what to copy, how named, when, how much, and with which clients."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from ferry.config.connection import unknown_here
from ferry.config.filters import GroupFilter, PatternList, TopicFilter, TopicSelection
from ferry.config.layers import Role, Side
from ferry.config.secrets import ClientProperties, Providers
from ferry.config.start import Start
from ferry.errors import BadInput
from ferry.model import Flow
from ferry.policy import ReplicationPolicy

DEFAULT_REPLICATION_FACTOR = 2
"""MirrorMaker 2's replication factor of new topics, where the file gives none."""


_PERIODIC = (
    "sync_topic_acls",
    "sync_group_offsets",
    "refresh_topics",
    "refresh_groups",
    "emit_checkpoints",
    "emit_heartbeats",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The most that one micro-run takes on. None is no limit."""

    max_bytes: int
    max_records: int | None
    max_seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Periodic:
    """Something that MirrorMaker 2 repeats: Ferry does it at most once in `interval_s` seconds, when a run is on."""

    enabled: bool
    interval_s: int | None
    """None is never (a negative interval, as in MirrorMaker 2)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InternalTopics:
    """MirrorMaker 2's internal topics; a replication factor of -1 is the broker's default."""

    offset_syncs_location: Side
    offset_syncs_replication_factor: int
    checkpoints_replication_factor: int
    heartbeats_replication_factor: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowConfig:
    """One enabled flow. Sizes are bytes, times are named by their unit."""

    flow: Flow
    enabled: bool
    topics: TopicFilter
    selection: TopicSelection
    """`topics` together with policy, internal names, heartbeats and loops: ask this one whether a topic is copied."""
    groups: GroupFilter
    """Consumer groups whose offsets are translated."""
    policy: ReplicationPolicy
    policy_name: str
    """`DefaultReplicationPolicy`, `IdentityReplicationPolicy`, or the import path of the user's class."""
    merge: PatternList
    """Source topics whose target is shared with other flows (`ferry.merge.topics`)."""
    policy_properties: Mapping[str, str]
    """The flow's `replication.policy.*`, as written."""
    replication_factor: int | None
    """As the file says (-1: the target broker's default); None when it does not: then DEFAULT_REPLICATION_FACTOR."""
    sync_topic_configs: bool
    sync_topic_configs_interval_s: int | None
    config_exclude: PatternList
    """Topic configurations that are not taken over from the source."""
    use_defaults_from: Side
    """Whose broker default counts for a topic configuration that the source topic does not set itself."""
    sync_topic_acls: Periodic
    sync_group_offsets: Periodic
    """Enabled unless the file says otherwise, which is not MirrorMaker 2's default."""
    refresh_topics: Periodic
    refresh_groups: Periodic
    emit_checkpoints: Periodic
    emit_heartbeats: Periodic
    emit_offset_syncs: bool
    internal_topics: InternalTopics
    exactly_once_source_support: str
    """As the target cluster's line says it; Ferry is exactly once whatever it says."""
    tasks_max: int
    isolation_level: str
    start: Start
    budget: Budget
    schedule: str | None
    """Cron or Airflow preset; None when runs are started by hand only."""
    lane: str
    task_memory_bytes: int
    chunk_bytes: int
    chunk_seconds: int
    transaction_timeout_ms: int
    ledger_replication_factor: int | None
    retries: int
    spark_conn_id: str
    pool: str
    clients: Mapping[tuple[Side, Role], ClientProperties]
    """Properties as written, unresolved; `client` resolves them."""
    providers: Providers
    connections: Mapping[str, str] = field(default_factory=dict)
    """The Airflow connection in place of a cluster's settings, by alias."""
    unknown: frozenset[str] = frozenset()
    """Aliases whose connection is not looked up: their clients cannot be had."""

    def client(self, side: Side, role: Role) -> ClientProperties:
        """Effective Java-named properties of the flow's client on one side, secrets resolved.

        Raises BadInput when a referenced variable, file or entry is missing, or the connection is unknown here.
        """
        alias = self.flow.source if side == "source" else self.flow.target
        if alias in self.unknown:
            raise BadInput(unknown_here(self.connections[alias]))
        return self.providers.resolve_all(self.clients[side, role])

    def digest(self) -> str:
        """SHA-256 (hexadecimal) of the effective configuration; the same meaning gives the same digest.

        Values of secret keys do not enter it, so that it can be shown and a changed password changes nothing.
        """
        shown = {
            "flow": str(self.flow),
            "topics": [list(self.topics.include.items), list(self.topics.exclude.items)],
            "heartbeats": self.selection.heartbeats,
            "groups": [list(self.groups.include.items), list(self.groups.exclude.items)],
            "policy": [self.policy_name, sorted(self.policy_properties.items())],
            "merge": list(self.merge.items),
            "replication_factor": self.replication_factor,
            "sync_topic_configs": [self.sync_topic_configs, self.sync_topic_configs_interval_s],
            "config_exclude": list(self.config_exclude.items),
            "use_defaults_from": self.use_defaults_from,
            "periodic": {name: asdict(getattr(self, name)) for name in _PERIODIC},
            "emit_offset_syncs": self.emit_offset_syncs,
            "internal_topics": asdict(self.internal_topics),
            "tasks_max": self.tasks_max,
            "isolation_level": self.isolation_level,
            "start": repr(self.start),
            "budget": [self.budget.max_bytes, self.budget.max_records, self.budget.max_seconds],
            "schedule": self.schedule,
            "lane": self.lane,
            "task_memory_bytes": self.task_memory_bytes,
            "chunk": [self.chunk_bytes, self.chunk_seconds],
            "transaction_timeout_ms": self.transaction_timeout_ms,
            "ledger_replication_factor": self.ledger_replication_factor,
            "retries": self.retries,
            "spark_conn_id": self.spark_conn_id,
            "pool": self.pool,
            "clients": {f"{side}.{role}": client.shown() for (side, role), client in sorted(self.clients.items())},
        }
        return hashlib.sha256(json.dumps(shown, sort_keys=True).encode()).hexdigest()
