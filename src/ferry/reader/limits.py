"""How much is read and kept, for the page's texts; pure."""

from __future__ import annotations

from ferry.protocol.driver import KEPT_RUNS

__all__ = ["KEPT_RUNS", "MOST_REFUSALS", "RUNS", "SEARCHED"]

SEARCHED = 1_000_000
"""Ledger records that are searched for receipts of a run whose record was pruned: some ten seconds."""
RUNS = 20
"""Micro-runs of a lane on one page: each is read from the ledger when it is shown."""
MOST_REFUSALS = 200
"""Refusals of one run that are kept with their number; the run's own page has all."""
