"""Decide where the groups of the old cluster continue on the new one; writes nothing."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ferry.config.flow.flow import FlowConfig
from ferry.errors import Refused, Unreachable
from ferry.features.groups.acts.offset_maps import PartitionMap, offset_maps
from ferry.features.groups.acts.repartitioned import dealt_of
from ferry.features.groups.rules.checkpoints import not_back
from ferry.features.groups.rules.repartition_map import read_of
from ferry.features.groups.rules.selection import merged_sentence
from ferry.features.groups.rules.translated import dealt_checkpoints
from ferry.features.groups.rules.written_offsets import HeldGroup
from ferry.features.switch.acts.connecting import connected
from ferry.features.switch.acts.old_groups import GroupOffsets, OldSide, old_side
from ferry.features.switch.acts.partition_state import read_ends
from ferry.features.switch.acts.sides import Sides
from ferry.features.switch.rules.moving import (
    Moving,
    NewSide,
    Placed,
    dealt_notes,
    decide_moving,
    from_memory,
    left_at_work,
    moved_at_work,
    not_known,
    place_dealt,
    place_group,
    set_aside,
    set_outside,
    unmapped,
    without_receipt,
)
from ferry.features.switch.rules.names import names_of
from ferry.features.switch.rules.old_primary import lacking_trouble, lacks_in
from ferry.features.switch.rules.transformed import trouble
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.fetch.offsets import EARLIEST, LATEST, listed_offsets
from ferry.kafka.fetch.requests import READ_UNCOMMITTED
from ferry.kafka.groups.listing import list_groups
from ferry.kafka.groups.offsets import fetch_offsets
from ferry.lane.connections import FlowConnections, TargetFirst
from ferry.model import TopicPartition
from ferry.model.switch import Step, SwitchOptions, SwitchState, Verb


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPlan:
    """What happens to each group."""

    moving: tuple[Moving, ...]
    new: NewSide
    read: GroupOffsets = field(default_factory=dict)
    """The offsets that the old cluster returns."""
    placed: Mapping[str, Mapping[TopicPartition, Placed]] = field(default_factory=dict)
    held: Mapping[str, HeldGroup] = field(default_factory=dict)
    source_answers: bool = True
    unknown: str | None = None
    """Why there may be groups that are not known; None: all are known."""
    hidden: str = ""
    """Why the old cluster, though it answers, may have groups that it does not list; empty: it lists all."""
    members_unknown: tuple[str, ...] = ()
    """Moved groups that would be left if they have members on the old cluster, which is not known."""

    def against(self, options: SwitchOptions) -> list[Moving]:
        """Return the groups that cannot be moved, and that the options do not leave."""
        return [
            one
            for one in self.moving
            if one.why is not None
            and not one.aside
            and one.group not in options.leave_groups
            and not (one.active and options.leave_active)
        ]


def plan_groups(sides: Sides, state: SwitchState, *, settled: bool = True, patience_s: float) -> GroupPlan:
    """Read the groups of both sides, and decide; writes nothing.

    If `settled`, and this is not a failover, it raises Refused while offsets may still change on the old cluster. Then
    it raises Unreachable while that does not answer.
    """
    flow = sides.via
    backward: dict[TopicPartition, PartitionMap] = {}
    with connected(sides, patience_s) as connections:
        old = connections.run(lambda: old_side(flow, connections, state, settled))
        if old.read and sides.back is not None:
            try:
                backward = _backward(sides.back, old.read, state, patience_s)
            except (Unreachable, Refused):
                if state.switch.verb is not Verb.FAILOVER:
                    raise
                old = replace(old, lost=True)

        async def work() -> GroupPlan:
            maps = await _forward(flow, connections, old.read, old.held if old.lost else {})
            return await _decided(sides, connections, state, old, maps, backward)

        return connections.run(work)


async def _forward(
    flow: FlowConfig, connections: TargetFirst, read: GroupOffsets, held: Mapping[str, HeldGroup]
) -> dict[TopicPartition, PartitionMap]:
    """Return the offset maps of the flow, for the groups' offsets on the old cluster and for those in the ledger."""
    wanted = [(place, at.offset) for places in read.values() for place, at in places.items()]
    for group in held.values():
        of = ((group.source_of(place), one.wrote.source) for place, one in group.offsets.items())
        wanted += [(place, offset) for place, offset in of if place is not None]
    asked: dict[TopicPartition, set[int]] = {}
    for place, offset in wanted:
        if flow.topics.selection.takes(place.topic):
            asked.setdefault(place, set()).add(offset)
    return await offset_maps(connections, flow.lane, asked) if asked else {}


