"""A switch drains its flow: which runs stand back meanwhile, and what it says of what cannot be copied. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from ferry.features.switch.rules.codec import open_switches
from ferry.features.switch.rules.steps import next_step
from ferry.ledger.ledger import LedgerView
from ferry.model import Refusal, RefusalKind, RunRecord, lane_kind
from ferry.model.switch import Step, SwitchState
from ferry.words import to_the_second

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


def drain_run(switch: str, token: str) -> str:
    """The id of a micro-run by which a switch drains a flow."""
    return f"{_prefix(switch)}{token}"


def is_drain_run(switch: str, run: str) -> bool:
    """Whether a micro-run is one by which that switch drains a flow."""
    return run.startswith(_prefix(switch))


def standing_back(view: LedgerView, record: RunRecord, now_ms: int) -> str | None:
    """Why a run is not to be opened now, in one sentence; None when it may.

    Lanes beside the flow's own do not meet the drain. One that was killed holds nobody back longer than it may take.
    """
    if lane_kind(record.lane) is not None:
        return None
    for state in open_switches(view).values():
        switch, until_ms = state.switch, _drains_until_ms(state)
        if switch.via == record.flow and now_ms < until_ms and not is_drain_run(switch.id, record.run):
            return (
                f"run {record.run} stands back: {switch.verb} {switch.id} copies what is left of {record.flow} itself, "
                f"until {to_the_second(until_ms)} at most; let it end, or give it up with ferry switch abandon "
                f"'{switch.named}' {switch.id}"
            )
    return None


def _drains_until_ms(state: SwitchState) -> int:
    """Up to when a switch's drain may go on; 0 where it is not under way."""
    begun = state.begun.get(Step.DRAIN)
    if begun is None or next_step(state) is not Step.DRAIN:
        return 0
    return begun.begun_ms + round(1_000 * state.switch.options.drain_timeout_seconds)


def _prefix(switch: str) -> str:
    return f"{switch}-drain-"
