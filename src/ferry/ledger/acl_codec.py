"""The ledger's records of ACLs: each one that Ferry made on the target, and when a lane last synced them.

```
["acl", lane, resource type, name, pattern type, principal, host, operation, permission]   an ACL that Ferry made
["acls", lane]                                                                             the last sync that was done
```

One record for each ACL keeps every record small, however many there are, and a run writes what changed alone. It is
written before the ACL is created and taken back after it was deleted: a crash between leaves a record too many, which
the next run meets with what the target has, and never an ACL that nobody remembers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import astuple
from typing import Literal

from ferry.codec.form import F, Form
from ferry.codec.kinds import typed
from ferry.ledger.codec import LEDGER_VERSION, encode
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
"""An ACL as the documented JSON object."""

parse_acl = ACL.load
"""Inverse of `acl_json`."""

ACL_CHANGE = Form(
    AclChange,
    F("kind", kind=typed(Literal["create", "delete"])),
    *ACL.within("binding"),
    F("source", kind=ACL.kind, says="the source's ACL that it was made from"),
    F("again", says="Ferry had made it before, and somebody deleted it"),
    closed=True,
)

acl_change_json = ACL_CHANGE.dump
"""A change to an ACL as the documented JSON object."""

parse_acl_change = ACL_CHANGE.load
"""Inverse of `acl_change_json`."""


def own_acl_record(lane: str, change: AclChange, *, source_cluster_id: str, run: str, at_ms: int) -> Record:
    """Remembers an ACL as one that Ferry made, and from which one of the source."""
    body = {
        "v": LEDGER_VERSION,
        "kind": "acl",
        "source": acl_json(change.source),
        "source_cluster_id": source_cluster_id,
        "run": run,
        "at_ms": at_ms,
    }
    return Record(key=_key(lane, change.binding), value=encode(body))


def forgotten_acl_record(lane: str, binding: AclBinding) -> Record:
    """Takes the memory of an ACL back."""
    return Record(key=_key(lane, binding), value=None)


def synced_record(lane: str, *, run: str, settings: str, at_ms: int) -> Record:
    """A sync that came to its end; `settings` is the digest of the configuration that it followed."""
    body = {"v": LEDGER_VERSION, "kind": "acls", "run": run, "settings": settings, "at_ms": at_ms}
    return Record(key=encode(["acls", lane]), value=encode(body))


def _key(lane: str, binding: AclBinding) -> bytes:
    return encode(["acl", lane, *astuple(binding)])


def keyed_acl(key: Iterable[str]) -> AclBinding:
    """The ACL that a record's key is about."""
    _, _, *parts = key
    return AclBinding(**dict(zip(AclBinding.__slots__, parts, strict=True)))
