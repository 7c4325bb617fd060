"""Wait until no producer writes to the old cluster, and no group has members there any more."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection

from ferry.config.flow.flow import FlowConfig
from ferry.errors import Refused
from ferry.features.groups.acts.outside import groups_outside
from ferry.features.groups.rules.outside import LeftOut
from ferry.features.groups.rules.selection import is_own
from ferry.features.switch.acts.engine import StillMine
from ferry.features.switch.acts.partition_state import source_ends
from ferry.features.switch.acts.redirect import call_hook
from ferry.features.switch.acts.sides import Sides
from ferry.features.switch.settings import SwitchHook
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.groups.listing import list_groups
from ferry.lane.connections import FlowConnections
from ferry.messages.catalogue import sentence
from ferry.model import Sentence, TopicPartition
from ferry.model.switch import Evidence, SwitchOptions, SwitchState
from ferry.words import agreeing, count_of, several

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.5

LOG_SECONDS = 10.0
"""What is waited for is logged when it has changed, but not more often than this."""


def wait_for_quiet(
    sides: Sides, state: SwitchState, still_mine: StillMine, *, hook: SwitchHook, patience_s: float
) -> Evidence:
    """Call the hook that stops clients, and wait until producers and consumers have stopped.

    Raises Refused if the hook fails, or if the time is over, with the partitions and groups that are still active.
    """
    options, flow = state.switch.options, sides.via
    called = call_hook(sides, state, hook, "stop", still_mine)
    asked = "".join(f"{one['sentence']}; " for one in called)

    async def work() -> Evidence:
        began = time.monotonic()
        waiting = await wait(flow, connections, options)
        waited = round(time.monotonic() - began, 1)
        left_out = await outside_at_work(flow, connections.source)
        outside = [one.group for one in left_out.groups]
        still = f"; of those that it leaves out, {several(outside)} may still read there" if outside else ""
        still += f"; whether other groups have members is not known: {left_out.hidden}" if left_out.hidden else ""
        excepted = options.leave_active or options.leave_groups
        taken = "other group that the file takes" if excepted else "group that the file takes"
        taken += " and that is listed" if left_out.hidden else ""
        return Evidence(
            sentence=asked
            + f"no partition of {sides.old} grew for {options.quiet_seconds:g} s, and no {taken} has members{still}",
            facts={
                "waited_seconds": waited,
                "hook": called or None,
                "outside_at_work": outside,
                "outside_known": not left_out.hidden,
            },
            rows=tuple(
                {"topic": place.topic, "partition": place.partition, "source_end": end}
                for place, end in sorted(waiting.ends.items())
            ),
        )

    with FlowConnections.of(flow, patience_s=patience_s) as connections:
        return connections.run(work)


async def wait(flow: FlowConfig, connections: FlowConnections, options: SwitchOptions) -> Waiting:
    """Wait until the cluster that is left is quiet, and return what was seen. It logs what is still active.

    Raises Refused if the time is over.
    """
    waiting = Waiting(flow, connections.source, options)
    began = time.monotonic()
    said, said_at = "", began
    while True:
        await waiting.look()
        now = time.monotonic()
        if now - waiting.moved_at >= options.quiet_seconds and not waiting.active:
            return waiting
        if now - began > options.quiet_timeout_seconds:
            raise Refused(waiting.sentence(options.quiet_timeout_seconds))
        if not said:
            said = f"quiet: waiting for {options.quiet_seconds:g} s without new records on {connections.source.alias}"
            log.info("%s, for %g s at most", said, options.quiet_timeout_seconds)
        elif now - said_at >= LOG_SECONDS and (why := waiting.why()) not in ("", said):
            said, said_at = why, now
            log.info("quiet: %s", why)
        await connections.loop.sleep(LOOK_SECONDS)


class Waiting:
    """Which partitions still grow on the cluster that is left, and which groups have members there."""

    def __init__(self, flow: FlowConfig, source: Cluster, options: SwitchOptions) -> None:
        self.ends: dict[TopicPartition, int] = {}
        self.grown: dict[TopicPartition, float] = {}
        """When each partition was last seen to have grown, by the monotonic clock in seconds."""
        self.moved_at = time.monotonic()
        self.active: set[str] = set()
        self._flow, self._source, self._options = flow, source, options

    async def look(self) -> None:
        ends, silent = await source_ends(self._flow, self._source)
        _refuse_silent(self._source, silent)
        now = time.monotonic()
        moved = {place for place, end in ends.items() if self.ends.get(place) not in (None, end)}
        if moved or not self.ends:
            self.moved_at = now
        self.grown |= dict.fromkeys(moved, now)
        self.ends = ends
        self.active = await groups_at_work(self._flow, self._source, self._options)

    def sentence(self, seconds: float) -> Sentence:
        """Say which partitions and groups are still active after this time."""
        active = {"partitions": several(self._moved()), "groups": several(sorted(self.active))}
        why = self.why() or "it has just come to rest"
        cluster = self._source.alias
        return sentence("switch.not-quiet", seconds=f"{seconds:g}", cluster=cluster, why=why, **active)

    def _moved(self) -> list[str]:
        """Return the partitions that grew a short time ago."""
        recent = time.monotonic() - self._options.quiet_seconds
        return sorted(str(place) for place, at in self.grown.items() if at > recent)

    def why(self) -> str:
        """Say which partitions and groups are still active; empty if none is."""
        found = []
        moved = self._moved()
        if moved:
            found.append(
                f"records still come to {count_of(len(moved), 'partition')} ({several(moved)}): stop their producers"
            )
        if self.active:
            found.append(
                f"{agreeing(len(self.active), 'group has', 'groups have')} members "
                f"({several(sorted(self.active))}): stop them, or abandon this switch and begin one with --leave-group"
            )
        return "; ".join(found)


async def groups_at_work(flow: FlowConfig, source: Cluster, options: SwitchOptions) -> set[str]:
    """Return groups of the flow with members on the cluster that is left, without those that the switch leaves.

    Raises Refused if a broker does not list its groups, because it is not known which groups read there.
    """
    listed = await list_groups(source)
    if listed.silent:
        node, why = next(iter(listed.silent.items()))
        one, many = f"broker of {source.alias} does not list its", f"brokers of {source.alias} do not list their"
        them = agreeing(len(listed.silent), one, many)
        raise Refused(
            f"{them} groups (broker {node}: {why}): bring {'it' if len(listed.silent) == 1 else 'them'} back, or fail "
            "over instead"
        )
    return {
        name
        for name, group in listed.groups.items()
        if group.is_active
        and not options.leave_active
        and name not in options.leave_groups
        and flow.groups.filter.takes(name)
        and not is_own(name)
    }


async def outside_at_work(flow: FlowConfig, source: Cluster) -> LeftOut:
    """Return the groups that the file leaves out, with members and offsets in topics of the flow. None holds it up."""
    listed = await list_groups(source)
    return await groups_outside(flow, source, listed.groups, active=True)


async def moved_since(flow: FlowConfig, source: Cluster, rows: Collection[dict[str, object]]) -> list[str]:
    """Return the partitions whose ends differ from a step's `rows`. Raises Refused if an end cannot be read."""
    ends, silent = await source_ends(flow, source)
    _refuse_silent(source, silent)
    known = {(row["topic"], row["partition"]): row["source_end"] for row in rows}
    return sorted(str(place) for place, end in ends.items() if known.get((place.topic, place.partition), 0) != end)


def _refuse_silent(source: Cluster, silent: Collection[TopicPartition]) -> None:
    if silent:
        ends = "its end" if len(silent) == 1 else "their ends"
        raise Refused(
            f"{count_of(len(silent), 'partition')} of {source.alias} did not report {ends} "
            f"({several([str(place) for place in silent])}): bring their brokers back, or fail over instead"
        )
