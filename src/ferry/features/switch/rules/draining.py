"""The refusals that end a drain, and the sentence about what it cannot copy. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from ferry.model import Refusal, RefusalKind
from ferry.plan.rules.lag import TotalLag
from ferry.words import count_of

PASSING = frozenset(
    {
        RefusalKind.NO_LEADER,
        RefusalKind.TOO_FEW_REPLICAS,
        RefusalKind.STORAGE,
        RefusalKind.QUOTA,
        RefusalKind.NO_SPACE,
        RefusalKind.SLOT_FAILED,
    }
)
"""Refusals that may end when a broker comes back, while the drain continues. All others need an operator."""

_MOST_TOLD = 3


def lasting(refusals: Sequence[Refusal]) -> list[Refusal]:
    """Return the refusals that the next run meets again, until an operator does what their sentence says."""
    return [one for one in refusals if one.kind not in PASSING]


def undrained(refusals: Sequence[Refusal]) -> str:
    """Say what a drain could not copy.

    It has the sentences of the first `_MOST_TOLD` refusals, and how many more there are.
    """
    sentences = list(dict.fromkeys(f"{one.message} [{one.kind}]" for one in refusals))
    more = f"; and {len(sentences) - _MOST_TOLD} more" if len(sentences) > _MOST_TOLD else ""
    return f"not all can be copied: {'; '.join(sentences[:_MOST_TOLD])}{more}"


def left_sentence(left: TotalLag) -> str:
    """Say how much a drain has not copied, and of how many partitions it is not known how much."""
    parts = [f"{count_of(left.records, 'offset')} of {count_of(left.behind, 'partition')} left"] if left.behind else []
    if left.unknown:
        parts.append(f"the lag of {count_of(left.unknown, 'partition')} is not known")
    return ", and ".join(parts)
