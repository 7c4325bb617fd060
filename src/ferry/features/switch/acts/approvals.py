"""Approvals that are kept in the ledger and used from there."""

from __future__ import annotations

import time
from collections.abc import Callable

from ferry.clock import wall_ms
from ferry.features.switch.acts.journal import LedgerFile, view_after
from ferry.features.switch.rules.approvals import approval_of_run, approval_record, used
from ferry.ledger.ledger import LedgerView
from ferry.model.switch import Approval


def keep_approval(ledger: LedgerFile, approval: Approval, *, sleep: Callable[[float], None] = time.sleep) -> LedgerView:
    """Write an approval or its use, and return the ledger that shows it. Raises Retryable after READ_SECONDS."""
    return view_after(ledger, [approval_record(approval)], sleep)


def use_approval(ledger: LedgerFile, run: str, *, params: str, by: str, within_s: float) -> Approval:
    """Return the approval of a run, marked in the ledger as used before anything is done with it.

    If two use it at the same time, the first in the ledger has it, and the other one is refused.

    Raises Refused if there is no approval, if it is for other parameters or was used by another, or if it has expired.
    """
    found = approval_of_run(ledger.view_if_any(), run)
    while (approval := used(found, params=params, by=by, now_ms=wall_ms(), within_s=within_s)) != found:
        found = approval_of_run(keep_approval(ledger, approval), run)
    return approval
