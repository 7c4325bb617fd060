"""Settings of topics: what the copy takes from the source, what differs, and what would cost records.

Source: `MirrorSourceConnector.targetConfig` and `incrementalAlterConfigs`, `DefaultConfigPropertyFilter` (Kafka 4.3.0).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from ferry.messages.catalogue import sentence
from ferry.model import ChangeKind, Sentence, TopicChange
from ferry.model.topic_settings import SettingOrigin, TopicSettings
from ferry.plan.rules.planning_rules import Rules
from ferry.words import several

T = TypeVar("T")


def wanted_settings(rules: Rules, source: TopicSettings, known: Collection[str] = frozenset()) -> dict[str, str | None]:
    """Return the settings that the copy should have by the source topic: a value, or None for the target's default.

    `known` are the names of settings that the target's Kafka has; others are left out. Empty: that is not known.

    As in MirrorMaker 2, a topic's own settings are copied, and those set on running brokers. Where Kafka's default is
    in force at the source, `use.defaults.from` decides whose default counts. With `source`, settings from the brokers'
    files are copied, too, which MirrorMaker 2 does not do. A setting that is not named keeps its value.
    """
    wanted: dict[str, str | None] = dict(source.own)
    for name, setting in source.inherited.items():
        if setting.origin is SettingOrigin.BROKERS or rules.defaults_from_source:
            wanted[name] = setting.value
        elif setting.origin is SettingOrigin.DEFAULT:
            wanted[name] = None
    kept = {name: value for name, value in wanted.items() if not rules.config_excluded(name)}
    return {name: value for name, value in kept.items() if not known or name in known}


def unknown_settings(rules: Rules, source: TopicSettings, known: Collection[str]) -> list[str]:
    """Return the settings of a source topic that the target's Kafka does not have: those with a value."""
    wanted = wanted_settings(rules, source) if known else {}
    return sorted(name for name, value in wanted.items() if value is not None and name not in known)


_KEPT = {"retention.ms": "-1", "retention.bytes": "-1"}
"""For scratch topics: by age, history would be deleted within seconds of its copy. Dropping the lane deletes it."""


def created_settings(
    rules: Rules, source: TopicSettings | None, known: Collection[str] = frozenset()
) -> tuple[tuple[str, str], ...]:
    """Return the settings that a copy is created with; none when the source does not show its own.

    `known` is as for `wanted_settings`.

    As in MirrorMaker 2, they are set even if settings are not synchronised: with the target's settings, old records
    could be deleted at once.
    """
    wanted = {} if source is None else wanted_settings(rules, source, known)
    if rules.scratch:
        wanted |= _KEPT
    return tuple(sorted((name, value) for name, value in wanted.items() if value is not None))


def settings_change(
    rules: Rules,
    source_topic: str,
    source: TopicSettings,
    target_topic: str,
    target: TopicSettings,
    partitions: int,
    known: Collection[str] = frozenset(),
) -> TopicChange | None:
    """Return what must be set and reset on an existing copy; None if nothing differs, or for a scratch topic.

    `known` is as for `wanted_settings`.
    """
    if rules.scratch:
        return None
    configs: dict[str, str | None] = {}
    for name, value in wanted_settings(rules, source, known).items():
        if value is None:
            if name in target.own:
                configs[name] = None
        elif name in target.own or name in source.own:
            if target.own.get(name) != value:
                configs[name] = value
        elif target.in_force(name) not in (value, None):  # inherited on both sides: nothing need be set if they agree
            configs[name] = value
    if not configs:
        return None
    was = {name: value for name in configs if (value := target.in_force(name)) is not None}
    return TopicChange(
        kind=ChangeKind.CONFIGURE,
        topic=target_topic,
        source_topic=source_topic,
        partitions=partitions,
        replication_factor=0,
        configs=tuple(sorted(configs.items())),
        was=tuple(sorted(was.items())),
    )


