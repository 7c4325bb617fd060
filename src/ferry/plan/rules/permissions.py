"""The ACLs that a flow needs on each side: no more than what its micro-runs ask the brokers for.

Nothing is written to the source unless the file asks for it (MirrorMaker 2's topics). Without that, the ACLs there only
permit reading.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Literal

from ferry.config.flow.acls import AclPolicy
from ferry.config.flow.flow import FlowConfig
from ferry.config.flow.transforms import Poison
from ferry.config.keys.layers import Side
from ferry.config.text.filters import LEGAL_NAME
from ferry.errors import BadInput
from ferry.plan.rules.flow_names import names_tell_flows_apart
from ferry.plan.rules.internal_topics import internal_topics
from ferry.policy import DefaultReplicationPolicy, IdentityReplicationPolicy, RoutedPolicy, illegal_name
from ferry.protocol.names import ledger_topic, position_group, transactional_id

ResourceKind = Literal["topic", "group", "transactional-id", "cluster"]

EVERY = "*"

_PREFIX = re.compile(r"((?:[A-Za-z0-9_-]|\\?\.)*)\.[*+]")


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Resource:
    """The resource of an ACL, in the words of kafka-acls."""

    kind: ResourceKind
    name: str
    prefixed: bool = False

    def __str__(self) -> str:
        return f"{self.kind} {self.name}{'*' if self.prefixed else ''}"


_EVERY_TOPIC = Resource(kind="topic", name=EVERY)
_CLUSTER = Resource(kind="cluster", name="kafka-cluster")
_LEDGERS = Resource(kind="topic", name=ledger_topic("").removesuffix(".internal"), prefixed=True)


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Acl:
    """One ALLOW for the principal of one side.

    `optional`: the flow works without it; `why` states what is then lost.
    """

    side: Side
    resource: Resource
    operation: str
    why: str
    optional: bool = False


def required_acls(flow: FlowConfig, topics: Collection[str] = ()) -> list[Acl]:
    """Return all ACLs of a flow: for the source topics `topics`, or, if there are none, for the flow's own `topics`.

    Raises BadInput if a topic name is illegal, or if the topics' patterns or a custom policy have no form as ACLs.
    """
    for name in topics:
        if (why := illegal_name(name)) is not None:
            raise BadInput(f"topic {name!r} {why}: no cluster has it; correct the name")
    sources = [Resource(kind="topic", name=name) for name in sorted(set(topics))]
    if not sources:
        sources = [_as_resource(flow, pattern) for pattern in flow.topics.filter.include.items]
        if flow.topics.selection.heartbeats:
            sources.append(Resource(kind="topic", name=flow.topics.policy.heartbeats_topic()))
    sources = _without_covered(sources)
    copies = [copy for resource in sources for copy in _copied(flow, resource)]
    return [
        *_at_source(flow, sources),
        *_ledgers_at_source(flow, sources),
        *_at_target(flow, copies),
        *_ledgers_at_target(flow, copies),
        *_for_mirror_topics(flow),
        *_for_acls(flow),
        *_for_groups(flow),
    ]


def _at_source(flow: FlowConfig, topics: Collection[Resource]) -> Iterator[Acl]:
    for resource in topics:
        yield Acl(side="source", resource=resource, operation="Read", why="to copy the records")
        yield Acl(
            side="source", resource=resource, operation="DescribeConfigs", why="to create the copy with its settings"
        )
    for operation in ("Describe", "DescribeConfigs"):
        yield Acl(
            side="source",
            resource=_CLUSTER,
            operation=operation,
            why="to estimate bytes from the size on disk, to see all groups, to count SCRAM users and client quotas",
            optional=True,
        )


def _at_target(flow: FlowConfig, topics: Collection[Resource]) -> Iterator[Acl]:
    def acl(resource: Resource, operation: str, why: str) -> Acl:
        return Acl(side="target", resource=resource, operation=operation, why=why)

    for resource in topics:
        yield acl(resource, "Create", "to create the copies")
        yield acl(resource, "Alter", "to add partitions where the source has more")
        yield acl(resource, "Write", "to write the copies")
        yield acl(
            resource,
            "Read",
            "to keep positions on them (TxnOffsetCommit asks for it), and to see what others write there",
        )
        yield from _of_features(flow, resource)
    if any(one.poison is Poison.SKIP for one in flow.records.transforms):
        letters = Resource(kind="topic", name=flow.records.dead_letters.topic)
        yield acl(letters, "Create", "to make the topic of dead letters")
        yield acl(letters, "Write", "to write dead letters")
    ledger = Resource(kind="topic", name=ledger_topic(flow.flow.source))
    yield acl(ledger, "Create", "to create the ledger")
    yield acl(ledger, "DescribeConfigs", "to check that its settings keep receipts")
    yield acl(ledger, "Write", "to append runs, plans and receipts")
    yield acl(ledger, "Read", "to read them again")
    group = Resource(kind="group", name=position_group(flow.flow, flow.lane))
    yield acl(group, "Read", "to keep the positions")
    slots = transactional_id(flow.flow, flow.lane, 0).removesuffix("0")
    yield acl(Resource(kind="transactional-id", name=slots, prefixed=True), "Write", "to write in transactions")
    needed = _why_settings(flow)
    if needed:
        yield acl(_CLUSTER, "DescribeConfigs", needed)
    marks = next(filter(None, (one.writes_markers() for one in flow.features.values())), "")
    if marks:
        yield Acl(side="target", resource=_CLUSTER, operation="Alter", why=marks, optional=True)
    if flow.topics.target_free_percent is not None:
        yield Acl(
            side="target",
            resource=_CLUSTER,
            operation="Describe",
            why="to check whether the copies fit on the disks; without it no run checks",
            optional=True,
        )


def _why_settings(flow: FlowConfig) -> str:
    """Return for what the settings of the target's topics and brokers are needed; empty: they are not."""
    return next(filter(None, (one.reads_target_settings() for one in flow.features.values())), "")


