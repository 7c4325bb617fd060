"""Reads the consumer groups of both sides of a flow: their positions, and what these are on the other side."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from ferry.config.flow.flow import FlowConfig
from ferry.errors import FerryError
from ferry.features.groups.acts.flow_maps import maps_of
from ferry.features.groups.acts.translated import group_rules, is_merged
from ferry.features.groups.rules.codec import held_groups
from ferry.features.groups.rules.offset_map import Translated
from ferry.features.groups.rules.selection import asked_by_name, is_own, merged_sentence
from ferry.features.groups.rules.table import GroupsOfSide, GroupTable, NotShown, group_tables, narrowed, places_of
from ferry.features.groups.rules.translated import Maps
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.fetch.offsets import LATEST, listed_offsets
from ferry.kafka.fetch.requests import READ_UNCOMMITTED
from ferry.kafka.groups.listing import describe_groups, list_groups
from ferry.kafka.groups.offsets import fetch_offsets
from ferry.lane.connections import EitherSide
from ferry.model import GroupKind, ListedGroup, TopicPartition
from ferry.model.group import NO_STATE

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupsFound:
    """The tables, made one by one as they are asked for; what they lack; and the brokers of each cluster, by id."""

    tables: Iterator[GroupTable]
    not_shown: tuple[NotShown, ...]
    brokers: Mapping[str, Mapping[int, str]]


def find_groups(
    flow: FlowConfig,
    *,
    groups: Collection[str] = (),
    topics: Collection[str] = (),
    patience_s: float = 60.0,
) -> GroupsFound:
    """Read the groups of these names, or all that the flow's filter takes.

    `topics`, of either side, limit the tables to those topics; empty: all topics. Writes nothing. No request is made
    for a single group, so thousands are quick. A side that does not answer is named, and the other one is shown. Raises
    Unreachable or Refused when neither answers.
    """
    with EitherSide.of(flow, patience_s=patience_s) as connections:
        return connections.run(partial(_find, flow, connections, frozenset(groups), frozenset(topics)))


@dataclass(slots=True)
class _Lacking:
    """Collects what cannot be shown."""

    notes: list[NotShown] = field(default_factory=list)

    def note(self, cluster: Cluster, why: object, group: str | None = None) -> None:
        self.notes.append(NotShown(cluster=cluster.alias, group=group, why=str(why)))


async def _find(
    flow: FlowConfig, connections: EitherSide, groups: frozenset[str], topics: frozenset[str]
) -> GroupsFound:
    lacking = _Lacking()
    for cluster in (connections.source, connections.target):
        if cluster.alias in connections.down:
            lacking.note(cluster, connections.down[cluster.alias])
    renamed = {topic: flow.copy_of(topic) for topic in topics}
    names = topics.union(renamed.values())
    sides: dict[str, GroupsOfSide] = {flow.flow.source: GroupsOfSide(), flow.flow.target: GroupsOfSide()}
    named = groups or await _by_name(flow, connections, lacking)
    for cluster, looking in connections.both(partial(_standing, flow, groups, named, lacking)):
        try:
            side = await looking
        except FerryError as error:
            connections.down[cluster.alias] = error
            lacking.note(cluster, error)
            continue
        sides[cluster.alias] = narrowed(side, names) if names else side
    topics_here = {place.topic for places in sides[flow.flow.source].offsets.values() for place in places}
    merged = {topic for topic in topics_here if is_merged(flow, topic)}
    maps = await _maps(flow, connections, sides[flow.flow.source], merged, lacking)
    for why in sorted(_troubles(sides[flow.flow.source], maps)):
        lacking.note(connections.target, why)
    for group, places in sorted(sides[flow.flow.source].offsets.items() if merged else ()):
        for topic in sorted({place.topic for place in places} & merged):
            lacking.note(connections.target, merged_sentence(flow.flow, group, topic), group)
    stood_on = {alias: places_of(side) for alias, side in sides.items()}
    stood_on[flow.flow.target] |= {one.target for one in maps.values()}
    for cluster, ends in connections.both(partial(_ends, stood_on, lacking)):
        sides[cluster.alias] = replace(sides[cluster.alias], ends=await ends)
    source, target = sides[flow.flow.source], sides[flow.flow.target]
    _note_strange_names(connections, groups, renamed, source, target, lacking)

    def translate(place: TopicPartition, offset: int) -> tuple[TopicPartition, Translated] | None:
        made = maps.get(place)
        return None if made is None or made.trouble_at(offset) is not None else (made.target, made.translate(offset))

    return GroupsFound(
        tables=group_tables(sorted(groups or source.groups | target.groups), source, target, translate),
        not_shown=tuple(lacking.notes),
        brokers={
            cluster.alias: dict(zip(cluster.brokers, cluster.addresses, strict=True))
            for cluster in (connections.source, connections.target)
            if cluster.alias not in connections.down
        },
    )


async def _by_name(flow: FlowConfig, connections: EitherSide, lacking: _Lacking) -> frozenset[str]:
    """Return the groups to ask for by name, those of the file and the ledger: a cluster lists no hidden ones."""
    rules = group_rules(flow)
    held: Collection[str] = ()
    try:
        if connections.target.alias not in connections.down:
            held = held_groups(await connections.view_if_any(), flow.lane, rules.concern)
    except FerryError as error:
        lacking.note(connections.target, f"groups that this login may not see are not known: {error}")
    return frozenset(asked_by_name(flow.groups.filter.include.items, rules, (), held))


async def _standing(
    flow: FlowConfig, groups: frozenset[str], named: frozenset[str], lacking: _Lacking, cluster: Cluster
) -> GroupsOfSide:
    """Read the groups of one cluster, their members and their offsets; those of `named` even if it lists them not."""
    found = await list_groups(cluster)
    for node, why in found.silent.items():
        lacking.note(cluster, f"broker {node} of cluster {cluster.alias} does not list its groups: {why}")
    listed = {name: group for name, group in found.groups.items() if _is_asked(flow, groups, name)}
    asked = [group.name for group in listed.values() if group.kind is not GroupKind.SHARE]
    asked += sorted(named - found.groups.keys())
    fetched = await fetch_offsets(cluster, dict.fromkeys(asked), stable=False)
    # The other groups have no members. Brokers before 2.6 do not report the state.
    described = await describe_groups(cluster, (one for one in listed.values() if one.is_active or _is_mute(one)))
    for group, error in (fetched.failed | described.failed).items():
        lacking.note(cluster, error, group)
    for group, hidden in fetched.denied.items():
        names = ", ".join(sorted(hidden))
        lacking.note(cluster, f"offsets of group {group} on {names} are hidden: grant DESCRIBE on the topic", group)
    offsets = {group: places for group, places in fetched.found.items() if places or group in listed}
    return GroupsOfSide(
        listed=listed,
        described=described.groups,
        offsets=offsets,
        failed=frozenset(fetched.failed.keys() - listed.keys()),
    )


def _is_asked(flow: FlowConfig, groups: frozenset[str], name: str) -> bool:
    return name in groups if groups else flow.groups.filter.takes(name) and not is_own(name)


def _is_mute(group: ListedGroup) -> bool:
    return group.state == NO_STATE


async def _maps(
    flow: FlowConfig, connections: EitherSide, source: GroupsOfSide, merged: Collection[str], lacking: _Lacking
) -> Mapping[TopicPartition, Maps]:
    """Return the offset maps of the partitions on which the source's groups have offsets; none before the first run.

    A merged topic has none, because no offset of its copy is right for a group.
    """
    asked: dict[TopicPartition, set[int]] = {}
    for places in source.offsets.values():
        for place, committed in places.items():
            if place.topic not in merged:
                asked.setdefault(place, set()).add(committed.offset)
    if not asked or connections.target.alias in connections.down:
        return {}
    try:
        return await maps_of(flow, connections, asked) if await connections.has_ledger() else {}
    except FerryError as error:
        lacking.note(connections.target, f"nothing is translated: {error}")
        return {}


def _troubles(source: GroupsOfSide, maps: Mapping[TopicPartition, Maps]) -> set[str]:
    """Return why offsets of the source's groups are not translated, each reason once."""
    standing = ((place, one.offset) for places in source.offsets.values() for place, one in places.items())
    return {why for place, offset in standing if place in maps and (why := maps[place].trouble_at(offset)) is not None}


