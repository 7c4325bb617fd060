"""The effective configuration of a file: every value that counts, with the line it comes from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ferry.config.examine import Examined
from ferry.config.findings import Setting
from ferry.config.layers import ROLES, SIDES
from ferry.model import Flow

_ALREADY_SHOWN = ("isolation.level", "auto.offset.reset")

DEPARTURES = (
    (
        "consumer.isolation.level",
        "read_committed",
        "what transactions aborted is not copied (MirrorMaker 2: read_uncommitted)",
    ),
    (
        "sync.group.offsets.enabled",
        "true",
        "group offsets are written to the target while a group has no member there (MirrorMaker 2: false)",
    ),
    (
        "exactly.once.source.support",
        "",
        "every run is exactly once, whatever the file says (MirrorMaker 2: disabled)",
    ),
)
"""Settings whose default is not MirrorMaker 2's, the value that makes the difference, and the sentence that says so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effective:
    """One enabled flow with all of its values."""

    flow: Flow
    settings: tuple[Setting, ...]
    clients: tuple[Setting, ...]
    """Properties of the flow's clients that a line of the file sets, by side, role (`*`: all three) and Java name."""
    departures: tuple[str, ...]


def effective(examined: Examined) -> tuple[Effective, ...]:
    """The enabled flows in order."""
    return tuple(
        Effective(
            flow=config.flow,
            settings=examined.settings[config.flow],
            clients=tuple(_clients(examined, config.flow)),
            departures=tuple(_departures(examined.settings[config.flow])),
        )
        for config in examined.flows
    )


def enabled_line(examined: Examined, flow: Flow) -> int | None:
    """The line that says whether the flow exists; None when none does."""
    entry = examined.entries.by_key.get(f"{flow}.enabled")
    return None if entry is None else entry.line


def _clients(examined: Examined, flow: Flow) -> Iterator[Setting]:
    for side in SIDES:
        by_role = {role: examined.entries.of_flow_client(flow, side, role) for role in ROLES}
        for name in sorted({name for properties in by_role.values() for name in properties}):
            found = {role: properties[name] for role, properties in by_role.items() if name in properties}
            if len(found) == len(ROLES) and len({entry.line for entry in found.values()}) == 1:
                # One line for all clients of this side, as bootstrap servers and security mostly are.
                yield Setting.of(f"{side}.*.{name}", found["admin"], "")
                continue
            for role, entry in found.items():
                if (side, role) != ("source", "consumer") or name not in _ALREADY_SHOWN:
                    yield Setting.of(f"{side}.{role}.{name}", entry, "")


def _departures(settings: tuple[Setting, ...]) -> Iterator[str]:
    for setting in settings:
        for name, value, sentence in DEPARTURES:
            if setting.name == name and (setting.line is None or not value):
                yield f"{name}: {sentence}"