def _of_features(flow: FlowConfig, topics: Resource) -> Iterator[Acl]:
    """Yield the ACLs that features need on the target's topics, in addition to those for the copy itself."""
    why = "to see how settings differ from the source's, and to set them; without it they stay as they were created"
    needed = _why_settings(flow)
    if needed:
        yield Acl(side="target", resource=topics, operation="DescribeConfigs", why=needed)
    else:
        yield Acl(side="target", resource=topics, operation="DescribeConfigs", why=why, optional=True)
    if flow.topics.sync_topic_configs:
        yield Acl(side="target", resource=topics, operation="AlterConfigs", why=why, optional=True)
    deletes = next(filter(None, (one.deletes_target_records() for one in flow.features.values())), "")
    if deletes:
        yield Acl(side="target", resource=topics, operation="Delete", why=deletes)
    if flow.topics.sync_topic_deletes:
        yield Acl(
            side="target",
            resource=topics,
            operation="Delete",
            why="to delete copies of deleted topics (ferry.sync.topic.deletes.enabled)",
        )


def _for_mirror_topics(flow: FlowConfig) -> Iterator[Acl]:
    """Yield the ACLs to write MirrorMaker 2's topics (`ferry.features.groups.acts.mirror_topics`).

    They do not depend on which topics are copied.
    """
    for topic in internal_topics(flow):
        resource = Resource(kind="topic", name=topic.name)
        why = f"to write what MirrorMaker 2's clients read ({topic.key}); without it they read nothing new"
        for operation in ("Create", "Write"):
            yield Acl(side=topic.side, resource=resource, operation=operation, why=why, optional=True)


def _for_acls(flow: FlowConfig) -> Iterator[Acl]:
    """Yield the ACLs to copy ACLs; they are not optional if the file asks for all (`ferry.features.acls.acts.sync`)."""
    if flow.syncs_acls:
        optional = flow.acls.rules.policy is not AclPolicy.FULL
        why = "to read ACLs; without it none are copied"
        yield Acl(side="source", resource=_CLUSTER, operation="Describe", why=why, optional=optional)
        why = "to take the source's ACLs over; who has it can permit himself anything"
        yield Acl(side="target", resource=_CLUSTER, operation="Alter", why=why, optional=optional)


