"""The groups and topics of a flow that are translated, by its file and its ledger."""

from __future__ import annotations

from collections.abc import Callable, Collection

from ferry.config.flow.flow import FlowConfig
from ferry.errors import Refused
from ferry.features.groups.acts.offset_maps import PartitionMap
from ferry.features.groups.rules.offset_map import OffsetMap
from ferry.features.groups.rules.selection import GroupRules, dealt_reason
from ferry.ledger.ledger import LedgerView
from ferry.ledger.unit_codec import last_units
from ferry.model import TopicPartition


def group_rules(flow: FlowConfig, *, only: frozenset[str] | None = None, force: bool = False) -> GroupRules:
    """Return what the flow's file says of groups, narrowed to `only`."""
    return GroupRules(
        flow=flow.flow,
        takes_group=flow.groups.filter.takes,
        takes_topic=flow.topics.selection.takes,
        merges=flow.topics.merge.matches,
        only=only,
        force=force,
    )


def is_merged(flow: FlowConfig, topic: str) -> bool:
    """Report whether other flows write the copy of a source topic, too: no offset of it is right for a group."""
    return flow.topics.merge.matches(topic) and flow.topics.selection.takes(topic)


def deals(flow: FlowConfig, view: LedgerView | None = None) -> Callable[[str], bool]:
    """Return a function that reports whether a source topic is repartitioned: by the file, or in an earlier run."""
    were = set() if view is None else {unit.source.topic for unit in last_units(view, flow.lane).values()}

    def found(topic: str) -> bool:
        if topic in were:
            return True
        try:
            spec = flow.transform_of(topic)
        except Refused:  # two transforms name it: no run copies it
            return False
        return spec is not None and spec.partitions is not None

    return found


def dealt_maps(
    flow: FlowConfig, places: Collection[TopicPartition], is_repartitioned: Callable[[str], bool]
) -> dict[TopicPartition, PartitionMap]:
    """Return, for those source partitions that are repartitioned, a map that leads nowhere and says why."""
    return {
        place: PartitionMap(
            source=place,
            target=TopicPartition(topic=flow.copy_of(place.topic), partition=place.partition),
            offsets=OffsetMap((), first=0, end=0, last=0, other=0),
            trouble=f"offsets of {place} are not translated, {dealt_reason(flow.flow)}",
        )
        for place in places
        if is_repartitioned(place.topic)
    }
