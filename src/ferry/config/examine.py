"""A file's text as clusters, flows and problems. All problems are collected; whoever calls decides what stops."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TypeVar

from ferry.config import values
from ferry.config.cluster import ClusterConfig
from ferry.config.filters import TOPICS_DEFAULT, TOPICS_EXCLUDE_DEFAULT, PatternList, TopicFilter, TopicSelection
from ferry.config.flow import Budget, FlowConfig
from ferry.config.keys import FERRY_KEYS_BY_NAME
from ferry.config.layers import ROLES, SIDES, Entries
from ferry.config.problem import BadValue, Problem, Severity
from ferry.config.properties import Property, parse
from ferry.config.secrets import ClientProperties, ProviderKind, Providers, has_reference, is_secret
from ferry.config.start import Start, StartEarliest, parse_start
from ferry.errors import BadInput
from ferry.model import Flow
from ferry.policy import DefaultReplicationPolicy, IdentityReplicationPolicy, ReplicationPolicy

T = TypeVar("T")

POLICY_PACKAGE = "org.apache.kafka.connect.mirror."
CONFIG_EXCLUDE_DEFAULT = (
    "follower.replication.throttled.replicas",
    "leader.replication.throttled.replicas",
    "message.timestamp.difference.max.ms",
    "log.message.timestamp.before.max.ms",
    "log.message.timestamp.after.max.ms",
    "message.timestamp.type",
    "unclean.leader.election.enable",
    "min.insync.replicas",
)
_RENAMED = {
    "topics.blacklist": "topics.exclude",
    "topics.whitelist": "topics",
    "groups.blacklist": "groups.exclude",
    "config.properties.blacklist": "config.properties.exclude",
}
_ALIAS = re.compile(r"[A-Za-z0-9._-]+")
_COMMENT_BEHIND = re.compile(r"\s[#!]")
_MAX_REPLICAS = 32767


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """What a text says. With an error among `problems`, clusters and flows may be incomplete."""

    clusters: Mapping[str, ClusterConfig]
    flows: tuple[FlowConfig, ...]
    problems: tuple[Problem, ...]


def examine(text: str, file: str) -> Examined:
    """What `text` says and everything wrong with it, in file order. Raises BadInput for a bad escape only."""
    properties = parse(text, file)
    entries = Entries(file=file, by_key={entry.key: entry for entry in properties})
    return _Examination(entries=entries).run(properties)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Examination:
    entries: Entries
    problems: list[Problem] = field(default_factory=list)

    def run(self, properties: tuple[Property, ...]) -> Examined:
        self._look_at_duplicates(properties)
        aliases = self._aliases()
        providers = self._providers()
        mentioned = self._flows_mentioned(aliases)
        self._look_at_keys(aliases, mentioned)
        clusters = {alias: self._cluster(alias, providers) for alias in aliases}
        flows = [self._flow(flow, providers) for flow in mentioned if self._enabled(flow)]
        if aliases and not flows and not self._errors():
            example = Flow(source=aliases[0], target=aliases[1] if len(aliases) > 1 else "other")
            self._report(None, "enabled", f"no flow is enabled; add {example}.enabled = true", Severity.WARNING)
        self.problems.sort(key=lambda problem: problem.line or 0)
        return Examined(clusters=clusters, flows=tuple(flows), problems=tuple(self.problems))

    def _errors(self) -> bool:
        return any(problem.severity is Severity.ERROR for problem in self.problems)

    def _report(self, entry: Property | None, key: str, message: str, severity: Severity = Severity.ERROR) -> None:
        line = entry.line if entry is not None else None
        problem = Problem(file=self.entries.file, line=line, key=key, severity=severity, message=message)
        # A top-level value is read once for each flow; one finding is enough.
        if problem not in self.problems:
            self.problems.append(problem)

    def _read(self, entry: Property | None, default: T, convert: Callable[[str], T], providers: Providers) -> T:
        """The entry's value, or the default when there is none; a bad value is a problem and then the default."""
        if entry is None:
            return default
        try:
            value = providers.resolved(entry.key, entry.value)
        except BadInput as error:
            self._report(entry, entry.key, str(error).removeprefix(f"{entry.key}: "))
            return default
        try:
            return convert(value)
        except BadValue as error:
            hint = ""
            if _COMMENT_BEHIND.search(value):
                hint = " (text behind a value belongs to it: put the comment on a line of its own)"
            self._report(entry, entry.key, f"{error}{hint}")
            return default

    # What the file as a whole says.

    def _look_at_duplicates(self, properties: tuple[Property, ...]) -> None:
        seen: dict[str, Property] = {}
        for entry in properties:
            earlier = seen.get(entry.key)
            seen[entry.key] = entry
            if earlier is None:
                continue
            if earlier.value == entry.value:
                self._report(entry, entry.key, f"repeats line {earlier.line}; remove one of the two", Severity.WARNING)
            else:
                self._report(entry, entry.key, f"is set on line {earlier.line} to another value; keep one of the two")

    def _aliases(self) -> tuple[str, ...]:
        entry = self.entries.by_key.get("clusters")
        if entry is None:
            found = sorted(
                key.removesuffix(".bootstrap.servers")
                for key in self.entries.by_key
                if key.endswith(".bootstrap.servers") and "->" not in key
            )
            listed = ", ".join(alias for alias in found if _ALIAS.fullmatch(alias)) or "primary, backup"
            self._report(None, "clusters", f"is missing; add clusters = {listed}")
            return ()
        aliases = values.items(entry.value)
        if not aliases:
            self._report(entry, "clusters", "names no cluster; write for example clusters = primary, backup")
        for alias in aliases:
            if not _ALIAS.fullmatch(alias):
                comment = " (put a comment on a line of its own)" if _COMMENT_BEHIND.search(alias) else ""
                self._report(
                    entry,
                    "clusters",
                    f"alias {alias!r} is not a name; use letters, digits, dot, underscore and hyphen only{comment}",
                )
            elif aliases.count(alias) > 1:
                self._report(entry, "clusters", f"alias {alias!r} is listed twice; keep one")
        return tuple(dict.fromkeys(alias for alias in aliases if _ALIAS.fullmatch(alias)))

    def _providers(self) -> Providers:
        kinds = dict(Providers().kinds)
        declared = self.entries.by_key.get("config.providers")
        for name in values.items(declared.value) if declared is not None else ():
            key = f"config.providers.{name}.class"
            entry = self.entries.by_key.get(key)
            if entry is None:
                self._report(declared, "config.providers", f"provider {name!r} has no class; add {key} = ...")
                continue
            try:
                kinds[name] = ProviderKind(entry.value.strip())
            except ValueError:
                known = ", ".join(kind.value.rpartition(".")[2] for kind in ProviderKind)
                self._report(entry, key, f"provider class {entry.value!r} is not supported; use one of {known}")
        for key, entry in self.entries.by_key.items():
            if re.fullmatch(r"config\.providers\..*\.param\..*", key):
                # allowed.paths and allowlist.pattern are limits: ignoring them would open what the file closes.
                self._report(entry, key, "provider parameters are not supported; remove the line or the provider")
        return Providers(kinds=kinds)

    def _flows_mentioned(self, aliases: tuple[str, ...]) -> tuple[Flow, ...]:
        found: dict[Flow, None] = {}
        for key, entry in self.entries.by_key.items():
            if "->" not in key:
                continue
            flow = next((f for f in _pairs(aliases) if key.startswith(f"{f}.")), None)
            if flow is not None:
                found[flow] = None
            elif aliases:
                self._report_unknown_flow(entry, aliases)
        return tuple(sorted(found))

    def _report_unknown_flow(self, entry: Property, aliases: tuple[str, ...]) -> None:
        source, _, rest = entry.key.partition("->")
        target = next((alias for alias in aliases if rest.startswith(f"{alias}.")), rest.partition(".")[0])
        if source == target:
            message = f"source and target are both {source!r}; a flow goes from one cluster to another"
        else:
            unknown = source if source not in aliases else target
            message = f"cluster {unknown!r} is not among clusters = {', '.join(aliases)}; {_nearest(unknown, aliases)}"
        self._report(entry, entry.key, message)

    def _look_at_keys(self, aliases: tuple[str, ...], flows: tuple[Flow, ...]) -> None:
        for key, entry in self.entries.by_key.items():
            own = key
            for prefix in [f"{flow}." for flow in flows]:
                own = own.removeprefix(prefix)
            if own.startswith("ferry.") or ".ferry." in own:
                self._look_at_ferry_key(entry, own)
            elif own in _RENAMED:
                new = key.removesuffix(own) + _RENAMED[own]
                self._report(entry, key, f"has no effect since Kafka 4; write {new} = ...", Severity.WARNING)
            elif own != key and own == "enable":
                self._report(entry, key, f"has no effect; write {key}d = {entry.value}", Severity.WARNING)
            elif entry.value.startswith("->"):
                joined = f"{key}{''.join(entry.value.partition('=')[0].split())}"
                self._report(entry, key, f"a blank ends the key; write {joined} = ... without blanks in the key")
            elif key.endswith(".bootstrap.servers") and "->" not in key and aliases:
                self._look_at_server_key(entry, aliases)
            if not is_secret(key) and _COMMENT_BEHIND.search(entry.value):
                self._report(
                    entry,
                    key,
                    f"the value read is {entry.value!r}: text behind a value belongs to it; put the comment on a line"
                    " of its own",
                    Severity.WARNING,
                )

    def _look_at_ferry_key(self, entry: Property, own: str) -> None:
        if own in FERRY_KEYS_BY_NAME:
            return
        if not own.startswith("ferry."):
            self._report(
                entry, entry.key, "Ferry's keys stand at top level or behind S->T., not behind a cluster's alias"
            )
            return
        self._report(entry, entry.key, f"is no key of Ferry; {_nearest(own, tuple(FERRY_KEYS_BY_NAME))}")

    def _look_at_server_key(self, entry: Property, aliases: tuple[str, ...]) -> None:
        alias = re.sub(r"\.(consumer|producer|admin)$", "", entry.key.removesuffix(".bootstrap.servers"))
        if alias in aliases:
            return
        same = next((known for known in aliases if known.lower() == alias.lower()), None)
        if same is not None:
            self._report(entry, entry.key, f"clusters spells this alias {same!r}; write {same}.bootstrap.servers")
        else:
            message = f"cluster {alias!r} is not among clusters = {', '.join(aliases)}; add it there or remove the line"
            self._report(entry, entry.key, message, Severity.WARNING)

    # One cluster, one flow.

    def _cluster(self, alias: str, providers: Providers) -> ClusterConfig:
        merged = self.entries.of_cluster(alias)
        servers = merged.get("bootstrap.servers")
        written = servers.value if servers is not None else ""
        if servers is None:
            self._report(None, f"{alias}.bootstrap.servers", f"is missing; add {alias}.bootstrap.servers = host:port")
        elif not has_reference(servers.value):
            written = self._read(servers, servers.value, values.bootstrap_servers, providers)
        roles = {role: _written(self.entries.of_cluster_client(alias, role)) for role in ROLES}
        common = {name: entry for name, entry in roles["admin"].items() if name in merged}
        return ClusterConfig(
            alias=alias,
            bootstrap_servers=written,
            properties=ClientProperties(values_by_key=common),
            consumer=roles["consumer"],
            producer=roles["producer"],
            admin=roles["admin"],
            providers=providers,
        )

    def _enabled(self, flow: Flow) -> bool:
        # MirrorMaker reads the flow's own line only: a top-level `enabled` enables nothing.
        return self._read(self.entries.by_key.get(f"{flow}.enabled"), False, values.boolean, Providers())

    def _flow(self, flow: Flow, providers: Providers) -> FlowConfig:
        def read(name: str, default: T, convert: Callable[[str], T]) -> T:
            return self._read(self.entries.of_flow(flow, name), default, convert, providers)

        def ferry(name: str, convert: Callable[[str], T]) -> T:
            default = FERRY_KEYS_BY_NAME[name].default
            return read(name, convert(default), convert)

        clients = {(side, role): self.entries.of_flow_client(flow, side, role) for side in SIDES for role in ROLES}
        consumer = clients["source", "consumer"]
        topics = TopicFilter(
            include=read("topics", PatternList(items=TOPICS_DEFAULT), values.pattern_list),
            exclude=read("topics.exclude", PatternList(items=TOPICS_EXCLUDE_DEFAULT), values.pattern_list),
        )
        policy_name, policy = self._policy(flow, providers)
        timeout_ms = ferry("ferry.transaction.timeout.ms", values.integer(2000, 2**31 - 1))
        return FlowConfig(
            flow=flow,
            enabled=True,
            topics=topics,
            selection=TopicSelection(
                flow=flow,
                filter=topics,
                policy=policy,
                heartbeats=read("heartbeats.replication.enabled", True, values.boolean),
            ),
            policy=policy,
            policy_name=policy_name,
            replication_factor=read("replication.factor", None, _replication_factor),
            sync_topic_configs=read("sync.topic.configs.enabled", True, values.boolean),
            config_exclude=read(
                "config.properties.exclude", PatternList(items=CONFIG_EXCLUDE_DEFAULT), values.pattern_list
            ),
            tasks_max=read("tasks.max", 1, values.integer(1)),
            isolation_level=self._read(
                consumer.get("isolation.level"),
                "read_committed",
                values.one_of(("read_committed", "read_uncommitted")),
                providers,
            ),
            start=self._start(flow, consumer, providers),
            budget=Budget(
                max_bytes=ferry("ferry.run.max.bytes", values.integer(1)),
                max_records=ferry("ferry.run.max.records", values.optional_integer(1)),
                max_seconds=ferry("ferry.run.max.seconds", values.integer(1)),
            ),
            schedule=ferry("ferry.schedule", values.schedule),
            lane=ferry("ferry.lane", values.name),
            task_memory_bytes=ferry("ferry.task.memory.bytes", values.integer(1024 * 1024)),
            chunk_bytes=ferry("ferry.chunk.bytes", values.integer(1)),
            chunk_seconds=self._chunk_seconds(flow, timeout_ms, ferry("ferry.chunk.seconds", values.integer(1))),
            transaction_timeout_ms=timeout_ms,
            ledger_replication_factor=ferry("ferry.ledger.replication.factor", values.optional_integer(1)),
            retries=ferry("ferry.retries", values.integer(0, 1000)),
            spark_conn_id=ferry("ferry.spark.conn.id", values.name),
            pool=read("ferry.pool", f"ferry_{flow.source}_{flow.target}", values.name),
            clients={place: _written(entries) for place, entries in clients.items()},
            providers=providers,
        )

    def _start(self, flow: Flow, consumer: Mapping[str, Property], providers: Providers) -> Start:
        entry = self.entries.of_flow(flow, "ferry.start") or consumer.get("auto.offset.reset")
        default: Start = StartEarliest()
        return self._read(entry, default, parse_start, providers)

    def _chunk_seconds(self, flow: Flow, timeout_ms: int, seconds: int) -> int:
        if 2 * seconds * 1000 > timeout_ms:
            entry = self.entries.of_flow(flow, "ferry.chunk.seconds")
            entry = entry or self.entries.of_flow(flow, "ferry.transaction.timeout.ms")
            self._report(
                entry,
                entry.key if entry is not None else "ferry.chunk.seconds",
                f"chunks of {seconds} seconds do not fit twice into a transaction timeout of {timeout_ms} ms; lower"
                " ferry.chunk.seconds or raise ferry.transaction.timeout.ms",
            )
        return seconds

    def _policy(self, flow: Flow, providers: Providers) -> tuple[str, ReplicationPolicy]:
        separator = self._read(
            self.entries.of_flow(flow, "replication.policy.separator"), ".", values.separator, providers
        )
        internal = self._read(
            self.entries.of_flow(flow, "replication.policy.internal.topic.separator.enabled"),
            True,
            values.boolean,
            providers,
        )
        entry = self.entries.of_flow(flow, "replication.policy.class")
        name = self._read(entry, "DefaultReplicationPolicy", _policy_name, providers)
        if name == "IdentityReplicationPolicy":
            return name, IdentityReplicationPolicy(
                source_alias=flow.source, separator=separator, internal_separator_enabled=internal
            )
        return name, DefaultReplicationPolicy(separator=separator, internal_separator_enabled=internal)


