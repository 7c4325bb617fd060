"""What the ledger keeps of ACLs: those that a lane has made on the target, and when it last synced them."""

from __future__ import annotations

from dataclasses import dataclass

from ferry.ledger.acl_codec import keyed_acl, parse_acl
from ferry.ledger.codec import Json
from ferry.ledger.ledger import LedgerView
from ferry.ledger.reading import read_as, reading, whole
from ferry.model import AclBinding


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnAcl:
    """What the ledger keeps of an ACL that Ferry made on the target: the ACL and the cluster that it was made from."""

    source: AclBinding
    source_cluster_id: str


def own_acls(view: LedgerView, lane: str) -> dict[AclBinding, OwnAcl]:
    """Return the ACLs that the lane has made on the target."""
    found = {}
    for key, record in view.of_kind("acl"):
        if key[1] == lane and record.value is not None:
            own = read_as(record, _parse_own)
            with reading(f"ledger record at offset {record.offset}"):
                found[keyed_acl(key)] = own
    return found


def _parse_own(body: Json) -> OwnAcl:
    return OwnAcl(source=parse_acl(body["source"]), source_cluster_id=body["source_cluster_id"])


def due_in_ms(view: LedgerView, lane: str, *, interval_s: int, settings: str, now_ms: int) -> int:
    """Return the milliseconds until the lane's ACLs must be synced again; 0 is now. Other settings are due at once."""
    for key, record in view.of_kind("acls"):
        if key[1] == lane and record.value is not None:
            at_ms, followed = read_as(record, lambda body: (whole(body["at_ms"]), body["settings"]))
            since_ms = now_ms - at_ms
            # A clock that was put back must not delay a sync for longer than its interval.
            if followed == settings and 0 <= since_ms < interval_s * 1000:
                return interval_s * 1000 - since_ms
    return 0
