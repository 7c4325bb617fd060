"""Commit the groups' offsets on the new cluster before it is promoted: all partitions of a group, or none."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ferry.clock import wall_ms
from ferry.config.flow.flow import FlowConfig
from ferry.errors import FerryError, Refused, Unreachable
from ferry.features.groups.acts.offset_maps import PartitionMap, offset_maps
from ferry.features.groups.acts.outside import groups_outside, why_outside
from ferry.features.groups.acts.repartitioned import maps_of_dealt
from ferry.features.groups.acts.saved_offsets import with_saved
from ferry.features.groups.acts.translated import deals, group_rules
from ferry.features.groups.rules.checkpoints import not_back
from ferry.features.groups.rules.codec import (
    Saved,
    Snapshot,
    group_record,
    held_groups,
    saved_groups,
    saved_record,
    snapshot_record,
)
from ferry.features.groups.rules.outside import OutsideGroup, from_ledger, with_known
from ferry.features.groups.rules.repartition_map import DealtMap, read_of
from ferry.features.groups.rules.selection import asked_by_name, chosen, is_own, merged_sentence
from ferry.features.groups.rules.translated import dealt_checkpoints
from ferry.features.groups.rules.written_offsets import HeldGroup
from ferry.features.identical.settings import IdenticalSettings
from ferry.features.switch.acts.engine import StillMine
from ferry.features.switch.acts.partition_state import read_ends
from ferry.features.switch.acts.quiet import groups_at_work
from ferry.features.switch.acts.sides import Sides
from ferry.features.switch.rules.moving import (
    Moving,
    NewSide,
    Placed,
    dealt_notes,
    decide_moving,
    from_memory,
    groups_not_known,
    left_at_work,
    moved_at_work,
    moved_offsets,
    moved_sentence,
    not_known,
    place_dealt,
    place_group,
    remembered,
    set_aside,
    set_outside,
    unmapped,
    without_checkpoint,
    without_receipt,
)
from ferry.features.switch.rules.names import names_of
from ferry.features.switch.rules.transformed import trouble
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.fetch.offsets import EARLIEST, LATEST, listed_offsets
from ferry.kafka.fetch.requests import READ_UNCOMMITTED
from ferry.kafka.groups.listing import list_groups
from ferry.kafka.groups.offsets import FetchedOffsets, LastCheck, commit_offsets, fetch_offsets
from ferry.lane.connections import TargetConnection, TargetFirst
from ferry.ledger.checkpoint_codec import newest_outcome
from ferry.ledger.ledger import UNREAD, LedgerView
from ferry.model import CommittedOffset, Left, Offsets, TopicPartition, Why
from ferry.model.switch import Evidence, Step, SwitchOptions, SwitchState, Verb
from ferry.words import agreeing, count_of, several

log = logging.getLogger(__name__)

MEMBERS_LEAVE_SECONDS = 60.0
"""How long groups may have members on the new cluster: a consumer's session.timeout.ms is 45 s by default."""

LOOK_SECONDS = 2.0

GroupOffsets = dict[str, dict[TopicPartition, CommittedOffset]]


def move_groups(sides: Sides, state: SwitchState, still_mine: StillMine, *, patience_s: float) -> Evidence:
    """Commit the offsets of all groups. Raises Refused, before anything is written, if a group cannot be moved.

    A group that the options leave does not count. Members on the new cluster get MEMBERS_LEAVE_SECONDS to leave,
    because after a crash the coordinator still counts the members that died with it.
    """
    until = time.monotonic() + MEMBERS_LEAVE_SECONDS
    while True:
        made = plan_groups(sides, state, patience_s=patience_s)
        against = made.against(state.switch.options)
        if not against:
            if made.unknown is not None and not state.switch.options.leave_unknown:
                raise Refused(made.unknown)
            break
        names = several([one.group for one in against])
        if not all(one.active for one in against) or time.monotonic() > until:
            raise Refused(f"{count_of(len(against), 'group')} cannot be moved ({names}), so none is: {against[0].why}")
        log.info("waiting for the members of %d groups (%s) to leave %s", len(against), names, sides.new)
        time.sleep(LOOK_SECONDS)
    moved = [one for one in made.moving if one.why is None]
    _commit_all(sides.via, made, moved, state, still_mine, patience_s)
    offsets = sum(len(one.writes) for one in moved)
    return Evidence(
        sentence=moved_sentence(made.moving, sides.old, source_answers=made.source_answers, unknown=made.unknown)
        + (f"; which other groups there are is not known: {made.hidden}" if made.hidden else ""),
        facts={
            "groups": len(moved),
            "offsets": offsets,
            "left": len(made.moving) - len(moved),
            "source_answers": made.source_answers,
            "unknown": made.unknown,
            "outside_known": made.source_answers and not made.hidden,
            "hidden": made.hidden or None,
        },
        rows=tuple(_row(one, made.read.get(one.group, {})) for one in made.moving),
    )


