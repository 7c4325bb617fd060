"""The effect of every line of a file: no line is skipped silently."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum

from ferry.config.effective import Effective, effective
from ferry.config.flow.flow import FlowConfig
from ferry.config.keys.key_support import Fate
from ferry.config.keys.layers import SIDES, Side
from ferry.config.keys.places import Place, longest_first, place_of
from ferry.config.reading.examine import Examined
from ferry.config.reading.findings import Setting
from ferry.config.text.problem import Problem
from ferry.config.text.properties import Property
from ferry.model import Flow

NOT_YET = "accepted and checked, but not implemented"
_ONCE = "exactly.once.source.support"


class LineFate(Enum):
    """The effect of a line."""

    USED = "used"
    NOT_YET = "not acted on"
    """The line is read, its value is in force, and no run does anything with it so far."""
    UNNEEDED = "not needed"
    OVERRIDDEN = "overridden"
    """Other lines set the same with higher precedence, for every flow that would read it."""
    WITHOUT_EFFECT = "without effect"
    """Nothing reads it in this file: its flow is not enabled, or its place is one that does not count."""
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True, kw_only=True)
class LineAccount:
    """One entry of the file, by the line it begins on."""

    line: int
    key: str
    fate: LineFate
    by: tuple[int, ...] = ()
    """The lines that override it."""
    why: str = ""
    """Empty for a line that is used, and for one with a problem, which has its own message."""


def account(entries: Sequence[Property], examined: Examined, problems: Sequence[Problem]) -> tuple[LineAccount, ...]:
    """Return the effect of each of `entries` (the whole file, with the duplicates that Java drops), in file order."""
    return _Accounts(
        examined=examined,
        flows=effective(examined),
        configs={config.flow: config for config in examined.flows},
        problems=frozenset(problem.line for problem in problems if problem.line is not None),
        aliases=longest_first(examined.clusters),
    ).run(entries)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Accounts:
    examined: Examined
    flows: tuple[Effective, ...]
    configs: dict[Flow, FlowConfig]
    problems: frozenset[int]
    aliases: tuple[str, ...]
    used: set[int] = field(default_factory=set)

    def run(self, entries: Sequence[Property]) -> tuple[LineAccount, ...]:
        self.used.update(self._used())
        unneeded = {one.line: one.why for one in self.examined.unneeded}
        return tuple(self._one(entry, unneeded) for entry in sorted(entries, key=lambda entry: entry.line))

    def _used(self) -> Iterator[int]:
        """Yield the lines from which a value in force comes."""
        by_key = self.examined.entries.by_key
        for flow in self.flows:
            yield from (one.line for one in (*flow.settings, *flow.clients) if one.line is not None)
            for name in self.configs[flow.flow].topics.policy_properties:
                entry = self.examined.entries.of_flow(flow.flow, name)
                if entry is not None:
                    yield entry.line
            if self.configs[flow.flow].mirror.heartbeats_at_source.enabled:
                # Keys of the flow back, which need not be enabled for it.
                back = self.examined.entries.under(f"{flow.flow.target}->{flow.flow.source}.emit.heartbeats.")
                yield from (entry.line for entry in back.values())
        for alias in self.examined.clusters:
            line = self.examined.servers_line(alias)
            if line is not None:
                yield line
        named = ["clusters", *(f"{flow}.enabled" for flow in (*self.configs, *self.examined.disabled))]
        yield from (by_key[key].line for key in named if key in by_key)
        yield from (entry.line for key, entry in by_key.items() if key.startswith("config.providers"))

    def _one(self, entry: Property, unneeded: dict[int, str]) -> LineAccount:
        last = self.examined.entries.by_key[entry.key]
        if last.line != entry.line:
            return self._overridden(entry, (last.line,))
        if entry.line in self.problems:
            return LineAccount(line=entry.line, key=entry.key, fate=LineFate.PROBLEM)
        if entry.line in self.used:
            return self._counts(entry)
        if entry.line in unneeded:
            return LineAccount(line=entry.line, key=entry.key, fate=LineFate.UNNEEDED, why=unneeded[entry.line])
        place = place_of(entry.key, self.aliases)
        by = tuple(sorted({one.line for one in self._rivals(place) if one.line is not None}))
        if by and place.name != _ONCE:
            return self._overridden(entry, by)
        return LineAccount(line=entry.line, key=entry.key, fate=LineFate.WITHOUT_EFFECT, why=self._why(place))

    def _counts(self, entry: Property) -> LineAccount:
        known = place_of(entry.key, self.aliases).known()
        if known is not None and known.fate is Fate.NOT_YET:
            return LineAccount(line=entry.line, key=entry.key, fate=LineFate.NOT_YET, why=NOT_YET)
        return LineAccount(line=entry.line, key=entry.key, fate=LineFate.USED)

    def _overridden(self, entry: Property, by: tuple[int, ...]) -> LineAccount:
        lines = f"line {by[0]}" if len(by) == 1 else f"lines {', '.join(map(str, by))}"
        return LineAccount(
            line=entry.line, key=entry.key, fate=LineFate.OVERRIDDEN, by=by, why=f"overridden by {lines}"
        )

    def _rivals(self, place: Place) -> Iterator[Setting]:
        """Yield the values that are in force where this place would count."""
        role, bare = place.client or (None, place.name)
        if _counts_elsewhere(place):
            return
        for flow in self._readers(place):
            names = {bare, f"consumer.{bare}"} if role in (None, "consumer") else set()
            names |= {"ferry.start"} if bare == "auto.offset.reset" else set()
            yield from (one for one in flow.settings if one.name in names)
            for side in _sides(place, flow.flow):
                plain = bare.removeprefix(f"{side}.cluster.")
                owners = ("*", role) if role is not None else ("*", "consumer", "producer", "admin")
                in_force = {f"{side}.{owner}.{plain}" for owner in owners}
                yield from (one for one in flow.clients if one.name in in_force)

    def _readers(self, place: Place) -> tuple[Effective, ...]:
        """Return the enabled flows that the place belongs to."""
        if place.flow is not None:
            return tuple(flow for flow in self.flows if flow.flow == place.flow)
        if place.alias is not None:
            return tuple(flow for flow in self.flows if place.alias in (flow.flow.source, flow.flow.target))
        return self.flows

    def _why(self, place: Place) -> str:
        """Return why a line that is known, and that nothing overrides, has no effect."""
        if place.flow is not None and place.flow in self.examined.disabled:
            return f"flow {place.flow} is not enabled"
        if not self._readers(place):
            owner = f"of {place.flow or place.alias}" if place.owner else "at all"
            return f"no flow {owner} is enabled here"
        if _counts_elsewhere(place):
            return f"it is read at top level or after S->T.; write {place.name} = ..."
        if place.name == _ONCE:
            return f"only a target's own line counts, as in MirrorMaker 2: {{alias}}.{_ONCE}"
        return "no enabled flow reads it"


def _counts_elsewhere(place: Place) -> bool:
    """Return whether a flow's setting is after a cluster's alias, where MirrorMaker 2 reads it for another client."""
    return place.alias is not None and place.client is None and place.name.startswith("replication.policy.")


def _sides(place: Place, flow: Flow) -> tuple[Side, ...]:
    if place.alias is not None:
        return ("source",) if place.alias == flow.source else ("target",)
    named = tuple(side for side in SIDES if place.flow is not None and place.name.startswith(f"{side}."))
    return named or SIDES
