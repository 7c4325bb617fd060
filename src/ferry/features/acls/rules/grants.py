"""Which of the ACLs that a flow needs a cluster has not. Pure.

The rules are those of `StandardAuthorizer` (Kafka 4.3): a DENY wins. READ, WRITE, DELETE and ALTER include DESCRIBE,
and ALTER_CONFIGS includes DESCRIBE_CONFIGS. CREATE of a topic may be granted on the cluster, too (`KafkaApis`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ferry.config.keys.layers import Side
from ferry.model import EVERYBODY, WILDCARD, AclBinding
from ferry.model.finding import Finding, Grade
from ferry.plan.rules.permissions import EVERY, Acl, Resource
from ferry.words import count_of, several

_INCLUDE = {
    "Describe": frozenset({"Describe", "Read", "Write", "Delete", "Alter", "All"}),
    "DescribeConfigs": frozenset({"DescribeConfigs", "AlterConfigs", "All"}),
}
_CLUSTER = Resource(kind="cluster", name="kafka-cluster")


def of_grants(
    flow: str, side: Side, required: Iterable[Acl], acls: Collection[AclBinding], principal: str | None, why: str
) -> Finding:
    """Return whether the cluster of a side has the ACLs that the flow needs there.

    `principal` is the one that the brokers know Ferry as; None: it is not known, for the reason `why`. What is missing
    is a warning, because super users of the brokers need no ACL.
    """
    check = f"{side} ACLs"
    if principal is None:
        message = f"Ferry's principal is not known ({why}): compare by hand with ferry acls required '{flow}'"
        return Finding(about=flow, check=check, grade=Grade.UNKNOWN, message=message)
    wanted = [acl for acl in required if acl.side == side]
    lacking = [acl for acl in wanted if not is_granted(acl, acls, principal)]
    needed = [str_of(acl) for acl in lacking if not acl.optional]
    optional = [str_of(acl) for acl in lacking if acl.optional]
    rest = f"; it lacks {several(optional)}, which {'is' if len(optional) == 1 else 'are'} optional" if optional else ""
    if needed:
        message = (
            f"no ACL grants {principal} {several(needed)}{rest}: ferry acls required '{flow}' prints the commands; "
            "super users need none"
        )
        return Finding(about=flow, check=check, grade=Grade.WARN, message=message)
    has = f"{principal} has the {count_of(len(wanted) - len(optional), 'ACL')} that the flow needs{rest}"
    return Finding(about=flow, check=check, grade=Grade.PASS, message=has)


def is_granted(wanted: Acl, acls: Iterable[AclBinding], principal: str) -> bool:
    """Return whether the ACLs permit what is wanted, from some host at least."""
    mine = [acl for acl in acls if acl.principal in (principal, EVERYBODY)]
    about = [acl for acl in mine if _covers(acl, wanted.resource)]
    if any(not acl.allows and acl.host == WILDCARD and acl.operation in (wanted.operation, "All") for acl in about):
        return False
    if wanted.resource.kind == "topic" and wanted.operation == "Create":
        about += [acl for acl in mine if _covers(acl, _CLUSTER)]
    enough = _INCLUDE.get(wanted.operation, frozenset({wanted.operation, "All"}))
    return any(acl.allows and acl.operation in enough for acl in about)


def _covers(acl: AclBinding, resource: Resource) -> bool:
    """Return whether an ACL is about every name of the resource."""
    if acl.resource_type != resource.kind:
        return False
    if acl.prefixed:
        return resource.name != EVERY and resource.name.startswith(acl.resource_name)
    return acl.resource_name == WILDCARD or (acl.resource_name == resource.name and not resource.prefixed)


def str_of(acl: Acl) -> str:
    """Return an ACL for a sentence: `Read on topic orders`."""
    return f"{acl.operation} on {acl.resource}"
