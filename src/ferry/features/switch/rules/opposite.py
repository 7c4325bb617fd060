"""Switches the other way: they lie in the ledger of the flow back, on the cluster that is left. Pure.

Two ledgers have no common order, so nobody can say of two opposite switches which one was first. Whoever opens one
writes that down and then looks at the other ledger: of two that are opened at the same time one sees the other at
least, and who sees one gives way.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ferry.features.switch.rules.steps import left_of
from ferry.model.switch import POINT_OF_NO_RETURN, Switch, SwitchOutcome, SwitchState, Verb


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


def moved_sentence(moved: SwitchState, others: Mapping[str, SwitchState]) -> str:
    """Why a switch that would move clients where `moved` has brought them is refused, and the verb that helps.

    `others` are the switches the other way, as far as they are known: the newest one says where clients are.
    """
    switch = moved.switch
    left = [one for one in others.values() if one.end is None]
    if left:
        newest = max(left, key=lambda one: one.switch.at_ms).switch
        return (
            f"{newest.verb} {newest.id} of {newest.named}, which moves clients to {newest.via.target}, is not "
            f"finished, {left_of(others[newest.id])}: finish it first with ferry {newest.verb} '{newest.named}' --id "
            f"{newest.id}"
        )
    ended_ms = moved.end.at_ms if moved.end is not None else 0
    since = [
        one
        for one in others.values()
        if one.end is not None and one.end.outcome is SwitchOutcome.FINISHED and one.end.at_ms > ended_ms
    ]
    if since:
        newest = max(since, key=lambda one: one.end.at_ms if one.end is not None else 0).switch
        return (
            f"{newest.verb} {newest.id} has moved clients to {newest.via.target} since {switch.id} moved them to "
            f"{switch.via.target}, and {switch.via} has not been started again: move them with ferry failback "
            f"'{newest.via}', which starts it"
        )
    return (
        f"{switch.verb} {switch.id} has moved clients to {switch.via.target} already: go back with ferry failback "
        f"'{switch.via}'"
    )


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
