"""The earlier switch that moved clients to the cluster on which they are."""

from __future__ import annotations

from collections.abc import Mapping

from ferry.errors import Refused
from ferry.features.switch.acts.opposite import look_along
from ferry.features.switch.acts.sides import Sides
from ferry.features.switch.rules.opposite import moved_along
from ferry.features.switch.rules.steps import left_of, named_facts, unfinished
from ferry.messages.catalogue import sentence
from ferry.model.switch import SwitchState


def refuse_unfinished(states: Mapping[str, SwitchState]) -> None:
    """Raise Refused while a switch has not ended, because it is not known yet where clients are."""
    state = unfinished(states)
    if state is not None:
        raise Refused(sentence("switch.unfinished.before", left=left_of(state), **named_facts(state.switch)))


def earlier_switch(sides: Sides, patience_s: float) -> SwitchState:
    """Return the switch that a failback reverses. Raises Refused if there is none, or if it is not finished.

    The switches of both directions decide, and not the flow's pause, which an operator may have ended. Raises
    Unreachable if one of the clusters does not answer.
    """
    # In a failback, `back` is the flow that the operator named; `sides_of` has refused a file without it.
    forward = sides.back or sides.via
    states = look_along(forward, patience_s=patience_s, needed=True).states
    found = moved_along(states, look_along(sides.via, patience_s=patience_s, needed=True).states)
    if found is None:
        refuse_unfinished(states)
        flow = forward.flow
        other = f"{flow.target}->{flow.source}"
        raise Refused(sentence("switch.nothing-to-return", flow=str(flow), other=other))
    return found
