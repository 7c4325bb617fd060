"""What a lane passed over, as a fact of a switch's step, and what that means for a group. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ferry.model import TopicPartition
from ferry.model.evidence import PassedOver, summed
from ferry.model.switch import Step, SwitchState


def passed_facts(passed: Iterable[PassedOver]) -> list[list[object]]:
    """Return what was passed over as a fact of the step `stop`."""
    return [
        [one.source.topic, one.source.partition, one.start, one.end, one.why, one.who, one.reason] for one in passed
    ]


def passed_of(state: SwitchState) -> tuple[PassedOver, ...] | None:
    """Return what the lane had passed over when a switch stopped it; None: an earlier version did not record it."""
    rows: Sequence[tuple[str, int, int | None, int, str, str, str]] | None = state.fact(Step.STOP, "passed_over")
    if rows is None:
        return None
    return tuple(
        PassedOver(source=TopicPartition(topic, number), start=start, end=end, why=why, who=who, reason=reason)
        for topic, number, start, end, why, who, reason in rows
    )


def unread_of(passed: Iterable[PassedOver] | None, offsets: Iterable[tuple[TopicPartition, int]]) -> int | None:
    """Return how many of the offsets passed over a group has not read; it is at `offsets` of the source.

    None: not known.
    """
    if passed is None:
        return None
    ranges = tuple(passed)
    return summed([one.unread(offset) for place, offset in offsets for one in ranges if one.source == place])