async def _ends(
    places: Mapping[str, Collection[TopicPartition]], lacking: _Lacking, cluster: Cluster
) -> Mapping[TopicPartition, int]:
    """Return the high watermarks of the cluster's partitions."""
    try:
        wanted = dict.fromkeys(places[cluster.alias], LATEST)
        found = await listed_offsets(cluster, wanted, isolation=READ_UNCOMMITTED)
    except FerryError as error:
        lacking.note(cluster, f"log sizes of cluster {cluster.alias}: {error}")
        return {}
    for place, unserved in found.failed.items():
        lacking.note(cluster, f"log size of {place} on cluster {cluster.alias}: {unserved.why}")
    return found.found


def _note_strange_names(
    connections: EitherSide,
    groups: Collection[str],
    topics: Mapping[str, str],
    source: GroupsOfSide,
    target: GroupsOfSide,
    lacking: _Lacking,
) -> None:
    """Note each name that was asked for and that neither side has; `topics` are given with the names of their copies.

    While a side is down that is not known, and nothing is noted.
    """
    if connections.down:
        return
    where = f"neither cluster {connections.source.alias} nor {connections.target.alias}"
    for group in sorted(set(groups) - source.groups - target.groups - source.failed - target.failed):
        lacking.note(
            connections.source, f"{where} has a group {group}, or shows it to this login: correct the name", group
        )
    stood_on = {place.topic for place in places_of(source) | places_of(target)}
    for topic, copy in sorted(topics.items()):
        if topic not in stood_on and copy not in stood_on:
            lacking.note(connections.source, f"no group has an offset on {topic} on either side: correct the name")
