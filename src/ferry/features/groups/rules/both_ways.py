"""Where an offset leads that two flows have a map for, each of which copies what the other one did not. Pure.

Of two opposite flows that keep a topic's name one partition holds the records of both: what was born there, and what
was copied from the other cluster. Whichever flow has the record that is next says where a reader goes on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ferry.features.groups.rules.offset_map import Ahead, Exact, Translated
from ferry.features.groups.rules.translated import Maps
from ferry.model import TopicPartition


class BackMaps(Maps, Protocol):
    """A map that leads back also names the partition where its copies come from."""

    @property
    def source(self) -> TopicPartition:
        """The origin."""


def chosen(forward: Translated | None, backward: Translated | None) -> tuple[str, Translated] | None:
    """The word of the flow that has the next record; `via` is the flow along which clients move, `back` the other one.

    A group that has read all that one flow copied goes on by the other flow's word. One that has read all of both goes
    on after the later copy. Where both have more to come, the nearer record is next.
    """
    if backward is None:
        return None if forward is None else ("via", forward)
    if forward is None:
        return "back", backward
    either = ("via", forward), ("back", backward)
    exact = [one for one in either if isinstance(one[1], Exact)]
    more = [one for one in either if not isinstance(one[1], Ahead)]
    if exact:
        return exact[0]
    return min(more, key=_offset) if more else max(either, key=_offset)


def _offset(one: tuple[str, Translated]) -> int:
    return one[1].offset


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
