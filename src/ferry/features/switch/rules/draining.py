"""The refusals that end a drain, and the sentence about what it cannot copy. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from ferry.messages.refusals import what_of
from ferry.model import Refusal, RefusalKind
from ferry.model.switch import Verb
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


def undrained(refusals: Sequence[Refusal], verb: Verb) -> str:
    """Say what a drain could not copy.

    It has the sentences of the first `_MOST_TOLD` refusals, and how many more there are. In a failback, a record of
    another client came after the step `stranded`. Another failback exports it, so that is the remedy there.
    """
    sentences = list(dict.fromkeys(_undrained(one, verb) for one in refusals))
    more = f"; and {len(sentences) - _MOST_TOLD} more" if len(sentences) > _MOST_TOLD else ""
    return f"not all can be copied: {'; '.join(sentences[:_MOST_TOLD])}{more}"


def _undrained(refusal: Refusal, verb: Verb) -> str:
    if verb is Verb.FAILBACK and refusal.kind is RefusalKind.FOREIGN_WRITER:
        return (
            f"{what_of(refusal)} [{refusal.kind}]: stop that client, abandon the failback, and begin another one, "
            "which exports its records"
        )
    return f"{refusal.message} [{refusal.kind}]"


def left_sentence(left: TotalLag) -> str:
    """Say how much a drain has not copied, and of how many partitions it is not known how much."""
    parts = [f"{count_of(left.records, 'offset')} of {count_of(left.behind, 'partition')} left"] if left.behind else []
    if left.unknown:
        parts.append(f"the lag of {count_of(left.unknown, 'partition')} is not known")
    return ", and ".join(parts)
