"""The meaning of each key: Ferry's own, and every key of MirrorMaker 2."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

from ferry.config.keys.catalogue import FAMILIES, RENAMED, KnownKey, find, keys_of
from ferry.config.keys.key import CONNECTION, FerryKey
from ferry.config.keys.key_support import Fate, Group
from ferry.config.keys.layers import ROLES, is_common_client_key
from ferry.config.keys.own import FERRY_KEYS, FERRY_KEYS_BY_NAME, TRANSFORM_KEYS, transform_key
from ferry.config.reading.flow import DEPARTURES
from ferry.config.reading.typos import nearest
from ferry.errors import BadInput

_TYPES = {
    "boolean": "true or false",
    "int": "a whole number",
    "long": "a whole number",
    "short": "a whole number",
    "double": "a number",
    "list": "a list, with commas between",
    "class": "a class",
    "password": "a secret",
    "string": "text",
}
_VALUES = {
    "auto.offset.reset": "`earliest`, `latest`, or what `ferry.start` takes",
    "exactly.once.source.support": "`disabled`, `preparing`, `enabled`",
    "isolation.level": "`read_committed`, `read_uncommitted`",
    "offset-syncs.topic.location": "`source`, `target`",
    "replication.policy.class": "DefaultReplicationPolicy, IdentityReplicationPolicy, or the path of a Python class",
    "sasl.mechanism": "`PLAIN`, `SCRAM-SHA-256`, `SCRAM-SHA-512`, `OAUTHBEARER`, `GSSAPI`",
    "security.protocol": "`PLAINTEXT`, `SSL`, `SASL_PLAINTEXT`, `SASL_SSL`",
    "use.defaults.from": "`source`, `target`",
}
_ALIAS = "[A-Za-z0-9._-]+?"
_ENGINE_CHOOSES = None
_OF_FERRYS_CLIENTS = {
    "auto.offset.reset": "earliest",
    "client.id": "ferry.S->T",
    "compression.type": _ENGINE_CHOOSES,
    "fetch.max.bytes": _ENGINE_CHOOSES,
    "fetch.max.wait.ms": _ENGINE_CHOOSES,
    "fetch.min.bytes": _ENGINE_CHOOSES,
    "max.partition.fetch.bytes": _ENGINE_CHOOSES,
    "max.request.size": _ENGINE_CHOOSES,
    "receive.buffer.bytes": "-1",
    "send.buffer.bytes": "-1",
}
"""Defaults of Ferry's clients (see `clients` and `reading.flow`) that are not those of Java's."""
_OF_MIRROR_MAKERS_CLIENTS = {"auto.offset.reset": "earliest"}
"""Defaults that MirrorMaker 2 gives its clients in place of Java's (`MirrorConnectorConfig`)."""
_OF_CLIENTS = {
    "consumer": ("{alias}.consumer.", "S->T.source.consumer.", "S->T.consumer."),
    "producer": ("{alias}.producer.", "S->T.target.producer.", "S->T.producer.", "S->T.producer.override."),
    "admin": ("{alias}.admin.", "S->T.source.admin.", "S->T.target.admin.", "S->T.admin."),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """One key in one kind of place."""

    name: str
    places: tuple[str, ...]
    """The prefixes that the name may have; empty text: the top level."""
    values: str
    default: str | None
    """Ferry's default, or Kafka's for a key that is not used; None: there is none."""
    kafkas_default: str | None
    """MirrorMaker 2's default, where Ferry's is different."""
    fate: str
    """`used`, `not acted on`, `not needed` or `refused`."""
    text: str
    note: str | None = None
    """Why the key that was asked for has no effect as it is written; None: it has an effect, or no place was named."""


def explain(key: str) -> tuple[Explanation, ...]:
    """Return the meanings of `key`, which may have an alias, a flow and a client before it.

    Raises BadInput for a key that neither Kafka nor Ferry has; it names the nearest one.
    """
    parts = key.strip().split(".")
    for start in range(len(parts)):
        prefix, name = ".".join(parts[:start]), ".".join(parts[start:])
        found = tuple(_named(name))
        if found:
            return _in_place(key.strip(), found)
        if name in RENAMED:
            note = f"{name} has no effect since Kafka 4; write {f'{prefix}.' if prefix else ''}{RENAMED[name]}"
            return tuple(replace(one, note=note) for one in _named(RENAMED[name]))
    near = _nearest(parts)
    raise BadInput(f"key {key!r} is not known; {f'did you mean {near}?' if near else 'ferry config explain lists all'}")


def _in_place(key: str, found: tuple[Explanation, ...]) -> tuple[Explanation, ...]:
    """Return those that count in the place of `key`; where none does, all, with a note."""
    if any(key == one.name for one in found):
        return found
    here = tuple(one for one in found if any(_is_at(key.removesuffix(one.name), place) for place in one.places))
    if here:
        return here
    return tuple(
        replace(one, note=f"{key} has no effect: write {' or '.join(f'{place}{one.name}' for place in one.places)}")
        if one.fate in (Fate.USED.value, Fate.NOT_YET.value)
        else one
        for one in found
    )


def _is_at(prefix: str, place: str) -> bool:
    """Return whether `prefix` is a case of `place`."""
    pattern = re.escape(place).replace(re.escape("{alias}"), _ALIAS).replace(re.escape("S->T"), f"{_ALIAS}->{_ALIAS}")
    return re.fullmatch(pattern, prefix) is not None


def _nearest(parts: list[str]) -> str | None:
    """Return the nearest key, after the same alias, flow or client.

    Of all ends of the given key, the most similar counts.
    """
    known = {one.name for one in every_key()}
    found: list[tuple[float, int, str]] = []
    for start in range(len(parts)):
        end = ".".join(parts[start:])
        near = nearest(end, known)
        if near is not None:
            alike = SequenceMatcher(None, end, near).ratio()
            found.append((alike, -start, ".".join([*parts[:start], near])))
    return max(found)[2] if found else None


def every_key() -> Iterator[Explanation]:
    """Yield all keys: Ferry's own first, then Kafka's by group and name."""
    yield from (_of_ferry(key) for key in (*FERRY_KEYS, *TRANSFORM_KEYS, CONNECTION))
    groups: tuple[Group, ...] = ("flow", "worker", *ROLES)
    for group in groups:
        yield from (_of_kafka(key) for _, key in sorted(keys_of(group).items()) if _is_at_home(key))
    for family in FAMILIES:
        yield Explanation(
            name=family.shown,
            places=_places(family.groups[0], family.shown),
            values="",
            default=None,
            kafkas_default=None,
            fate=family.fate.value,
            text=family.text,
        )


def _is_at_home(key: KnownKey) -> bool:
    """Return whether the key is listed in its own group: a key that every client has is listed once."""
    return key.group == "flow" or key.name not in keys_of("flow")


def _named(name: str) -> Iterator[Explanation]:
    of_transform = transform_key(name)
    ours = CONNECTION if name == CONNECTION.name else FERRY_KEYS_BY_NAME.get(name)
    if ours is None and of_transform is not None:
        ours = of_transform[1]
    if ours is not None:
        yield _of_ferry(ours)
        return
    head, _, rest = name.partition(".")
    role = next((role for role in ROLES if role == head), None)
    if role is not None and (known := find(rest, role)) is not None:
        yield _of_kafka(known)
        return
    if (known := find(name, "flow")) is not None:
        yield _of_kafka(known)
        return
    groups: tuple[Group, ...] = (*ROLES, "worker")
    merged: dict[Explanation, tuple[str, ...]] = {}
    for group in groups:
        if (known := find(name, group)) is not None:
            one = _of_kafka(known)
            # A meaning that is the same for all clients is shown once.
            same = replace(one, places=())
            merged[same] = merged.get(same, ()) + one.places
    yield from (replace(one, places=places) for one, places in merged.items())


def _of_ferry(key: FerryKey) -> Explanation:
    return Explanation(
        name=key.name,
        places=("{alias}.",) if key is CONNECTION else ("", "S->T."),
        values=key.values,
        default=key.default or None,
        kafkas_default=None,
        fate="used",
        text=key.meaning,
    )


def _of_kafka(key: KnownKey) -> Explanation:
    ours, theirs = _defaults(key)
    return Explanation(
        name=key.name,
        places=_places(key.group, key.name),
        values=_VALUES.get(key.name, _TYPES[key.type]),
        default=ours,
        kafkas_default=theirs if theirs and theirs != ours else None,
        fate=key.fate.value,
        text=key.text,
    )


def _defaults(key: KnownKey) -> tuple[str | None, str | None]:
    """Return Ferry's default and MirrorMaker 2's."""
    if key.group in ROLES and key.fate is not Fate.UNNEEDED and key.name in _OF_FERRYS_CLIENTS:
        return _OF_FERRYS_CLIENTS[key.name], _OF_MIRROR_MAKERS_CLIENTS.get(key.name, key.default)
    # The connectors' own default is true, but MirrorMaker 2 sets false for a flow without a line.
    theirs = "false" if key.name == "enabled" else key.default
    return DEPARTURES.get(key.name) or theirs, theirs


def _places(group: Group, name: str) -> tuple[str, ...]:
    if name == "clusters" or name.startswith("config.providers"):
        return ("",)
    if name == "enabled":
        return ("S->T.",)
    if group == "flow" and is_common_client_key(name):
        return ("", "{alias}.", "S->T.source.cluster.", "S->T.target.cluster.")
    if group == "worker":
        return ("{alias}.",)
    return ("", "S->T.") if group == "flow" else _OF_CLIENTS[group]
