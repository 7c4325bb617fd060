"""Approvals that are kept in the ledger and used from there."""

from __future__ import annotations

import time
from collections.abc import Callable

from ferry.clock import wall_ms
from ferry.errors import Retryable
from ferry.features.switch.acts.journal import READ_SECONDS, LedgerFile
from ferry.features.switch.rules.approvals import approval_of_run, approval_record, used
from ferry.model.switch import Approval


def keep_approval(ledger: LedgerFile, approval: Approval, *, sleep: Callable[[float], None] = time.sleep) -> None:
    """Write an approval, and wait until it can be read. Raises Retryable after READ_SECONDS."""
    offset = ledger.append([approval_record(approval)])
    until = time.monotonic() + READ_SECONDS
    while ledger.view().end <= offset:
        if time.monotonic() > until:
            raise Retryable(f"the ledger does not show offset {offset}, which it has acknowledged: try again")
        sleep(0.05)


def use_approval(ledger: LedgerFile, run: str, *, params: str, by: str, within_s: float) -> Approval:
    """Return the approval of a run, marked in the ledger as used before anything is done with it.

    Raises Refused if there is no approval, if it is for other parameters or was used by another, or if it has expired.
    """
    found = approval_of_run(ledger.view(), run) if ledger.exists() else None
    approval = used(found, params=params, by=by, now_ms=wall_ms(), within_s=within_s)
    if approval != found:
        keep_approval(ledger, approval)
    return approval
