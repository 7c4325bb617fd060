"""`replication.policy.class`: MirrorMaker 2's policies by their names, others by their import path."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ferry.errors import BadInput
from ferry.policy.mirror_maker import DefaultReplicationPolicy, IdentityReplicationPolicy
from ferry.policy.names import DEFAULT_SEPARATOR, ReplicationPolicy
from ferry.policy.own import JAVA_PACKAGE, load_policy

SEPARATOR = "replication.policy.separator"
INTERNAL_SEPARATOR = "replication.policy.internal.topic.separator.enabled"


def policy_name(text: str) -> str:
    """Return the name that Ferry shows: MirrorMaker 2's own without their package."""
    return text.strip().removeprefix(JAVA_PACKAGE)


def make_policy(text: str, properties: Mapping[str, str], secrets: Collection[str] = ()) -> ReplicationPolicy:
    """Return the policy that `text` names, with a flow's `replication.policy.*` and `{source,target}.cluster.alias`.

    No message shows those of their values that are among `secrets`. Raises BadInput for a class that is not known,
    cannot be made, or gives an answer of another type.
    """
    separator = properties.get(SEPARATOR, DEFAULT_SEPARATOR)
    internal = properties.get(INTERNAL_SEPARATOR, "true").strip().lower()
    if internal not in ("true", "false"):
        raise BadInput(f"{INTERNAL_SEPARATOR} is {internal!r}; write true or false")
    match policy_name(text):
        case "DefaultReplicationPolicy":
            return DefaultReplicationPolicy(separator=separator, internal_separator_enabled=internal == "true")
        case "IdentityReplicationPolicy":
            return IdentityReplicationPolicy(
                source_alias=properties["source.cluster.alias"],
                separator=separator,
                internal_separator_enabled=internal == "true",
            )
        case other:
            return load_policy(other, properties, secrets)
