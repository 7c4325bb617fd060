"""Where a key stands: at top level, behind a cluster's alias or a flow, and before which client."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ferry.config.catalogue import KnownKey, find, keys_of
from ferry.config.fates import Group
from ferry.config.layers import ROLES, Role, is_common_client_key
from ferry.model import Flow

_OF_ALIAS = re.compile(r"replication\.policy\..+|forwarding\.admin\.class|config\.providers.*")
_CLIENT = re.compile(r"(?:(source|target)\.)?(consumer|producer|admin)\.(?:override\.)?(.+)")
_CLUSTER = re.compile(r"(?:source|target)\.cluster\.(.+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A key taken apart. `owner` is the prefix up to the alias or flow (empty at top level), `name` what follows it."""

    owner: str
    flow: Flow | None
    alias: str | None
    name: str

    @property
    def client(self) -> tuple[Role, str] | None:
        """The client's role and the key's name for it, where the key is one of a client."""
        match = _CLIENT.fullmatch(self.name)
        if match is None:
            return None
        return next(role for role in ROLES if role == match.group(2)), match.group(3)

    def known(self) -> KnownKey | None:
        """What Kafka knows under this key, in this place."""
        client = self.client
        if client is not None:
            return find(client[1], client[0])
        cluster = _CLUSTER.fullmatch(self.name)
        if cluster is not None and is_common_client_key(cluster.group(1)):
            return find(cluster.group(1), "flow")
        if self.alias is None:
            return find(self.name, "flow", "worker")
        if is_common_client_key(self.name) or _OF_ALIAS.fullmatch(self.name):
            return find(self.name, "flow")
        return find(self.name, "worker")

    def neighbours(self) -> list[str]:
        """The keys that might have been meant, without the owner."""
        client = self.client
        if client is not None:
            head = self.name[: -len(client[1])]
            return [f"{head}{name}" for name in keys_of(client[0])]
        groups: tuple[Group, ...] = ("flow", "worker") if self.alias is None else ("worker",)
        return [name for group in groups for name in keys_of(group)]


def place_of(key: str, aliases: tuple[str, ...], flows: tuple[Flow, ...]) -> Place:
    """Take a key apart. Of aliases that begin with one another the longest counts."""
    for flow in flows:
        if key.startswith(f"{flow}."):
            return Place(owner=f"{flow}.", flow=flow, alias=None, name=key[len(str(flow)) + 1 :])
    for alias in sorted(aliases, key=len, reverse=True):
        if key.startswith(f"{alias}."):
            return Place(owner=f"{alias}.", flow=None, alias=alias, name=key[len(alias) + 1 :])
    return Place(owner="", flow=None, alias=None, name=key)


def pairs(aliases: tuple[str, ...]) -> tuple[Flow, ...]:
    """All flows between the clusters, those with the longest names first: an alias may begin with another one."""
    flows = [Flow(source=source, target=target) for source in aliases for target in aliases if source != target]
    return tuple(sorted(flows, key=lambda flow: len(str(flow)), reverse=True))
