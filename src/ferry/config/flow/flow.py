"""A flow as the file describes it: what to copy, how named, when, how much, and with which clients."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TypeVar

from ferry.config.flow.acls import AclSync
from ferry.config.flow.dead_letters import DeadLetters, usual_topic
from ferry.config.flow.parts import (
    AclsConfig,
    AirflowConfig,
    ClientsConfig,
    CopyConfig,
    GroupsConfig,
    LedgerConfig,
    MirrorConfig,
    RecordsConfig,
    RecoveryPoint,
    TopicsConfig,
    Verification,
)
from ferry.config.flow.report import ReportConfig
from ferry.config.flow.start import Start, StartOffsets, StartTime
from ferry.config.flow.transforms import TransformSpec, transform_of
from ferry.config.keys.feature import FeatureSettings, feature_settings
from ferry.config.keys.layers import ROLE_AT, Role, Side
from ferry.config.login.unknown import unknown_here
from ferry.config.text.filters import PatternList
from ferry.config.text.secrets import ClientProperties
from ferry.errors import BadInput
from ferry.model import Flow
from ferry.policy import copies_of, innermost

S = TypeVar("S", bound=FeatureSettings)

_POLICY_DEFAULTS = {
    "replication.policy.separator": ".",
    "replication.policy.internal.topic.separator.enabled": "true",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowConfig:
    """One enabled flow: its name, and a part for each kind of settings."""

    flow: Flow
    enabled: bool
    lane: str
    deployment: str
    """The deployment of the runs (`ferry.config.flow.deployment`); empty while only the file was read."""
    topics: TopicsConfig
    acls: AclsConfig
    groups: GroupsConfig
    mirror: MirrorConfig
    copy: CopyConfig
    records: RecordsConfig
    ledger: LedgerConfig
    airflow: AirflowConfig
    clients: ClientsConfig
    verification: Verification
    rpo: RecoveryPoint
    report: ReportConfig
    """Where reports of drills and switches go, and the goals in them."""
    features: Mapping[type[FeatureSettings], FeatureSettings]
    """The settings of features, by their class; `of` returns them."""

    @property
    def slots(self) -> int:
        """The number of slots of a run: `tasks.max`, or more where a feature needs more."""
        return max(self.copy.tasks_max, *(one.least_slots for one in self.features.values()))

    def of(self, kind: type[S]) -> S:
        """Return the settings of a feature; its defaults where the file was not read for it."""
        found = self.features.get(kind)
        return found if isinstance(found, kind) else kind()

    @property
    def syncs_acls(self) -> bool:
        """Whether runs copy ACLs."""
        return self.acls.sync_topic_acls.occurs

    @property
    def syncs_groups(self) -> bool:
        """Whether runs write translated group offsets."""
        return self.groups.sync_group_offsets.occurs

    @property
    def unsynced(self) -> str:
        """Why runs do not write translated group offsets; empty if they do."""
        return self.groups.sync_group_offsets.why_never("sync.group.offsets")

    @property
    def emits_checkpoints(self) -> bool:
        """Whether runs write checkpoints in MirrorMaker 2's format."""
        return self.mirror.emit_checkpoints.occurs

    @property
    def finds_new_groups(self) -> bool:
        """Whether runs also translate groups that the ledger does not have yet."""
        return self.groups.refresh_groups.occurs

    def client(self, side: Side, role: Role) -> ClientProperties:
        """Return the effective Java-named properties of the flow's client on one side, secrets resolved.

        Raises BadInput when a referenced variable, file or entry is missing, or the connection is unknown here.
        """
        return self.clients.providers.resolve_all(self._written(side, role))

    def servers(self, side: Side) -> str:
        """Return the `bootstrap.servers` of one side, by which assets are named; no other property is resolved.

        Raises BadInput when a variable, file or entry that they refer to is missing, or the connection is unknown here.
        """
        key = "bootstrap.servers"
        return self.clients.providers.resolve_all({key: self._written(side, ROLE_AT[side]).get(key, "")})[key]

    def _written(self, side: Side, role: Role) -> Mapping[str, str]:
        alias = self.flow.source if side == "source" else self.flow.target
        if alias in self.clients.unknown:
            raise BadInput(unknown_here(self.clients.connections[alias]))
        return self.clients.properties[side, role]

    def transform_of(self, topic: str) -> TransformSpec | None:
        """Return the transform of a source topic; None: it is copied unchanged.

        Raises Refused for one that two name.
        """
        return transform_of(self.records.transforms, topic)

    def copy_of(self, topic: str) -> str:
        """Return the name that the policy gives the copy of a source topic."""
        return self.topics.policy.format_remote_topic(self.flow.source, topic)

    def copies_of(self, topic: str) -> tuple[str, ...]:
        """Return the names of a source topic's copies, among which records may choose; most topics have one."""
        return copies_of(self.topics.policy, self.flow.source, topic)

    def first_name(self, topic: str) -> str:
        """Return the copy's name as the steps of a transform see it: the policy's own, before any route or lane."""
        return innermost(self.topics.policy).format_remote_topic(self.flow.source, topic)

    def where(self, side: Side, role: Role, name: str) -> str:
        """Return file, line and key of a client's property; the cluster's alias where the file does not hold it."""
        alias = self.flow.source if side == "source" else self.flow.target
        return str(self.clients.origins[side, role].get(name, f"cluster {alias}"))

    def digest(self) -> str:
        """Return the SHA-256 (hexadecimal) of what the flow copies, where to, and how much at a time.

        The same meaning gives the same digest, whatever the order of lines and of items in a list. How clusters are
        reached, and when and with which resources a run works, is left out: that may differ between machines. The plan
        compares the clusters' own ids. Values of secret keys are not part of it, so it can be shown.

        A key that is added later may be part of it only where it is not at its default. Otherwise files without the key
        would change their digest with Ferry's version (ADR 12).
        """
        topics, mirror, copy = self.topics, self.mirror, self.copy
        periodic = {
            "sync_topic_acls": self.acls.sync_topic_acls,
            "sync_group_offsets": self.groups.sync_group_offsets,
            "refresh_topics": mirror.refresh_topics,
            "refresh_groups": self.groups.refresh_groups,
            "emit_checkpoints": mirror.emit_checkpoints,
            "emit_heartbeats": mirror.emit_heartbeats,
        }
        shown: dict[str, object] = {
            "flow": str(self.flow),
            "topics": [_set(topics.filter.include), _set(topics.filter.exclude)],
            "heartbeats": topics.selection.heartbeats,
            "groups": [_set(self.groups.filter.include), _set(self.groups.filter.exclude)],
            "policy": [
                topics.policy_name,
                ClientProperties(values_by_key={**_POLICY_DEFAULTS, **topics.policy_properties}).shown(),
            ],
            "merge": _set(topics.merge),
            "guards": topics.guards.digested(),
            "replication_factor": topics.replication_factor,
            "ledger_replication_factor": self.ledger.replication_factor,
            "sync_topic_configs": [topics.sync_topic_configs, topics.sync_topic_configs_interval_s],
            "config_exclude": _set(topics.config_exclude),
            "use_defaults_from": topics.use_defaults_from,
            "periodic": {name: asdict(one) for name, one in periodic.items()},
            "emit_offset_syncs": mirror.emit_offset_syncs,
            "internal_topics": {**asdict(mirror.internal_topics), "offset_syncs_location": "source"},
            "isolation_level": copy.isolation_level,
            "start": _start(copy.start),
            "budget": [copy.budget.max_bytes, copy.budget.max_records, copy.budget.max_seconds],
            "lane": self.lane,
        }
        # "source" above is the default, which was "source" while nothing was written.
        if mirror.internal_topics.offset_syncs_location == "source":
            shown["offset_syncs_at_source"] = True
        if topics.replication_from_source:
            shown["replication_from_source"] = True
        if topics.sync_topic_deletes:
            shown["sync_topic_deletes"] = True
        if (rules := self.acls.rules) != AclSync():
            shown["acls"] = [rules.policy, [[r.pattern, r.replacement] for r in rules.mapping.rules]]
        if self.records.transforms:
            shown["transforms"] = [one.meaning() for one in self.records.transforms]
            if self.records.dead_letters != DeadLetters(topic=usual_topic(self.flow.source)):
                shown["dead_letters"] = asdict(self.records.dead_letters)
        for name, kind in feature_settings().items():
            if (found := self.of(kind).digested()) is not None:
                shown[name] = found
        return hashlib.sha256(json.dumps(shown, sort_keys=True).encode()).hexdigest()


def refuse_foreign_topic(flow: FlowConfig, topic: str) -> None:
    """Raise BadInput for a topic that the flow does not copy: a misspelt pause would pause nothing."""
    why = flow.topics.selection.why_not(topic)
    if why is not None:
        raise BadInput(f"flow {flow.flow} does not copy topic {topic} ({why}): name one of its source topics")


def _set(patterns: PatternList) -> list[str]:
    """Return a list of patterns in a form that does not depend on their order."""
    return sorted(set(patterns.items))


def _start(start: Start) -> list[object]:
    offsets = sorted(start.offsets.items()) if isinstance(start, StartOffsets) else []
    timestamp_ms = start.timestamp_ms if isinstance(start, StartTime) else None
    return [type(start).__name__, timestamp_ms, offsets]
