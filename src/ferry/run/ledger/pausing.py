"""Pause and resume: ledger records that every plan obeys."""

from __future__ import annotations

from dataclasses import dataclass

from ferry.errors import Refused
from ferry.ledger.codec import lifted_record, pause_record
from ferry.ledger.ledger import pauses
from ferry.ledger.switch_codec import paused_by
from ferry.messages.catalogue import sentence
from ferry.model import Pause, Sentence
from ferry.model.switch import Switch
from ferry.run.ledger.access import LedgerAccess


def write_pause(ledger: LedgerAccess, pause: Pause, *, dry_run: bool = False) -> None:
    """Pause a topic or the whole flow from the next plan on, in place of an earlier pause; an active run continues.

    Raises Refused, also for a dry run, if a switch has paused the flow. Its pause has no end, and shows where clients
    are.
    """
    switch = None if pause.topic else paused_by(ledger.view_if_any(), pause.since_ms)
    if switch is not None:
        of = switch.switch
        raise Refused(sentence("pause.of-switch", flow=str(of.via), verb=str(of.verb), switch=of.id))
    if not dry_run:
        ledger.append([pause_record(pause)])


@dataclass(frozen=True, slots=True, kw_only=True)
class InForce:
    """A pause that is in force, and the switch that made it; None: an operator did."""

    pause: Pause
    switch: Switch | None

    @property
    def warning(self) -> Sentence | None:
        """What to know before the pause of a switch ends; None for an operator's pause."""
        of = self.switch
        if of is None:
            return None
        return sentence("resume.of-switch", flow=str(of.via), verb=str(of.verb), switch=of.id, old=of.via.source)


def pause_in_force(ledger: LedgerAccess, topic: str, now_ms: int) -> InForce | None:
    """Return the pause of a topic (empty: of the flow) that is in force now; None when none is."""
    view = ledger.view_if_any()
    found = pauses(view, now_ms).get(topic)
    if found is None:
        return None
    of = None if topic else paused_by(view, now_ms)
    return InForce(pause=found, switch=of.switch if of is not None else None)


def lift_pause(ledger: LedgerAccess, topic: str, who: str, now_ms: int) -> InForce | None:
    """End the pause of a topic (empty: of the flow) on behalf of `who`; return that pause, None when there was none."""
    found = pause_in_force(ledger, topic, now_ms)
    if found is not None:
        ledger.append([lifted_record(found.pause, who, now_ms)])
    return found
