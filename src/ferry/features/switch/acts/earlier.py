"""The switch before: which one has moved clients to where they are."""

from __future__ import annotations

from collections.abc import Mapping

from ferry.clock import wall_ms
from ferry.errors import Refused
from ferry.features.switch.acts.sides import Sides
from ferry.features.switch.acts.stop import pause_reason
from ferry.features.switch.rules.steps import left_of, newest_finished, unfinished
from ferry.ledger.ledger import UNREAD, LedgerView, pauses
from ferry.ledger.switch_codec import switch_states
from ferry.model.switch import SwitchState
from ferry.run.ledger.access import LedgerAccess


def moved_already(view: LedgerView) -> SwitchState | None:
    """The finished switch by which clients are on the ledger's cluster; None when they are not, or are back."""
    last = newest_finished(switch_states(view))
    held = pauses(view, wall_ms()).get("")
    return last if last is not None and held is not None and held.why == pause_reason(last) else None


def refuse_unfinished(states: Mapping[str, SwitchState]) -> None:
    """Raise Refused while a switch has not ended: nobody knows yet where clients are."""
    state = unfinished(states)
    if state is not None:
        switch = state.switch
        raise Refused(
            f"{switch.verb} {switch.id} of {switch.named} is not finished, {left_of(state)}: finish it first with "
            f"ferry {switch.verb} '{switch.named}' --id {switch.id}"
        )


def earlier_switch(sides: Sides, patience_s: float) -> SwitchState:
    """The switch that a failback goes back from; Refused when there is none, or it is not finished."""
    # Of a failback the flow back is the one that was named; `sides_of` has refused what lacks one.
    forward = sides.back or sides.via
    with LedgerAccess(forward, patience_s=patience_s) as ledger:
        view = ledger.view() if ledger.exists() else UNREAD
    found = moved_already(view)
    if found is None:
        refuse_unfinished(switch_states(view))
        flow = forward.flow
        raise Refused(
            f"clients were not switched along {flow}, or are back already: there is nothing to come back from; ferry "
            f"switchover '{flow.target}->{flow.source}' moves them whoever moved them before"
        )
    return found
