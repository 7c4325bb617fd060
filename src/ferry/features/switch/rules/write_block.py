"""The ACLs that deny producers to write on the new cluster: those that a switch deletes, and those that stay. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from ferry.model import AclBinding
from ferry.model.check import Check
from ferry.words import agreeing, several

_DENIES = frozenset({"Write", "All"})


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteBlock:
    """ACLs that deny WRITE on topics that producers will write to.

    `own` deny WRITE alone, on one of these topics by its name: a switch deletes them with --remove-write-block. `wider`
    deny more, or on more topics: Ferry deletes none of them.
    """

    own: tuple[AclBinding, ...] = ()
    wider: tuple[AclBinding, ...] = ()

    def check(self, cluster: str) -> Check:
        """Make the check before a switch that deletes ACLs. It warns of those that stay, and fails for none."""
        found = f"no ACL denies WRITE alone on one topic that producers will write to on {cluster}"
        if self.own:
            what = agreeing(len(self.own), "ACL that denies WRITE is", "ACLs that deny WRITE are")
            found = f"{what} to be deleted on {cluster}"
        message = "; ".join(filter(None, (found, self.left_sentence(cluster))))
        return Check(name="write-block", ok=True, message=message, warns=bool(self.wider))

    def left_sentence(self, cluster: str) -> str:
        """Say which ACLs still deny WRITE after the switch, with the remedy; empty if none does."""
        if not self.wider:
            return ""
        found = agreeing(len(self.wider), "wider ACL denies", "wider ACLs deny")
        them = "it" if len(self.wider) == 1 else "them"
        return (
            f"{found} WRITE on topics of {cluster} ({several([str(one) for one in self.wider])}), and Ferry does "
            f"not delete {them}: remove what blocks producers with kafka-acls.sh"
        )


def write_block(acls: Iterable[AclBinding], topics: Collection[str]) -> WriteBlock:
    """Return the ACLs that deny WRITE on one of these topics."""
    found = sorted(
        (
            one
            for one in acls
            if one.permission == "deny" and one.operation in _DENIES and any(map(one.is_about_topic, topics))
        ),
        key=str,
    )
    own = [
        one
        for one in found
        if one.operation == "Write" and one.pattern_type == "literal" and one.resource_name in topics
    ]
    return WriteBlock(own=tuple(own), wider=tuple(one for one in found if one not in own))
