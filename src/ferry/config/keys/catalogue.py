"""The keys of MirrorMaker 2, by their place: top level, a cluster, a flow, one of its clients.

Names, types and defaults are those of Kafka's ConfigDefs (`kafka_keys.json`, written by tools/kafka_keys.py).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

from ferry.config.keys.key_support import Fate, Group, rule_of
from ferry.config.keys.own import FERRY_KEYS_BY_NAME, transform_key
from ferry.config.text.secrets import is_secret

RENAMED = {
    "topics.blacklist": "topics.exclude",
    "topics.whitelist": "topics",
    "groups.blacklist": "groups.exclude",
    "config.properties.blacklist": "config.properties.exclude",
}
"""Spellings that Kafka 4 does not read any more."""

_OWNERS: dict[str, Group] = {
    "mirror": "flow",
    "source": "flow",
    "checkpoint": "flow",
    "heartbeat": "flow",
    "connector": "flow",
    "worker": "worker",
    "consumer": "consumer",
    "producer": "producer",
    "admin": "admin",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownKey:
    """A key of Kafka in one group. `default` is Java's, as text; None where Java has none."""

    name: str
    group: Group
    type: str
    default: str | None
    fate: Fate
    text: str
    """What the key does here, or why it is not needed or refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Keys with a variable part in their name, which no ConfigDef lists."""

    name: re.Pattern[str]
    shown: str
    groups: tuple[Group, ...]
    fate: Fate
    text: str


_OF_SINKS = {
    "errors.deadletterqueue.topic.name": (
        "the topic on the target for [dead letters](dead-letters.md), as Connect's sinks have one; "
        "`ferry-dead-letters.S.internal` unless set"
    ),
    "errors.deadletterqueue.topic.replication.factor": (
        "replicas of that topic when Ferry creates it; the same as for other topics unless set"
    ),
    "errors.deadletterqueue.context.headers.enable": (
        "whether dead letters have headers with their origin and the reason; `true` unless set"
    ),
}
"""Keys that Connect reads for sinks only: no ConfigDef of MirrorMaker lists them."""

FAMILIES = (
    Family(
        name=re.compile(r"config\.providers\.[^.]+\.class"),
        shown="config.providers.{name}.class",
        groups=("flow",),
        fate=Fate.USED,
        text="the class of a config provider: one of the three that come with Kafka",
    ),
    Family(
        name=re.compile(r"config\.providers\.[^.]+\.param\..+"),
        shown="config.providers.{name}.param.{parameter}",
        groups=("flow",),
        fate=Fate.USED,
        text="`allowed.paths` and `allowlist.pattern` limit what a provider may read; others are refused",
    ),
    Family(
        name=re.compile(r"(transforms|predicates)\..+"),
        shown="transforms.{name}.{parameter}",
        groups=("flow",),
        fate=Fate.USED,
        text="class and parameters of a transform or a predicate: "
        "[those that are known](transforms.md#connects-transforms); another class is refused",
    ),
    *(
        Family(name=re.compile(re.escape(name)), shown=name, groups=("flow",), fate=Fate.USED, text=text)
        for name, text in _OF_SINKS.items()
    ),
    Family(
        name=re.compile(r"(key|value|header)\.converter\..+"),
        shown="key.converter.{parameter}",
        groups=("flow", "worker"),
        fate=Fate.UNNEEDED,
        text="record batches are copied as bytes, so nothing is converted",
    ),
    Family(
        name=re.compile(r"(admin\.)?listeners\.https?\..+"),
        shown="listeners.https.{parameter}",
        groups=("flow", "worker"),
        fate=Fate.UNNEEDED,
        text="Ferry starts no Connect worker, so there is no REST server",
    ),
    Family(
        name=re.compile(r"(config|offset|status)\.storage\..+"),
        shown="offset.storage.{topic configuration}",
        groups=("worker",),
        fate=Fate.UNNEEDED,
        text="Ferry keeps no state in Connect's topics; the ledger on the target holds it",
    ),
    Family(
        name=re.compile(r"topic\.creation\..+"),
        shown="topic.creation.{group}.{parameter}",
        groups=("flow",),
        fate=Fate.UNNEEDED,
        text="topics are created like their sources",
    ),
    Family(
        name=re.compile(r"metrics\.context\..+"),
        shown="metrics.context.{label}",
        groups=("flow", "worker", "consumer", "producer", "admin"),
        fate=Fate.UNNEEDED,
        text="metrics of Java clients; Ferry reports what each run did",
    ),
)


@cache
def _keys() -> Mapping[Group, Mapping[str, KnownKey]]:
    stored = json.loads(resources.files("ferry.config.keys").joinpath("kafka_keys.json").read_text(encoding="utf-8"))
    keys: dict[Group, dict[str, KnownKey]] = {
        group: {} for group in ("flow", "worker", "consumer", "producer", "admin")
    }
    for name, known in stored["keys"].items():
        for owner, default in known["defaults"].items():
            group = _OWNERS[owner]
            rule = rule_of(group, name)
            if rule is None:
                raise LookupError(f"no rule of group {group} says what becomes of {name}")
            keys[group].setdefault(
                name,
                KnownKey(name=name, group=group, type=known["type"], default=default, fate=rule.fate, text=rule.text),
            )
    return keys


def keys_of(group: Group) -> Mapping[str, KnownKey]:
    """Return the keys of a group by name."""
    return _keys()[group]


def find(name: str, *groups: Group) -> KnownKey | None:
    """Return the key called `name` in the first of `groups` that has it, or the family it belongs to."""
    for group in groups:
        if name in keys_of(group):
            return keys_of(group)[name]
    for family in FAMILIES:
        if set(groups) & set(family.groups) and family.name.fullmatch(name):
            return KnownKey(
                name=name, group=family.groups[0], type="string", default=None, fate=family.fate, text=family.text
            )
    return None


def default_of(name: str, group: Group = "flow") -> str:
    """Return Java's default of a key as text. Raises LookupError when it has none."""
    default = keys_of(group)[name].default
    if default is None:
        raise LookupError(f"{name} has no default")
    return default


def is_acted_on(setting: str) -> bool:
    """Return whether runs act on a flow's setting of this name; they do on all of Ferry's own."""
    known = find(setting, "flow")
    return known is None or known.fate is not Fate.NOT_YET


def may_be_shown(key: str) -> bool:
    """Return whether the value under a full key may appear: the key is known, and no secret.

    A misspelt key may hold a password. A switch without the end of its `enabled` counts as known: its value is true or
    false.
    """
    if is_secret(key):
        return False
    parts = key.split(".")
    names = [".".join(parts[start:]) for start in range(len(parts))]
    groups: tuple[Group, ...] = ("flow", "worker", "consumer", "producer", "admin")
    return any(
        name in FERRY_KEYS_BY_NAME
        or transform_key(name) is not None
        or name in RENAMED
        or find(name, *groups) is not None
        or _is_switch_cut_short(name)
        for name in names
    )


def _is_switch_cut_short(name: str) -> bool:
    flow = keys_of("flow")
    return f"{name}.enabled" in flow or (name.endswith("enable") and f"{name}d" in flow)
