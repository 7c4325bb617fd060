"""The place of a key: at top level, after a cluster's alias or a flow, and before which client."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from ferry.config.keys.catalogue import KnownKey, find, keys_of
from ferry.config.keys.key_support import Group
from ferry.config.keys.layers import CLIENTS, ROLES, Role, is_common_client_key
from ferry.config.keys.own import FERRY_KEYS_BY_NAME
from ferry.model import Flow

_OF_ALIAS = re.compile(r"replication\.policy\..+|forwarding\.admin\.class|config\.providers.*")
_CLIENT = re.compile(r"(consumer|producer|admin)\.(.+)")
_CLIENT_OF_FLOW = re.compile(r"(?:(?:source|target)\.)?(consumer|producer|admin)\.(?:override\.)?(.+)")
_CLUSTER = re.compile(r"(?:source|target)\.cluster\.(.+)")
_REACHES = re.compile(r"(?:(source|target)\.)?(cluster|consumer|producer)\.(?:override\.)?(.+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The parts of a key.

    `owner` is the prefix up to the alias or flow (empty at top level), `name` what follows it.
    """

    owner: str
    flow: Flow | None
    alias: str | None
    name: str

    @property
    def client(self) -> tuple[Role, str] | None:
        """The client's role and the key's name for it, where the key belongs to a client."""
        if self._only_looks_like_a_clients():
            return None
        # A side can be named after a flow; at top level it has no effect, and is reported.
        match = (_CLIENT if self.alias is not None else _CLIENT_OF_FLOW).fullmatch(self.name)
        if match is None:
            return None
        return next(role for role in ROLES if role == match.group(1)), match.group(2)

    @property
    def reached(self) -> str:
        """The cluster that one client reaches by this key; empty for other keys.

        Of a flow's clients those of Ferry count: the consumer at the source, the producer at the target.
        """
        client = self.client
        if self.alias is not None:
            return self.alias if client is not None and is_common_client_key(client[1]) else ""
        match = _REACHES.fullmatch(self.name)
        if self.flow is None or match is None or not is_common_client_key(match.group(3)):
            return ""
        side, of = match.group(1), match.group(2)
        meant = next((where for where, role in CLIENTS if role == of), side)
        return {"source": self.flow.source, "target": self.flow.target}.get(meant, "") if side in (None, meant) else ""

    def known(self) -> KnownKey | None:
        """Return what Kafka knows under this key, in this place."""
        client = self.client
        if client is not None:
            return find(client[1], client[0])
        cluster = _CLUSTER.fullmatch(self.name)
        if cluster is not None and is_common_client_key(cluster.group(1)):
            return find(cluster.group(1), "flow")
        if self.flow is not None and is_common_client_key(self.name):
            return None
        if self.alias is None:
            return find(self.name, "flow", "worker")
        if is_common_client_key(self.name) or _OF_ALIAS.fullmatch(self.name):
            return find(self.name, "flow")
        return find(self.name, "worker")

    def _only_looks_like_a_clients(self) -> bool:
        """Return whether the whole name is a key of the worker or of a flow, such as `admin.timeout.ms`."""
        groups: tuple[Group, ...] = ("worker",) if self.alias is not None else ("flow", "worker")
        return find(self.name, *groups) is not None

    def neighbours(self) -> list[str]:
        """Return the keys that might have been meant, without the owner."""
        client = self.client
        if client is not None:
            head = self.name[: -len(client[1])]
            return [f"{head}{name}" for name in keys_of(client[0])]
        groups: tuple[Group, ...] = ("flow", "worker") if self.alias is None else ("worker",)
        ferrys = FERRY_KEYS_BY_NAME if self.alias is None and self.name.startswith("ferry") else ()
        return [*(name for group in groups for name in keys_of(group)), *ferrys]


def longest_first(aliases: Iterable[str]) -> tuple[str, ...]:
    """Return the aliases in the order in which to try them: one may begin with another one."""
    return tuple(sorted(aliases, key=len, reverse=True))


def flow_of(key: str, aliases: tuple[str, ...]) -> Flow | None:
    """Return the flow, between two of `aliases` (longest first), that a key begins with."""
    source, arrow, rest = key.partition("->")
    if not arrow or source not in aliases:
        return None
    target = next((alias for alias in aliases if rest.startswith(f"{alias}.") and alias != source), None)
    return None if target is None else Flow(source=source, target=target)


def place_of(key: str, aliases: tuple[str, ...]) -> Place:
    """Divide a key into its parts; `aliases` are in the order of `longest_first`."""
    flow = flow_of(key, aliases)
    if flow is not None:
        return Place(owner=f"{flow}.", flow=flow, alias=None, name=key[len(str(flow)) + 1 :])
    for alias in aliases:
        if key.startswith(f"{alias}."):
            return Place(owner=f"{alias}.", flow=None, alias=alias, name=key[len(alias) + 1 :])
    return Place(owner="", flow=None, alias=None, name=key)
