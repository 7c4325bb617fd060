"""Changes to the target's topics, in words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ferry.model import ChangeKind, TopicChange
from ferry.words import count_of

MOST_LINES = 20
MOST_NAMES = 5

_WORDS = {
    ChangeKind.CREATE: ("would create", "created"),
    ChangeKind.GROW: ("would grow", "grew"),
    ChangeKind.CONFIGURE: ("would configure", "configured"),
    ChangeKind.DELETE: ("would delete", "deleted"),
}


def proposals(changes: Iterable[TopicChange]) -> list[str]:
    """Return what a run would do to the target's topics, a line for each topic and each setting."""
    return [line for change in changes for line in _lines(change, made=False)]


def deeds(changes: Iterable[TopicChange]) -> list[str]:
    """Return what a run did to the target's topics, a line for each topic and each setting."""
    return [line for change in changes for line in _lines(change, made=True)]


def _lines(change: TopicChange, *, made: bool) -> list[str]:
    word = _WORDS[change.kind][made]
    match change.kind:
        case ChangeKind.CREATE:
            factor = change.replication_factor
            replicas = "the default replicas" if factor < 0 else count_of(factor, "replica")
            settings = "".join(f", {name} = {value}" for name, value in change.configs)
            return [
                f"{word} topic {change.topic} with {count_of(change.partitions, 'partition')}, {replicas}{settings}"
            ]
        case ChangeKind.GROW:
            return [f"{word} topic {change.topic} to {count_of(change.partitions, 'partition')}"]
        case ChangeKind.DELETE:
            return [f"{word} topic {change.topic}, because source topic {change.source_topic} was deleted"]
        case ChangeKind.CONFIGURE:
            was = dict(change.was)
            verb = "" if made else "would "
            return [
                f"{verb}{_setting(name, value)} on topic {change.topic} ({'was' if made else 'now'} "
                f"{was.get(name, 'unknown there')})"
                for name, value in change.configs
            ]


def _setting(name: str, value: str | None) -> str:
    return f"reset {name}" if value is None else f"set {name} = {value}"


def differences(drift: Iterable[TopicChange]) -> list[str]:
    """Return what differs from the source and is left unchanged, a line for each setting."""
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


def summary(changes: Iterable[TopicChange]) -> list[str]:
    """Return what a run did to the target's topics: a line for each topic and setting, or for each kind of change.

    Above `MOST_LINES` lines there is one line for each kind.
    """
    found = list(changes)
    lines = deeds(found)
    if len(lines) <= MOST_LINES:
        return lines
    by_kind = {word: [one.topic for one in found if one.kind is kind] for kind, (_, word) in _WORDS.items()}
    return [f"{word} {count_of(len(names), 'topic')}: {_named(names)}" for word, names in by_kind.items() if names]


def _named(names: Sequence[str]) -> str:
    more = len(names) - MOST_NAMES
    return ", ".join(names[:MOST_NAMES]) + (f", and {more} more (--json has all)" if more > 0 else "")
