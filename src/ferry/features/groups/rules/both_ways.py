"""Where an offset leads if two flows have a map for it, and each copies what the other one did not. Pure.

If two opposite flows keep a topic's name, one partition holds the records of both: those produced there, and those
copied from the other cluster. The flow that has the next record decides where a reader continues.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from ferry.errors import Refused
from ferry.features.groups.rules.offset_map import Ahead, Before, Exact, InGap, Translated
from ferry.features.groups.rules.translated import Maps
from ferry.model import TopicPartition


class BackMaps(Maps, Protocol):
    """A map that leads back. It also names the partition where its copies come from."""

    @property
    def source(self) -> TopicPartition:
        """Return the partition that the copies come from."""


class OwnMaps(Maps, Protocol):
    """An offset map of the flow itself, which also returns what the flow has skipped."""

    @property
    def identical(self) -> bool:
        """Whether the last records of it have identical offsets."""

    def passes(self, offset: int) -> bool:
        """Return whether the flow has skipped source offsets from this one on."""


def passes_over(way: OwnMaps, offset: int) -> bool:
    """Report whether the map leads after records that the flow has skipped, and that a group may not have read."""
    found = way.translate(offset)
    return isinstance(found, Before) or (isinstance(found, InGap) and way.passes(offset))


def chosen(forward: Translated | None, backward: Translated | None) -> tuple[str, Translated] | None:
    """Choose the flow that has the next record: `via`, along which clients move, or `back`, the opposite one.

    If the group has read all of both, the later copy decides. A switch skips what came back, so that both may
    reach the end. Otherwise the exact answer decides, of the next record before that of a copied end, and `via` first.
    If both have more records, the nearer one is next. None when neither flow has a map.
    """
    if backward is None:
        return None if forward is None else ("via", forward)
    if forward is None:
        return "back", backward
    either = ("via", forward), ("back", backward)
    if all(_has_read_all(found) for _, found in either):
        return max(either, key=_offset)
    exact = sorted((one for one in either if isinstance(one[1], Exact)), key=lambda one: _has_read_all(one[1]))
    more = [one for one in either if not isinstance(one[1], Ahead)]
    return exact[0] if exact else min(more, key=_offset)


def _has_read_all(found: Translated) -> bool:
    return isinstance(found, Ahead) or (isinstance(found, Exact) and found.read_all)


def _offset(one: tuple[str, Translated]) -> int:
    return one[1].offset


@dataclass(frozen=True, slots=True, kw_only=True)
class BothWays:
    """The two maps of a partition that keeps its name.

    `forward` is the map of a flow, None where the flow has copied nothing of the partition yet. `backward` is the map
    of the opposite flow, from its target to its source.
    """

    forward: Maps | None
    backward: BackMaps

    @property
    def target(self) -> TopicPartition:
        """Return the partition that both maps lead to."""
        return self.backward.source if self.forward is None else self.forward.target

    def trouble_at(self, offset: int) -> str | None:
        """Return why the maps do not translate an offset, as a sentence; None when they do.

        The map that has the next record is enough. LookupError when a map was not loaded for this offset.
        """
        forward = self.forward
        if forward is None:
            return self.backward.trouble_at(offset)
        why = forward.trouble_at(offset)
        if why is None and isinstance(forward.translate(offset), Exact):
            return None  # at a copied end the other map may lead further, but is not needed
        return why or self.backward.trouble_at(offset)

    def translate(self, offset: int) -> Translated:
        """Return where a reader of `offset` continues.

        Refused with the trouble of a map, LookupError when it is not loaded.
        """
        forward = None if self.forward is None else self.forward.translate(offset)
        if isinstance(forward, Exact) and (not forward.read_all or self.backward.trouble_at(offset) is not None):
            return forward
        backward = self.backward.translate(offset)
        found = chosen(forward, backward)
        return backward if found is None else found[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardAlone:
    """The map of a partition that keeps its name, if the map of the opposite flow is not known; `why` says why.

    At a copied end, or after it, a group may read records again that came from the target, but it misses none.
    `forward` is None where the flow has copied nothing of the partition `place` yet.
    """

    forward: OwnMaps | None
    place: TopicPartition
    why: str

    @property
    def target(self) -> TopicPartition:
        """Return the partition that the map leads to."""
        return self.place if self.forward is None else self.forward.target

    def trouble_at(self, offset: int) -> str | None:
        """Return why the map does not translate an offset, as a sentence; None when it misses no record.

        LookupError when it was not loaded for this offset.
        """
        if self.forward is None:
            return self.why
        return self.forward.trouble_at(offset) or (self.why if passes_over(self.forward, offset) else None)

    def translate(self, offset: int) -> Translated:
        """Return where a reader of `offset` continues. Raises Refused with the trouble at the offset, LookupError."""
        if self.forward is None or self.trouble_at(offset) is not None:
            raise Refused(self.trouble_at(offset) or self.why)
        return self.forward.translate(offset)
