"""Changes to the target's topics, in words."""

from __future__ import annotations

from collections.abc import Iterable

from ferry.cli.output import count_of
from ferry.model import ChangeKind, TopicChange


def proposals(changes: Iterable[TopicChange]) -> list[str]:
    """What a run would do to the target's topics, a line for each topic and each setting."""
    return [line for change in changes for line in _proposal(change)]


def _proposal(change: TopicChange) -> list[str]:
    match change.kind:
        case ChangeKind.CREATE:
            replicas = "the default replicas" if change.replication_factor < 0 else _replicas(change.replication_factor)
            settings = ", ".join(f"{name} = {value}" for name, value in change.configs)
            told = f"; {settings}" if settings else ""
            partitions = count_of(change.partitions, "partition")
            return [f"would create topic {change.topic} with {partitions} and {replicas}{told}"]
        case ChangeKind.GROW:
            return [f"would grow topic {change.topic} to {count_of(change.partitions, 'partition')}"]
        case ChangeKind.DELETE:
            return [f"would delete topic {change.topic}: source topic {change.source_topic} was deleted"]
        case ChangeKind.CONFIGURE:
            was = dict(change.was)
            return [
                f"would {_setting(name, value)} on topic {change.topic} (now {was.get(name, 'unknown there')})"
                for name, value in change.configs
            ]


def _replicas(count: int) -> str:
    return f"{count} replica" if count == 1 else f"{count} replicas"


def _setting(name: str, value: str | None) -> str:
    return f"reset {name}" if value is None else f"set {name} = {value}"


def differences(drift: Iterable[TopicChange]) -> list[str]:
    """What differs from the source and is left alone, a line for each setting."""
    lines = []
    for change in drift:
        was = dict(change.was)
        for name, value in change.configs:
            there = "not set" if value is None else value
            lines.append(
                f"drift: {name} is {was.get(name, 'unknown')} on topic {change.topic} and {there} at the source; "
                "sync.topic.configs.enabled is false"
            )
    return lines


def summary(changes: Iterable[TopicChange]) -> str | None:
    """What a run did to the target's topics, counted; None when it did nothing."""
    found = list(changes)
    words = {
        ChangeKind.CREATE: "created",
        ChangeKind.GROW: "grown",
        ChangeKind.CONFIGURE: "configured",
        ChangeKind.DELETE: "deleted",
    }
    counts = [(word, sum(change.kind is kind for change in found)) for kind, word in words.items()]
    told = ", ".join(f"{count} {word}" for word, count in counts if count)
    return f"topics on the target: {told}" if told else None
