"""The rehearsal of a flow's groups: offsets translated by a drill's copies, and committed to scratch groups.

In the live lane the groups keep their own names, and the drill only reads where they continue.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ferry.config.flow.clients import flow_fetch_options
from ferry.config.flow.flow import FlowConfig
from ferry.errors import Superseded
from ferry.features.drill.acts.next_records import next_records
from ferry.features.drill.rules.group_positions import GroupPosition, Record, dealt_positions, is_same, moved
from ferry.features.groups.acts.flow_maps import maps_of
from ferry.features.groups.acts.offset_maps import PartitionMap, offset_maps
from ferry.features.groups.acts.outside import groups_outside
from ferry.features.groups.acts.repartitioned import dealt_of
from ferry.features.groups.acts.translated import deals, group_rules, is_merged
from ferry.features.groups.rules.both_ways import BothWays, ForwardAlone
from ferry.features.groups.rules.codec import held_groups
from ferry.features.groups.rules.outside import OutsideGroup
from ferry.features.groups.rules.repartition_map import read_of
from ferry.features.groups.rules.selection import NOT_TRANSLATABLE, asked_by_name, is_own, merged_sentence
from ferry.features.groups.rules.translated import Maps
from ferry.features.switch.acts.passed_over import look_at_passed
from ferry.features.switch.rules.passed_over import by_partition, unread_of
from ferry.kafka.fetch.requests import READ_COMMITTED
from ferry.kafka.groups.listing import list_groups
from ferry.kafka.groups.offsets import LastCheck, commit_offsets, fetch_offsets
from ferry.lane.connections import FlowConnections
from ferry.ledger.runs import newest_run
from ferry.messages.catalogue import sentence
from ferry.model import CommittedOffset, RecordContent, TopicPartition, lane_kind, scratch_topic
from ferry.model.evidence import GroupMoved
from ferry.plan.gather import isolation_of

GroupOffsets = Mapping[str, Mapping[TopicPartition, CommittedOffset]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsed:
    """The groups' offsets, and why a group could not be written, by group."""

    standings: dict[str, list[GroupPosition]]
    refused: dict[str, str]

    @property
    def committed(self) -> list[GroupPosition]:
        """All offsets that were written."""
        return [
            one
            for group, standings in self.standings.items()
            if group not in self.refused
            for one in standings
            if one.is_committed
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScratchGroups:
    """Groups of one flow in a lane, over open connections; `flow` is in that lane. `only` names them; None: all."""

    flow: FlowConfig
    connections: FlowConnections
    only: frozenset[str] | None = None
    unreported: dict[str, str] = field(default_factory=dict)
    """Why groups, or all groups of a broker, are missing in the offsets that were found."""
    shares: set[str] = field(default_factory=set)
    """Share groups that were found: their offsets cannot be moved."""
    outside: list[OutsideGroup] = field(default_factory=list)
    """Groups that the file leaves out, though they have offsets in the topics; none where groups are named (`only`)."""
    hidden: set[str] = field(default_factory=set)
    """Why the source may have other groups, which it does not list to this login; empty where groups are named."""

    def name(self, group: str) -> str:
        """Return the name of a group on the target."""
        return scratch_topic(group, self.flow.lane)

    async def standings(self, topics: Collection[str] | None) -> dict[str, list[GroupPosition]]:
        """Return the source groups' offsets in the flow's topics, with their translation.

        If `topics` are given, only offsets in these are returned.
        """
        source = self.connections.source
        listed = await list_groups(source)
        wanted = [
            group
            for name, group in sorted(listed.groups.items())
            if self.flow.groups.filter.takes(name) and not is_own(name) and (self.only is None or name in self.only)
        ]
        names = [group.name for group in wanted if group.kind not in NOT_TRANSLATABLE]
        rules = group_rules(self.flow, only=self.only)
        held = held_groups(await self.connections.view(), self.flow.lane, rules.concern)
        names += asked_by_name(self.flow.groups.filter.include.items, rules, listed.groups, held)
        fetched = await fetch_offsets(source, dict.fromkeys(names), stable=False)
        offsets = fetched.found
        self.shares.update(group.name for group in wanted if group.kind in NOT_TRANSLATABLE)
        self.unreported.update(
            {f"the groups of broker {node} of {source.alias}": why for node, why in listed.silent.items()}
        )
        self.unreported.update({f"group {group}": str(error) for group, error in fetched.failed.items()})
        if self.only is None:
            left_out = await groups_outside(self.flow, source, listed.groups, only=topics)
            self.outside[:] = left_out.groups
            self.hidden.update([left_out.hidden] if left_out.hidden else [])
        taken = {
            group: {place: at for place, at in sorted(places.items()) if self._takes(place.topic, topics)}
            for group, places in offsets.items()
        }
        return await self._placed({group: places for group, places in taken.items() if places})

    async def _placed(self, taken: GroupOffsets) -> dict[str, list[GroupPosition]]:
        """Translate offsets: in the live lane as a run and a switch do, in a drill's own lane by its copies alone."""
        flow, connections = self.flow, self.connections
        is_live = lane_kind(flow.lane) is None
        view = await connections.view()
        begun = bool(view.runs)
        led = await dealt_of(flow, connections, taken.values()) if is_live and begun else {}
        is_dealt = deals(flow, view)
        asked: dict[TopicPartition, set[int]] = {}
        for places in taken.values():
            for place, at in places.items():
                if not is_live or not (is_merged(flow, place.topic) or is_dealt(place.topic)):
                    asked.setdefault(place, set()).add(at.offset)
        maps: Mapping[TopicPartition, Maps] = {}
        if asked and begun:
            maps = await (maps_of(flow, connections, asked) if is_live else offset_maps(connections, flow.lane, asked))
        passed = by_partition(await look_at_passed(flow, connections))
        found: dict[str, list[GroupPosition]] = {}
        for group, places in taken.items():
            ones = found[group] = []
            for place, at in places.items():
                if place.topic in led:
                    continue
                standing = GroupPosition(group=group, source=place, offset=at.offset, is_window=not is_live)
                made = maps.get(place)
                if is_live and is_merged(flow, place.topic):
                    standing = replace(standing, why=merged_sentence(flow.flow, group, place.topic))
                elif made is not None and (why := made.trouble_at(at.offset)) is not None:
                    standing = replace(standing, why=why)
                elif made is not None:
                    standing = replace(
                        standing,
                        target=made.target,
                        became=made.translate(at.offset),
                        unread=unread_of(passed, [(place, at.offset)]),
                        copied_end=_copied_end(made),
                    )
                ones.append(standing)
            for topic, read in read_of({place: at.offset for place, at in places.items()}, led).items():
                unread = unread_of(passed, [(TopicPartition(topic, number), at) for number, at in enumerate(read)])
                ones += dealt_positions(group, topic, read, led[topic], unread)
        return found

    def _takes(self, topic: str, topics: Collection[str] | None) -> bool:
        return self.flow.topics.selection.takes(topic) and (topics is None or topic in topics)

    async def rehearse(self, topics: Collection[str] | None) -> Rehearsed:
        """Translate the offsets, and commit each group as a whole to its scratch group.

        Raises Superseded if another run of the lane begins meanwhile, as `ferry lanes drop` does.
        """
        lane = self.flow.lane
        before = newest_run(await self.connections.view(), lane)

        async def check() -> None:
            now = newest_run(await self.connections.view(), lane)
            if now != before:
                what = "the lane was dropped" if now is None else f"run {now.record.run} began"
                raise Superseded(sentence("superseded.drill", lane=lane, what=what))

        standings = await self.standings(topics)
        troubled = {group: one.why for group, ones in standings.items() for one in reversed(ones) if one.why}
        wanted = {
            self.name(group): {
                one.target: CommittedOffset(offset=one.became.offset)
                for one in ones
                if one.target is not None and one.became is not None and one.is_committed
            }
            for group, ones in standings.items()
            if group not in troubled
        }
        done = await commit_offsets(
            self.connections.target,
            {group: to for group, to in wanted.items() if to},
            last_check=LastCheck(check),
        )
        refused = dict(troubled)
        for group in standings:
            name = self.name(group)
            if name in done.failed:
                refused[group] = str(done.failed[name])
            elif done.refused.get(name):
                refused[group] = next(iter(done.refused[name].values()))
        return Rehearsed(standings=standings, refused=refused)

    async def read(self, done: Rehearsed) -> dict[TopicPartition, dict[int, RecordContent | None]]:
        """Return the first record that each scratch group gets, by target partition and offset."""
        committed = await fetch_offsets(
            self.connections.target,
            {self.name(group): None for group in done.standings if group not in done.refused},
            stable=False,
        )
        for error in committed.failed.values():
            raise error
        moved_to = {one.target for one in done.committed}
        wanted = {
            (place, at.offset)
            for places in committed.found.values()
            for place, at in places.items()
            if place in moved_to
        }
        return await self._read_all(wanted, at_source=False)

    async def compared(
        self, done: Rehearsed, there: dict[TopicPartition, dict[int, RecordContent | None]]
    ) -> tuple[GroupMoved, ...]:
        """Return the groups, each with whether it gets the same next record at the target as at the source."""
        whole = {(one.source, one.offset) for one in done.committed if not one.dealt}
        here = await self._read_all(whole, at_source=True)
        found = []
        for group, standings in sorted(done.standings.items()):
            same = {}
            for one in standings:
                if one.dealt:  # no single record is next
                    continue
                if one.is_committed and one.target is not None and one.became is not None and group not in done.refused:
                    next_here = here[one.source][one.offset]
                    next_there = there.get(one.target, {}).get(one.became.offset)
                    if one.became.offset not in there.get(one.target, {}):
                        same[one.source] = False  # the group does not have the offset that it should have
                        continue
                    same[one.source] = is_same(
                        _record(next_here),
                        next_here.offset if next_here is not None else one.offset,
                        _record(next_there),
                        one.copied_end,
                    )
            found.append(moved(group, self.name(group), standings, refused=done.refused.get(group, ""), same=same))
        return tuple(found)

    async def _read_all(
        self, wanted: Collection[tuple[TopicPartition, int]], *, at_source: bool
    ) -> dict[TopicPartition, dict[int, RecordContent | None]]:
        """Return the next record of each partition and offset.

        Offsets of one partition are read one after the other.
        """
        found: dict[TopicPartition, dict[int, RecordContent | None]] = {}
        left: Sequence[tuple[TopicPartition, int]] = sorted(wanted)
        while left:
            first: dict[TopicPartition, int] = {}
            for place, offset in left:
                first.setdefault(place, offset)
            read = await next_records(
                self.connections.source if at_source else self.connections.target,
                first,
                isolation=isolation_of(self.flow) if at_source else READ_COMMITTED,
                memory_bytes=self.flow.copy.task_memory_bytes,
                options=flow_fetch_options(self.flow),
            )
            for place, record in read.items():
                found.setdefault(place, {})[first[place]] = record
            left = [(place, offset) for place, offset in left if offset not in found[place]]
        return found


def _copied_end(made: Maps | None) -> int:
    """Return the source offset at which copies end, of the flow and of the opposite one."""
    if isinstance(made, BothWays):
        return max(_copied_end(made.forward), _copied_end(made.backward))
    if isinstance(made, ForwardAlone):
        return _copied_end(made.forward)
    return made.offsets.end if isinstance(made, PartitionMap) else 0


def _record(content: RecordContent | None) -> Record | None:
    return None if content is None else content[1:]
