"""Where an offset leads that two flows have a map for, each of which copies what the other one did not. Pure.

Of two opposite flows that keep a topic's name one partition holds the records of both: what was born there, and what
was copied from the other cluster. Whichever flow has the record that is next says where a reader goes on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ferry.decide.groups.offset_map import Ahead, Before, Exact, InGap, Translated
from ferry.decide.groups.translated import Maps
from ferry.model import TopicPartition


class BackMaps(Maps, Protocol):
    """A map that leads back also names the partition where its copies come from."""

    @property
    def source(self) -> TopicPartition:
        """The origin."""


_MORE_TO_COME = (InGap, Before)
"""Outcomes behind which the map has another record, or none at all."""


def chosen(forward: Translated | None, backward: Translated | None) -> tuple[str, Translated] | None:
    """The word of the flow that has the record that is next; where neither has, of that along which clients move."""
    if backward is None:
        return None if forward is None else ("via", forward)
    if forward is None:
        return "back", backward
    if isinstance(forward, Exact) != isinstance(backward, Exact):
        return ("via", forward) if isinstance(forward, Exact) else ("back", backward)
    more = isinstance(forward, _MORE_TO_COME), isinstance(backward, _MORE_TO_COME)
    if more == (True, True):
        return min(("via", forward), ("back", backward), key=lambda one: one[1].offset)
    if more == (False, True) and isinstance(forward, Ahead):
        return "back", backward
    return "via", forward


@dataclass(frozen=True, slots=True, kw_only=True)
class BothWays:
    """The maps of a partition that keeps its name: `forward` of a flow, None where it has copied nothing of it yet, and
    `backward` that of the flow straight back, turned round."""

    forward: Maps | None
    backward: BackMaps

    @property
    def target(self) -> TopicPartition:
        """The partition that both lead to."""
        return self.backward.source if self.forward is None else self.forward.target

    def trouble_at(self, offset: int) -> str | None:
        """Why they do not lead on from an offset; None when they do: the one that has the record that is next will do.

        LookupError as `translate`.
        """
        forward = self.forward
        if forward is None:
            return self.backward.trouble_at(offset)
        why = forward.trouble_at(offset)
        if why is None and isinstance(forward.translate(offset), Exact):
            return None
        return why or self.backward.trouble_at(offset)

    def translate(self, offset: int) -> Translated:
        """As OffsetMap."""
        forward = None if self.forward is None else self.forward.translate(offset)
        if isinstance(forward, Exact):
            return forward
        backward = self.backward.translate(offset)
        found = chosen(forward, backward)
        return backward if found is None else found[1]
