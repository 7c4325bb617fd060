"""A flow as the file describes it: what to copy, how named, when, how much, and with which clients."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TypeVar

from ferry.config.flow.acls import AclSync
from ferry.config.flow.dead_letters import DeadLetters, usual_topic
from ferry.config.flow.guards import Guards
from ferry.config.flow.lag_start import LagStart
from ferry.config.flow.origins import Origin
from ferry.config.flow.report import ReportConfig
from ferry.config.flow.start import Start, StartOffsets, StartTime
from ferry.config.flow.transforms import TransformSpec, transform_of
from ferry.config.keys.feature import FeatureSettings, feature_settings
from ferry.config.keys.layers import Role, Side
from ferry.config.login.connection import unknown_here
from ferry.config.text.filters import GroupFilter, PatternList, TopicFilter, TopicSelection
from ferry.config.text.secrets import ClientProperties, Providers
from ferry.errors import BadInput
from ferry.model import Flow, VerifyMode
from ferry.policy import ReplicationPolicy, copies_of, innermost

DEFAULT_REPLICATION_FACTOR = 2
"""MirrorMaker 2's replication factor of new topics, where the file gives none."""


S = TypeVar("S", bound=FeatureSettings)

MOST_RUNS = 100
"""Runs that a ledger keeps, so the most between two runs that verify themselves."""

_PERIODIC = (
    "sync_topic_acls",
    "sync_group_offsets",
    "refresh_topics",
    "refresh_groups",
    "emit_checkpoints",
    "emit_heartbeats",
)

