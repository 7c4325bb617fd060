"""Pause and resume: ledger records that every plan obeys."""

from __future__ import annotations

from ferry.errors import Refused
from ferry.ledger.codec import lifted_record, pause_record
from ferry.ledger.ledger import pauses
from ferry.ledger.switch_codec import paused_by
from ferry.messages.catalogue import sentence
from ferry.model import Pause
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


def standing_pause(ledger: LedgerAccess, topic: str, now_ms: int) -> Pause | None:
    """Return the pause of a topic (empty: of the flow) that is in force now; None when none is."""
    return pauses(ledger.view_if_any(), now_ms).get(topic)


def lift_pause(ledger: LedgerAccess, topic: str, who: str, now_ms: int) -> Pause | None:
    """End the pause of a topic (empty: of the flow) on behalf of `who`; return that pause, None when there was none."""
    found = standing_pause(ledger, topic, now_ms)
    if found is not None:
        ledger.append([lifted_record(found, who, now_ms)])
    return found
