"""One flow of the file: its effective values, each with the line it comes from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypedDict, TypeVar

from ferry.config.flow.acls import AclPolicy, AclSync, principal_mapping
from ferry.config.flow.flow import FlowConfig
from ferry.config.flow.guards import GUARD_KEYS, Guards, guard_policy
from ferry.config.flow.lag_start import LagStart
from ferry.config.flow.origins import Origin, origins_of
from ferry.config.flow.parts import (
    MOST_RUNS,
    AclsConfig,
    AirflowConfig,
    Budget,
    ClientsConfig,
    CopyConfig,
    GroupsConfig,
    InternalTopics,
    LedgerConfig,
    MirrorConfig,
    Periodic,
    RecordsConfig,
    RecoveryPoint,
    TopicsConfig,
    Verification,
)
from ferry.config.flow.policies import flow_policy
from ferry.config.flow.report import DIRS, FOLDER, KEY, PASSWORD, PDF, ReportConfig
from ferry.config.flow.start import Start, parse_start
from ferry.config.flow.transforms import Poison, TransformSpec, routed_policy
from ferry.config.keys import values
from ferry.config.keys.catalogue import default_of
from ferry.config.keys.feature import feature_settings
from ferry.config.keys.layers import ROLES, SIDES, Entries, Role, Side
from ferry.config.keys.own import FERRY_KEYS_BY_NAME
from ferry.config.keys.own_classes import is_own_policy
from ferry.config.reading.connect_transforms import ConnectReader
from ferry.config.reading.dead_letters import DeadLetterReader
from ferry.config.reading.findings import Findings, Setting
from ferry.config.reading.transforms import TransformReader, transform_names
from ferry.config.text.filters import GroupFilter, TopicFilter, TopicSelection
from ferry.config.text.properties import Property
from ferry.config.text.secrets import ClientProperties, Providers, is_secret
from ferry.messages.catalogue import sentence
from ferry.model import Flow, VerifyMode
from ferry.model.run import MOST_SLOTS
from ferry.policy import ReplicationPolicy

T = TypeVar("T")

MIRROR_PACKAGE = "org.apache.kafka.connect.mirror."
DEPARTURES = {
    "isolation.level": "read_committed",
    "sync.group.offsets.enabled": "true",
    "offset-syncs.topic.location": "target",
    "exactly.once.source.support": "enabled",
}
"""Where Ferry's default is not MirrorMaker 2's; a value in the file wins, but no value makes Ferry write twice."""

_FILTERS = {
    "topic.filter.class": f"{MIRROR_PACKAGE}DefaultTopicFilter",
    "group.filter.class": f"{MIRROR_PACKAGE}DefaultGroupFilter",
    "config.property.filter.class": f"{MIRROR_PACKAGE}DefaultConfigPropertyFilter",
    "forwarding.admin.class": "org.apache.kafka.clients.admin.ForwardingAdmin",
}

_ASSETS = ("true", "false", "partitioned")

_BYTE_ARRAY = "org.apache.kafka.connect.converters.ByteArrayConverter"
_BYTES_AS_THEY_ARE = (_BYTE_ARRAY, "ByteArrayConverter", "ByteArray")
"""The converter that changes nothing, by the names that Connect accepts."""


class _Parts(TypedDict):
    flow: Flow
    entries: Entries
    providers: Providers
    findings: Findings
    settings: list[Setting]


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowReader:
    """Reads one flow; adds problems to `findings`, and the origin of each value to `settings`."""

    flow: Flow
    entries: Entries
    providers: Providers
    findings: Findings
    settings: list[Setting] = field(default_factory=list)

    def read(self) -> FlowConfig:
        """Return the flow's configuration; where a finding is an error, the default takes the value's place."""
        clients = {(s, r): self.entries.of_flow_client(self.flow, s, r) for s in SIDES for r in ROLES}
        consumer = clients["source", "consumer"]
        aliases = (self.flow.source, self.flow.target)
        topics = TopicFilter(
            include=self._value("topics", values.pattern_list),
            exclude=self._value("topics.exclude", values.pattern_list),
        )
        self._look_at_topics()
        policy_entries = self._policy_entries()
        policy_name, policy = self._policy(policy_entries)
        heartbeats = self._value("heartbeats.replication.enabled", values.boolean)
        selection = TopicSelection(flow=self.flow, filter=topics, policy=policy, heartbeats=heartbeats)
        dead = DeadLetterReader(**self._parts())
        transforms = self._transforms(dead.poison())
        policy = routed_policy(policy, transforms)
        selection = replace(selection, policy=policy)
        self._refuse_foreign_filters()
        self._refuse_what_changes_records(clients)
        timeout_ms = self._value("ferry.transaction.timeout.ms", values.milliseconds(2000, 2**31 - 1))
        # `ferry config check` shows the settings in the order in which they are read: it stays, whatever the parts are.
        group_filter = GroupFilter(
            include=self._value("groups", values.pattern_list),
            exclude=self._value("groups.exclude", values.pattern_list),
        )
        topics_config = TopicsConfig(
            filter=topics,
            selection=selection,
            policy=policy,
            policy_name=policy_name,
            policy_properties={name: entry.value for name, entry in policy_entries.items()},
            merge=self._value("ferry.merge.topics", values.pattern_list),
            guards=Guards(**{one.attribute: self._value(one.key, guard_policy(one)) for one in GUARD_KEYS}),
            replication_factor=self._replication_factor(),
            replication_from_source=self._value("ferry.replication.factor", values.optional_one_of(("source",)))
            is not None,
            sync_topic_deletes=self._value("ferry.sync.topic.deletes.enabled", values.boolean),
            target_free_percent=self._value("ferry.target.free.percent", values.optional_percent(0, 99)),
            sync_topic_configs=self._value("sync.topic.configs.enabled", values.boolean),
            sync_topic_configs_interval_s=self._value("sync.topic.configs.interval.seconds", values.interval),
            config_exclude=self._value("config.properties.exclude", values.pattern_list),
            use_defaults_from=self._value("use.defaults.from", values.side),
        )
        acls = AclsConfig(sync_topic_acls=self._periodic("sync.topic.acls"), rules=self._acls())
        sync_group_offsets = self._periodic("sync.group.offsets")
        refresh_topics, refresh_groups = self._periodic("refresh.topics"), self._periodic("refresh.groups")
        mirror = self._mirror(refresh_topics)
        tasks_max = self._value("tasks.max", values.integer(1, MOST_SLOTS))
        isolation_level = self._of_client(
            consumer, "isolation.level", values.one_of(("read_committed", "read_uncommitted"))
        )
        start = self._start(consumer)
        budget = Budget(
            max_bytes=self._value("ferry.run.max.bytes", values.size(1)),
            max_records=self._value("ferry.run.max.records", values.optional_integer(1)),
            max_seconds=self._value("ferry.run.max.seconds", values.seconds(1)),
        )
        schedule = self._value("ferry.schedule", values.schedule)
        lag_start = self._lag_start()
        assets = self._value("ferry.airflow.assets", lambda text: values.one_of(_ASSETS)(text.lower()))
        flow = FlowConfig(
            flow=self.flow,
            enabled=True,
            topics=topics_config,
            acls=acls,
            groups=GroupsConfig(
                filter=group_filter, sync_group_offsets=sync_group_offsets, refresh_groups=refresh_groups
            ),
            mirror=mirror,
            verification=Verification(
                mode=VerifyMode(self._value("ferry.verify", values.one_of(tuple(VerifyMode)))),
                every_runs=self._value("ferry.verify.every.runs", values.integer(1, MOST_RUNS)),
                schedule=self._value("ferry.verify.schedule", values.schedule),
            ),
            lane=self._value("ferry.lane", values.live_lane),
            deployment=self._value("ferry.deployment", values.optional_name),
            copy=CopyConfig(
                start=start,
                isolation_level=isolation_level,
                tasks_max=tasks_max,
                budget=budget,
                task_memory_bytes=self._value("ferry.task.memory.bytes", values.size(1024 * 1024)),
                chunk_bytes=self._value("ferry.chunk.bytes", values.size(1)),
                chunk_seconds=self._chunk_seconds(timeout_ms),
                portion_bytes=self._value("ferry.portion.bytes", values.size(1024 * 1024)),
                transaction_timeout_ms=timeout_ms,
                throttle_bytes_per_second=self._value("ferry.throttle.bytes.per.second", values.optional_size(1024)),
            ),
            ledger=LedgerConfig(
                replication_factor=self._value("ferry.ledger.replication.factor", values.optional_integer(1)),
                prunes=self._value("ferry.ledger.prune", values.boolean),
            ),
            rpo=RecoveryPoint(
                records=self._value("ferry.rpo.records", values.optional_integer(0)),
                seconds=self._value("ferry.rpo.seconds", values.optional_seconds(0)),
            ),
            airflow=AirflowConfig(
                schedule=schedule,
                has_schedule_line=self.entries.of_flow(self.flow, "ferry.schedule") is not None,
                lag_start=lag_start,
                updates_assets=assets != "false",
                partitions_assets=assets == "partitioned",
                retries=self._value("ferry.retries", values.integer(0, 1000)),
                spark_conn_id=self._value("ferry.spark.conn.id", values.name),
                pool=self._value("ferry.pool", values.name, default=f"ferry_{self.flow.source}_{self.flow.target}"),
            ),
            clients=ClientsConfig(
                properties={place: written_properties(entries) for place, entries in clients.items()},
                origins={place: origins_of(self.entries.file, entries) for place, entries in clients.items()},
                providers=self.providers,
                connections={alias: conn_id for alias in aliases if (conn_id := self.entries.connection(alias))},
                unknown=frozenset(alias for alias in aliases if self.entries.is_unknown(alias)),
            ),
            records=RecordsConfig(transforms=transforms, dead_letters=dead.letters(transforms, selection, policy)),
            report=self._report(),
            features={kind: kind.read(self._value).placed(self._where) for kind in feature_settings().values()},
        )
        self._warn_of_idle_lines(flow)
        self._refuse_lines(flow)
        return flow

    def _warn_of_idle_lines(self, flow: FlowConfig) -> None:
        for settings in flow.features.values():
            for name, why in settings.without_effect(flow).items():
                entry = self.entries.of_flow(self.flow, name)
                if entry is not None:
                    self.findings.warn(entry, entry.key, why)

    def _refuse_lines(self, flow: FlowConfig) -> None:
        for settings in flow.features.values():
            for name, why in settings.refused(flow).items():
                entry = self.entries.of_flow(self.flow, name)
                self.findings.report(entry, name if entry is None else entry.key, why)

    def _where(self, name: str) -> str:
        entry = self.entries.of_flow(self.flow, name)
        line = None if entry is None else entry.line
        return str(Origin(file=self.entries.file, line=line, key=name if entry is None else entry.key))

    def _mirror(self, refresh_topics: Periodic) -> MirrorConfig:
        return MirrorConfig(
            refresh_topics=refresh_topics,
            emit_checkpoints=self._periodic("emit.checkpoints"),
            emit_heartbeats=self._periodic("emit.heartbeats"),
            heartbeats_at_source=self._heartbeats_at_source(),
            emit_offset_syncs=self._value("emit.offset-syncs.enabled", values.boolean),
            internal_topics=InternalTopics(
                offset_syncs_location=self._value("offset-syncs.topic.location", values.side),
                offset_syncs_replication_factor=self._value(
                    "offset-syncs.topic.replication.factor", values.replication_factor
                ),
                checkpoints_replication_factor=self._value(
                    "checkpoints.topic.replication.factor", values.replication_factor
                ),
                heartbeats_replication_factor=self._value(
                    "heartbeats.topic.replication.factor", values.replication_factor
                ),
            ),
            exactly_once_source_support=self._exactly_once(),
        )

    def _transforms(self, poison: Poison) -> tuple[TransformSpec, ...]:
        own = TransformReader(**self._parts(), poison=poison).read(self._value("ferry.transforms", transform_names))
        connect = ConnectReader(**self._parts(), poison=poison).read()
        return own if connect is None else (*own, connect)

    def _parts(self) -> _Parts:
        """Return what each reader of a part of the flow works with."""
        return _Parts(
            flow=self.flow,
            entries=self.entries,
            providers=self.providers,
            findings=self.findings,
            settings=self.settings,
        )

    def _value(self, name: str, convert: Callable[[str], T], *, default: str | None = None) -> T:
        """Return the flow's value, else the top level's, else the default of Ferry or Kafka."""
        if default is None:
            ours = FERRY_KEYS_BY_NAME.get(name)
            default = ours.default if ours is not None else DEPARTURES.get(name) or default_of(name)
        entry = self.entries.of_flow(self.flow, name)
        self.settings.append(Setting.of(name, entry, default))
        return self.findings.read(entry, convert(default), convert, self.providers)

    def _of_client(self, properties: Mapping[str, Property], name: str, convert: Callable[[str], T]) -> T:
        entry = properties.get(name)
        default = DEPARTURES.get(name) or default_of(name, "consumer")
        self.settings.append(Setting.of(f"consumer.{name}", entry, default))
        return self.findings.read(entry, convert(default), convert, self.providers)

    def _periodic(self, name: str) -> Periodic:
        return Periodic(
            enabled=self._value(f"{name}.enabled", values.boolean),
            interval_s=self._value(f"{name}.interval.seconds", values.interval),
        )

    def _heartbeats_at_source(self) -> Periodic:
        """Return the heartbeats of the flow back, where its own line asks for them.

        An enabled flow has runs that write them.
        """
        back = Flow(source=self.flow.target, target=self.flow.source)
        asked, enabled = (self.entries.by_key.get(f"{back}.{name}") for name in ("emit.heartbeats.enabled", "enabled"))
        name = "emit.heartbeats.interval.seconds"
        default = values.interval(default_of(name))
        return Periodic(
            enabled=self.findings.read(asked, False, values.boolean, self.providers)
            and not self.findings.read(enabled, False, values.boolean, self.providers),
            interval_s=self.findings.read(self.entries.of_flow(back, name), default, values.interval, self.providers),
        )

    def _acls(self) -> AclSync:
        switch = self.entries.of_flow(self.flow, "sync.topic.acls.enabled")
        for name in ("ferry.sync.acls.policy", "ferry.sync.acls.principal.mapping"):
            entry = self.entries.of_flow(self.flow, name)
            if entry is not None and switch is not None and switch.value.strip().lower() == "false":
                message = sentence("line.no-effect.acls", switch=switch.key)
                self.findings.warn(entry, entry.key, message)
        return AclSync(
            policy=AclPolicy(self._value("ferry.sync.acls.policy", values.one_of(tuple(AclPolicy)))),
            mapping=self._value("ferry.sync.acls.principal.mapping", principal_mapping),
            asked=switch is not None,
        )

    def _report(self) -> ReportConfig:
        secret: dict[str, str] = {}
        for name in (KEY, PASSWORD):
            entry = self.entries.of_flow(self.flow, name)
            self.settings.append(Setting.of(name, entry, ""))
            if entry is not None:
                secret[name] = entry.value
        return ReportConfig(
            folder=self._value(FOLDER, values.location),
            is_named=self.entries.of_flow(self.flow, FOLDER) is not None,
            dirs=self._value(DIRS, values.locations),
            with_pdf=self._value(PDF, values.boolean),
            signing=ClientProperties(values_by_key=secret),
            rto_seconds=self._value("ferry.rto.seconds", values.optional_seconds(0)),
            providers=self.providers,
        )

    def _replication_factor(self) -> int | None:
        factor = self._value("replication.factor", values.replication_factor)
        return None if self.entries.of_flow(self.flow, "replication.factor") is None else factor

    def _exactly_once(self) -> str:
        name = "exactly.once.source.support"
        # MirrorMaker reads the target cluster's own line only.
        entry = self.entries.by_key.get(f"{self.flow.target}.{name}")
        self.settings.append(Setting.of(name, entry, DEPARTURES[name]))
        convert = values.one_of(("disabled", "preparing", "enabled"))
        return self.findings.read(entry, DEPARTURES[name], lambda text: convert(text.lower()), self.providers)

    def _start(self, consumer: Mapping[str, Property]) -> Start:
        entry = self.entries.of_flow(self.flow, "ferry.start") or consumer.get("auto.offset.reset")
        default = "earliest"
        self.settings.append(Setting.of("ferry.start", entry, default))
        return self.findings.read(entry, parse_start(default), parse_start, self.providers)

    def _lag_start(self) -> LagStart:
        start = LagStart(
            records=self._value("ferry.schedule.lag.records", values.optional_integer(1)),
            seconds=self._value("ferry.schedule.lag.seconds", values.optional_seconds(1)),
            every_seconds=self._value("ferry.schedule.lag.every.seconds", values.seconds(1, 86_400)),
        )
        entry = self.entries.of_flow(self.flow, "ferry.schedule")
        if start and entry is not None and entry.value.strip() == "@continuous":
            why = sentence("line.continuous")
            self.findings.report(entry, entry.key, why)
        return start

    def _chunk_seconds(self, timeout_ms: int) -> int:
        seconds = self._value("ferry.chunk.seconds", values.seconds(1))
        if 2 * seconds * 1000 > timeout_ms:
            entry = self.entries.of_flow(self.flow, "ferry.chunk.seconds")
            entry = entry or self.entries.of_flow(self.flow, "ferry.transaction.timeout.ms")
            self.findings.report(
                entry,
                entry.key if entry is not None else "ferry.chunk.seconds",
                sentence("line.chunks", seconds=seconds, timeout_ms=timeout_ms),
            )
        return seconds

    def _policy_entries(self) -> dict[str, Property]:
        found = self.entries.under("replication.policy.") | self.entries.under(f"{self.flow}.replication.policy.")
        return {f"replication.policy.{name}": entry for name, entry in found.items() if name != "class"}

    def _policy(self, entries: Mapping[str, Property]) -> tuple[str, ReplicationPolicy]:
        separator = self._value("replication.policy.separator", values.separator)
        internal = self._value("replication.policy.internal.topic.separator.enabled", values.boolean)

        def made(name: str) -> tuple[str, ReplicationPolicy]:
            properties = self._looked_up(entries) if is_own_policy(name) else {}
            return flow_policy(
                name,
                self.flow,
                separator=separator,
                internal_separator_enabled=internal,
                properties=properties,
                secrets=[text for key, text in properties.items() if is_secret(key) or text != entries[key].value],
            )

        return self._value("replication.policy.class", made)

    def _looked_up(self, entries: Mapping[str, Property]) -> dict[str, str]:
        """Return the values with their references resolved, without those that cannot be: these are problems."""
        unknown: str | None = None
        found = {name: self.findings.read(entry, unknown, str, self.providers) for name, entry in entries.items()}
        return {name: text for name, text in found.items() if text is not None}

    def _look_at_topics(self) -> None:
        entry = self.entries.of_flow(self.flow, "topics")
        if entry is not None and not entry.value.strip():
            # Without the flow's name: a line at top level is reported once, not for each flow.
            message = sentence("line.topics.empty")
            self.findings.warn(entry, entry.key, message)

    def _refuse_foreign_filters(self) -> None:
        for name, kafkas in _FILTERS.items():
            self._value(name, values.java_class(kafkas))

    def _refuse_what_changes_records(self, clients: Mapping[tuple[Side, Role], Mapping[str, Property]]) -> None:
        """Report what changes records in MirrorMaker 2.

        Batches are copied as bytes, so each of these settings would be skipped silently.
        """
        changing = {
            "consumer interceptor": clients["source", "consumer"].get("interceptor.classes"),
            "producer interceptor": clients["target", "producer"].get("interceptor.classes"),
        }
        for name in ("key.converter", "value.converter", "header.converter"):
            of_target = self.entries.by_key.get(f"{self.flow.target}.{name}")
            entry = self.entries.of_flow(self.flow, name) or of_target
            if entry is not None and entry.value.strip() not in _BYTES_AS_THEY_ARE:
                changing[name] = entry
        for what, entry in changing.items():
            if entry is not None and entry.value.strip():
                self.findings.report(
                    entry,
                    entry.key,
                    sentence("line.records-skipped", what=what, value=entry.value.strip()),
                )


def written_properties(entries: Mapping[str, Property]) -> ClientProperties:
    """Return properties as written, references to secrets unresolved."""
    return ClientProperties(values_by_key={name: entry.value for name, entry in entries.items()})