def _backward(
    back: FlowConfig, read: GroupOffsets, state: SwitchState, patience_s: float
) -> dict[TopicPartition, PartitionMap]:
    """Return the offset maps of the flow back, whose ledger is on the old cluster; empty if it never ran.

    They lead nowhere in partitions of which the new cluster no longer holds what was copied.
    """
    lacking = {lack.source for lack in lacks_in(state)}
    asked: dict[TopicPartition, set[int]] = {}
    for places in read.values():
        for place, at in places.items():
            asked.setdefault(place, set()).add(at.offset)

    async def work() -> dict[TopicPartition, PartitionMap]:
        if not await connection.has_ledger():
            return {}
        maps = await offset_maps(connection, back.lane, asked, backward=True)
        maps = {place: _refused(back, one) if one.transformed else one for place, one in maps.items()}
        return {
            place: replace(one, trouble=lacking_trouble(one.source, back.flow.source))
            if one.source in lacking and one.trouble is None and one.cut is None
            else one
            for place, one in maps.items()
        }

    # Both clusters: groups go to the flow's source, which may not hold what was copied from it any more.
    with FlowConnections.of(back, patience_s=patience_s) as connection:
        return connection.run(work)


def _refused(back: FlowConfig, one: PartitionMap) -> PartitionMap:
    return replace(one, trouble=trouble(back.flow, one.source, one.target, back.flow.target))


async def _decided(
    sides: Sides,
    connections: TargetFirst,
    state: SwitchState,
    old: OldSide,
    maps: Mapping[TopicPartition, PartitionMap],
    backward: Mapping[TopicPartition, PartitionMap],
) -> GroupPlan:
    target, read, held = connections.target, old.read, old.held
    starts = _starts(sides, state)
    places = {one.target for one in maps.values()} | {one.source for one in backward.values()}
    if old.lost:
        places |= {place for one in held.values() for place in one.offsets}
    begins = await _known_offsets(target, places, EARLIEST)
    placed = {group: place_group(at, maps, backward, starts, begins) for group, at in read.items()}
    led = await dealt_of(sides.via, connections, read.values())
    notes = {
        group: unmapped({place: one for place, one in at.items() if place.topic not in led}, maps, backward)
        for group, at in read.items()
    }
    for group, at in read.items():
        for topic in sorted({place.topic for place in at if sides.via.topics.merge.matches(place.topic)}):
            if sides.via.topics.selection.takes(topic):
                placed[group][1].append(merged_sentence(sides.via.flow, group, topic))
        where, against = placed[group]
        for topic, vector in read_of({place: one.offset for place, one in at.items()}, led).items():
            found, why = dealt_checkpoints(group, topic, vector, led[topic])
            found = [not_back(one, held.get(group)) for one in found]
            where.update(place_dealt(found))
            against += dict.fromkeys(why.values())
            notes[group] += dealt_notes(found)
    if old.lost:
        for group, one in held.items():
            placed.setdefault(group, (from_memory(one, maps, starts, begins), []))
    placed = {group: one for group, one in placed.items() if one[0] or one[1]}
    memory = {group: one for group, one in held.items() if old.lost and group in placed and group not in read}
    blank = await _without_checkpoint(target, memory, placed)
    wanted = {group: {*where, *blank.get(group, ())} for group, (where, _) in placed.items()}
    ends = await _known_offsets(target, {place for some in wanted.values() for place in some}, LATEST)
    begins |= await _known_offsets(target, {place for some in blank.values() for place in some}, EARLIEST)
    same = {one.target for one in maps.values() if one.identical}
    placed = {
        group: (
            {
                place: without_receipt(one, ends.get(place)) if one.by == "via" and place in same else one
                for place, one in where.items()
            },
            against,
        )
        for group, (where, against) in placed.items()
    }
    remembered_places = {place for group in memory for place in wanted[group]} & ends.keys()
    remembered_ends = await read_ends(sides, connections, {place: ends[place] for place in remembered_places})
    listed = await list_groups(target)
    quiet = {
        group: list(wanted[group])
        for group in placed
        if group not in listed.groups or not listed.groups[group].is_active
    }
    now = await fetch_offsets(target, quiet, stable=True, operation="READ")
    new = NewSide(
        alias=sides.new,
        listed=listed.groups,
        offsets=now.found,
        pending=now.pending,
        ends=ends,
        read_ends=remembered_ends,
        failed={group: str(error) for group, error in now.failed.items()},
    )
    moving = [
        decide_moving(
            group,
            where,
            against,
            new,
            held.get(group),
            notes.get(group, ()),
            {
                place: max(0, end - begins[place])
                if (end := new.read_end(place)) is not None and place in begins
                else None
                for place in blank.get(group, ())
                if place not in new.offsets.get(group, {})
            },
        )
        for group, (where, against) in sorted(placed.items())
        if group not in old.aside
    ]
    if old.lost:
        moving = [one for one in moving if one.why is not None or one.group not in old.unknown]
        known = {one.group for one in moving}
        moving += [
            not_known(one, sides.via.flow, listed.groups.get(group))
            for group, one in sorted(old.unknown.items())
            if group not in known and group not in read
        ]
    moving = [_at_work(one, sides.via, state) if one.group in old.at_work else one for one in moving]
    is_whole = not old.lost and not old.hidden
    leaves = state.switch.options.leave_active and not is_whole
    unknown = tuple(one.group for one in moving if leaves and one.why is None and one.group not in old.listed)
    moving += [set_aside(group, why) for group, why in sorted(old.aside.items())]
    named = state.switch.options.leave_groups
    moving += [set_outside(one, sides.via.flow, named=one.group in named) for one in old.outside]
    return GroupPlan(
        moving=tuple(moving),
        new=new,
        read=read,
        placed={group: where for group, (where, _) in placed.items()},
        held=held,
        source_answers=not old.lost,
        unknown=old.unreported if old.lost else None,
        hidden=old.hidden,
        members_unknown=unknown,
    )


