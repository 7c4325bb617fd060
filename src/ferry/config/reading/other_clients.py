"""Lines of clients that MirrorMaker 2 has and Ferry does not: the report shows that they do not count."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ferry.config.keys.key_support import NO_SUCH_CLIENT
from ferry.config.keys.layers import CLIENTS, ROLE_AT, SIDES, Entries, Role, Side, is_common_client_key
from ferry.config.keys.places import Place, longest_first, place_of
from ferry.config.reading.findings import Findings, Unneeded
from ferry.config.text.properties import Property
from ferry.messages.catalogue import sentence
from ferry.model import Flow


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reader:
    """A flow's side whose client of some role reads a line in MirrorMaker 2."""

    flow: Flow
    side: Side

    @property
    def alias(self) -> str:
        return self.flow.source if self.side == "source" else self.flow.target

    @property
    def role(self) -> Role:
        """The role in which Ferry reaches that side."""
        return ROLE_AT[self.side]


def look_at_other_clients(
    aliases: Sequence[str], enabled: Sequence[Flow], entries: Entries, findings: Findings
) -> tuple[Unneeded, ...]:
    """Return the lines of clients that Ferry does not have for any `enabled` flow.

    Warns where one of them names other brokers or another login than the client that is used instead.
    """
    found = []
    ordered = longest_first(aliases)
    for entry in entries.by_key.values():
        place = place_of(entry.key, ordered)
        if place.client is None or not place.owner or place.known() is None:
            continue
        role, name = place.client
        readers = tuple(_readers(place, enabled))
        if not readers or any((reader.side, role) in CLIENTS for reader in readers):
            continue
        found.append(Unneeded(line=entry.line, key=entry.key, why=NO_SUCH_CLIENT))
        if is_common_client_key(name):
            _look_for_difference(entry, name, readers, entries, findings)
    return tuple(found)


def _readers(place: Place, enabled: Sequence[Flow]) -> Iterator[_Reader]:
    for flow in enabled:
        for side in SIDES:
            reader = _Reader(flow=flow, side=side)
            if place.flow is None:
                reads = place.alias == reader.alias
            else:
                named = next((side for side in SIDES if place.name.startswith(f"{side}.")), None)
                reads = place.flow == flow and named in (None, side)
            if reads:
                yield reader


def _look_for_difference(
    entry: Property, name: str, readers: Sequence[_Reader], entries: Entries, findings: Findings
) -> None:
    """Warn about a login or a broker that is left out: a run would be refused without it, or reach another broker."""
    for reader in readers:
        counts = entries.of_flow_client(reader.flow, reader.side, reader.role).get(name)
        if counts is not None and counts.value.strip() == entry.value.strip():
            continue
        asked = f"Ferry uses its {reader.role} client for all requests to {reader.alias}"
        if counts is None:
            message = sentence("line.client.not-used", asked=asked, name=name, alias=reader.alias)
        else:
            message = sentence("line.client.differs", other=counts.line, asked=asked)
        findings.warn(entry, entry.key, message)
        return
