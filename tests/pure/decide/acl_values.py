"""ACLs in short, and the rules by which flows of the tests take them over."""

from __future__ import annotations

from dataclasses import replace

from ferry.config.flow.acls import AclPolicy, AclSync
from ferry.features.acls.rules.acls import AclFacts, AclRules
from ferry.model import AclBinding
from ferry.policy import DefaultReplicationPolicy, IdentityReplicationPolicy, load_policy
from tests.pure.config.policies import Suffixed
from tests.pure.decide.values import FLOW

TOPICS = frozenset({"orders", "orders-eu", "users"})
READ = AclRules(
    flow=FLOW,
    policy=DefaultReplicationPolicy(),
    sync=AclSync(),
    takes_topic=TOPICS.__contains__,
    takes_group=lambda group: group.startswith("app"),
)
FULL = replace(READ, sync=AclSync(policy=AclPolicy.FULL))
IDENTITY = replace(FULL, policy=IdentityReplicationPolicy(source_alias="a"))
OWN_POLICY = replace(
    FULL,
    policy=load_policy(f"{Suffixed.__module__}.Suffixed", {"source.cluster.alias": "a"}),
    policy_name="mine.Suffixed",
)
EVERYTHING = replace(FULL, takes_topic=lambda _: True, takes_group=lambda _: True)
ANY = replace(FULL, takes_topic=lambda _: True)
ANY_IDENTITY = replace(IDENTITY, takes_topic=lambda _: True)

FACTS = AclFacts(source_cluster_id="cluster-a", source=frozenset(), target=frozenset(), own={}, topics=TOPICS)


def acl(text: str) -> AclBinding:
    """`allow User:x Read on topic orders*`, with ` from HOST` behind it where it is not every host."""
    permission, principal, operation, _, resource_type, name, *host = text.split(" ")
    prefixed = name.endswith("*") and name != "*"
    return AclBinding(
        resource_type=resource_type,
        resource_name=name.removesuffix("*") if prefixed else name,
        pattern_type="prefixed" if prefixed else "literal",
        principal=principal,
        host=host[1] if host else "*",
        operation=operation,
        permission=permission,
    )
