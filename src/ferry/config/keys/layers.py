"""Which line of the file wins: the precedence of MirrorMaker 2 between top level, clusters and flows.

Source: `MirrorMakerConfig.clusterProps` and `connectorBaseConfig`, `MirrorConnectorConfig.*Config` of Kafka 4.3.0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from ferry.config.keys.key import CONNECTION
from ferry.config.text.properties import Property
from ferry.errors import BadInput
from ferry.model import Flow

Role = Literal["consumer", "producer", "admin"]
Side = Literal["source", "target"]

ROLES: tuple[Role, ...] = ("consumer", "producer", "admin")
SIDES: tuple[Side, ...] = ("source", "target")
ROLE_AT: Mapping[Side, Role] = {"source": "consumer", "target": "producer"}
"""The client as which Ferry reaches each side of a flow, for all of its requests there."""
CLIENTS: tuple[tuple[Side, Role], ...] = tuple(ROLE_AT.items())
"""The clients that Ferry has for a flow."""


def is_common_client_key(name: str) -> bool:
    """Return whether `name` counts for all clients of a cluster without a role before it (`MirrorClientConfig`)."""
    return name in ("bootstrap.servers", "security.protocol") or name.startswith(("ssl.", "sasl."))


@dataclass(frozen=True, slots=True, kw_only=True)
class Entries:
    """The entries of a file by key; of duplicates the last one, as in Java."""

    file: str
    by_key: Mapping[str, Property]
    connected: Mapping[str, Mapping[str, Property] | None] = field(default_factory=dict)
    """Settings from Airflow connections, by alias and key; None for one that was not fetched, or cannot be used."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Why a connection cannot be used, by alias."""

    def with_connections(self, lookup: Callable[[str], Mapping[str, str] | None]) -> Entries:
        """Return the entries with the settings of the connections that `lookup` returns.

        They count as if written on the lines that name the connections.
        """
        connected: dict[str, Mapping[str, Property] | None] = {}
        refused: dict[str, str] = {}
        for key, entry in self.by_key.items():
            alias, dot, name = key.partition(f".{CONNECTION.name}")
            if dot and not name and "->" not in alias:
                found = None
                try:
                    found = lookup(entry.value.strip())
                except BadInput as error:
                    refused[alias] = str(error)
                connected[alias] = None if found is None else _on_line(alias, entry, found)
        return replace(self, connected=connected, refused=refused)

    def connection(self, alias: str) -> str | None:
        """Return the Airflow connection in place of the cluster's settings; None when there is none."""
        return self.by_key[f"{alias}.{CONNECTION.name}"].value.strip() if alias in self.connected else None

    def is_unknown(self, alias: str) -> bool:
        """Return whether the cluster's settings are in a connection that was not fetched."""
        return alias in self.connected and self.connected[alias] is None

    def under(self, prefix: str) -> dict[str, Property]:
        """Return the entries whose key begins with `prefix`, by the rest of their key."""
        return {key[len(prefix) :]: entry for key, entry in self.by_key.items() if key.startswith(prefix)}

    def of_flow(self, flow: Flow, name: str) -> Property | None:
        """Return the entry of `S->T.name`, else of the top-level `name`."""
        return self.by_key.get(f"{flow}.{name}") or self.by_key.get(name)

    def of_cluster(self, alias: str) -> dict[str, Property]:
        """Return the cluster's properties. Common client keys fall back to the top level, and apply to each role.

        With a connection, only the connection counts: its Test button tries what a run uses.
        """
        found = {**self.under(f"{alias}."), **(self.connected.get(alias) or {})}
        common: dict[str, Property] = {}
        if alias not in self.connected:
            common = {name: entry for name, entry in self.by_key.items() if is_common_client_key(name)}
        common |= {name: entry for name, entry in found.items() if is_common_client_key(name)}
        for role in ROLES:
            for name, entry in common.items():
                found.setdefault(f"{role}.{name}", entry)
        return common | found

    def of_cluster_client(self, alias: str, role: Role) -> dict[str, Property]:
        """Return the properties of a client of the cluster when no flow is involved."""
        cluster = self.of_cluster(alias)
        common = {name: entry for name, entry in cluster.items() if is_common_client_key(name)}
        return common | _stripped(cluster, f"{role}.")

    def of_flow_client(self, flow: Flow, side: Side, role: Role) -> dict[str, Property]:
        """Return the properties of a flow's client of one side.

        The sources are, weakest first:

        - common keys of the cluster;
        - `S->T.{side}.cluster.*`, common keys only;
        - `S->T.{role}.*`;
        - `{alias}.{role}.*`, with common keys of the cluster and the top level in it;
        - `S->T.{side}.{role}.*`;
        - `S->T.producer.override.*` for the producer of the target, as in Connect.
        """
        cluster = self.of_cluster(flow.source if side == "source" else flow.target)
        own = self.under(f"{flow}.")
        merged = {name: entry for name, entry in cluster.items() if is_common_client_key(name)}
        merged |= {n: entry for n, entry in _stripped(own, f"{side}.cluster.").items() if is_common_client_key(n)}
        merged |= {n: e for n, e in _stripped(own, f"{role}.").items() if not n.startswith("override.")}
        merged |= _stripped(cluster, f"{role}.")
        merged |= _stripped(own, f"{side}.{role}.")
        if (side, role) == ("target", "producer"):
            merged |= _stripped(own, "producer.override.")
        return merged


def _on_line(alias: str, line: Property, settings: Mapping[str, str]) -> dict[str, Property]:
    return {name: replace(line, key=f"{alias}.{name}", value=value, raw="") for name, value in settings.items()}


def _stripped(entries: Mapping[str, Property], prefix: str) -> dict[str, Property]:
    return {key[len(prefix) :]: entry for key, entry in entries.items() if key.startswith(prefix)}
