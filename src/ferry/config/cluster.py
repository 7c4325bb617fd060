"""A Kafka cluster as the file describes it."""

from __future__ import annotations

from dataclasses import dataclass

from ferry.config.layers import Role
from ferry.config.secrets import ClientProperties, Providers


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterConfig:
    """Properties by their Java names, as written: references to secrets are looked up by `client`, never kept."""

    alias: str
    bootstrap_servers: str
    properties: ClientProperties
    """What counts for every client of the cluster: bootstrap servers and security."""
    consumer: ClientProperties
    producer: ClientProperties
    admin: ClientProperties
    providers: Providers

    def client(self, role: Role) -> ClientProperties:
        """Effective properties of a client that serves no flow, secrets resolved.

        Raises BadInput when a referenced variable, file or entry is missing.
        """
        match role:
            case "consumer":
                return self.providers.resolve_all(self.consumer)
            case "producer":
                return self.providers.resolve_all(self.producer)
            case "admin":
                return self.providers.resolve_all(self.admin)
