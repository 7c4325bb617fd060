"""What clusters and flows have wrong together.

Two aliases may be of one cluster, an alias may contain the separator, and topics may return in a loop.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice

from ferry.config.flow.cluster import ClusterConfig
from ferry.config.flow.flow import FlowConfig
from ferry.config.keys import values
from ferry.config.keys.layers import Entries
from ferry.config.reading.findings import Findings
from ferry.config.text.filters import TopicSelection, Transforming, with_others
from ferry.config.text.samples import samples
from ferry.errors import BadInput
from ferry.messages.catalogue import sentence
from ferry.model import Flow
from ferry.policy import DefaultReplicationPolicy

_HAS_PORT = re.compile(r":[0-9]+$")
_MOST_SAMPLES = 1200
"""The most names tried with the lists of all flows: a file is read often, and a list may hold thousands."""
_MOST_NAMES = 20
"""The most names that are followed through the other flows, of those that a flow takes."""


def look_at_brokers(clusters: Mapping[str, ClusterConfig], entries: Entries, findings: Findings) -> None:
    """Warn about a broker that two clusters name: a run refuses a source that is its target."""
    owners: dict[str, str] = {}
    for alias, cluster in clusters.items():
        entry = entries.of_cluster(alias).get("bootstrap.servers")
        if entry is None:
            continue
        named = [broker for broker in values.items(cluster.bootstrap_servers) if _HAS_PORT.search(broker)]
        brokers = {broker.rpartition("://")[2].lower(): broker for broker in named}
        shared = next((broker for broker in brokers if owners.get(broker, alias) != alias), None)
        for broker in brokers:
            owners.setdefault(broker, alias)
        if shared is None:
            continue
        other = owners[shared]
        line = entries.of_cluster(other)["bootstrap.servers"].line
        findings.warn(
            entry,
            entry.key,
            sentence("line.same-cluster", broker=brokers[shared], other=other, line=line, alias=alias),
        )


def look_at_separators(flows: Sequence[FlowConfig], entries: Entries, findings: Findings) -> None:
    """Warn about an alias that contains the separator of its flow's policy."""
    for flow in flows:
        policy = flow.topics.selection.policy
        if not isinstance(policy, DefaultReplicationPolicy):
            continue
        for alias in (flow.flow.source, flow.flow.target):
            if not policy.shows(alias):
                said = sentence("line.clusters.separator", alias=alias, separator=policy.separator)
                findings.warn(entries.by_key["clusters"], "clusters", said)


def selections_of(flows: Sequence[FlowConfig]) -> tuple[TopicSelection, ...]:
    """Return what each flow takes, now that all of them are known.

    Topics that the opposite flow transforms do not go back.
    """
    by_flow = {one.flow: one for one in flows}
    found = []
    for one in flows:
        other = by_flow.get(one.flow.back)
        if other is None or not other.records.transforms:
            found.append(one.topics.selection)
            continue
        topics = tuple((spec.name, spec.topics) for spec in other.records.transforms)
        own = tuple(spec.topics for spec in one.records.transforms)
        there = Transforming(flow=other.flow, policy=other.topics.selection.policy, topics=topics, but=own)
        found.append(replace(one.topics.selection, there=there))
    return with_others(found)


def look_at_circles(flows: Sequence[FlowConfig], entries: Entries, findings: Findings) -> None:
    """Warn about flows by which a topic returns and would be copied again: each plan refuses such a topic.

    Lists of regular expressions cannot be compared as such. So names that the lists themselves suggest are tried, those
    of several flows first.
    """
    selections = selections_of(flows)
    if not any(selection.others for selection in selections):
        return
    topics = _names_of(selections)
    remedy = _remedy(selections)
    seen: set[frozenset[Flow]] = set()
    for selection in selections:
        for topic in islice(filter(selection.filter.takes, topics), _MOST_NAMES):
            way = _way_back(selection, topic)
            circle = frozenset((selection.flow, *way))
            if not way or circle in seen:
                continue
            seen.add(circle)
            entry = entries.by_key[f"{selection.flow}.enabled"]
            opposite = way == (selection.flow.back,)
            rest = (
                f"pause the one on standby until a switch (ferry pause '{selection.flow}' --reason standby, "
                f"or '{way[0]}'), or "
                if opposite
                else ""
            )
            back = ", ".join(f"{flow} (line {entries.by_key[f'{flow}.enabled'].line})" for flow in way)
            findings.warn(
                entry,
                entry.key,
                sentence("line.loop", topic=topic, back=back, rest=rest, remedy=remedy),
                planned=opposite,
            )


def _remedy(selections: Sequence[TopicSelection]) -> str:
    """Return the remedy that would let names show where a topic came from."""
    if not all(isinstance(one.policy, DefaultReplicationPolicy) for one in selections):
        return "take DefaultReplicationPolicy for all"
    if len({one.policy.separator for one in selections if isinstance(one.policy, DefaultReplicationPolicy)}) > 1:
        return "give all flows one replication.policy.separator"
    return "take a replication.policy.separator that is in no alias"


def _way_back(selection: TopicSelection, topic: str) -> tuple[Flow, ...]:
    try:
        return selection.way_back(topic) if selection.others and selection.takes(topic) else ()
    except BadInput:  # a policy of the user's own does not know what to do with this name
        return ()


def _names_of(selections: Sequence[TopicSelection]) -> list[str]:
    """Return names that the lists may take, those of most flows first."""
    most = max(_MOST_SAMPLES // len(selections), 2)
    names = dict.fromkeys(name for one in selections for name in samples("|".join(one.filter.include.items), most))
    counts = {name: sum(one.filter.takes(name) for one in selections) for name in names}
    return sorted(names, key=lambda name: -counts[name])