_POLICY_DEFAULTS = {
    "replication.policy.separator": ".",
    "replication.policy.internal.topic.separator.enabled": "true",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The most that one micro-run copies. None is no limit."""

    max_bytes: int
    max_records: int | None
    max_seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryPoint:
    """The most of a partition that may be lost (recovery point objective). None is no limit."""

    records: int | None
    seconds: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Periodic:
    """Something that MirrorMaker 2 repeats: a run does it at most once in `interval_s` seconds."""

    enabled: bool
    interval_s: int | None
    """None is never (a negative interval, as in MirrorMaker 2)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """When the two clusters are compared: one of `every_runs` runs verifies itself, and all is compared by schedule."""

    mode: VerifyMode = VerifyMode.OFF
    every_runs: int = 1
    schedule: str | None = None
    """Cron or Airflow preset; None when everything is compared by hand only."""


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
    """`topics` together with policy, internal names, heartbeats and loops; it decides whether a topic is copied."""
    back: TopicSelection | None = field(default=None, repr=False, compare=False)
    """The selection of the flow in the opposite direction; None where the file does not enable one."""
    groups: GroupFilter
    """Consumer groups whose offsets are translated."""
    policy: ReplicationPolicy
    """The policy with the names that transforms give, as far as a source topic's name decides them."""
    policy_name: str
    """`DefaultReplicationPolicy`, `IdentityReplicationPolicy`, or the import path of the user's class."""
    merge: PatternList
    """Source topics whose target is shared with other flows (`ferry.merge.topics`)."""
    guards: Guards
    policy_properties: Mapping[str, str]
    """The flow's `replication.policy.*`, as written."""
    replication_factor: int | None
    """The file's value (-1: the target broker's default); None without one: then DEFAULT_REPLICATION_FACTOR."""
    replication_from_source: bool
    """Whether new topics have as many replicas as their source topics (`ferry.replication.factor`)."""
    sync_topic_deletes: bool
    """Whether copies of deleted source topics are deleted."""
    target_free_percent: int | None
    """The percentage that must stay free in a target broker's log directories; None: it is not checked."""
    sync_topic_configs: bool
    sync_topic_configs_interval_s: int | None
    config_exclude: PatternList
    """Topic configurations that are not copied from the source."""
    use_defaults_from: Side
    """The side whose broker default counts for a topic configuration that the source topic does not set itself."""
    sync_topic_acls: Periodic
    acls: AclSync
    """Which ACLs are copied, and for which principals, where `sync_topic_acls` is on."""
    sync_group_offsets: Periodic
    """Enabled unless the file disables it, which is not MirrorMaker 2's default."""
    refresh_topics: Periodic
    refresh_groups: Periodic
    emit_checkpoints: Periodic
    emit_heartbeats: Periodic
    heartbeats_at_source: Periodic
    """Heartbeats of the flow back, at the source.

    They are written only where `T->S.emit.heartbeats.enabled` itself is true and that flow is not enabled. MirrorMaker
    2 writes them unless that line is false.
    """
    emit_offset_syncs: bool
    internal_topics: InternalTopics
    exactly_once_source_support: str
    """The value of the target cluster's line; Ferry is exactly once whatever it is."""
    tasks_max: int
    isolation_level: str
    start: Start
    budget: Budget
    schedule: str | None
    """Cron or Airflow preset; None when no clock starts runs."""
    lag_start: LagStart = field(default_factory=LagStart)
    """Whether the lag starts runs, too."""
    updates_assets: bool = True
    """Whether Airflow's runs update an asset for each topic that they copied records of."""
    verification: Verification = Verification()
    lane: str
    deployment: str
    """The deployment of the runs (`ferry.config.flow.deployment`); empty while only the file was read."""
    task_memory_bytes: int
    chunk_bytes: int
    chunk_seconds: int
    portion_bytes: int
    """About how many bytes of transformed topics are sorted before they are written, in each task at once."""
    transaction_timeout_ms: int
    throttle_bytes_per_second: int | None
    """The most that a run fetches; None is no limit."""
    ledger_replication_factor: int | None
    prunes_ledger: bool
    """Whether receipts are deleted from the ledger once both sides have lost their records."""
    rpo: RecoveryPoint
    retries: int
    spark_conn_id: str
    pool: str
    clients: Mapping[tuple[Side, Role], ClientProperties]
    """Properties as written, unresolved; `client` resolves them."""
    origins: Mapping[tuple[Side, Role], Mapping[str, Origin]]
    """Where the properties are written."""
    providers: Providers
    connections: Mapping[str, str] = field(default_factory=dict)
    """The Airflow connection in place of a cluster's settings, by alias."""
    report: ReportConfig = field(default_factory=ReportConfig)
    """Where reports of drills and switches go, and the goals in them."""
    transforms: tuple[TransformSpec, ...] = ()
    """What is copied record by record, and changed on the way; all else is copied as bytes (ADR 39)."""
    dead_letters: DeadLetters
    """The topic for records on which a transform with `poison = skip` failed."""
    features: Mapping[type[FeatureSettings], FeatureSettings] = field(default_factory=dict)
    """The settings of features, by their class; `of` returns them."""
    unknown: frozenset[str] = frozenset()
    """Aliases whose connection was not fetched: their clients cannot be made."""

    def of(self, kind: type[S]) -> S:
        """Return the settings of a feature; its defaults where the file was not read for it."""
        found = self.features.get(kind)
        return found if isinstance(found, kind) else kind()

    @property
    def syncs_acls(self) -> bool:
        """Whether runs copy ACLs."""
        return self.sync_topic_acls.enabled and self.sync_topic_acls.interval_s is not None

    @property
    def syncs_groups(self) -> bool:
        """Whether runs write translated group offsets."""
        return self.sync_group_offsets.enabled and self.sync_group_offsets.interval_s is not None

    @property
    def emits_checkpoints(self) -> bool:
        """Whether runs write checkpoints in MirrorMaker 2's format."""
        return self.emit_checkpoints.enabled and self.emit_checkpoints.interval_s is not None

    @property
    def finds_new_groups(self) -> bool:
        """Whether runs also translate groups that the ledger does not have yet."""
        return self.refresh_groups.enabled and self.refresh_groups.interval_s is not None

    def client(self, side: Side, role: Role) -> ClientProperties:
        """Return the effective Java-named properties of the flow's client on one side, secrets resolved.

        Raises BadInput when a referenced variable, file or entry is missing, or the connection is unknown here.
        """
        alias = self.flow.source if side == "source" else self.flow.target
        if alias in self.unknown:
            raise BadInput(unknown_here(self.connections[alias]))
        return self.providers.resolve_all(self.clients[side, role])

    def transform_of(self, topic: str) -> TransformSpec | None:
        """Return the transform of a source topic; None: it is copied unchanged.

        Raises Refused for one that two name.
        """
        return transform_of(self.transforms, topic)

    def copies_of(self, topic: str) -> tuple[str, ...]:
        """Return the names of a source topic's copies, among which records may choose; most topics have one."""
        return copies_of(self.policy, self.flow.source, topic)

    def first_name(self, topic: str) -> str:
        """Return the copy's name as the steps of a transform see it: the policy's own, before any route or lane."""
        return innermost(self.policy).format_remote_topic(self.flow.source, topic)

    def where(self, side: Side, role: Role, name: str) -> str:
        """Return file, line and key of a client's property; the cluster's alias where the file does not hold it."""
        alias = self.flow.source if side == "source" else self.flow.target
        return str(self.origins[side, role].get(name, f"cluster {alias}"))

    def digest(self) -> str:
        """Return the SHA-256 (hexadecimal) of what the flow copies, where to, and how much at a time.

        The same meaning gives the same digest, whatever the order of lines and of items in a list. How clusters are
        reached, and when and with which resources a run works, is left out: that may differ between machines. The plan
        compares the clusters' own ids. Values of secret keys are not part of it, so it can be shown.

        A key that is added later may be part of it only where it is not at its default. Otherwise files without the key
        would change their digest with Ferry's version (ADR 12).
        """
        shown: dict[str, object] = {
            "flow": str(self.flow),
            "topics": [_set(self.topics.include), _set(self.topics.exclude)],
            "heartbeats": self.selection.heartbeats,
            "groups": [_set(self.groups.include), _set(self.groups.exclude)],
            "policy": [
                self.policy_name,
                ClientProperties(values_by_key={**_POLICY_DEFAULTS, **self.policy_properties}).shown(),
            ],
            "merge": _set(self.merge),
            "guards": self.guards.digested(),
            "replication_factor": self.replication_factor,
            "ledger_replication_factor": self.ledger_replication_factor,
            "sync_topic_configs": [self.sync_topic_configs, self.sync_topic_configs_interval_s],
            "config_exclude": _set(self.config_exclude),
            "use_defaults_from": self.use_defaults_from,
            "periodic": {name: asdict(getattr(self, name)) for name in _PERIODIC},
            "emit_offset_syncs": self.emit_offset_syncs,
            "internal_topics": {**asdict(self.internal_topics), "offset_syncs_location": "source"},
            "isolation_level": self.isolation_level,
            "start": _start(self.start),
            "budget": [self.budget.max_bytes, self.budget.max_records, self.budget.max_seconds],
            "lane": self.lane,
        }
        # "source" above is the default, which was "source" while nothing was written.
        if self.internal_topics.offset_syncs_location == "source":
            shown["offset_syncs_at_source"] = True
        if self.replication_from_source:
            shown["replication_from_source"] = True
        if self.sync_topic_deletes:
            shown["sync_topic_deletes"] = True
        if self.acls != AclSync():
            shown["acls"] = [self.acls.policy, [[r.pattern, r.replacement] for r in self.acls.mapping.rules]]
        if self.transforms:
            shown["transforms"] = [one.meaning() for one in self.transforms]
            if self.dead_letters != DeadLetters(topic=usual_topic(self.flow.source)):
                shown["dead_letters"] = asdict(self.dead_letters)
        for name, kind in feature_settings().items():
            if (found := self.of(kind).digested()) is not None:
                shown[name] = found
        return hashlib.sha256(json.dumps(shown, sort_keys=True).encode()).hexdigest()


def refuse_foreign_topic(flow: FlowConfig, topic: str) -> None:
    """Raise BadInput for a topic that the flow does not copy: a misspelt pause would pause nothing."""
    why = flow.selection.why_not(topic)
    if why is not None:
        raise BadInput(f"flow {flow.flow} does not copy topic {topic} ({why}): name one of its source topics")


def _set(patterns: PatternList) -> list[str]:
    """Return a list of patterns in a form that does not depend on their order."""
    return sorted(set(patterns.items))


def _start(start: Start) -> list[object]:
    offsets = sorted(start.offsets.items()) if isinstance(start, StartOffsets) else []
    timestamp_ms = start.timestamp_ms if isinstance(start, StartTime) else None
    return [type(start).__name__, timestamp_ms, offsets]