def _for_groups(flow: FlowConfig) -> Iterator[Acl]:
    """Yield the ACLs to translate groups (`ferry.features.groups.acts.checkpoint`); READ includes DESCRIBE."""
    if not flow.syncs_groups and not flow.emits_checkpoints:
        return
    for name, prefixed in sorted({_group_resource(pattern) for pattern in flow.groups.filter.include.items}):
        resource = Resource(kind="group", name=name, prefixed=prefixed)
        why = "to translate the offsets of consumer groups; without it they are not seen"
        yield Acl(side="source", resource=resource, operation="Describe", why=why, optional=True)
        if flow.syncs_groups:
            why = "to write the offsets of consumer groups; without it each that is to be written fails"
            yield Acl(side="target", resource=resource, operation="Read", why=why, optional=True)


def _group_resource(pattern: str) -> tuple[str, bool]:
    """Return the name of the narrowest resource with all groups that a pattern matches, and whether it is a prefix."""
    if LEGAL_NAME.fullmatch(pattern):
        return pattern, False
    found = _PREFIX.fullmatch(pattern)
    prefix = "" if found is None or pattern in (".*", ".+") else found.group(1).replace("\\", "")
    return (prefix, True) if prefix else (EVERY, False)


def _ledgers_at_source(flow: FlowConfig, topics: Collection[Resource]) -> Iterator[Acl]:
    """Yield the ACLs on ledgers of flows into the source, if names do not show what those flows brought.

    `ferry.plan.others.other_flows` reads them.
    """
    if not names_tell_flows_apart(flow) and _EVERY_TOPIC not in topics:
        yield Acl(
            side="source",
            resource=_LEDGERS,
            operation="Read",
            why="to see which records came from the target; without it those that another file's flow brought go back",
            optional=True,
        )


def _ledgers_at_target(flow: FlowConfig, topics: Collection[Resource]) -> Iterator[Acl]:
    """Yield the ACLs on ledgers of other flows into the target, if names do not show which flow writes a topic.

    `ferry.plan.others.other_flows` reads them.
    """
    if names_tell_flows_apart(flow) or _EVERY_TOPIC in topics:
        return
    if flow.topics.merge.items:
        why = "to tell apart the other flows' records in merged topics and those of other clients"
    else:
        why = "to see which topics other flows own; without it two flows may write one topic"
    yield Acl(side="target", resource=_LEDGERS, operation="Read", why=why, optional=not flow.topics.merge.items)


def _as_resource(flow: FlowConfig, pattern: str) -> Resource:
    """Return the narrowest ACL resource with all names that a pattern matches: a name, a prefix, or every topic.

    Raises BadInput for a pattern that is neither a name nor a prefix.
    """
    if pattern in (".*", ".+"):
        return Resource(kind="topic", name=EVERY)
    if LEGAL_NAME.fullmatch(pattern):
        return Resource(kind="topic", name=pattern)
    found = _PREFIX.fullmatch(pattern)
    if found is None:
        raise BadInput(
            f"topics of flow {flow.flow}: {pattern!r} is neither a name nor a prefix like orders.*, and ACLs know "
            "nothing else; name the topics with --topic"
        )
    return Resource(kind="topic", name=found.group(1).replace("\\", ""), prefixed=True)


def _copied(flow: FlowConfig, resource: Resource) -> list[Resource]:
    """Return the resources of the copies. Raises BadInput if the policy cannot name the copies of a prefix."""
    if resource.name != EVERY and not resource.prefixed:
        return [Resource(kind="topic", name=copy) for copy in flow.copies_of(resource.name)]
    policy = flow.topics.policy
    if not isinstance(policy, DefaultReplicationPolicy | IdentityReplicationPolicy):
        who = "its transforms make" if isinstance(policy, RoutedPolicy) else f"{flow.topics.policy_name} makes"
        raise BadInput(f"flow {flow.flow}: it is not known what {who} of {resource}; name the topics with --topic")
    begun = "" if resource.name == EVERY else resource.name
    name = flow.copy_of(begun)
    return [Resource(kind="topic", name=name, prefixed=True) if name else Resource(kind="topic", name=EVERY)]


def _without_covered(resources: Collection[Resource]) -> list[Resource]:
    """Return the resources that no other one of them includes."""
    if any(resource.name == EVERY for resource in resources):
        return [Resource(kind="topic", name=EVERY)]
    prefixes = [resource.name for resource in resources if resource.prefixed]
    return sorted(
        {
            resource
            for resource in resources
            if not any(
                resource.name.startswith(prefix) and not (resource.prefixed and resource.name == prefix)
                for prefix in prefixes
            )
        }
    )
