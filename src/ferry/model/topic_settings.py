"""The settings of a topic, and where each comes from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum


class SettingOrigin(Enum):
    """The origin of a setting that a topic does not have itself (DescribeConfigs' config source)."""

    BROKERS = "dynamic"
    """Set on the brokers while they run."""
    FILE = "file"
    """The file that a broker was started with."""
    DEFAULT = "default"
    """Kafka's own default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inherited:
    """A setting that a topic has from its brokers."""

    value: str
    origin: SettingOrigin


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSettings:
    """All settings in force for a topic: its own, and what it has from the brokers."""

    own: Mapping[str, str] = field(default_factory=dict)
    inherited: Mapping[str, Inherited] = field(default_factory=dict)

    def in_force(self, name: str) -> str | None:
        """Return the value in force; None when the cluster has no such setting."""
        if name in self.own:
            return self.own[name]
        found = self.inherited.get(name)
        return None if found is None else found.value
