"""The parts of a flow's configuration. Each reader takes the part that it needs; `FlowConfig` holds all of them.

Sizes are bytes, times are named by their unit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ferry.config.flow.acls import AclSync
from ferry.config.flow.dead_letters import DeadLetters
from ferry.config.flow.guards import Guards
from ferry.config.flow.lag_start import LagStart
from ferry.config.flow.origins import Origin
from ferry.config.flow.start import Start
from ferry.config.flow.transforms import TransformSpec
from ferry.config.keys.layers import Role, Side
from ferry.config.text.filters import GroupFilter, PatternList, TopicFilter, TopicSelection
from ferry.config.text.secrets import ClientProperties, Providers
from ferry.model import VerifyMode
from ferry.policy import ReplicationPolicy

DEFAULT_REPLICATION_FACTOR = 2
"""MirrorMaker 2's replication factor of new topics, where the file gives none."""

MOST_RUNS = 100
"""Runs that a ledger keeps, so the most between two runs that verify themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Periodic:
    """Something that MirrorMaker 2 repeats: a run does it at most once in `interval_s` seconds."""

    enabled: bool
    interval_s: int | None
    """None is never (a negative interval, as in MirrorMaker 2)."""

    @property
    def occurs(self) -> bool:
        """Whether runs do it at all."""
        return self.enabled and self.interval_s is not None

    def why_never(self, key: str) -> str:
        """Return why runs do not do it, by its lines in the file, which begin with `key`; empty if they do it."""
        if not self.enabled:
            return f"{key}.enabled is false"
        return f"{key}.interval.seconds is negative" if self.interval_s is None else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicsConfig:
    """Which topics the flow copies, what their copies are named, and how runs create and change those."""

    filter: TopicFilter
    """The lines `topics` and `topics.exclude`."""
    selection: TopicSelection
    """`filter` together with policy, internal names, heartbeats and loops; it decides whether a topic is copied."""
    back: TopicSelection | None = field(default=None, repr=False, compare=False)
    """The selection of the flow in the opposite direction; None where the file does not enable one."""
    policy: ReplicationPolicy
    """The policy with the names that transforms give, as far as a source topic's name decides them."""
    policy_name: str
    """`DefaultReplicationPolicy`, `IdentityReplicationPolicy`, or the import path of the user's class."""
    policy_properties: Mapping[str, str]
    """The flow's `replication.policy.*`, as written."""
    merge: PatternList
    """Source topics whose target is shared with other flows (`ferry.merge.topics`)."""
    guards: Guards
    replication_factor: int | None
    """The file's value (-1: the target broker's default); None without one: then DEFAULT_REPLICATION_FACTOR."""
    replication_from_source: bool
    """Whether new topics have as many replicas as their source topics (`ferry.replication.factor`)."""
    sync_topic_deletes: bool
    """Whether copies of deleted source topics are deleted."""
    target_free_percent: int | None
    """The percentage that must stay free in a target broker's log directories; None: it is not checked."""
    sync_topic_configs: bool
    """Whether runs change the configurations of copies."""
    sync_topic_configs_interval_s: int | None
    config_exclude: PatternList
    """Topic configurations that are not copied from the source."""
    use_defaults_from: Side
    """The side whose broker default counts for a topic configuration that the source topic does not set itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AclsConfig:
    """Whether and how often ACLs are copied, and which."""

    sync_topic_acls: Periodic
    rules: AclSync
    """Which ACLs are copied, and for which principals, where `sync_topic_acls` is on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupsConfig:
    """Whose consumer group offsets are translated, and how often."""

    filter: GroupFilter
    """The lines `groups` and `groups.exclude`: consumer groups whose offsets are translated."""
    sync_group_offsets: Periodic
    """Enabled unless the file disables it, which is not MirrorMaker 2's default."""
    refresh_groups: Periodic
    """Whether and how often runs translate groups that the ledger does not have yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InternalTopics:
    """MirrorMaker 2's internal topics; a replication factor of -1 is the broker's default."""

    offset_syncs_location: Side
    offset_syncs_replication_factor: int
    checkpoints_replication_factor: int
    heartbeats_replication_factor: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorConfig:
    """What runs write in MirrorMaker 2's formats, for its clients and tools; and its settings that no run needs."""

    emit_checkpoints: Periodic
    emit_heartbeats: Periodic
    heartbeats_at_source: Periodic
    """Heartbeats of the flow back, at the source.

    They are written only where `T->S.emit.heartbeats.enabled` itself is true and that flow is not enabled. MirrorMaker
    2 writes them unless that line is false.
    """
    emit_offset_syncs: bool
    internal_topics: InternalTopics
    refresh_topics: Periodic
    """The values of MirrorMaker 2's lines; each run reads the list of topics, whatever they are."""
    exactly_once_source_support: str
    """The value of the target cluster's line; Ferry is exactly once whatever it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The most that one micro-run copies. None means no limit."""

    max_bytes: int
    max_records: int | None
    max_seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyConfig:
    """Where copying starts, how much one run copies, and with which tasks, memory and transactions."""

    start: Start
    isolation_level: str
    """`read_committed` or `read_uncommitted`, of the source's records."""
    tasks_max: int
    budget: Budget
    task_memory_bytes: int
    chunk_bytes: int
    chunk_seconds: int
    portion_bytes: int
    """About how many bytes of transformed topics are sorted before they are written, in each task at once."""
    transaction_timeout_ms: int
    throttle_bytes_per_second: int | None
    """The most that a run fetches; None means no limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordsConfig:
    """What is copied record by record, and changed on the way."""

    transforms: tuple[TransformSpec, ...]
    """Each names its topics; all others are copied as bytes (ADR 39)."""
    dead_letters: DeadLetters
    """The topic for records on which a transform with `poison = skip` failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerConfig:
    """How the ledger is created, and whether it is pruned."""

    replication_factor: int | None
    """None without a line: then the ledger's own default."""
    prunes: bool
    """Whether receipts are deleted from the ledger once both sides have lost their records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AirflowConfig:
    """When Airflow starts runs, and with which of its pools, connections and retries."""

    schedule: str | None
    """Cron or Airflow preset; None when no clock starts runs."""
    has_schedule_line: bool
    """Whether a line of the file says so. Without one the schedule is a default, also where nothing starts runs."""
    lag_start: LagStart
    """Whether the lag starts runs, too."""
    updates_assets: bool
    """Whether Airflow's runs update an asset for each topic that they copied records of."""
    partitions_assets: bool
    """Whether the updates of runs have a partition key. In Airflow they then start partitioned DAGs, and no others."""
    retries: int
    pool: str
    spark_conn_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientsConfig:
    """The properties of the clients that reach both clusters, unresolved; `FlowConfig.client` resolves them."""

    properties: Mapping[tuple[Side, Role], ClientProperties]
    """Properties as written."""
    origins: Mapping[tuple[Side, Role], Mapping[str, Origin]]
    """Where the properties are written."""
    providers: Providers
    connections: Mapping[str, str]
    """The Airflow connection in place of a cluster's settings, by alias."""
    unknown: frozenset[str]
    """Aliases whose connection was not fetched: their clients cannot be made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """When the two clusters are compared: one of `every_runs` runs verifies itself, and all is compared by schedule."""

    mode: VerifyMode = VerifyMode.OFF
    every_runs: int = 1
    schedule: str | None = None
    """Cron or Airflow preset; None when everything is compared by hand only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryPoint:
    """The most of a partition that may be lost (recovery point objective). None means no limit."""

    records: int | None
    seconds: int | None
