"""`replication.policy.class` of a flow, in the form of `ferry.policy.make_policy`."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ferry.config.text.problem import BadValue
from ferry.errors import BadInput
from ferry.model import Flow
from ferry.policy import (
    INTERNAL_SEPARATOR,
    SEPARATOR,
    ReplicationPolicy,
    make_policy,
    policy_name,
)


def flow_policy(
    text: str,
    flow: Flow,
    *,
    separator: str,
    internal_separator_enabled: bool,
    properties: Mapping[str, str],
    secrets: Collection[str],
) -> tuple[str, ReplicationPolicy]:
    """Return the policy and its short name.

    `properties` are the flow's `replication.policy.*`, resolved, for a class of the user. No message shows those of
    their values that are among `secrets`. Raises BadValue for a class that is not
    known, cannot be imported, or does not implement the Protocol.
    """
    given = {
        **properties,
        SEPARATOR: separator,
        INTERNAL_SEPARATOR: str(internal_separator_enabled).lower(),
        "source.cluster.alias": flow.source,
        "target.cluster.alias": flow.target,
    }
    try:
        return policy_name(text), make_policy(text, given, secrets)
    except BadInput as error:
        raise BadValue(str(error)) from error
