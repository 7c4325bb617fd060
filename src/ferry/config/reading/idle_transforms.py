"""Transforms that a flow lists and that match none of its topics: what they should hide would be copied unchanged."""

from __future__ import annotations

from collections.abc import Sequence

from ferry.config.flow.flow import FlowConfig
from ferry.config.flow.transforms import CONNECT, TransformSpec
from ferry.config.keys.layers import Entries
from ferry.config.reading.findings import Findings
from ferry.config.reading.typos import nearest
from ferry.config.text.filters import LEGAL_NAME, PatternList
from ferry.config.text.properties import Property
from ferry.messages.catalogue import sentence
from ferry.words import several


def look_at_idle_transforms(
    flows: Sequence[FlowConfig], entries: Entries, findings: Findings, *, all_enabled: bool
) -> None:
    """Report each line `topics` of a transform, that matches no topic of the flows, or has a name of none.

    `flows` are the enabled ones. Only those count to which the line applies. It is certain only where the topics of
    these flows are names, and no other flow that is not enabled (`all_enabled`) may need the line. Otherwise the plan
    has a note.
    """
    seen: dict[str, tuple[Property, TransformSpec, list[FlowConfig]]] = {}
    for flow in flows:
        for spec in flow.records.transforms:
            entry = entries.of_flow(flow.flow, f"ferry.transform.{spec.name}.topics")
            if entry is not None and spec.name != CONNECT and spec.topics.items:
                seen.setdefault(entry.key, (entry, spec, []))[2].append(flow)
    for entry, spec, ones in seen.values():
        named = [_names(flow) for flow in ones]
        names = sorted({name for some in named for name in some or ()})
        shared = not any(entry.key.startswith(f"{flow.flow}.") for flow in ones)
        if None in named or not names or (shared and not all_enabled):
            continue
        idle = _idle_item(spec.topics, names)
        if idle is None:
            continue
        near = nearest(idle, names)
        meant = f"write {near} for {idle}" if near is not None else f"name one of them, or remove {idle}"
        findings.report(
            entry,
            entry.key,
            sentence("line.transform.idle", name=spec.name, item=idle, topics=several(names), meant=meant),
        )


def _idle_item(topics: PatternList, names: Sequence[str]) -> str | None:
    """Return the first item that matches none of the names: a name, or a pattern if nothing else matches, either."""
    items = topics.items if not any(map(topics.matches, names)) else filter(LEGAL_NAME.fullmatch, topics.items)
    return next((item for item in items if not any(map(PatternList(items=(item,)).matches, names))), None)


def _names(flow: FlowConfig) -> list[str] | None:
    """Return the topics of a flow, if all of them are names; None if one is a pattern."""
    chosen = flow.topics.filter
    if not all(map(LEGAL_NAME.fullmatch, chosen.include.items)):
        return None
    return [name for name in chosen.include.items if chosen.takes(name)]
