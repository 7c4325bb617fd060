"""A file's text as clusters, flows and problems.

All problems are collected; the caller decides which of them stop it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ferry.config.flow.cluster import ClusterConfig
from ferry.config.flow.flow import FlowConfig
from ferry.config.keys import values
from ferry.config.keys.catalogue import may_be_shown
from ferry.config.keys.key import CONNECTION
from ferry.config.keys.layers import ROLES, Entries
from ferry.config.keys.places import flow_of, longest_first
from ferry.config.login.connection import Lookup, nobody
from ferry.config.reading.aliases import read_aliases
from ferry.config.reading.findings import Findings, Setting, Unneeded
from ferry.config.reading.flow import FlowReader, written_properties
from ferry.config.reading.idle_transforms import look_at_idle_transforms
from ferry.config.reading.key_check import KeyCheck
from ferry.config.reading.other_clients import look_at_other_clients
from ferry.config.reading.provider_lines import read_providers
from ferry.config.reading.rewrite import Rewrite, with_whole
from ferry.config.reading.topology import look_at_brokers, look_at_circles, look_at_separators
from ferry.config.reading.typos import alias_ahead, alias_meant, nearest, shown, torn_apart
from ferry.config.reading.unlisted import look_at_unlisted
from ferry.config.text.problem import Problem, in_file_order, once_per_slip
from ferry.config.text.properties import MALFORMED, Property, parse_all, written_raw
from ferry.config.text.secrets import NO_PROVIDER, ClientProperties, Providers, has_reference, names_of_providers
from ferry.messages.catalogue import sentence
from ferry.model import Flow

_FORMAT = re.compile(r"(^|\.)transforms\.[^.]+\.(topic\.format|replacement)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """The content of a text. With an error among `problems`, clusters and flows may be incomplete."""

    entries: Entries
    clusters: Mapping[str, ClusterConfig]
    flows: tuple[FlowConfig, ...]
    disabled: tuple[Flow, ...]
    """Flows that some line mentions and none enables."""
    settings: Mapping[Flow, tuple[Setting, ...]]
    """Where the effective values of each enabled flow come from."""
    unneeded: tuple[Unneeded, ...]
    problems: tuple[Problem, ...]

    def servers_line(self, alias: str) -> int | None:
        """Return the line that names the cluster's brokers, or the Airflow connection that does."""
        connection = self.entries.by_key.get(f"{alias}.{CONNECTION.name}")
        entry = connection or self.entries.of_cluster(alias).get("bootstrap.servers")
        return None if entry is None else entry.line


def examine(text: str, file: str, lookup: Lookup = nobody) -> Examined:
    """Return the content of `text` and everything wrong with it, in file order.

    `lookup` is asked for the Airflow connections that the text names. A connection that it refuses (BadInput) is a
    problem of the line that names it. An escape that Java refuses is a problem of its line.
    """
    examined = examine_once(text, file, lookup)
    if not any(problem.correction and problem.line for problem in examined.problems):
        return examined
    corrections = Rewrite.corrected(text, lambda current: examine_once(current, file, lookup).problems).corrections()
    problems = (with_whole(problem, corrections.get(problem.line or 0, ())) for problem in examined.problems)
    return replace(examined, problems=tuple(problems))


