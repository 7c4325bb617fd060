"""The ledger's records of ACLs: each one that Ferry made on the target, and when a lane last synced them.

```
["acl", lane, resource type, name, pattern type, principal, host, operation, permission]   an ACL that Ferry made
["acls", lane]                                                                             the last sync that was done
```

With one record for each ACL, every record stays small, however many ACLs there are, and a run writes only what changed.
The record is written before the ACL is created, and taken back after the ACL was deleted. So a crash in between can
leave a record without an ACL, but never an ACL without a record. The next run compares such a record with what the
target has.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple, dataclass
from typing import Literal

from ferry.codec.form import F, Form
from ferry.codec.kinds import typed
from ferry.ledger.codec import encode, head
from ferry.model import AclBinding, AclChange, Record

ACL = Form(
    AclBinding,
    F("resource_type", says="topic, group, transactional-id or cluster; in `left_out` also others"),
    F("resource_name", says="`*` with pattern_type literal: all of the type"),
    F("pattern_type", kind=typed(Literal["literal", "prefixed"])),
    F("principal"),
    F("host", says="`*`: every host"),
    F("operation", says="As kafka-acls spells it."),
    F("permission", kind=typed(Literal["allow", "deny"])),
    closed=True,
)

acl_json = ACL.dump
"""Return an ACL as the documented JSON object."""

ACL_CHANGE = Form(
    AclChange,
    F("kind", kind=typed(Literal["create", "delete"])),
    *ACL.within("binding"),
    F("source", kind=ACL.kind, says="the source's ACL that it was made from"),
    F("again", says="Ferry had created it before, and it was deleted since"),
    closed=True,
)

acl_change_json = ACL_CHANGE.dump
"""Return a change to an ACL as the documented JSON object."""

parse_acl_change = ACL_CHANGE.load
"""Return the change of a JSON object that `acl_change_json` made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnAcl:
    """What the ledger keeps of an ACL that Ferry made on the target: the ACL and the cluster that it was made from."""

    source: AclBinding
    source_cluster_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """An ACL that Ferry made on the target, which run made it, and when (milliseconds since 1970)."""

    own: OwnAcl
    run: str
    at_ms: int


@dataclass(frozen=True, slots=True)
class Synced:
    """A complete sync of ACLs: by which run, the digest of the configuration that it followed, and when."""

    run: str
    settings: str
    at_ms: int


MADE = Form(
    Made,
    *head("acl"),
    F("source", "own.source", ACL.kind),
    F("source_cluster_id", "own.source_cluster_id"),
    F("run"),
    F("at_ms"),
)
SYNCED = Form(Synced, *head("acls"), F("run"), F("settings"), F("at_ms"))


def own_acl_record(lane: str, change: AclChange, *, source_cluster_id: str, run: str, at_ms: int) -> Record:
    """Make the record of an ACL that Ferry made, with the source's ACL that it was made from."""
    found = Made(own=OwnAcl(source=change.source, source_cluster_id=source_cluster_id), run=run, at_ms=at_ms)
    return Record(key=_key(lane, change.binding), value=encode(MADE.dump(found)))


def forgotten_acl_record(lane: str, binding: AclBinding) -> Record:
    """Make the tombstone for the record of an ACL."""
    return Record(key=_key(lane, binding), value=None)


def synced_record(lane: str, *, run: str, settings: str, at_ms: int) -> Record:
    """Make the record of a complete sync; `settings` is the digest of the configuration that it followed."""
    return Record(key=encode(["acls", lane]), value=encode(SYNCED.dump(Synced(run, settings, at_ms))))


def _key(lane: str, binding: AclBinding) -> bytes:
    return encode(["acl", lane, *astuple(binding)])


def keyed_acl(key: Iterable[str]) -> AclBinding:
    """Return the ACL in the key of a record. Raises ValueError for a key with more parts."""
    _, _, *parts = key
    return AclBinding(**dict(zip(AclBinding.__slots__, parts, strict=True)))
