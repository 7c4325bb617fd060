"""Transforms that a file defines and no flow runs: what they should hide would be copied unchanged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ferry.config.flow.flow import FlowConfig
from ferry.config.flow.transforms import CONNECT
from ferry.config.keys import values
from ferry.config.keys.layers import Entries
from ferry.config.keys.own import transform_key
from ferry.config.keys.places import Place, longest_first, place_of
from ferry.config.reading.findings import Findings
from ferry.config.reading.typos import nearest
from ferry.config.text.properties import Property
from ferry.messages.catalogue import sentence

_OWN = "ferry.transforms"


def look_at_unlisted(aliases: Sequence[str], flows: Sequence[FlowConfig], entries: Entries, findings: Findings) -> None:
    """Report each transform, at its first line, that no enabled flow lists.

    Only flows count for which its lines could be meant.
    """
    seen: dict[tuple[str, str, str], list[Property]] = {}
    known = longest_first(tuple(aliases))
    readers: dict[tuple[str, str, str], list[FlowConfig]] = {}
    for entry in sorted(entries.by_key.values(), key=lambda one: one.line):
        place = place_of(entry.key, known)
        found = _transform_of(place)
        if found is None or place.alias is not None:
            continue
        mine = [flow for flow in flows if place.flow in (None, flow.flow)]
        if mine:
            seen.setdefault((place.owner, *found), []).append(entry)
            readers[(place.owner, *found)] = mine
    for (owner, list_key, name), lines in seen.items():
        listed = [set(_listed(flow, list_key, entries)) for flow in readers[owner, list_key, name]]
        if not any(name in names for names in listed):
            findings.report(lines[0], lines[0].key, _sentence(owner, list_key, name, lines, set().union(*listed)))


def _transform_of(place: Place) -> tuple[str, str] | None:
    """Return the key that lists a line's transform, and its name; None for a line of no transform."""
    own = transform_key(place.name)
    if own is not None:
        return (CONNECT, CONNECT) if own[0] == CONNECT else (_OWN, own[0])
    first, _, rest = place.name.partition(".")
    name, dot, _ = rest.partition(".")
    return (CONNECT, name) if first == CONNECT and dot else None


def _listed(flow: FlowConfig, list_key: str, entries: Entries) -> Iterator[str]:
    entry = entries.of_flow(flow.flow, list_key)
    named: Iterable[str] = () if entry is None else values.items(entry.value)
    yield from named
    yield from (spec.name for spec in flow.records.transforms)
    if list_key == CONNECT and named:
        yield CONNECT


def _sentence(owner: str, list_key: str, name: str, lines: Sequence[Property], listed: set[str]) -> str:
    several = "this line" if len(lines) == 1 else f"lines {', '.join(str(line.line) for line in lines)}"
    if name == CONNECT:
        return sentence("line.transform.of-connect", connect=CONNECT, owner=owner)
    near = nearest(name, sorted(listed))
    meant = f", or write {near} for {name}" if near is not None else ""
    return sentence("line.transform.unlisted", name=name, list=list_key, owner=owner, meant=meant, several=several)