def move_again(sides: Sides, state: SwitchState, still_mine: StillMine, *, patience_s: float) -> list[str]:
    """Move again the groups whose offsets on the new cluster are not those that they were moved to; return their names.

    A run may have decided its checkpoint before the switch moved a group, and commit it afterwards. This is called when
    the flow is paused, so no run begins another one. Groups with members on the new cluster are left: they have read
    further.
    """
    wanted = moved_offsets(state.rows(Step.GROUPS))

    async def late() -> set[str]:
        listed = await list_groups(connection.target)
        asked = {
            group: list(places)
            for group, places in wanted.items()
            if group not in listed.groups or not listed.groups[group].is_active
        }
        now = await fetch_offsets(connection.target, asked, stable=True, operation="READ")
        return {
            group
            for group, offsets in now.found.items()
            if any(place in offsets and offsets[place].offset != at for place, at in wanted[group].items())
        }

    with TargetConnection.of(sides.via, patience_s=patience_s) as connection:
        found = connection.run(late) if wanted else set()
    if not found:
        return []
    made = plan_groups(sides, state, patience_s=patience_s)
    moved = [one for one in made.moving if one.group in found and one.why is None and one.writes]
    if moved:
        _commit_all(sides.via, made, moved, state, still_mine, patience_s)
    return [one.group for one in moved]


def _commit_all(
    flow: FlowConfig,
    made: GroupPlan,
    moved: list[Moving],
    state: SwitchState,
    still_mine: StillMine,
    patience_s: float,
) -> None:
    with TargetConnection.of(flow, patience_s=patience_s) as connection:

        async def work() -> None:
            await connection.ledger.find()
            view = await with_saved(connection.ledger, await connection.view(), flow.lane, state.switch.id)
            still_mine()
            await _commit(flow, connection, view, made, moved, state.switch.id, still_mine)

        connection.run(work)


def _row(one: Moving, read: Mapping[TopicPartition, CommittedOffset]) -> dict[str, object]:
    stood = {at: found.offset for at, found in read.items()}
    if one.outside is not None:
        stood = dict(one.outside.offsets or {})
    return {
        "group": one.group,
        "outcome": "left" if one.why is not None else "moved",
        "why": one.why,
        "from": [[at.topic, at.partition, offset] for at, offset in sorted(stood.items())],
        "again": one.again,
        "offsets": [] if one.why is not None else [[at.topic, at.partition, offset] for at, offset in one.offsets],
        "how": {str(each.place): each.word for each in (*one.writes, *one.unchanged)},
        "kept": [[each.place.topic, each.place.partition, there, each.offset] for each, there in one.kept],
        "notes": list(one.notes),
        **({} if one.outside is None else {"outside": "named" if one.named else "filter"}),
    }


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
    with TargetFirst.of(flow, patience_s=patience_s) as connections:
        old = connections.run(lambda: _old_side(flow, connections, state, settled))
        if old.read and sides.back is not None:
            try:
                backward = _backward(sides.back, old.read, patience_s)
            except (Unreachable, Refused):
                if state.switch.verb is not Verb.FAILOVER:
                    raise
                old = replace(old, lost=True)

        async def work() -> GroupPlan:
            maps = await _forward(flow, connections, old.read, old.held if old.lost else {})
            return await _decided(sides, connections, state, old, maps, backward)

        return connections.run(work)


@dataclass(frozen=True, slots=True, kw_only=True)
class _OldSide:
    """The groups of the old cluster: what it returns of them, and what the ledger remembers.

    `lost`: the old cluster does not answer. `aside` are groups of kinds that are never moved, and those that the
    operator leaves. `unknown` are the groups that the last run left without a checkpoint. Both have the reason.
    `unreported` says why there may be others. `at_work` have members there. `outside` are groups that the file leaves
    out.
    """

    held: Mapping[str, HeldGroup]
    read: GroupOffsets = field(default_factory=dict)
    lost: bool = True
    aside: Mapping[str, str] = field(default_factory=dict)
    unknown: Mapping[str, Left] = field(default_factory=dict)
    unreported: str | None = None
    at_work: frozenset[str] = frozenset()
    outside: tuple[OutsideGroup, ...] = ()
    hidden: str = ""


