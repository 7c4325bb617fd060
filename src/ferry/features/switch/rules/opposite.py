"""Switches in the other direction: they are in the ledger of the flow back, on the cluster that is left. Pure.

Two ledgers have no common order, so it is not known which of two opposite switches was first. A switch is written to
its own ledger before it reads the other one. If two are opened at the same time, at least one of them sees the other
and gives way.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ferry.features.switch.rules.steps import clients_by, left_of, named_facts, newest_finished, unfinished
from ferry.messages.catalogue import sentence
from ferry.model import Sentence
from ferry.model.switch import POINT_OF_NO_RETURN, Switch, SwitchOutcome, SwitchState, Verb


def opposing(switch: Switch, others: Mapping[str, SwitchState], known: Collection[str] | None) -> SwitchState | None:
    """Return the opposite switch that blocks this one: it has not ended, or it was finished since this one began.

    `known` are the opposite switches that there were when this one began. If it is None, they could not be read, and a
    finished switch does not block. A failover ignores one that had promoted the cluster that is lost now: it may not be
    possible to finish that one.
    """
    for state in sorted(others.values(), key=lambda one: one.offset):
        was_there = known is not None and state.switch.id in known
        if state.end is None:
            if not (switch.verb is Verb.FAILOVER and was_there and POINT_OF_NO_RETURN in state.done):
                return state
        elif state.end.outcome is SwitchOutcome.FINISHED and known is not None and not was_there:
            return state
    return None


def moved_along(states: Mapping[str, SwitchState], others: Mapping[str, SwitchState]) -> SwitchState | None:
    """Return the finished switch along a flow that moved clients to where they are.

    It is None if there is none, or if one of the opposite switches, `others`, has moved them since.
    """
    last, other = newest_finished(states), newest_finished(others)
    if last is None or other is None:
        return last
    return last if clients_by([last, other]) is last else None


def moved_sentence(moved: SwitchState, others: Mapping[str, SwitchState], *, returns: bool = True) -> str:
    """Say why a switch is refused that would move clients where `moved` has brought them, and which command helps.

    `others` are the opposite switches, as far as they are known: the newest one shows where clients are. `returns`: a
    failback can bring the clients back.
    """
    switch = moved.switch
    left = unfinished(others)
    if left is not None:
        first = left.switch
        return (
            f"{first.verb} {first.id} of {first.named}, which moves clients to {first.via.target}, is not "
            f"finished, {left_of(left)}: finish it first with ferry {first.verb} '{first.named}' --id "
            f"{first.id}"
        )
    last = newest_finished(others)
    if last is not None and clients_by([moved, last]) is last:
        newest = last.switch
        remedy = f": move them with ferry failback '{newest.via}', which starts it" if returns else ""
        return (
            f"{newest.verb} {newest.id} has moved clients to {newest.via.target} since {switch.id} moved them to "
            f"{switch.via.target}, and {switch.via} has not been started again{remedy}"
        )
    said = f"{switch.verb} {switch.id} has moved clients to {switch.via.target} already"
    return f"{said}: go back with ferry failback '{switch.via}'" if returns else said


def opposing_sentence(other: SwitchState, own: Switch | None = None) -> Sentence:
    """Say why the `other` switch blocks one, and what to do; `own` is the blocked switch if it has begun already."""
    switch = other.switch
    facts = named_facts(switch)
    give_up = "" if own is None else f"ferry switches abandon '{own.named}' {own.id}"
    if other.end is not None:
        return sentence("switch.opposite.moved", cluster=switch.via.target, remedy=give_up, **facts)
    remedy = (
        f"finish it first (ferry {switch.verb} '{switch.named}' --id {switch.id}), or abandon it with ferry "
        f"switches abandon '{switch.named}' {switch.id}"
    )
    remedy += f"; or give this one up with {give_up}" if give_up else ""
    return sentence("switch.opposite", left=left_of(other), remedy=remedy, **facts)
