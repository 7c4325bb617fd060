"""Every key of a file compared with the known ones: slips, unknown keys, and those that are not needed."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from ferry.config.keys import values
from ferry.config.keys.catalogue import RENAMED, find, keys_of
from ferry.config.keys.key import CONNECTION
from ferry.config.keys.key_support import Fate
from ferry.config.keys.layers import ROLES, SIDES, Entries, is_common_client_key
from ferry.config.keys.own import FERRY_KEYS_BY_NAME, TRANSFORM_PARTS, transform_key
from ferry.config.keys.own_classes import OWN_KEY, is_own_policy, names_own_class, names_own_class_for_all
from ferry.config.keys.places import Place, flow_of, longest_first, place_of
from ferry.config.reading.findings import Findings, Unneeded
from ferry.config.reading.typos import ARROW, alias_ahead, nearest, shown, torn_apart
from ferry.config.reading.value_typos import look_at_value
from ferry.config.text.properties import Property, written_raw
from ferry.config.text.secrets import Providers
from ferry.messages.catalogue import sentence
from ferry.model import Flow

_FERRYS = re.compile(r"(?:^|\.)ferry\.", re.IGNORECASE)
_PROVIDERS = re.compile(r"config\.providers(\.|$)")
_MOST_GUESSES = 200
_TRANSFORM = "ferry.transform."
_TORN = re.compile(r"(?<!\\)(?:\\\\)*\\(?P<after>[ \t\f]+(?P<comment>[#!].*)?)$")
"""A value that should be continued: after its last backslash there is a blank, or also a comment."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyCheck:
    """Checks one key after the other, whatever its flow or cluster does."""

    aliases: tuple[str, ...]
    flows: tuple[Flow, ...]
    entries: Entries
    findings: Findings
    torn: set[int] = field(default_factory=set)
    """The reported lines of values that should be continued."""

    def run(self) -> tuple[Unneeded, ...]:
        """Report what is wrong; return the lines that Ferry knows and does not need, in file order."""
        aliases = longest_first(self.aliases)
        torn = {entry.last_line + 1: entry for entry in self.entries.by_key.values() if _TORN.search(entry.raw)}
        unneeded = []
        for entry in self.entries.by_key.values():
            place = place_of(entry.key, aliases)
            found = None
            if place.reached in self.entries.connected:
                conn_id = self.entries.connection(place.reached)
                message = sentence("line.beside-connection.of-alias", conn_id=str(conn_id), reached=place.reached)
                self.findings.report(entry, entry.key, message)
            else:
                found = self._look(entry, place, torn.get(entry.line))
            if found is not None:
                unneeded.append(found)
        for entry in self.entries.by_key.values():
            look_at_value(entry, place_of(entry.key, aliases).name, self.findings, torn=entry.line in self.torn)
        return tuple(sorted(unneeded, key=lambda one: one.line))

    def _look(self, entry: Property, place: Place, torn: Property | None) -> Unneeded | None:
        if _FERRYS.search(place.name):
            self._look_at_ferry_key(entry, place)
            return None
        if self._is_slip(entry, place) or self._is_provider(entry, place) or ("->" in entry.key and place.flow is None):
            return None
        known = place.known()
        if known is None and torn is not None and self.aliases:
            self._report_torn(torn, entry)
            return None
        if known is None and self._is_for_own_class(place):
            of_policy = place.name.startswith("replication.policy.")
            return None if of_policy else Unneeded(line=entry.line, key=entry.key, why=OWN_KEY)
        if place.name == "enabled" and place.flow is None:
            self._report_enabled(entry, place)
        elif known is None:
            self._report_unknown(entry, place)
        elif place.client is not None and not place.owner:
            role, name = place.client
            owner = self.aliases[0] if self.aliases else "{alias}"
            self.findings.warn(entry, entry.key, sentence("line.top-level", owner=owner, role=role, name=name))
        elif known.fate is Fate.UNNEEDED:
            return Unneeded(line=entry.line, key=entry.key, why=known.text)
        return None

    def _report_enabled(self, entry: Property, place: Place) -> None:
        source = place.alias or next(iter(self.aliases), "S")
        target = next((alias for alias in self.aliases if alias != source), "T")
        where = "at top level" if place.alias is None else "after a cluster's alias"
        message = sentence("line.enabled", where=where, source=source, target=target, value=entry.value)
        self.findings.warn(entry, entry.key, message)

    def _look_at_ferry_key(self, entry: Property, place: Place) -> None:
        if place.alias is not None and place.name == CONNECTION.name:
            self._look_at_connection(entry, place.alias)
        elif place.name.endswith(CONNECTION.name):
            owner = place.name.removesuffix(CONNECTION.name).removesuffix(".")
            known = f"clusters = {', '.join(self.aliases)}"
            why = f"cluster {owner!r} is not among {known}" if owner else "a connection is one cluster's"
            example = self.aliases[0] if self.aliases else "{alias}"
            self.findings.report(
                entry, entry.key, sentence("line.connection", why=why, example=example, name=CONNECTION.name)
            )
        elif place.alias is not None:
            message = sentence("line.ferry-key-of-alias")
            self.findings.report(entry, entry.key, message)
        elif place.name.lower() in FERRY_KEYS_BY_NAME and place.name not in FERRY_KEYS_BY_NAME:
            correction = (written_raw(f"{place.owner}{place.name.lower()}", entry.raw),)
            message = sentence("line.no-key.spelt", line=shown(correction))
            self.findings.report(entry, entry.key, message, correction=correction)
        elif place.name.startswith(_TRANSFORM):
            if transform_key(place.name) is None:
                near = nearest(place.name.rpartition(".")[2], TRANSFORM_PARTS)
                remedy = f"did you mean {near}?" if near else f"known are {', '.join(TRANSFORM_PARTS)}"
                message = sentence("line.no-key.transform", prefix=_TRANSFORM, remedy=remedy)
                self.findings.report(entry, entry.key, message)
        elif place.name not in FERRY_KEYS_BY_NAME:
            near = nearest(place.name, FERRY_KEYS_BY_NAME)
            remedy = f"did you mean {near}?" if near else f"known are {', '.join(FERRY_KEYS_BY_NAME)}"
            self.findings.report(entry, entry.key, sentence("line.no-key", remedy=remedy))

    def _look_at_connection(self, entry: Property, alias: str) -> None:
        conn_id = self.findings.read(entry, "", values.name, Providers(kinds={}))
        for name, beside in self.entries.under(f"{alias}.").items():
            if conn_id and is_common_client_key(name):
                message = sentence("line.beside-connection", conn_id=conn_id, other=entry.line)
                self.findings.report(beside, beside.key, message)

    def _is_slip(self, entry: Property, place: Place) -> bool:
        """Report spellings that are wrong in a certain way; True when the key needs no further check."""
        if place.name in RENAMED and place.alias is None:
            correction = (written_raw(f"{place.owner}{RENAMED[place.name]}", entry.raw),)
            message = sentence("line.no-effect.kafka-4", line=shown(correction))
        elif (switch := _switch_meant(place)) is not None:
            correction = (written_raw(f"{place.owner}{switch}", entry.raw),)
            message = sentence("line.no-effect.instead", line=shown(correction))
        elif (spelt := _spelt_small(place)) is not None:
            correction = (written_raw(f"{place.owner}{spelt}", entry.raw),)
            message = sentence("line.spelt", line=shown(correction))
        else:
            return (
                self._is_arrow_slip(entry)
                or self._names_two_flows(entry, place)
                or (not place.owner and self._is_alias_slip(entry))
            )
        self.findings.warn(entry, entry.key, message, correction=correction)
        return True

    def _is_provider(self, entry: Property, place: Place) -> bool:
        """Report a provider after an alias or a flow: its limits would not count."""
        found = bool(place.owner) and _PROVIDERS.match(place.name) is not None
        if found:
            self.findings.report(entry, entry.key, sentence("line.provider.top-level", name=place.name))
        return found

    def _is_arrow_slip(self, entry: Property) -> bool:
        """Report a flow with blanks around its arrow, or with another arrow than `->`."""
        read = torn_apart(entry, self.aliases)
        if read is not None:
            correction = (written_raw(*read),)
        else:
            meant = ARROW.sub("->", entry.key, count=1)
            if "->" in entry.key or flow_of(meant, longest_first(self.aliases)) is None:
                return False
            correction = (written_raw(meant, entry.raw),)
        if "->" in entry.key or entry.value.startswith("->"):
            message = sentence("line.blank", line=shown(correction))
        else:
            message = sentence("line.arrow", line=shown(correction))
        self.findings.report(entry, entry.key, message, correction=correction)
        return True

    def _names_two_flows(self, entry: Property, place: Place) -> bool:
        if place.flow is None or "->" not in place.name:
            return False
        remedy = f"write {place.name} or {place.owner}{place.name.rpartition('.')[2]}"
        self.findings.warn(entry, entry.key, sentence("line.two-flows", remedy=remedy))
        return True

    def _is_alias_slip(self, entry: Property) -> bool:
        """Report a key after something that is nearly an alias, or after an alias that `clusters` does not list."""
        if not self.aliases or find(entry.key, "flow", "worker") is not None:
            return False
        ahead = alias_ahead(entry.key, self.aliases)
        if ahead is not None:
            wrong, meant = ahead
            correction = (written_raw(f"{meant}{entry.key[len(wrong) :]}", entry.raw),)
            self.findings.report(
                entry,
                entry.key,
                sentence("line.alias", meant=meant, line=shown(correction)),
                correction=correction,
            )
            return True
        if entry.key.endswith(".bootstrap.servers") and "->" not in entry.key:
            alias = entry.key.removesuffix(".bootstrap.servers")
            for role in ROLES:
                alias = alias.removesuffix(f".{role}")
            if alias in ROLES:
                return False
            message = sentence("line.cluster", alias=alias, clusters=", ".join(self.aliases))
            self.findings.warn(entry, entry.key, message)
            return True
        return False

    def _report_unknown(self, entry: Property, place: Place) -> None:
        if not self.aliases:
            # Without aliases no key after one can be recognised.
            return
        misplaced = self._misplaced(place)
        # Each comparison costs milliseconds: a long file of another kind must not take minutes.
        guess = len(self.findings.problems) < _MOST_GUESSES
        near = nearest(place.name, place.neighbours()) if guess else None
        if misplaced is not None:
            message = sentence("line.no-effect.here", where=misplaced)
        elif near is not None:
            message = sentence("line.not-known.near", owner=place.owner, near=near)
        else:
            message = sentence("line.not-known")
        self.findings.warn(entry, entry.key, message)

    def _report_torn(self, torn: Property, following: Property) -> None:
        """Report that `torn` should be continued with `following`."""
        self.torn.add(torn.line)
        match = _TORN.search(torn.raw)
        after, comment = match.group("after", "comment") if match is not None else ("", None)
        what, remedy = ("comment", "put it on a line of its own") if comment else ("blank", "remove the blank")
        message = sentence("line.torn", what=what, other=following.line, remedy=remedy)
        whole = written_raw(torn.key, torn.raw.removesuffix(after))
        correction = (comment, whole) if comment else (whole,)
        self.findings.warn(torn, torn.key, message, correction=correction)

    def _misplaced(self, place: Place) -> str | None:
        """Return where a key counts that has no effect in this place; None when it has an effect nowhere."""
        bare = place.client[1] if place.client is not None else place.name
        if place.flow is not None and is_common_client_key(bare) and find(bare, "flow") is not None:
            side = f"{place.flow.source}.{bare} or {place.flow.target}.{bare}"
            return f"it is a key of a cluster; write {side}, or put source.cluster. or target.cluster. before it"
        role = next((role for role in ROLES if bare in keys_of(role)), None)
        if role is not None and place.client is not None:
            return f"it is a key of the {role}, not of the {place.client[0]}; write it there, or remove the line"
        if role is not None:
            owner = place.owner or f"{self.aliases[0]}."
            return f"it is a key of the {role}; write {owner}{role}.{bare} = ..."
        name = next((name for name in (place.name, bare) if find(name, "flow") is not None), None)
        if place.alias is not None and name is not None:
            return f"it is read at top level or after S->T., not after a cluster's alias; write {name} = ..."
        alias, dot, rest = place.name.partition(".")
        if not place.owner and dot and Place(owner=f"{alias}.", flow=None, alias=alias, name=rest).known() is not None:
            return (
                f"cluster {alias!r} is not among clusters = {', '.join(self.aliases)}; add it there or remove the line"
            )
        return None

    def _is_for_own_class(self, place: Place) -> bool:
        """Return whether a class of the user gets this key, and it is not a misspelt key of Kafka."""
        return self._goes_with_own_class(place) and nearest(place.name, place.neighbours(), cutoff=0.9) is None

    def _goes_with_own_class(self, place: Place) -> bool:
        """Return whether the place names such a class: it gets what MirrorMaker 2 would give it."""
        if place.client is not None:
            role = place.client[0]
            if place.alias is not None:
                return names_own_class(self.entries.of_cluster_client(place.alias, role), role)
            flow = place.flow
            clients = [] if flow is None else [self.entries.of_flow_client(flow, side, role) for side in SIDES]
            return any(names_own_class(client, role) for client in clients)
        if place.alias is not None:
            return names_own_class(self.entries.under(place.owner), "worker")
        if place.flow is not None and names_own_class(self.entries.under(place.owner), "flow"):
            return True
        if place.flow is None and not place.name.startswith("replication.policy."):
            return names_own_class_for_all(self.entries.by_key)
        flows = self.flows if place.flow is None else (place.flow,)
        policies = [self.entries.of_flow(flow, "replication.policy.class") for flow in flows]
        return any(entry is not None and is_own_policy(entry.value) for entry in policies)


def _spelt_small(place: Place) -> str | None:
    """Return the known key that is spelt with capitals; None for every other key."""
    small = place.name.lower()
    if small == place.name or place.known() is not None or place.client is not None:
        return None
    return small if replace(place, name=small).known() is not None else None


def _switch_meant(place: Place) -> str | None:
    """Return the key that was meant by `enable`, `emit.heartbeats` and others that lack the end of `enabled`.

    None for every other key.
    """
    if place.alias is not None or place.known() is not None:
        return None
    for switch in (f"{place.name}d", f"{place.name}.enabled"):
        known = find(switch, "flow")
        if switch.endswith("enabled") and known is not None and (place.flow is not None or switch != "enabled"):
            return switch
    return None
