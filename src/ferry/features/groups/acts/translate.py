"""Translates an offset between the two sides of a flow, by its ledger and the target's log end."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import partial

from ferry.config.flow.flow import FlowConfig
from ferry.errors import BadInput
from ferry.features.groups.acts.flow_maps import maps_of
from ferry.features.groups.acts.offset_maps import PartitionMap, offset_maps
from ferry.features.groups.acts.repartitioned import dealt_of
from ferry.features.groups.acts.translated import is_merged
from ferry.features.groups.rules.repartition_map import read_of
from ferry.features.groups.rules.selection import merged_sentence
from ferry.features.groups.rules.translated import Maps
from ferry.features.groups.rules.translation import AtOffset, GoesOnIn, GroupTranslation, Translation, Troubled
from ferry.kafka.groups.offsets import fetch_offsets
from ferry.lane.connections import EitherSide, FlowConnections, TargetConnection, TargetFirst
from ferry.model import TopicPartition

log = logging.getLogger(__name__)


def translate(
    flow: FlowConfig, place: TopicPartition, offset: int, *, backward: bool = False, patience_s: float = 60.0
) -> Translation:
    """Return where `offset` of a source partition went; `backward`: where `offset` of a target partition came from.

    The source is asked whether it still has what was copied. If it does not answer, or its secrets are not available
    here, there is a warning. Raises Unreachable without the target. Raises Refused if one side does not have what was
    copied any more. Raises BadInput when the flow's lane has copied nothing of the partition.
    """
    with _target_first(flow, patience_s) as connection:
        _warn_of_silence(connection)
        return connection.run(partial(translate_over, connection, flow, place, offset, backward))


def _target_first(flow: FlowConfig, patience_s: float) -> TargetConnection:
    """Connect to the target, and to the source if possible: it may be lost with all that keeps its secrets."""
    try:
        return TargetFirst.of(flow, patience_s=patience_s)
    except BadInput as error:
        connection = TargetConnection.of(flow, patience_s=patience_s)  # raises the same where the target's are missing
        log.warning("whether the source still has what was copied is not known: %s", error)
        return connection


def translate_group(
    flow: FlowConfig, group: str, *, backward: bool = False, patience_s: float = 60.0
) -> GroupTranslation:
    """Translate the offsets of the source's group `group`; `backward`: those of the target's group.

    Raises Unreachable, Refused, and BadInput when the cluster has no offsets of the group, or the flow never ran.
    """
    kind: type[FlowConnections] = TargetFirst if backward else FlowConnections
    with kind.of(flow, patience_s=patience_s) as connection:
        _warn_of_silence(connection)
        return connection.run(partial(_translate_group, connection, flow, group, backward))


async def _translate_group(
    connection: FlowConnections, flow: FlowConfig, group: str, backward: bool
) -> GroupTranslation:
    cluster = connection.target if backward else connection.source
    fetched = await fetch_offsets(cluster, {group: None}, stable=False)
    for error in fetched.failed.values():
        raise error
    offsets = {place: one.offset for place, one in sorted(fetched.found.get(group, {}).items())}
    if not offsets:
        raise BadInput(
            f"group {group} has no offsets on cluster {cluster.alias}: correct the name, or see the groups that have "
            f"some with `ferry groups '{flow.flow}'`"
        )
    merged = set() if backward else {place for place in offsets if is_merged(flow, place.topic)}
    asked = {place: (offset,) for place, offset in offsets.items() if place not in merged}
    maps: Mapping[TopicPartition, Maps]
    maps = await (
        offset_maps(connection, flow.lane, asked, backward=True) if backward else maps_of(flow, connection, asked)
    )
    left = [AtOffset(place, offset) for place, offset in offsets.items() if place in asked and place not in maps]
    # What a group reads on the target apart from the copies does not belong to the flow.
    taken = {place for place, _ in left if not backward and flow.topics.selection.takes(place.topic)}
    found, troubled = [], []
    for place, offset in offsets.items():
        if place in merged:
            troubled.append(Troubled(place, offset, merged_sentence(flow.flow, group, place.topic)))
        if (made := maps.get(place)) is None:
            continue
        if (why := made.trouble_at(offset)) is not None:
            troubled.append(Troubled(place, offset, why))
        else:
            found.append((offset, _translation(place, made, offset)))
    goes_on: list[GoesOnIn] = []
    if not backward:
        led = await dealt_of(flow, connection, fetched.found.values())
        read = read_of(offsets, led)
        against = {topic: why for topic, one in led.items() if (why := one.trouble_at(read[topic])) is not None}
        troubled = [Troubled(place, offset, against.get(place.topic, why)) for place, offset, why in troubled]
        for topic, one in led.items():
            goes_on += [GoesOnIn(topic, *at) for at in sorted(one.goes_on(read[topic]).items()) if topic not in against]
    return GroupTranslation(
        group=group,
        dealt=tuple(goes_on),
        found=tuple(found),
        uncopied=tuple(one for one in left if one.place in taken),
        foreign=tuple(one for one in left if one.place not in taken),
        troubled=tuple(troubled),
    )


def _translation(place: TopicPartition, made: Maps, offset: int) -> Translation:
    source = made.source if isinstance(made, PartitionMap) else place
    return Translation(source=source, target=made.target, outcome=made.translate(offset))


def _warn_of_silence(connection: TargetConnection) -> None:
    if isinstance(connection, EitherSide) and not connection.has_source:
        why = connection.down[connection.source.alias]
        log.warning("whether the source still has what was copied is not known: %s", why)


async def translate_over(
    connection: TargetConnection, flow: FlowConfig, place: TopicPartition, offset: int, backward: bool
) -> Translation:
    """Return where `offset` of a partition is on the other side, over connections that are open.

    Raises Unreachable. Raises Refused if one side does not have what was copied any more. Raises BadInput when the
    flow's lane has copied nothing of the partition.
    """
    asked = {place: [offset]}
    maps: Mapping[TopicPartition, Maps]
    maps = await (
        offset_maps(connection, flow.lane, asked, backward=True) if backward else maps_of(flow, connection, asked)
    )
    if place not in maps:
        other = (await offset_maps(connection, flow.lane, asked, backward=not backward)).get(place)
        raise BadInput(_nothing_of(flow, place, other, backward))
    return _translation(place, maps[place], offset)


def _nothing_of(flow: FlowConfig, place: TopicPartition, other: PartitionMap | None, backward: bool) -> str:
    """Make the sentence for a partition without receipts; it corrects the name if the other side's name was given."""
    if other is not None and backward:
        return f"{place} is a source partition: with --reverse name that of the target, {other.target}"
    if other is not None:
        return f"{place} is a target partition: name that of the source, {other.source}, or add --reverse"
    side = "target" if backward else "source"
    return (
        f"lane {flow.lane} of flow {flow.flow} has copied nothing of {side} partition {place}: "
        "name one that `ferry ledger` lists, or run the flow first"
    )
