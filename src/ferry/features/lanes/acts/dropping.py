"""Drop a lane other than the live one: scratch topics and groups, its position group, and its part of the ledger.

A drop first opens a run in the lane, which fences all other runs there. It is not an error if something is deleted
already. The lane's part of the ledger is deleted last, in a transaction of the drop's driver. So a drop that was
interrupted continues when it is started again, and one that a newer run has overtaken deletes nothing of the ledger.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from ferry.clock import wall_ms
from ferry.config.flow.flow import FlowConfig
from ferry.config.flow.lane import in_lane
from ferry.errors import BadInput, FerryError, Refused
from ferry.features.lanes.acts.listing import known_lane
from ferry.features.lanes.rules.listing import Lane, forgetting_lane, lane_names
from ferry.kafka.admin.topics import delete_topics
from ferry.kafka.groups.listing import list_groups
from ferry.kafka.groups.offsets import fetch_offsets
from ferry.kafka.groups.removal import delete_group
from ferry.lane.connections import TargetConnection
from ferry.lane.open_lane import driver_port, lane_record
from ferry.lane.pruning import unswept_tombstones
from ferry.ledger.ledger import LedgerView
from ferry.ledger.runs import sealed_plan
from ferry.ledger.window_codec import Dropped, dropped_lanes
from ferry.messages.catalogue import sentence
from ferry.model import ChangeKind, Origin, Plan, lane_kind, scratch_lane
from ferry.plan.rules.skipping import idle_plan, refuse_while_at_work
from ferry.policy import DefaultReplicationPolicy, innermost
from ferry.protocol.driver import Driver, fence_and_seal
from ferry.protocol.names import ledger_topic, position_group

RUN_PREFIX = "drop-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """What is or was dropped: a lane, those of its topics that exist, and its group."""

    lane: str
    topics: tuple[str, ...]
    group: str
    records: int
    uncounted: str = ""
    """What `records` does not count, in words (`Lane.uncounted`)."""
    earlier: Dropped | None = None
    """Set if the lane was dropped before, and nothing is left of it."""


class LaneDrop:
    """The drop of one lane, over a connection to the target. Use it as a context manager."""

    def __init__(self, flow: FlowConfig, lane: str, *, patience_s: float = 60.0) -> None:
        """Choose the lane. Raises BadInput for a live lane."""
        if lane_kind(lane) is None:
            raise BadInput(
                f"lane {lane} is not dropped: only backfill-, drill- and append- lanes are, never live; ferry lanes "
                "list shows them"
            )
        self._flow = in_lane(flow, lane)
        self._lane = lane
        self._connection = TargetConnection.of(flow, patience_s=patience_s)

    def __enter__(self) -> LaneDrop:
        """Connect to the target. Raises Unreachable if it does not answer."""
        self._connection.__enter__()
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def preview(self) -> Drop:
        """Return what would be dropped; writes nothing. Raises BadInput if the ledger has no such lane."""
        return self._connection.run(self._look)

    def drop(self, run: str, origin: Origin, who: str, *, interrupt: bool = False) -> Drop:
        """Drop the lane, in a run with the id `run`; safe to repeat.

        Raises Refused while another run is active in the lane (unless `interrupt`), or if a permission is missing.
        Raises Superseded if another run of the lane was opened since: then the ledger still has the lane, and the drop
        can be repeated.
        """

        async def work() -> Drop:
            found = await self._look()
            if found.earlier is not None:
                return found
            view = await self._connection.cache.view()
            if not interrupt and not _is_dropping(view, self._lane):
                refuse_while_at_work(await self._connection.cache.view_with_newest(self._lane, 1), self._lane)
            port = driver_port(self._flow, self._lane, self._connection.ledger)
            record = lane_record(self._flow, self._lane, run, origin, slots=1)
            drivers: list[Driver] = []

            async def decide(driver: Driver) -> Plan:
                drivers.append(driver)
                return await self._decide(driver)

            await fence_and_seal(port, record, decide, view)
            # Groups before the topics: with a topic its offsets go, which show that a group is the lane's.
            for group in await self._scratch_groups(found.topics):
                await drivers[-1].refuse_superseded()
                await delete_group(self._connection.target, group)
            await drivers[-1].refuse_superseded()
            await self._delete(found.topics)
            await drivers[-1].refuse_superseded()
            await delete_group(self._connection.target, found.group)
            await self._forget(drivers[-1], found, who)
            return found

        return self._connection.run(work)

    async def _look(self) -> Drop:
        cache = self._connection.cache
        view = await cache.view()
        group = position_group(self._flow.flow, self._lane)
        names = lane_names(view)
        if self._lane not in names:
            earlier = next((one for one in dropped_lanes(view) if one.lane == self._lane), None)
            if earlier is None:
                others = ", ".join(name for name in names if lane_kind(name) is not None) or "none to drop"
                raise BadInput(f"flow {self._flow.flow} has no lane {self._lane}: its ledger knows {others}")
            return Drop(lane=self._lane, topics=(), group=group, records=0, earlier=earlier)
        lane = await known_lane(cache, self._lane)
        return Drop(
            lane=self._lane,
            topics=await self._topics(lane),
            group=group,
            records=lane.records,
            uncounted=lane.uncounted,
        )

    async def _topics(self, lane: Lane) -> tuple[str, ...]:
        """Return the lane's scratch topics that exist, also one that was created just before a run was killed.

        Raises Refused if the target hides one that the ledger has: it would stay after the lane is forgotten.
        """
        target = self._connection.target
        names = set(await target.refresh(None))
        there = {name for name in names if scratch_lane(name) == self._lane}
        known = {name for name in lane.topics if scratch_lane(name) == self._lane}
        for name in sorted(await target.hidden(known - there)):
            raise Refused(
                f"topic {name} of lane {self._lane} on cluster {target.alias} is hidden from this login: grant DELETE "
                "on it, then drop the lane again"
            )
        found = there & known
        found |= await self._ours(there - found, names)
        if found != there:
            found |= there & await self._created()
        return tuple(sorted(found))

    async def _created(self) -> set[str]:
        """Return the topics that runs of the lane created, by their plans: nothing may have been copied to them."""
        cache, view = self._connection.cache, await self._connection.cache.view()
        created: set[str] = set()
        for run in view.remembered(self._lane):
            whole = await cache.view_with(self._lane, run.record.run)
            sealed = sealed_plan(whole, self._lane, run.record.run, run.generation)
            changes = () if sealed is None else sealed[0].changes
            created |= {change.topic for change in changes if change.kind is ChangeKind.CREATE}
        return created

    async def _scratch_groups(self, topics: Collection[str]) -> list[str]:
        """Return the groups of a drill: their names have the same ending as its topics.

        A lane of another flow may have the same name. So all offsets of a group must be in `topics`, the lane's own.
        A group without offsets is not returned: they may be in topics that this login may not see.
        """
        if not topics:
            return []
        target = self._connection.target
        listed = await list_groups(target)
        listed.refuse_silent(target.alias)
        named = [group for group in listed.groups if scratch_lane(group) == self._lane]
        fetched = await fetch_offsets(target, dict.fromkeys(named), stable=False)
        for error in fetched.failed.values():
            raise error
        read = {group: {place.topic for place in places} for group, places in fetched.found.items()}
        return sorted(group for group, of in read.items() if of and of <= set(topics) and group not in fetched.denied)

    async def _ours(self, topics: Collection[str], names: Collection[str]) -> set[str]:
        """Return those of the topics that no other flow can have created, as names alone show.

        `us.east.orders` may be of a flow from `us.east`, if the target has its ledger. The target's list of topics,
        `names`, does not have a ledger that is hidden from this login, so ledgers are also asked for by name.
        """
        base = innermost(self._flow.topics.policy)
        if not isinstance(base, DefaultReplicationPolicy):
            return set()
        ledgers: dict[str, set[str]] = {}
        for topic in topics:
            if base.topic_source(topic) == self._flow.flow.source:
                parts = topic.split(base.separator)
                longer = (base.separator.join(parts[:count]) for count in range(2, len(parts)))
                ledgers[topic] = {ledger_topic(alias) for alias in longer}
        asked = {ledger for ones in ledgers.values() for ledger in ones}
        others = {*names, *await self._connection.target.hidden(asked)}
        return {topic for topic, ones in ledgers.items() if not ones & others}

    async def _decide(self, driver: Driver) -> Plan:
        self._connection.cache.learn(driver.view, driver.read_ms)
        return replace(idle_plan(driver.opened), notes=(sentence("run.lane-dropped"),))

    async def _delete(self, topics: Collection[str]) -> None:
        target = self._connection.target
        there = await target.refresh(topics) if topics else {}
        failed: dict[str, FerryError] = {**await delete_topics(target, {name: there[name].topic_id for name in there})}
        for error in failed.values():
            raise error

    async def _forget(self, driver: Driver, found: Drop, who: str) -> None:
        cache = self._connection.cache
        view = await cache.view()
        word = Dropped(lane=self._lane, who=who, at_ms=wall_ms(), topics=found.topics, records=found.records)
        rows = await cache.rows(view, lambda of: of.lane == self._lane)
        blocks = await cache.block_keys(view, lambda of: of.lane == self._lane)
        blocks += [record.key for record in await unswept_tombstones(self._connection.ledger, view, self._lane)]
        await driver.commit(forgetting_lane(view, word, rows, blocks))


def _is_dropping(view: LedgerView, lane: str) -> bool:
    """Return whether the lane's newest run is a drop that was interrupted."""
    newest = max((run for run in view.runs if run.record.lane == lane), key=lambda run: run.generation, default=None)
    return newest is not None and newest.record.run.startswith(RUN_PREFIX)
