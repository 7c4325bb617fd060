"""The effective configuration of a file: every value that counts, with the line it comes from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ferry.config.flow.flow import FlowConfig
from ferry.config.flow.start import StartEarliest, StartLatest
from ferry.config.keys.catalogue import find
from ferry.config.keys.key_support import Fate
from ferry.config.keys.layers import CLIENTS, ROLES
from ferry.config.reading.examine import Examined
from ferry.config.reading.findings import Setting
from ferry.config.text.problem import Problem, Severity, in_file_order
from ferry.model import Flow

_COMPRESSION = "target.producer.compression.type"
_ALREADY_SHOWN = ("isolation.level", "auto.offset.reset")

GROUP_OFFSETS = "sync.group.offsets.enabled"

DEPARTURES = (
    (
        "consumer.isolation.level",
        "read_committed",
        "records of aborted transactions are not copied (MirrorMaker 2: read_uncommitted)",
    ),
    (
        GROUP_OFFSETS,
        "true",
        "group offsets are written to the target while a group has no member there (MirrorMaker 2: false)",
    ),
    (
        "offset-syncs.topic.location",
        "target",
        "offset syncs are written to the target, and nothing to the source (MirrorMaker 2: source)",
    ),
    (
        "exactly.once.source.support",
        "",
        "every run is exactly once, whatever the file says (MirrorMaker 2: disabled)",
    ),
)
"""Settings whose default is not MirrorMaker 2's: the value that makes the difference, and the sentence about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effective:
    """One enabled flow with all of its values."""

    flow: Flow
    settings: tuple[Setting, ...]
    clients: tuple[Setting, ...]
    """Properties of the flow's two clients that a line of the file sets and Ferry reads.

    Their names have side, role (`*`: every client of the side) and Java name.
    """
    departures: tuple[str, ...]
    """Defaults that are not MirrorMaker 2's, each with what follows from it."""
    surprises: tuple[str, ...]
    """Lines of the file that have an effect which is easily overlooked, each with that effect."""


def effective(examined: Examined) -> tuple[Effective, ...]:
    """Return the enabled flows in order."""
    return tuple(_effective(examined, config) for config in examined.flows)


def _effective(examined: Examined, config: FlowConfig) -> Effective:
    settings, clients = examined.settings[config.flow], tuple(_clients(examined, config.flow))
    return Effective(
        flow=config.flow,
        settings=settings,
        clients=clients,
        departures=tuple(_departures(settings)),
        surprises=tuple(_surprises(config, settings, clients)),
    )


def enabled_line(examined: Examined, flow: Flow) -> int | None:
    """Return the line that sets whether the flow exists; None when none does."""
    entry = examined.entries.by_key.get(f"{flow}.enabled")
    return None if entry is None else entry.line


def _clients(examined: Examined, flow: Flow) -> Iterator[Setting]:
    for side, role in CLIENTS:
        by_role = {one: examined.entries.of_flow_client(flow, side, one) for one in ROLES}
        for name, entry in sorted(by_role[role].items()):
            known = find(name, role)
            if known is None or known.fate is Fate.UNNEEDED or (role == "consumer" and name in _ALREADY_SHOWN):
                continue
            # One line for all clients of this side, as is usual for bootstrap servers and security.
            lines = {properties[name].line if name in properties else None for properties in by_role.values()}
            yield Setting.of(f"{side}.{'*' if len(lines) == 1 else role}.{name}", entry, "")


def _departures(settings: tuple[Setting, ...]) -> Iterator[str]:
    for setting in settings:
        for name, value, sentence in DEPARTURES:
            if setting.name == name and (setting.line is None or not value) and setting.is_acted_on:
                yield f"{name}: {sentence}"


def overlooked(examined: Examined) -> tuple[Problem, ...]:
    """Return a warning for each line with an effect that is easily overlooked.

    Also for group offsets that are written though no line asks for it: MirrorMaker 2 would not write them.
    """
    file, flows = examined.entries.file, effective(examined)
    lines = {
        Problem(file=file, line=setting.line, key=setting.key or setting.name, severity=Severity.WARNING, message=why)
        for flow, config in zip(flows, examined.flows, strict=True)
        for setting, why in _overlooked(config, flow.settings, flow.clients)
    }
    unasked = [flow.flow for flow in flows if any(_writes_unasked(one) for one in flow.settings)]
    keys = [GROUP_OFFSETS] if len(unasked) == len(flows) > 0 else [f"{flow}.{GROUP_OFFSETS}" for flow in unasked]
    groups = [
        Problem(
            file=file,
            line=None,
            key=key,
            severity=Severity.WARNING,
            message="no line sets it, so runs write group offsets to the target, which MirrorMaker 2 would not: write "
            f"{key} = true to keep that, or = false",
        )
        for key in keys
    ]
    return in_file_order((*lines, *groups))


def _writes_unasked(setting: Setting) -> bool:
    return setting.name == GROUP_OFFSETS and setting.line is None


def _surprises(config: FlowConfig, settings: tuple[Setting, ...], clients: tuple[Setting, ...]) -> Iterator[str]:
    for setting, why in _overlooked(config, settings, clients):
        yield f"line {setting.line}: {setting.key} = {setting.value}: {why}"


def _overlooked(
    config: FlowConfig, settings: tuple[Setting, ...], clients: tuple[Setting, ...]
) -> Iterator[tuple[Setting, str]]:
    """Yield the lines that skip history or copy it again, and those that keep batches from being copied as bytes.

    Each is with the reason.
    """
    for setting in settings:
        if setting.name == "ferry.start" and setting.line is not None and isinstance(config.copy.start, StartLatest):
            yield (
                setting,
                (
                    "the first run begins at the end of each topic, and records from before are never copied (ferry "
                    "backfill copies them later)"
                ),
            )
        if setting.name == "ferry.start" and _may_copy_again(config, setting):
            yield (
                setting,
                (
                    "topics keep their names, and the first run begins at earliest, so it copies again what another "
                    "replicator has copied into them: take over its positions with ferry migrate mm1 or mm2; write "
                    f"{config.flow}.ferry.start = earliest if the target's topics are empty or new"
                ),
            )
    for setting in clients:
        if setting.name == _COMPRESSION:
            yield (
                setting,
                (
                    "batches in another compression are unpacked and packed again, which costs CPU time; without the "
                    "line each is copied unchanged"
                ),
            )


def _may_copy_again(config: FlowConfig, setting: Setting) -> bool:
    """Return whether a consumer's line, such as MirrorMaker 1's own, begins at earliest in topics of the same names."""
    is_by_consumer = setting.key is not None and setting.key.endswith(".auto.offset.reset")
    keeps_names = config.topics.policy_name == "IdentityReplicationPolicy"
    return is_by_consumer and keeps_names and isinstance(config.copy.start, StartEarliest)
