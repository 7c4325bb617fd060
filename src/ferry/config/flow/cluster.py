"""A Kafka cluster as the file describes it."""

from __future__ import annotations

from dataclasses import dataclass

from ferry.config.keys.layers import Role
from ferry.config.login.unknown import unknown_here
from ferry.config.text.secrets import ClientProperties, Providers
from ferry.errors import BadInput


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterConfig:
    """Properties by their Java names, as written: `client` resolves references to secrets, which are never kept."""

    alias: str
    bootstrap_servers: str
    """Empty when an Airflow connection holds them that was not fetched."""
    properties: ClientProperties
    """The properties for every client of the cluster: bootstrap servers and security."""
    consumer: ClientProperties
    producer: ClientProperties
    admin: ClientProperties
    providers: Providers
    connection: str | None = None
    """The Airflow connection in place of the cluster's own settings."""
    is_unknown: bool = False
    """Whether that connection was not fetched, so that no client can be made."""

    def client(self, role: Role) -> ClientProperties:
        """Return the effective properties of a client that serves no flow, secrets resolved.

        Raises BadInput when a referenced variable, file or entry is missing, or the connection is unknown here.
        """
        if self.connection is not None and self.is_unknown:
            raise BadInput(unknown_here(self.connection))
        match role:
            case "consumer":
                return self.providers.resolve_all(self.consumer)
            case "producer":
                return self.providers.resolve_all(self.producer)
            case "admin":
                return self.providers.resolve_all(self.admin)
