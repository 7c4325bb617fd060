"""This machine's clock beside a broker's: pauses, start times and deleted keys are judged by it."""

from __future__ import annotations

from ferry.messages.catalogue import sentence
from ferry.model import Sentence

MAX_SKEW_MS = 300_000
"""Beyond this the guard trips; Kerberos draws the line there, too (RFC 4120's customary five minutes)."""


def skew_sentence(skew_ms: int, cluster: str) -> Sentence | None:
    """What is wrong with the clock of this machine, or of the ledger's broker; None when it is near enough."""
    if abs(skew_ms) <= MAX_SKEW_MS:
        return None
    way = "ahead of" if skew_ms > 0 else "behind"
    return sentence("clock.skew", seconds=abs(skew_ms) // 1000, way=way, cluster=cluster)
