"""The names of a flow whose transforms rename topics: the policy's own names, and the route after them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ferry.policy.names import ReplicationPolicy
from ferry.policy.wrapped import WrappedPolicy


def _none(topic: str, target: str) -> tuple[str, ...]:
    """Return no names: no topic has several copies."""
    del topic, target
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutedPolicy(WrappedPolicy):
    """`orders` of `primary` becomes the name that a route gives to `primary.orders`; all else comes from `base`.

    So the name of such a copy does not show where it came from, as with MirrorMaker 2.
    """

    route: Callable[[str, str], str] = field(repr=False, compare=False)
    """Source topic and the base's name of its copy -> the name of its copy."""
    several: Callable[[str, str], tuple[str, ...]] = field(default=_none, repr=False, compare=False)
    """Source topic and the base's name of its copy -> the names of its copies, where each record chooses one.

    The first one is that of `route`.
    """

    def copies(self, source_alias: str, topic: str) -> tuple[str, ...]:
        """Return the names of a source topic's copies, of which each record chooses one; empty: it has one copy."""
        return self.several(topic, self.base.format_remote_topic(source_alias, topic))

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        return self.route(topic, self.base.format_remote_topic(source_alias, topic))


def copies_of(policy: ReplicationPolicy, source_alias: str, topic: str) -> tuple[str, ...]:
    """Return the names of a source topic's copies: the policy's one, or several of which each record chooses one."""
    several = policy.copies(source_alias, topic) if isinstance(policy, RoutedPolicy) else ()
    return several or (policy.format_remote_topic(source_alias, topic),)
