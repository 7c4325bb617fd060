"""What a switch that drains its flow says of what cannot be copied. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from ferry.model import Refusal, RefusalKind

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
"""What a broker that comes back may mend while a drain goes on; anything else waits for somebody."""

_MOST_TOLD = 3


def lasting(refusals: Sequence[Refusal]) -> list[Refusal]:
    """What copying found that the next run meets again, until somebody does what its sentence says."""
    return [one for one in refusals if one.kind not in PASSING]


def undrained(refusals: Sequence[Refusal]) -> str:
    """What a drain could not copy, as a sentence with each topic's own, a few of them whole."""
    told = list(dict.fromkeys(f"{one.message} [{one.kind}]" for one in refusals))
    more = f"; and {len(told) - _MOST_TOLD} more" if len(told) > _MOST_TOLD else ""
    return f"not all can be copied: {'; '.join(told[:_MOST_TOLD])}{more}"