async def _old_side(flow: FlowConfig, connections: TargetFirst, state: SwitchState, settled: bool) -> _OldSide:
    """Read the groups from the old cluster and from the ledger. The cluster's errors are raised if it must answer."""
    await connections.ledger.find()
    view = await connections.view()

    def of_flow(group: str) -> bool:
        return flow.groups.filter.takes(group) and not is_own(group)

    leave_groups = {
        group: f"group {group} is left where it is (--leave-group)"
        for group in filter(of_flow, state.switch.options.leave_groups)
    }

    def takes(group: str) -> bool:
        return of_flow(group) and group not in leave_groups

    remembered = held_groups(view, flow.lane, of_flow)
    held = {group: one for group, one in remembered.items() if takes(group)}
    last = newest_outcome(view, flow.lane)
    last_left = [] if last is None else last.left
    left = [one for one in last_left if takes(one.group)]
    known = {*remembered, *(one.group for one in last_left)}
    aside = {one.group: one.message for one in left if one.why is Why.KIND}
    aside |= {group: why for group, why in leave_groups.items() if group in known}
    leave = state.switch.options.leave_unknown
    unreported = groups_not_known(flow.flow, last, unsynced=flow.unsynced, left=leave)
    whys = {group: why_outside(flow, group) for group in held_groups(view, flow.lane, lambda group: not is_own(group))}
    outside = {group: why for group, why in whys.items() if why is not None}
    remembered_side = _OldSide(
        held=held,
        aside=aside,
        unknown=without_checkpoint(left, held),
        unreported=unreported,
        outside=from_ledger(held_groups(view, flow.lane, outside.__contains__), outside),
    )
    if not connections.has_source:
        if settled and state.switch.verb is not Verb.FAILOVER:  # it will be back, with what groups have read since
            raise connections.down[connections.source.alias]
        return remembered_side
    try:
        listed = await list_groups(connections.source)
        rules = replace(group_rules(flow), takes_group=takes)
        taken, kinds = chosen(rules, listed.groups)
        unlisted = asked_by_name(flow.groups.filter.include.items, rules, listed.groups, held)
        names = [*(one.name for one in taken), *unlisted]
        fetched = await fetch_offsets(connections.source, dict.fromkeys(names), stable=False)
        at_work = frozenset(name for name, group in listed.groups.items() if group.is_active)
        if settled and state.switch.verb is not Verb.FAILOVER:
            fetched = await _settled(flow, connections.source, state, fetched, at_work)
        left_out = await groups_outside(flow, connections.source, listed.groups)
    except (Unreachable, Refused):
        if state.switch.verb is not Verb.FAILOVER:
            raise
        return remembered_side
    troubles: list[FerryError | str] = [*fetched.failed.values(), *listed.silent.values()]
    if troubles and state.switch.verb is not Verb.FAILOVER:
        raise Refused(f"the offsets of some groups of {flow.flow.source} are not known: {troubles[0]}")
    is_whole = not listed.silent and not left_out.hidden
    known_aside = {} if is_whole else {group: why for group, why in aside.items() if group not in listed.groups}
    return replace(
        remembered_side,
        read={group: places for group, places in fetched.found.items() if places},
        lost=bool(troubles),
        at_work=at_work,
        outside=with_known(left_out.groups, remembered_side.outside, listed.groups, is_whole=is_whole),
        hidden=left_out.hidden,
        aside=known_aside
        | {one.group: one.message for one in kinds}
        | {group: why for group, why in leave_groups.items() if group in listed.groups},
    )


async def _settled(
    flow: FlowConfig, source: Cluster, state: SwitchState, seen: FetchedOffsets, at_work: Collection[str]
) -> FetchedOffsets:
    """Read the offsets again when no open transaction and no member can change them any more.

    Raises Refused if they can still change: a consumer may have come back while the flow was drained. For groups that
    may have members (`leave_active`), the offsets that were seen count.
    """
    may_change = at_work if state.switch.options.leave_active else ()
    asked = {group: list(at) for group, at in seen.found.items() if at and group not in may_change}
    fetched = await fetch_offsets(source, asked, stable=True)
    pending = {group: places for group, places in fetched.pending.items() if places}
    if pending:
        group, places = next(iter(sorted(pending.items())))
        raise Refused(
            f"group {group} has an offset of {min(places)} on {flow.flow.source} in a transaction that is still open: "
            "end it, or wait for it to end, then continue"
        )
    active = await groups_at_work(flow, source, state.switch.options)
    if active:
        raise Refused(
            f"{agreeing(len(active), 'group has', 'groups have')} members on {flow.flow.source} again "
            f"({several(sorted(active))}): stop them, or abandon this switch and begin one with --leave-group"
        )
    return replace(seen, found={**seen.found, **fetched.found}, failed={**seen.failed, **fetched.failed})


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


