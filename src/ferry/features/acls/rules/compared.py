"""Whether the target's ACLs are as the source's ask for, as a row of evidence. Pure."""

from __future__ import annotations

from ferry.features.acls.rules.acls import AclDiff
from ferry.messages.catalogue import caused
from ferry.model.check import Check
from ferry.words import agreeing, count_of, several

NAME = "acls"


def compared(diff: AclDiff | None, no_authorizer: str = "") -> Check:
    """Return the row. `diff` is None if the flow syncs no ACLs, or for the reason in `no_authorizer`."""
    if no_authorizer:
        return Check(name=NAME, ok=True, message=caused("acls.none-to-compare", no_authorizer))
    if diff is None:
        detail = "not synced by this flow (sync.topic.acls.enabled): see to them by hand"
        return Check(name=NAME, ok=True, message=detail)
    due = len(diff.changes)
    if due:
        detail = (
            f"{agreeing(due, 'ACL of the target differs', 'ACLs of the target differ')}: see ferry acls diff, and let "
            "a run sync them"
        )
        return Check(name=NAME, ok=False, message=detail)
    aside = []
    if diff.kept:
        aside.append(f"not deleted: {count_of(len(diff.kept), 'ACL')} of the target that Ferry made")
    if diff.foreign:
        aside.append(f"Ferry's by the ledger alone, so left: {count_of(len(diff.foreign), 'ACL')} of the target")
    if diff.bereft:
        aside.append(f"gone at the source all at once, and still on the target: {count_of(len(diff.bereft), 'ACL')}")
    if diff.left_out:
        aside.append(f"not taken over: {count_of(len(diff.left_out), 'ACL')} of the source")
    if diff.unmapped:
        named = several(sorted(set(diff.unmapped)))
        aside.append(f"without a mapping: {count_of(len(diff.unmapped), 'principal')} ({named})")
    if not aside:
        return Check(name=NAME, ok=True, message="ACLs are as at the source")
    lead = [] if diff.bereft else ["the ACLs that are synced are as at the source"]
    detail = "; ".join([*lead, *aside])
    return Check(name=NAME, ok=True, message=f"{detail}; see ferry acls diff", warns=bool(diff.bereft))


def not_permitted(why: str) -> Check:
    """Return the row if the login may not read the ACLs: without them, clients may be denied at the target."""
    return Check(name=NAME, ok=False, message=caused("acls.not-compared", why))
