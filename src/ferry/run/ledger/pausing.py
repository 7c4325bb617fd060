"""Pause and resume: ledger records that every plan obeys."""

from __future__ import annotations

from ferry.ledger.codec import lifted_record, pause_record
from ferry.ledger.ledger import pauses
from ferry.model import Pause
from ferry.run.ledger.access import LedgerAccess


def write_pause(ledger: LedgerAccess, pause: Pause) -> None:
    """Pause a topic or the whole flow from the next plan on, in place of an earlier pause; a run under way goes on."""
    ledger.append([pause_record(pause)])


def standing_pause(ledger: LedgerAccess, topic: str, now_ms: int) -> Pause | None:
    """The pause of a topic (empty: of the flow) that holds now; None when none does."""
    return pauses(ledger.view(), now_ms).get(topic) if ledger.exists() else None


def lift_pause(ledger: LedgerAccess, topic: str, who: str, now_ms: int) -> Pause | None:
    """Take back the pause of a topic (empty: of the flow) for somebody; the pause that held, None when none did."""
    found = standing_pause(ledger, topic, now_ms)
    if found is not None:
        ledger.append([lifted_record(found, who, now_ms)])
    return found
