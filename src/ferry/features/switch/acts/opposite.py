"""Read the opposite switches from the ledger on the cluster that is left, as far as it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ferry.config.flow.flow import FlowConfig
from ferry.errors import Refused, Unreachable
from ferry.features.identical.settings import IdenticalSettings
from ferry.features.switch.acts.connecting import old_patience_s
from ferry.features.switch.acts.sides import Sides
from ferry.features.switch.rules.opposite import opposing, opposing_sentence
from ferry.lane import connections
from ferry.ledger.producer_codec import sent_places
from ferry.ledger.switch_codec import switch_states
from ferry.messages.catalogue import sentence
from ferry.model import TopicPartition
from ferry.model.check import Check
from ferry.model.switch import OPPOSITE, Step, Switch, SwitchState, Verb
from ferry.run.ledger.access import LedgerAccess


@dataclass(frozen=True, slots=True, kw_only=True)
class Opposite:
    """The opposite switches by id; `unread` says why they are not known."""

    states: Mapping[str, SwitchState] = field(default_factory=dict)
    unread: str | None = None
    written: TopicPartition | None = None
    """A target partition to which the lane of the flow back has written identical offsets; the file says `translated`.

    No switch follows it then.
    """

    def check(self, switch: Switch) -> Check:
        """Make the check for opposite switches before a switch begins, and for a flow back that could not return it."""
        if self.written is not None:
            facts = {"place": str(self.written)}
            why = (
                sentence("identical.return.written", flow=str(switch.back), **facts)
                if switch.verb is Verb.FAILBACK
                else sentence("identical.back.written", back=str(switch.back), **facts)
            )
            return Check(name="opposite", ok=False, message=why)
        if self.unread is not None:
            message = f"whether clients are being switched the other way is not known: {self.unread}"
            return Check(name="opposite", ok=True, message=message, known=False)
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
        """The ids for the evidence, under OPPOSITE; None: not known."""
        return None if self.unread is not None else sorted(self.states)


def look_opposite(sides: Sides, *, patience_s: float, needed: bool) -> Opposite:
    """Return the opposite switches. Raises Unreachable or Refused if the cluster is `needed` and cannot be read."""
    if sides.back is None:
        return Opposite(unread=f"the file has no flow {sides.new}->{sides.old}, whose ledger would show it")
    if not needed:
        patience_s = old_patience_s(sides, patience_s)
    return look_along(sides.back, patience_s=patience_s, needed=needed)


def look_along(back: FlowConfig, *, patience_s: float, needed: bool) -> Opposite:
    """Return the switches along `back`. Raises Unreachable or Refused if its target is `needed` and cannot be read."""
    if not needed:  # it may be lost, and the switch must not wait for it
        patience_s = min(patience_s, connections.SOURCE_PATIENCE_S)
    try:
        with LedgerAccess(back, patience_s=patience_s) as ledger:
            view = ledger.view_if_any()
            sent = () if back.of(IdenticalSettings).keeps else sent_places(view, back.lane)
            return Opposite(states=switch_states(view), written=min(sent, default=None))
    except (Unreachable, Refused) as error:
        if needed:
            raise
        return Opposite(unread=str(error))


def refuse_opposed(sides: Sides, state: SwitchState, *, patience_s: float) -> None:
    """Raise Refused if clients are moved, or may be moved, in the other direction.

    Called before clients are sent anywhere. Until the new cluster is promoted, a planned switch needs both clusters: it
    raises Unreachable if one does not answer.
    """
    if state.fact(Step.STOP, "source_answers") is False:
        return  # `readiness` or `stop` has shown that it does not answer; the switch must not wait for it again
    needed = sides.verb is not Verb.FAILOVER and Step.PROMOTE not in state.done
    found = look_opposite(sides, patience_s=patience_s, needed=needed)
    other = opposing(state.switch, found.states, state.fact(Step.READINESS, OPPOSITE))
    if other is not None:
        raise Refused(opposing_sentence(other, state.switch))


def moved_on_along(back: FlowConfig, state: SwitchState, *, patience_s: float) -> SwitchState | None:
    """Return the switch along `back` that was begun since this switch began, if it can be read."""
    found = look_along(back, patience_s=patience_s, needed=False)
    return opposing(state.switch, found.states, state.fact(Step.READINESS, OPPOSITE))
