"""Whether the names of topics show which flow they belong to."""

from __future__ import annotations

from ferry.config.flow.flow import FlowConfig
from ferry.policy import DefaultReplicationPolicy, LanePolicy, RoutedPolicy


def names_tell_flows_apart(flow: FlowConfig) -> bool:
    """Return whether names show which flow writes a target topic, and whether a source topic came from the target."""
    policy, back = flow.topics.policy, flow.topics.back
    policy = policy.base if isinstance(policy, LanePolicy) else policy
    routed = back is not None and isinstance(back.policy, RoutedPolicy)
    return isinstance(policy, DefaultReplicationPolicy) and not routed
