"""What a lane skipped, as rows of a switch's step, and what that means for a group. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ferry.codec.form import F, Form
from ferry.ledger.codec import SOURCE
from ferry.model import TopicPartition
from ferry.model.evidence import PassedOver, summed
from ferry.model.switch import PASSED, Json, Step, SwitchState

PassedBy = Mapping[TopicPartition, Sequence[PassedOver]]
"""What a lane skipped, by source partition."""


_ROW = Form(
    PassedOver,
    *SOURCE,
    F("start", least=None),
    F("end"),
    F(PASSED, "why"),
    F("who"),
    F("reason"),
    F("records", default=None, omit=lambda one: not one.is_counted),
)


def passed_rows(passed: Iterable[PassedOver]) -> list[Json]:
    """Return what was skipped as rows of the step `stop`."""
    return [_ROW.dump(one) for one in passed]


def passed_of(state: SwitchState) -> tuple[PassedOver, ...] | None:
    """Return what the lane had skipped when a switch stopped it; None: its record lacks some of it."""
    if state.fact(Step.STOP, "left_out") is None:
        return None
    return tuple(map(_ROW.load, state.passed_rows(Step.STOP)))


def by_partition(passed: Iterable[PassedOver]) -> PassedBy:
    """Return what was skipped by source partition."""
    found: dict[TopicPartition, list[PassedOver]] = {}
    for one in passed:
        found.setdefault(one.source, []).append(one)
    return found


def unread_of(passed: PassedBy | None, offsets: Iterable[tuple[TopicPartition, int]]) -> int | None:
    """Return how many of the offsets skipped a group has not read; it is at `offsets` of the source.

    None: not known, as of single records that the target lacks.
    """
    if passed is None:
        return None
    return summed([one.unread(offset) for place, offset in offsets for one in passed.get(place, ())])
