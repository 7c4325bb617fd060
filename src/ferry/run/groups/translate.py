"""Translate an offset between the two sides of a flow, by its ledger and the target's log end."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from ferry.config.flow import FlowConfig
from ferry.decide.groups.offset_map import Translated
from ferry.errors import BadInput
from ferry.model import TopicPartition
from ferry.net.group_offsets import fetch_offsets
from ferry.run.flow.connections import FlowConnections, TargetConnection
from ferry.run.groups.offset_maps import PartitionMap, offset_maps


@dataclass(frozen=True, slots=True, kw_only=True)
class Translation:
    """What became of an offset; the outcome counts on the side that was not asked about."""

    source: TopicPartition
    target: TopicPartition
    outcome: Translated


def translate(
    flow: FlowConfig, place: TopicPartition, offset: int, *, backward: bool = False, patience_s: float = 60.0
) -> Translation:
    """Where `offset` of a source partition went; `backward`: where `offset` of a target partition came from.

    Asks the target only. Raises Unreachable, and BadInput when the flow's lane has copied nothing of the partition.
    """
    with TargetConnection.of(flow, patience_s=patience_s) as connection:
        return connection.run(partial(_translate, connection, flow, place, offset, backward))


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupTranslation:
    """What became of all offsets of a group, each with the offset that was asked about.

    The lane has copied nothing of `uncopied`, though the flow takes those topics; `foreign` are topics that it leaves.
    """

    group: str
    found: tuple[tuple[int, Translation], ...]
    uncopied: tuple[tuple[TopicPartition, int], ...]
    foreign: tuple[tuple[TopicPartition, int], ...]


def translate_group(
    flow: FlowConfig, group: str, *, backward: bool = False, patience_s: float = 60.0
) -> GroupTranslation:
    """The offsets of the source's group `group`, translated; `backward`: those of the target's group.

    Raises Unreachable, Refused, and BadInput when the cluster has no offsets of the group, or the flow never ran.
    """
    connection = (TargetConnection if backward else FlowConnections).of(flow, patience_s=patience_s)
    with connection:
        return connection.run(partial(_translate_group, connection, flow, group, backward))


async def _translate_group(
    connection: TargetConnection, flow: FlowConfig, group: str, backward: bool
) -> GroupTranslation:
    cluster = connection.source if isinstance(connection, FlowConnections) else connection.target
    fetched = await fetch_offsets(cluster, {group: None}, stable=False)
    for error in fetched.failed.values():
        raise error
    offsets = {place: one.offset for place, one in sorted(fetched.found.get(group, {}).items())}
    if not offsets:
        raise BadInput(
            f"group {group} has no offsets on cluster {cluster.alias}: correct the name, or see the groups that have "
            f"some with `ferry groups '{flow.flow}'`"
        )
    maps = await offset_maps(
        connection, flow.lane, {place: (offset,) for place, offset in offsets.items()}, backward=backward
    )
    left = [(place, offset) for place, offset in offsets.items() if place not in maps]
    # Whatever a group reads on the target beside the copies is none of the flow's.
    taken = {place for place, _ in left if not backward and flow.selection.takes(place.topic)}
    return GroupTranslation(
        group=group,
        found=tuple(
            (
                offset,
                Translation(
                    source=maps[place].source, target=maps[place].target, outcome=maps[place].translate(offset)
                ),
            )
            for place, offset in offsets.items()
            if place in maps
        ),
        uncopied=tuple(one for one in left if one[0] in taken),
        foreign=tuple(one for one in left if one[0] not in taken),
    )


async def _translate(
    connection: TargetConnection, flow: FlowConfig, place: TopicPartition, offset: int, backward: bool
) -> Translation:
    made = (await offset_maps(connection, flow.lane, {place: [offset]}, backward=backward)).get(place)
    if made is None:
        other = (await offset_maps(connection, flow.lane, {place: [offset]}, backward=not backward)).get(place)
        raise BadInput(_nothing_of(flow, place, other, backward))
    return Translation(source=made.source, target=made.target, outcome=made.translate(offset))


def _nothing_of(flow: FlowConfig, place: TopicPartition, other: PartitionMap | None, backward: bool) -> str:
    """The sentence for a partition without receipts; it names the other side's name where that was given."""
    if other is not None and backward:
        return f"{place} is a source partition: with --reverse name that of the target, {other.target}"
    if other is not None:
        return f"{place} is a target partition: name that of the source, {other.source}, or add --reverse"
    side = "target" if backward else "source"
    return (
        f"lane {flow.lane} of flow {flow.flow} has copied nothing of {side} partition {place}: "
        "name one that `ferry ledger` lists, or run the flow first"
    )
