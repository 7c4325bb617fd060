"""Java classes of the user: Kafka gives each all keys of the place that names it, so none of these keys is unknown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ferry.config.keys.catalogue import find
from ferry.config.keys.key_support import Group
from ferry.config.text.properties import Property

OWN_KEY = "of a class of your own; Ferry loads none but a policy, which gets `replication.policy.*`"

_LISTS = ("interceptor.classes", "metric.reporters", "partition.assignment.strategy", "rest.extension.classes")
"""Keys that name classes and have another type than `class` in the ConfigDefs."""
_KAFKAS = ("org.apache.kafka.", "kafka.")
_OF_POLICIES = ("DefaultReplicationPolicy", "IdentityReplicationPolicy")
"""Ferry takes these without their package."""


def own_classes(value: str) -> list[str]:
    """Return the classes of a value that are not Kafka's; a word without a package is not a class."""
    names = (name.strip() for name in value.split(","))
    return [name for name in names if "." in name and not name.startswith(_KAFKAS)]


def names_own_class(entries: Mapping[str, Property], *groups: Group) -> bool:
    """Return whether one of `entries`, by their names in `groups`, names a class that is not Kafka's."""
    return any(own_classes(entry.value) for name, entry in entries.items() if _names_classes(name, groups))


def names_own_class_for_all(entries: Mapping[str, Property]) -> bool:
    """Return whether a line at top level names such a class, by the keys of the whole file.

    MirrorMaker 2 does not pass unknown keys of the top level on. But a user who wrote one next to a class meant no
    other key. A policy is none of these classes: Ferry loads it, and gives it `replication.policy.*` alone.
    """
    others = {name: entry for name, entry in entries.items() if not name.startswith("replication.policy.")}
    return names_own_class(others, "flow", "worker")


def is_own_policy(value: str) -> bool:
    """Return whether `replication.policy.class` names a class that does not come with Kafka."""
    return value.strip() not in _OF_POLICIES and not value.strip().startswith(_KAFKAS)


def _names_classes(name: str, groups: Iterable[Group]) -> bool:
    known = find(name, *groups)
    return name in _LISTS or (known is not None and known.type == "class")
