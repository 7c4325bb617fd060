"""The earlier switch that moved clients to the cluster on which they are."""

from __future__ import annotations

from collections.abc import Mapping

from ferry.clock import wall_ms
from ferry.errors import Refused
from ferry.features.switch.acts.sides import Sides
from ferry.features.switch.acts.stop import pause_reason
from ferry.features.switch.rules.steps import left_of, named_facts, newest_finished, unfinished
from ferry.ledger.ledger import UNREAD, LedgerView, pauses
from ferry.ledger.switch_codec import switch_states
from ferry.messages.catalogue import sentence
from ferry.model.switch import SwitchState
from ferry.run.ledger.access import LedgerAccess


def moved_already(view: LedgerView) -> SwitchState | None:
    """Return the finished switch that moved clients to the ledger's cluster.

    It is None if they are not there, or not any more.
    """
    last = newest_finished(switch_states(view))
    held = pauses(view, wall_ms()).get("")
    return last if last is not None and held is not None and held.why == pause_reason(last) else None


def refuse_unfinished(states: Mapping[str, SwitchState]) -> None:
    """Raise Refused while a switch has not ended, because it is not known yet where clients are."""
    state = unfinished(states)
    if state is not None:
        raise Refused(sentence("switch.unfinished.before", left=left_of(state), **named_facts(state.switch)))


def earlier_switch(sides: Sides, patience_s: float) -> SwitchState:
    """Return the switch that a failback reverses. Raises Refused if there is none, or if it is not finished."""
    # In a failback, `back` is the flow that the operator named; `sides_of` has refused a file without it.
    forward = sides.back or sides.via
    with LedgerAccess(forward, patience_s=patience_s) as ledger:
        view = ledger.view() if ledger.exists() else UNREAD
    found = moved_already(view)
    if found is None:
        refuse_unfinished(switch_states(view))
        flow = forward.flow
        other = f"{flow.target}->{flow.source}"
        raise Refused(sentence("switch.nothing-to-return", flow=str(flow), other=other))
    return found