async def _without_checkpoint(
    target: Cluster, memory: Mapping[str, HeldGroup], placed: Mapping[str, tuple[Mapping[TopicPartition, Placed], Any]]
) -> dict[str, set[TopicPartition]]:
    """Return the partitions of the copies that groups read of which the ledger has no offset of theirs."""
    topics = {place.topic for one in memory.values() for place in one.offsets}
    there = await target.refresh(topics) if topics else {}
    found: dict[str, set[TopicPartition]] = {}
    for group, one in memory.items():
        names = {place.topic for place in one.offsets} & there.keys()
        places = {TopicPartition(topic=name, partition=number) for name in names for number in there[name].partitions}
        found[group] = places - placed[group][0].keys()
    return found


def _at_work(one: Moving, flow: FlowConfig, state: SwitchState) -> Moving:
    """Decide about a group with members: `leave_active` leaves it. Else a planned switch waits, a failover moves it."""
    if state.switch.options.leave_active:
        return left_at_work(one.group, flow.flow)
    if state.switch.verb is not Verb.FAILOVER or one.why is not None:
        return one
    return moved_at_work(one, flow.flow)


async def _known_offsets(cluster: Cluster, places: Collection[TopicPartition], which: int) -> dict[TopicPartition, int]:
    """Return the log starts or ends of the partitions that exist and answer."""
    there = await cluster.refresh({place.topic for place in places}) if places else {}
    asked = [place for place in places if place.topic in there and place.partition in there[place.topic].partitions]
    return (await listed_offsets(cluster, dict.fromkeys(asked, which), isolation=READ_UNCOMMITTED)).found


def _starts(sides: Sides, state: SwitchState) -> dict[TopicPartition, dict[TopicPartition, int]]:
    """Return, by partition of the old cluster, the partitions that producers continue in, and where groups begin there.

    They begin at the end from before any producer came (step `topics`). They do not skip records that the switch
    before left there, because no group has read them.
    """
    found: dict[TopicPartition, dict[TopicPartition, int]] = {}
    left = {(row["topic"], row["partition"]): int(row["start"]) for row in state.rows(Step.STRANDED)}
    for row in state.rows(Step.TOPICS):
        live = TopicPartition(topic=row["topic"], partition=row["partition"])
        made = names_of(sides.via, live.topic, sides.clusters)
        begin: int = row["begin"] if "begin" in row else row["end"]  # an earlier Ferry recorded only the end
        if made is not None:
            found[TopicPartition(topic=made.topic, partition=live.partition)] = {
                live: min(begin, left.get((live.topic, live.partition), begin))
            }
    return found
