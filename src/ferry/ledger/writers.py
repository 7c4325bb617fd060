"""Who except Ferry may write to a ledger, by its cluster's ACLs: such a writer has as much power as Ferry itself."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from ferry.messages.catalogue import caused, sentence
from ferry.model import EVERYBODY, WILDCARD, AclBinding
from ferry.words import several

_WRITES = frozenset({"Write", "All"})


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerWriters:
    """What is known of who may write to `topic`.

    `acls` is None when they could not be read; then `why` has the reason.
    """

    topic: str
    own: str | None
    """The principal that the brokers know Ferry as, where the file shows it."""
    acls: Collection[AclBinding] | None
    why: str = ""
    is_open: bool = False
    """Whether the cluster has no authorizer, so that every client may write."""


def writers_sentence(writers: LedgerWriters) -> str:
    """Return who else may write to the ledger, for people. Super users of the brokers are in no ACL."""
    topic = writers.topic
    if writers.is_open:
        return caused("ledger.writers.all", writers.why, topic=topic)
    if writers.acls is None:
        return caused("ledger.writers.not-known", writers.why, topic=topic)
    found = others(writers.acls, topic, writers.own)
    if not found:
        return f"no ACL lets another principal than {writers.own or 'Ferry'} write to {topic}"
    whose = "" if writers.own else "; the file does not show which of them is Ferry's own"
    return sentence("ledger.writers", who=several(found), topic=topic, whose=whose)


def others(acls: Iterable[AclBinding], topic: str, own: str | None) -> list[str]:
    """Return the principals, except Ferry's own, that an ACL lets write to the topic.

    Each has the ACL's name where that is wide. A principal that another ACL forbids it from every host may not.
    """
    about = [one for one in acls if one.operation in _WRITES and one.is_about_topic(topic)]
    forbidden = {one.principal for one in about if not one.allows and one.host == WILDCARD}
    if EVERYBODY in forbidden:
        return []
    allowed = {(one.principal, _by(one, topic)) for one in about if one.allows}
    return sorted(f"{who}{by}" for who, by in allowed if who != own and who not in forbidden)


def _by(acl: AclBinding, topic: str) -> str:
    if acl.prefixed:
        return f" (by the prefix {acl.resource_name})"
    return "" if acl.resource_name == topic else " (by *)"
