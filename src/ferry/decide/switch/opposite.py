"""Switches the other way: they lie in the ledger of the flow back, on the cluster that is left. Pure.

Two ledgers have no common order, so nobody can say of two opposite switches which one was first. Whoever opens one
writes that down and then looks at the other ledger: of two that are opened at the same time one sees the other at
least, and who sees one gives way.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ferry.decide.switch.steps import POINT_OF_NO_RETURN, left_of
from ferry.model.switch import Switch, SwitchOutcome, SwitchState, Verb


def opposing(switch: Switch, others: Mapping[str, SwitchState], known: Collection[str] | None) -> SwitchState | None:
    """The switch the other way that stands against this one: one that has not ended, or was finished since.

    `known` are those that there were when this one began; None: nobody could tell, and then one that is finished
    stands against nothing. A failover passes one that had promoted the cluster which is lost now: nobody may be able to
    finish that one.
    """
    for state in sorted(others.values(), key=lambda one: one.offset):
        was_there = known is not None and state.switch.id in known
        if state.end is None:
            if not (switch.verb is Verb.FAILOVER and was_there and POINT_OF_NO_RETURN in state.done):
                return state
        elif state.end.outcome is SwitchOutcome.FINISHED and known is not None and not was_there:
            return state
    return None


def opposing_sentence(other: SwitchState, own: Switch | None = None) -> str:
    """Why the other one stands against a switch, and what to do; `own` is the switch when it has begun already."""
    switch = other.switch
    named = f"{switch.verb} {switch.id} of {switch.named}"
    give_up = "" if own is None else f"ferry switch abandon '{own.named}' {own.id}"
    if other.end is not None:
        return f"{named} has moved clients to {switch.via.target} since this one began: give this one up with {give_up}"
    remedy = (
        f"finish it first (ferry {switch.verb} '{switch.named}' --id {switch.id}), or give it up with ferry switch "
        f"abandon '{switch.named}' {switch.id}"
    )
    return f"{named} goes the other way and is not finished, {left_of(other)}: {remedy}" + (
        f"; or give this one up with {give_up}" if give_up else ""
    )
