"""What clusters and flows together get wrong: two aliases of one cluster, and topics that would go round."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from ferry.config import values
from ferry.config.cluster import ClusterConfig
from ferry.config.filters import LEGAL_NAME, TopicSelection, with_others
from ferry.config.findings import Findings
from ferry.config.flow import FlowConfig
from ferry.config.layers import Entries
from ferry.errors import BadInput
from ferry.model import Flow

_ANY_TEXT = re.compile(r"\.[*+][?+]?")
_HAS_PORT = re.compile(r":[0-9]+$")
_ANY_TOPIC = "any-topic"
_MOST_NAMES = 20
"""How many names are tried: a file is read often, and a list may hold thousands."""


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
            f"{brokers[shared]} is a broker of cluster {other!r} as well (line {line}), so {other!r} and {alias!r} are"
            " one cluster, and no flow may go from a cluster to itself; correct one of the two",
        )


def look_at_circles(flows: Sequence[FlowConfig], entries: Entries, findings: Findings) -> None:
    """Warn about flows by which a topic comes back to be copied again: each plan refuses such a topic.

    Lists of regular expressions cannot be compared as such. Names are tried that the lists themselves suggest, those
    of several flows first.
    """
    counts = Counter(name for flow in flows for name in _names_of(flow))
    topics = [name for name, _ in counts.most_common(_MOST_NAMES)]
    seen: set[frozenset[Flow]] = set()
    for selection in with_others([flow.selection for flow in flows]):
        for topic in topics:
            way = _way_back(selection, topic)
            circle = frozenset((selection.flow, *way))
            if not way or circle in seen:
                continue
            seen.add(circle)
            entry = entries.by_key[f"{selection.flow}.enabled"]
            back = ", ".join(f"{flow} (line {entries.by_key[f'{flow}.enabled'].line})" for flow in way)
            findings.warn(
                entry,
                entry.key,
                f"a topic such as {topic!r} would come back by {back} and be copied again, so it is refused; exclude it"
                " from one of the flows, or take DefaultReplicationPolicy for all",
            )


def _way_back(selection: TopicSelection, topic: str) -> tuple[Flow, ...]:
    try:
        return selection.way_back(topic) if selection.others and selection.takes(topic) else ()
    except BadInput:  # a policy of the user's own does not know what to do with this name
        return ()


def _names_of(flow: FlowConfig) -> list[str]:
    """Names that the flow's list may take: its items with nothing, or a word, for what may be any text."""
    items = [item.replace("\\.", ".") for item in flow.topics.include.items]
    names = dict.fromkeys(_ANY_TEXT.sub(word, item) for item in items for word in ("", _ANY_TOPIC))
    return [name for name in names if LEGAL_NAME.fullmatch(name)]
