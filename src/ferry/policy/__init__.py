"""Replication policies: a topic's name at the source and its name at the target, as in MirrorMaker 2."""

from ferry.policy.choice import INTERNAL_SEPARATOR, SEPARATOR, make_policy, policy_name
from ferry.policy.lane import LanePolicy
from ferry.policy.mirror_maker import DefaultReplicationPolicy, IdentityReplicationPolicy
from ferry.policy.names import (
    DEFAULT_SEPARATOR,
    HEARTBEATS,
    MAX_TOPIC_NAME,
    ReplicationPolicy,
    illegal_name,
    is_ferry_internal,
    is_heartbeats_topic,
    is_internal_name,
    would_loop,
)
from ferry.policy.own import JAVA_PACKAGE, OwnPolicy, load_policy
from ferry.policy.routed import RoutedPolicy, copies_of
from ferry.policy.wrapped import innermost

__all__ = [
    "DEFAULT_SEPARATOR",
    "HEARTBEATS",
    "INTERNAL_SEPARATOR",
    "JAVA_PACKAGE",
    "MAX_TOPIC_NAME",
    "SEPARATOR",
    "DefaultReplicationPolicy",
    "IdentityReplicationPolicy",
    "LanePolicy",
    "OwnPolicy",
    "ReplicationPolicy",
    "RoutedPolicy",
    "copies_of",
    "illegal_name",
    "innermost",
    "is_ferry_internal",
    "is_heartbeats_topic",
    "is_internal_name",
    "load_policy",
    "make_policy",
    "policy_name",
    "would_loop",
]
