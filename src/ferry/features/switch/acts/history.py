"""The switches along a flow and back. They are in two ledgers on two clusters, and one of them may be lost."""

from __future__ import annotations

from collections.abc import Callable
from heapq import merge

from ferry.clock import wall_ms
from ferry.config.flow.flow import FlowConfig
from ferry.config.settings import Settings
from ferry.errors import BadInput, Refused, Unreachable
from ferry.features.switch.acts.journal import Journal, LedgerFile
from ferry.features.switch.acts.opposite import moved_on_along
from ferry.features.switch.acts.stop import paused_before
from ferry.features.switch.rules.steps import refuse_abandoning
from ferry.ledger.codec import pause_record, resume_record
from ferry.ledger.ledger import overwritten, pauses
from ferry.ledger.switch_codec import pause_reason, switch_states
from ferry.model import Flow
from ferry.model.switch import POINT_OF_NO_RETURN, SwitchOutcome, SwitchState
from ferry.run.ledger.access import LedgerAccess


def all_switches(
    settings: Settings, flow: FlowConfig, *, patience_s: float
) -> tuple[list[SwitchState], tuple[str, ...]]:
    """Return the switches of both directions, oldest first, and why a ledger was not read.

    Those of one direction are in their ledger's order. Only between the two do times decide.

    Raises Unreachable or Refused if no ledger can be read.
    """
    found: list[list[SwitchState]] = []
    unread: list[str] = []
    both = _both(settings, flow)
    for one in both:
        try:
            with LedgerAccess(one, patience_s=patience_s) as ledger:
                states = switch_states(ledger.view_if_any()).values()
                found.append(sorted(states, key=lambda state: state.offset))
        except (Unreachable, Refused) as error:
            unread.append(str(error))
            if len(unread) == len(both):
                raise
    return list(merge(*found, key=lambda state: state.switch.at_ms)), tuple(unread)


def one_switch(settings: Settings, flow: FlowConfig, switch: str, *, patience_s: float) -> SwitchState:
    """Return one switch by its id. Raises BadInput with the known ids if there is none."""
    found, unread = all_switches(settings, flow, patience_s=patience_s)
    for state in found:
        if state.switch.id == switch:
            return state
    known = ", ".join(state.switch.id for state in found) or "none"
    more = f" (not all ledgers could be read: {unread[0]})" if unread else ""
    raise BadInput(f"there is no switch {switch} of {flow.flow}: name one of those there are ({known}){more}")


def abandon_switch(
    settings: Settings, flow: FlowConfig, switch: str, why: str, who: str, *, patience_s: float
) -> SwitchState:
    """Abandon a switch, and restore the pause from before it. Raises Refused once it has promoted the new cluster."""
    via = one_switch(settings, flow, switch, patience_s=patience_s).switch.via
    chosen = next(one for one in _both(settings, flow) if one.flow == via)
    with LedgerAccess(chosen, patience_s=patience_s) as access:
        return abandon(access, Journal(access, who), switch, why, lambda state: _moved_on(settings, state, patience_s))


def check_abandoning(settings: Settings, flow: FlowConfig, switch: str, *, patience_s: float) -> SwitchState:
    """Return the state of a switch that may be abandoned. Raises Refused if it may not. Writes nothing."""
    state = one_switch(settings, flow, switch, patience_s=patience_s)
    if state.end is None and POINT_OF_NO_RETURN in state.done:
        refuse_abandoning(state, _moved_on(settings, state, patience_s))
    else:
        refuse_abandoning(state)
    return state


def _moved_on(settings: Settings, state: SwitchState, patience_s: float) -> SwitchState | None:
    """Return the opposite switch that was begun since, as far as it can be read."""
    back = next((one for one in settings.flows if one.flow == state.switch.back), None)
    return None if back is None else moved_on_along(back, state, patience_s=patience_s)


def abandon(
    access: LedgerFile,
    journal: Journal,
    switch: str,
    why: str,
    moved_on: Callable[[SwitchState], SwitchState | None] = lambda _: None,
) -> SwitchState:
    """Abandon a switch over an open connection, and restore the pause from before it.

    The pause is changed last, so that the flow stays paused if another process has promoted meanwhile. If this process
    is killed before that, the same call restores the pause. `moved_on` finds the opposite switch that was begun since.
    If a switch has promoted and is abandoned because of that one, the flow's pause stays unchanged. The other switch,
    or its way back, changes it. Raises BadInput without a reason, Refused for a switch that may not be abandoned.
    """
    if not why.strip():
        raise BadInput("--reason is empty: give the reason for abandoning the switch")
    state = journal.state(switch)
    if state.end is None and POINT_OF_NO_RETURN in state.done:
        other = moved_on(state)
        refuse_abandoning(state, other)
        return journal.abandon(switch, why.strip(), other)
    now_ms = wall_ms()
    view = access.view()
    held, before = pauses(view, now_ms).get(""), paused_before(state)
    own = held if held is not None and held.why == pause_reason(state) else None
    if own is None or not _is_abandoned(state):
        refuse_abandoning(state)
        state = journal.abandon(switch, why.strip())
    if own is not None:
        stands = before is not None and before.holds_at(now_ms)
        now = pause_record(before) if before is not None and stands else resume_record("")
        at = access.append([now])
        if others := overwritten(access.written(view.end, at), [now]):
            access.append(others)  # a pause that an operator has set meanwhile is not undone
    return state


def _is_abandoned(state: SwitchState) -> bool:
    """Return whether a switch was abandoned before it promoted: its pause may be left, if the process was killed."""
    end = state.end
    return end is not None and end.outcome is SwitchOutcome.ABANDONED and POINT_OF_NO_RETURN not in state.done


def _both(settings: Settings, flow: FlowConfig) -> list[FlowConfig]:
    back = Flow(source=flow.flow.target, target=flow.flow.source)
    return [flow, *(one for one in settings.flows if one.flow == back)]
