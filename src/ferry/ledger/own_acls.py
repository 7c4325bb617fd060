"""What the ledger keeps of ACLs: those that a lane has made on the target, and when it last synced them."""

from __future__ import annotations

from ferry.ledger.acl_codec import MADE, SYNCED, OwnAcl, keyed_acl
from ferry.ledger.ledger import LedgerView
from ferry.ledger.reading import read_as, reading
from ferry.model import AclBinding


def own_acls(view: LedgerView, lane: str) -> dict[AclBinding, OwnAcl]:
    """Return the ACLs that the lane has made on the target."""
    found = {}
    for key, record in view.of_kind("acl"):
        if key[1] == lane and record.value is not None:
            own = read_as(record, MADE.load).own
            with reading(f"ledger record at offset {record.offset}"):
                found[keyed_acl(key)] = own
    return found


def due_in_ms(view: LedgerView, lane: str, *, interval_s: int, settings: str, now_ms: int) -> int:
    """Return the milliseconds until the lane's ACLs must be synced again; 0 is now. Other settings are due at once."""
    for key, record in view.of_kind("acls"):
        if key[1] == lane and record.value is not None:
            last = read_as(record, SYNCED.load)
            since_ms = now_ms - last.at_ms
            # A clock that was put back must not delay a sync for longer than its interval.
            if last.settings == settings and 0 <= since_ms < interval_s * 1000:
                return interval_s * 1000 - since_ms
    return 0