def examine_once(text: str, file: str, lookup: Lookup = nobody) -> Examined:
    """Return the content of `text` and everything wrong with it, each problem with its own correction.

    Each correction is made as if the problem were the only slip of its line.
    """
    properties, malformed = parse_all(text)
    entries = Entries(file=file, by_key={entry.key: entry for entry in properties}).with_connections(lookup)
    return _Examination(entries=entries, findings=Findings(file=file)).run(properties, malformed)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Examination:
    entries: Entries
    findings: Findings
    settings: dict[Flow, tuple[Setting, ...]] = field(default_factory=dict)

    def run(self, properties: tuple[Property, ...], malformed: tuple[Property, ...]) -> Examined:
        for entry in malformed:
            self.findings.report(entry, entry.key, MALFORMED)
        # What else such a line contains is not known.
        refused, wrong = tuple(self.findings.problems), {entry.line for entry in malformed}
        for alias, why in self.entries.refused.items():
            connection = self.entries.by_key[f"{alias}.{CONNECTION.name}"]
            self.findings.report(connection, connection.key, why)
        self._look_at_duplicates(properties)
        providers = read_providers(self.entries, self.findings)
        aliases = read_aliases(self.entries, self.findings, providers)
        mentioned = self._flows_mentioned(aliases)
        check = KeyCheck(aliases=aliases, flows=mentioned, entries=self.entries, findings=self.findings)
        unneeded = check.run()
        clusters = {alias: self._cluster(alias, providers) for alias in aliases}
        look_at_brokers(clusters, self.entries, self.findings)
        self._look_at_references(providers)
        enabled = [flow for flow in mentioned if self._enabled(flow, providers)]
        others = look_at_other_clients(aliases, enabled, self.entries, self.findings)
        unneeded_by_line = {one.line: one for one in (*others, *unneeded)}
        flows = [self._flow(flow, providers) for flow in enabled]
        look_at_unlisted(aliases, flows, self.entries, self.findings)
        look_at_idle_transforms(flows, self.entries, self.findings, all_enabled=len(enabled) == len(mentioned))
        if aliases and not flows and not self.findings.has_errors:
            example = Flow(source=aliases[0], target=aliases[1] if len(aliases) > 1 else "other")
            self.findings.warn(None, "enabled", sentence("line.no-flow", example=str(example)))
        if not self.findings.has_errors:
            look_at_separators(flows, self.entries, self.findings)
            look_at_circles(flows, self.entries, self.findings)
        reported = (one for one in self.findings.problems if one.line not in wrong or one in refused)
        return Examined(
            entries=self.entries,
            clusters=clusters,
            flows=tuple(flows),
            disabled=tuple(flow for flow in mentioned if flow not in enabled),
            settings=self.settings,
            unneeded=tuple(unneeded_by_line[line] for line in sorted(unneeded_by_line)),
            problems=once_per_slip(in_file_order(reported)),
        )

    def _look_at_references(self, providers: Providers) -> None:
        declared = self.entries.by_key.get("config.providers")
        known = {*providers.kinds, *(values.items(declared.value) if declared is not None else ())}
        for entry in self.entries.by_key.values():
            # ${topic} is a word of Connect's TimestampRouter.
            nameless = None if _FORMAT.search(entry.key) else NO_PROVIDER.search(entry.value)
            if nameless is not None:
                said = nameless.group() if may_be_shown(entry.key) else "${...}"
                name = nameless.group(1) if may_be_shown(entry.key) and nameless.group(1) else "NAME"
                self.findings.warn(
                    entry,
                    entry.key,
                    sentence("line.reference.no-provider", said=said, name=name),
                )
            for name in sorted(names_of_providers(entry.value) - known):
                self.findings.warn(
                    entry,
                    entry.key,
                    sentence("line.reference.not-declared", name=name),
                )

    def _look_at_duplicates(self, properties: tuple[Property, ...]) -> None:
        seen: dict[str, Property] = {}
        for entry in properties:
            earlier = seen.get(entry.key)
            seen[entry.key] = entry
            if earlier is None:
                continue
            if earlier.value == entry.value:
                message = sentence("line.repeated", other=earlier.line)
                self.findings.warn(entry, entry.key, message, correction=())
            else:
                message = sentence("line.set-twice", other=earlier.line)
                self.findings.report(entry, entry.key, message)

    def _flows_mentioned(self, aliases: tuple[str, ...]) -> tuple[Flow, ...]:
        found: dict[Flow, None] = {}
        known = longest_first(aliases)
        for key, entry in self.entries.by_key.items():
            if "->" not in key or torn_apart(entry) is not None:
                continue
            flow = flow_of(key, known)
            if flow is not None:
                found[flow] = None
            elif aliases:
                self._report_unknown_flow(entry, aliases)
        return tuple(sorted(found))

    def _report_unknown_flow(self, entry: Property, aliases: tuple[str, ...]) -> None:
        source, _, rest = entry.key.partition("->")
        ahead = alias_ahead(rest, aliases)
        target = next((alias for alias in aliases if rest.startswith(f"{alias}.")), None)
        written_target = target or (ahead[0] if ahead else rest.partition(".")[0])
        if source == written_target:
            message = sentence("line.flow.same", cluster=source)
            self.findings.report(entry, entry.key, message)
            return
        unknown = source if source not in aliases else written_target
        meant_source = source if source in aliases else alias_meant(source, aliases)
        meant_target = target or (ahead[1] if ahead else None)
        correction = None
        if meant_source and meant_target and meant_source != meant_target:
            key = f"{meant_source}->{meant_target}{rest[len(written_target) :]}"
            correction = (written_raw(key, entry.raw),)
            remedy = f"write {shown(correction)}"
        else:
            other = meant_target if source not in aliases else source
            near = nearest(unknown, (alias for alias in aliases if alias != other))
            remedy = f"did you mean {near}?" if near else "add it there, or remove the line"
        message = sentence("line.flow.cluster", unknown=unknown, clusters=", ".join(aliases), remedy=remedy)
        self.findings.report(entry, entry.key, message, correction=correction)

    def _cluster(self, alias: str, providers: Providers) -> ClusterConfig:
        merged = self.entries.of_cluster(alias)
        servers = merged.get("bootstrap.servers")
        text = servers.value if servers is not None else ""
        key = f"{alias}.bootstrap.servers"
        if servers is None and not self.entries.is_unknown(alias) and not self.findings.corrects(key):
            self.findings.report(None, key, sentence("line.servers.missing", key=key))
        elif servers is not None and not has_reference(servers.value):
            text = self.findings.read(servers, servers.value, values.bootstrap_servers, providers)
        roles = {role: written_properties(self.entries.of_cluster_client(alias, role)) for role in ROLES}
        common = {name: entry for name, entry in roles["admin"].items() if name in merged}
        return ClusterConfig(
            alias=alias,
            bootstrap_servers=text,
            properties=ClientProperties(values_by_key=common),
            consumer=roles["consumer"],
            producer=roles["producer"],
            admin=roles["admin"],
            providers=providers,
            connection=self.entries.connection(alias),
            is_unknown=self.entries.is_unknown(alias),
        )

    def _enabled(self, flow: Flow, providers: Providers) -> bool:
        # MirrorMaker reads the flow's own line only: a top-level `enabled` enables nothing.
        entry = self.entries.by_key.get(f"{flow}.enabled")
        return self.findings.read(entry, False, values.boolean, providers)

    def _flow(self, flow: Flow, providers: Providers) -> FlowConfig:
        reader = FlowReader(flow=flow, entries=self.entries, providers=providers, findings=self.findings)
        config = reader.read()
        self.settings[flow] = tuple(reader.settings)
        return config
