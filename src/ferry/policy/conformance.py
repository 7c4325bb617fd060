"""The rules that every replication policy must keep, checked on names; pure, and without a test framework."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ferry.errors import BadInput
from ferry.policy.names import HEARTBEATS, ReplicationPolicy, illegal_name, is_internal_name, would_loop
from ferry.policy.own import OwnPolicy

SAMPLE_TOPICS = (
    "orders", "Orders", "orders.v2", "orders_v2", "orders-v2", "eu.orders", "eu_orders", "eu-orders", "a.orders",
    "b.orders", "b.a.orders", "orders.", "orders.internal", "0", "_orders", "x" * 40, HEARTBEATS,
)  # fmt: skip
"""Names that real clusters have, and some unusual ones."""

INTERNAL_TOPICS = ("__consumer_offsets", "__transaction_state")
"""Topics that no policy may copy; the spelling of MirrorMaker 2's own depends on the separator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Naming:
    """One topic's answers: its target name, and the origin that this name shows."""

    topic: str
    target: str
    source: str | None
    upstream: str | None
    original: str


def namings(policy: ReplicationPolicy, source_alias: str, topics: Iterable[str] = SAMPLE_TOPICS) -> list[Naming]:
    """Return the policy's answers for `topics` of `source_alias`."""
    found = []
    for topic in topics:
        target = policy.format_remote_topic(source_alias, topic)
        found.append(
            Naming(
                topic=topic,
                target=target,
                source=policy.topic_source(target),
                upstream=policy.upstream_topic(target),
                original=policy.original_topic(target),
            )
        )
    return found


def findings(
    policy: ReplicationPolicy, *, source_alias: str = "a", topics: Iterable[str] = SAMPLE_TOPICS, name: str = ""
) -> list[str]:
    """Return every rule that `policy` breaks, one sentence each; empty when it conforms.

    `source_alias` is the alias that the policy was configured with; `topics` are source topics, yours for example.
    """
    called = name or (policy.path if isinstance(policy, OwnPolicy) else type(policy).__name__)
    asked = policy if isinstance(policy, OwnPolicy) else OwnPolicy(path=called, properties={}, policy=policy)
    found: list[str] = []
    owners: dict[str, str] = {}
    for topic in topics:
        try:
            found += [f"policy {called} {what}" for what in _of_topic(asked, source_alias, topic, owners)]
        except BadInput as error:
            found.append(str(error))
    for topic in INTERNAL_TOPICS:
        try:
            if not asked.is_internal_topic(topic):
                found.append(f"policy {called} does not call {topic} internal: it would be copied")
        except BadInput as error:
            found.append(str(error))
    return found


def _of_topic(policy: OwnPolicy, alias: str, topic: str, owners: dict[str, str]) -> Iterable[str]:
    target = policy.format_remote_topic(alias, topic)
    if policy.format_remote_topic(alias, topic) != target:
        yield f"names topic {topic!r} differently each time: the name may depend on alias and topic only"
    why = illegal_name(target)
    if why is not None:
        yield f"names topic {topic!r} {target[:60]!r} on the target, but that {why}"
        return
    rival = owners.setdefault(target, topic)
    if rival != topic:
        yield f"names both {rival!r} and {topic!r} {target!r}: two topics would become one"
    source, upstream = policy.topic_source(target), policy.upstream_topic(target)
    if (source is None) != (upstream is None):
        yield (
            f"says of {target!r} that its source is {source!r} and its upstream topic {upstream!r}: either both are "
            "known or none is"
        )
    if source is not None and source != alias:
        yield f"says that {target!r} came from {source!r}, but {alias!r} was its source"
    if upstream is not None and upstream != topic:
        yield f"says that {target!r} was {upstream!r} at its source, but it was {topic!r}"
    if upstream is not None and policy.original_topic(target) != policy.original_topic(topic):
        yield f"finds another origin for {target!r} than for {topic!r}, of which it is the copy"
    if target != topic and source == alias and not would_loop(policy, target, alias):
        yield f"does not show that {target!r} would go back to {alias!r}"
    if policy.is_internal_topic(topic) and not is_internal_name(topic, "."):
        yield f"calls {topic!r} internal: it would never be copied"
