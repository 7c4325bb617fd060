"""Whether the names of topics show which flow they belong to."""

from __future__ import annotations

from ferry.config.flow.flow import FlowConfig
from ferry.policy import DefaultReplicationPolicy, LanePolicy, RoutedPolicy


def names_tell_flows_apart(flow: FlowConfig) -> bool:
    """Return whether names show which flow writes a target topic, and whether a source topic came from the target.

    They do not if an alias contains the separator. `us.east.orders` is `orders` of `us.east`, or `east.orders` of `us`.
    """
    policy, back = flow.topics.policy, flow.topics.back
    policy = policy.base if isinstance(policy, LanePolicy) else policy
    routed = back is not None and isinstance(back.policy, RoutedPolicy)
    if routed or not isinstance(policy, DefaultReplicationPolicy):
        return False
    return policy.shows(flow.flow.source) and policy.shows(flow.flow.target)
