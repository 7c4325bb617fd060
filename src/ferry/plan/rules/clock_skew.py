"""This machine's clock compared with a broker's: pauses, start times and deleted keys depend on it."""

from __future__ import annotations

from ferry.messages.catalogue import sentence
from ferry.model import Sentence

MAX_SKEW_MS = 300_000
"""Beyond this the guard refuses. Kerberos has the same limit (RFC 4120's customary five minutes)."""


def skew_sentence(skew_ms: int, cluster: str) -> Sentence | None:
    """Return how far the clocks of this machine and of the ledger's broker are apart; None within the limit."""
    if abs(skew_ms) <= MAX_SKEW_MS:
        return None
    way = "ahead of" if skew_ms > 0 else "behind"
    return sentence("clock.skew", seconds=abs(skew_ms) // 1000, way=way, cluster=cluster)
