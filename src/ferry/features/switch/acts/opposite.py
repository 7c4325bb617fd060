"""Look for switches the other way, in the ledger on the cluster that is left, as far as it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ferry.config.flow.flow import FlowConfig
from ferry.errors import Refused, Unreachable
from ferry.features.switch.acts.sides import Sides
from ferry.features.switch.rules.opposite import opposing, opposing_sentence
from ferry.features.switch.rules.readiness import Check
from ferry.lane import connections
from ferry.ledger.ledger import UNREAD
from ferry.ledger.switch_codec import switch_states
from ferry.model.switch import Step, Switch, SwitchState, Verb
from ferry.run.ledger.access import LedgerAccess

FACT = "opposite"
"""Of the step `readiness`: the ids of the switches the other way that there were; None: nobody could tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Opposite:
    """The switches the other way by id; `unread` says why they are not known."""

    states: Mapping[str, SwitchState] = field(default_factory=dict)
    unread: str | None = None

    def check(self, switch: Switch) -> Check:
        """As a line of what is looked at before a switch begins."""
        if self.unread is not None:
            message = f"whether clients are being switched the other way is not known: {self.unread}"
            return Check(name="opposite", ok=True, message=message)
        other = opposing(switch, self.states, self.states)
        if other is not None:
            return Check(name="opposite", ok=False, message=opposing_sentence(other))
        passed = [one.switch.id for one in self.states.values() if one.end is None]
        if passed:
            message = f"{', '.join(passed)} had promoted {switch.via.source} and is not finished: give it up later"
            return Check(name="opposite", ok=True, message=message)
        return Check(name="opposite", ok=True, message="no switch goes the other way")

    @property
    def known(self) -> list[str] | None:
        """As the fact of the evidence."""
        return None if self.unread is not None else sorted(self.states)


def look_opposite(sides: Sides, *, patience_s: float, needed: bool) -> Opposite:
    """The switches the other way. Raises Unreachable where the cluster is `needed` and does not answer."""
    if sides.back is None:
        return Opposite(unread=f"the file has no flow {sides.new}->{sides.old}, whose ledger would tell")
    return look_along(sides.back, patience_s=patience_s, needed=needed)


def look_along(back: FlowConfig, *, patience_s: float, needed: bool) -> Opposite:
    """The switches along `back`; raises as `look_opposite`."""
    if not needed:  # it may well be gone, and nobody shall wait for it
        patience_s = min(patience_s, connections.SOURCE_PATIENCE_S)
    try:
        with LedgerAccess(back, patience_s=patience_s) as ledger:
            return Opposite(states=switch_states(ledger.view() if ledger.exists() else UNREAD))
    except (Unreachable, Refused) as error:
        if needed:
            raise
        return Opposite(unread=str(error))


def refuse_opposed(sides: Sides, state: SwitchState, *, patience_s: float) -> None:
    """Raise Refused where clients are, or may be, on their way in the other direction; before they are sent anywhere.

    Raises Unreachable where both clusters are needed until the new one is promoted, and one does not answer.
    """
    if state.fact(Step.STOP, "source_answers") is False:
        return  # `readiness` or `stop` has said that it cannot be seen, and nobody shall wait for it again
    needed = sides.verb is not Verb.FAILOVER and Step.PROMOTE not in state.done
    found = look_opposite(sides, patience_s=patience_s, needed=needed)
    other = opposing(state.switch, found.states, state.fact(Step.READINESS, FACT))
    if other is not None:
        raise Refused(opposing_sentence(other, state.switch))


def moved_on_along(back: FlowConfig, state: SwitchState, *, patience_s: float) -> SwitchState | None:
    """The switch along `back` that has come between since the switch began, if it can be seen."""
    found = look_along(back, patience_s=patience_s, needed=False)
    return opposing(state.switch, found.states, state.fact(Step.READINESS, FACT))