def _pairs(aliases: tuple[str, ...]) -> list[Flow]:
    """All flows between the clusters, those with the longest names first: an alias may begin with another one."""
    flows = [Flow(source=source, target=target) for source in aliases for target in aliases if source != target]
    return sorted(flows, key=lambda flow: len(str(flow)), reverse=True)


def _written(entries: Mapping[str, Property]) -> ClientProperties:
    return ClientProperties(values_by_key={name: entry.value for name, entry in entries.items()})


def _nearest(wrong: str, known: tuple[str, ...]) -> str:
    close = get_close_matches(wrong, known, n=1, cutoff=0.4)
    return f"did you mean {close[0]}?" if close else f"known are {', '.join(known)}"


def _replication_factor(text: str) -> int | None:
    number = values.integer(-1, _MAX_REPLICAS)(text)
    if number == 0:
        raise BadValue("0 replicas hold nothing; write 1 or more, or -1 for the target broker's default")
    return number


def _policy_name(text: str) -> str:
    name = text.strip().removeprefix(POLICY_PACKAGE)
    if name not in ("DefaultReplicationPolicy", "IdentityReplicationPolicy"):
        raise BadValue(
            f"policy {text!r} is not known; write {POLICY_PACKAGE}DefaultReplicationPolicy or"
            f" {POLICY_PACKAGE}IdentityReplicationPolicy"
        )
    return name
