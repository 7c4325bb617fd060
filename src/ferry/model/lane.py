"""Lanes other than the live one: what their names mean, and the scratch topics that they write to."""

from __future__ import annotations

import re
from enum import StrEnum

from ferry.errors import BadInput


class LaneKind(StrEnum):
    """The purpose of a lane other than the live one; its name begins with the word."""

    BACKFILL = "backfill"
    """Windows of history (`ferry backfill`)."""
    DRILL = "drill"
    """A rehearsal: its copies have no real readers."""
    APPEND = "append"
    """Windows of history, appended to the live topics out of order: a lane is named so only on purpose."""

    @property
    def has_scratch_topics(self) -> bool:
        """Whether its topics are its own."""
        return self is not LaneKind.APPEND


_LANE = re.compile(r"(backfill|drill|append)-[A-Za-z0-9][A-Za-z0-9_-]{0,39}")
_SCRATCH = re.compile(r".+\.(backfill|drill)\.((?:\1)-[A-Za-z0-9][A-Za-z0-9_-]{0,39})")


def lane_kind(lane: str) -> LaneKind | None:
    """Return what a lane of this name is for; None for a live one, whatever the file calls it."""
    found = _LANE.fullmatch(lane)
    return None if found is None else LaneKind(found.group(1))


def check_lane(lane: str, kind: LaneKind, *others: LaneKind) -> str:
    """Return the lane's name. Raises BadInput when a lane of this kind (or of `others`) cannot have the name."""
    if lane_kind(lane) not in (kind, *others):
        raise BadInput(
            f"lane {lane!r} is not a {kind} lane: name it {kind}-NAME, where NAME has up to 40 letters, digits, "
            f"hyphens and underscores, for example {kind}-january"
        )
    return lane


def scratch_topic(target: str, lane: str) -> str:
    """Return the topic to which a lane writes what the live lane writes to `target`; for a live lane `target`
    itself.
    """
    kind = lane_kind(lane)
    return target if kind is None or not kind.has_scratch_topics else f"{target}.{kind}.{lane}"


def scratch_lane(topic: str) -> str | None:
    """Return the lane whose scratch topic has this name; None when it is not a scratch topic."""
    found = _SCRATCH.fullmatch(topic)
    return None if found is None else found.group(2)