def _backward(back: FlowConfig, read: GroupOffsets, patience_s: float) -> dict[TopicPartition, PartitionMap]:
    """Return the offset maps of the flow back, whose ledger is on the old cluster; empty if it never ran."""
    asked: dict[TopicPartition, set[int]] = {}
    for places in read.values():
        for place, at in places.items():
            asked.setdefault(place, set()).add(at.offset)

    async def work() -> dict[TopicPartition, PartitionMap]:
        if not await connection.has_ledger():
            return {}
        maps = await offset_maps(connection, back.lane, asked, backward=True)
        return {place: _refused(back, one) if one.transformed else one for place, one in maps.items()}

    with TargetConnection.of(back, patience_s=patience_s) as connection:
        return connection.run(work)


def _refused(back: FlowConfig, one: PartitionMap) -> PartitionMap:
    return replace(one, trouble=trouble(back.flow, one.source, one.target, back.flow.target))


async def _decided(
    sides: Sides,
    connections: TargetFirst,
    state: SwitchState,
    old: _OldSide,
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
    led = await _dealt(sides.via, connections, read)
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
    if sides.via.of(IdenticalSettings).keeps:
        placed = {
            group: ({place: without_receipt(one, ends.get(place)) for place, one in where.items()}, against)
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
    """Decide about a group with members: a planned switch waits for them or leaves the group, a failover moves it."""
    if state.switch.verb is not Verb.FAILOVER:
        return left_at_work(one.group, flow.flow) if state.switch.options.leave_active else one
    return one if one.why is not None else moved_at_work(one, flow.flow)


async def _dealt(flow: FlowConfig, connections: TargetFirst, read: GroupOffsets) -> dict[str, DealtMap]:
    """Return the offset maps of topics that have other numbers of partitions on the new cluster."""
    is_dealt = deals(flow, await connections.view())
    topics = {place.topic for at in read.values() for place in at if flow.topics.selection.takes(place.topic)}
    reads: dict[str, set[Offsets]] = {topic: set() for topic in topics if is_dealt(topic)}
    for at in read.values():
        for topic, vector in read_of({place: one.offset for place, one in at.items()}, reads).items():
            reads[topic].add(vector)
    return await maps_of_dealt(connections, flow.lane, reads) if reads else {}


async def _known_offsets(cluster: Cluster, places: Collection[TopicPartition], which: int) -> dict[TopicPartition, int]:
    """Return the log starts or ends of the partitions that exist and answer."""
    there = await cluster.refresh({place.topic for place in places}) if places else {}
    asked = [place for place in places if place.topic in there and place.partition in there[place.topic].partitions]
    return (await listed_offsets(cluster, dict.fromkeys(asked, which), isolation=READ_UNCOMMITTED)).found


def _starts(sides: Sides, state: SwitchState) -> dict[TopicPartition, dict[TopicPartition, int]]:
    """Return, by partition of the old cluster, the partitions that producers continue in, and where groups begin there.

    They begin at the end from before any producer came (step `topics`). They do not pass over records that the switch
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


async def _commit(
    flow: FlowConfig,
    connection: TargetConnection,
    view: LedgerView,
    made: GroupPlan,
    moved: list[Moving],
    switch: str,
    still_mine: StillMine,
) -> None:
    """Commit the groups' offsets. The offsets before and after are written to the ledger first (ADR 21)."""
    now_ms = wall_ms()
    earlier = saved_groups(view, flow.lane, switch) if view is not UNREAD else {}
    records = []
    for one in moved:
        if not one.writes:
            continue
        saved = dict(earlier.get(one.group, {}))
        for write in one.writes:
            first = saved.get(write.place)
            before = first.before if first is not None else made.new.offsets.get(one.group, {}).get(write.place)
            saved[write.place] = Saved(before, write.offset)
        records.append(saved_record(flow.lane, switch, one.group, saved))
        memory = remembered(one, made.new, made.held.get(one.group), now_ms)
        if memory is not None:
            records.append(group_record(flow.lane, one.group, memory, run=switch, at_ms=now_ms))
    if not records:
        return
    groups = len({*earlier, *(one.group for one in moved if one.writes)})
    # It has a name, so no later run drops it: the offsets from before a switch can be restored at any time.
    records.append(snapshot_record(flow.lane, Snapshot(name=switch, at_ms=now_ms, who="switch", groups=groups)))
    await connection.ledger.append(records)
    wanted = {
        one.group: {write.place: CommittedOffset(offset=write.offset, metadata=write.metadata) for write in one.writes}
        for one in moved
        if one.writes
    }
    # Another process may have finished the switch, and the groups may have read further since.

    async def check() -> None:
        still_mine()

    done = await commit_offsets(connection.target, wanted, last_check=LastCheck(check))
    for error in done.failed.values():
        raise error
    for group, refused in done.refused.items():
        place, why = next(iter(refused.items()))
        raise Refused(f"group {group} was written in part only, {place} not ({why}): correct that, then continue")