_TOO_LARGE = "larger batches are refused there"
_OUT_OF_TIME = "records with times further off are refused there"
_OLDER_GONE = "what is beyond it is deleted there within seconds of its copy"
_COSTS = {
    "retention.ms": _OLDER_GONE,
    "retention.bytes": _OLDER_GONE,
    "max.message.bytes": _TOO_LARGE,
    "message.timestamp.before.max.ms": _OUT_OF_TIME,
    "message.timestamp.after.max.ms": _OUT_OF_TIME,
}
"""Limits that cost records if the target's is the narrower one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Narrower:
    """A limit that is narrower for the copy than for the source topic, after all changes."""

    name: str
    source: str
    target: str


def narrower_limits(
    rules: Rules,
    source: TopicSettings,
    target: TopicSettings | None,
    change: TopicChange | None,
    defaults: Mapping[str, str],
) -> list[Narrower]:
    """Return the limits by which the copy keeps or takes less than the source, even after the settings change.

    `target` is None for a topic to be created; `defaults` are the settings of a new topic of the target. Settings in
    `config.properties.exclude` are left to the operator, unless they are about timestamps.
    """

    def after(name: str) -> str | None:
        changed = {} if change is None else dict(change.configs)
        if name in changed:
            value = changed[name]
            return defaults.get(name) if value is None else value
        return defaults.get(name) if target is None else target.in_force(name)

    found = []
    for name, cost in _COSTS.items():
        here, there = source.in_force(name), after(name)
        if here is None or there is None or not _is_narrower(there, here):
            continue
        if rules.config_excluded(name) and cost is not _OUT_OF_TIME:
            continue
        if name.startswith("retention.") and "delete" not in (after("cleanup.policy") or "delete"):
            continue
        found.append(Narrower(name=name, source=here, target=there))
    kind = "message.timestamp.type"
    if source.in_force(kind) == "CreateTime" and after(kind) == "LogAppendTime":
        found.append(Narrower(name=kind, source="CreateTime", target="LogAppendTime"))
    return found


def _is_narrower(target: str, source: str) -> bool:
    """Return whether a limit is below another one; -1 means no limit."""
    try:
        there, here = int(target), int(source)
    except ValueError:
        return False
    return there >= 0 and (here < 0 or there < here)


def limit_notes(rules: Rules, found: Mapping[str, Iterable[Narrower]]) -> list[Sentence]:
    """Return a sentence for each limit that is narrower on some copies; `found` has them by target topic."""
    notes = []
    for limit, names in _topics_of(found).items():
        name, source, target = limit.name, limit.source, limit.target
        if name in _COSTS and rules.config_excluded(name):
            cost, remedy = _COSTS[name], f"take {name} out of config.properties.exclude, or set it on the copies"
        elif name in _COSTS:
            cost = _COSTS[name]
            remedy = (
                f"set {name} on the source topics, or use.defaults.from = source"
                if rules.sync_configs
                else "set it there, or sync.topic.configs.enabled = true"
            )
        else:
            cost, remedy = "the copies lose their own times", f"set {name} = {source} on the copies"
        listed = several(names)
        notes.append(
            sentence("topic.narrower", setting=name, here=target, topics=listed, there=source, cost=cost, remedy=remedy)
        )
    return notes


def unknown_notes(target: str, found: Mapping[str, Iterable[str]]) -> list[Sentence]:
    """Return a sentence for each setting that the target's Kafka does not have.

    `target` is the cluster's alias; `found` has the names of settings by target topic.
    """
    return [
        sentence("topic.setting-unknown", setting=name, topics=several(topics), cluster=target)
        for name, topics in sorted(_topics_of(found).items())
    ]


def _topics_of(found: Mapping[str, Iterable[T]]) -> dict[T, list[str]]:
    """Return the topics by what was found of them."""
    topics: dict[T, list[str]] = {}
    for topic, some in found.items():
        for one in some:
            topics.setdefault(one, []).append(topic)
    return topics
