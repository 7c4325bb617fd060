"""The names of a flow whose transforms give topics other ones: the policy's own, and the route behind it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from ferry.policy.wrapped import WrappedPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutedPolicy(WrappedPolicy):
    """`orders` of `primary` becomes what a route makes of `primary.orders`; all else is as `base` says.

    So the name of such a copy does not tell where it came from, as with MirrorMaker 2.
    """

    route: Callable[[str, str], str] = field(repr=False, compare=False)
    """Source topic and the base's name of its copy -> the name of its copy."""

    def format_remote_topic(self, source_alias: str, topic: str) -> str:
        return self.route(topic, self.base.format_remote_topic(source_alias, topic))
