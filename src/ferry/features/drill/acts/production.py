"""The state of the target that a drill must not change, before and after it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ferry.config.flow.flow import FlowConfig
from ferry.features.groups.rules.selection import is_own
from ferry.kafka.fetch.offsets import LATEST, listed_offsets
from ferry.kafka.fetch.requests import READ_UNCOMMITTED
from ferry.kafka.groups.listing import list_groups
from ferry.kafka.groups.offsets import fetch_offsets
from ferry.lane.connections import FlowConnections
from ferry.ledger.ledger import LedgerView
from ferry.ledger.receipts import last_receipts
from ferry.model import TopicPartition, scratch_lane
from ferry.model.check import Check
from ferry.words import count_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Production:
    """The flow's copies on the target, the offsets of its groups there, and the newest run of the live lane."""

    topics: Mapping[str, str]
    """The ids of all topics by name, without those of drills and backfills.

    The flow's copies among them have `ends`.
    """
    ends: Mapping[TopicPartition, int]
    groups: Mapping[str, Mapping[TopicPartition, int]]
    active: frozenset[str]
    unread: Mapping[str, str]
    """Why groups, or all groups of a broker, did not return their offsets, by their names."""
    newest_run: str
    written: int
    """The sum of the source offsets up to which the live lane has receipts."""


async def production(flow: FlowConfig, connections: FlowConnections, view: LedgerView) -> Production:
    """Read the state of the target. `flow` is the flow as in the file, and `view` its ledger now."""
    target = connections.target
    there = await target.refresh(None)
    lasts = last_receipts(view, flow.lane)
    copies = [place for place in lasts if place.topic in there]
    ends = await listed_offsets(target, dict.fromkeys(copies, LATEST), isolation=READ_UNCOMMITTED)
    listed = await list_groups(target)
    names = [
        name for name in listed.groups if flow.groups.filter.takes(name) and not is_own(name) and not _is_scratch(name)
    ]
    offsets = await fetch_offsets(target, dict.fromkeys(names), stable=False)
    live = [run.record.run for run in view.runs if run.record.lane == flow.lane]
    return Production(
        topics={name: info.id_text for name, info in there.items() if scratch_lane(name) is None},
        ends=ends.found,
        groups={group: {place: at.offset for place, at in found.items()} for group, found in offsets.found.items()},
        active=frozenset(name for name in names if listed.groups[name].is_active),
        unread={
            **{f"broker {node}": why for node, why in listed.silent.items()},
            **{f"group {group}": str(error) for group, error in offsets.failed.items()},
        },
        newest_run=live[-1] if live else "",
        written=sum(last.end for last in lasts.values()),
    )


def _is_scratch(group: str) -> bool:
    return scratch_lane(group) is not None


def untouched(before: Production, after: Production, flow: FlowConfig) -> tuple[Check, ...]:
    """Check that production did not change. What live runs and members of groups did meanwhile does not count."""
    live = before.newest_run != after.newest_run or before.written != after.written
    meanwhile = f", but for what live run {after.newest_run} did meanwhile" if live else ""
    return (_topics(before, after, flow, live, meanwhile), _groups(before, after, flow, live, meanwhile))


def _topics(before: Production, after: Production, flow: FlowConfig, live: bool, meanwhile: str) -> Check:
    name = f"The flow's topics on {flow.flow.target} are untouched"
    copies = sorted({place.topic for place in before.ends})
    other = [topic for topic in copies if after.topics.get(topic) != before.topics.get(topic)]
    grown = [place for place, end in before.ends.items() if after.ends.get(place) != end]
    if other:
        return Check(
            name=name, ok=False, message=f"{other[0]} is gone or was created again ({count_of(len(other), 'topic')})"
        )
    if grown and not live:
        return Check(
            name=name, ok=False, message=f"the end of {min(grown)} moved ({count_of(len(grown), 'partition')})"
        )
    return Check(
        name=name,
        ok=True,
        message=f"{count_of(len(copies), 'topic')}, {count_of(len(before.ends), 'partition')}: ids and ends are what "
        f"they were{meanwhile}",
    )


def _groups(before: Production, after: Production, flow: FlowConfig, live: bool, meanwhile: str) -> Check:
    name = f"The groups on {flow.flow.target} are untouched"
    unread = {**before.unread, **after.unread}
    if unread:
        first, why = min(unread.items())
        return Check(name=name, ok=False, message=f"{first} did not report its offsets ({len(unread)} did not): {why}")
    active = before.active | after.active
    rest = {group for group in before.groups.keys() | after.groups.keys() if group not in active}
    moved = sorted(group for group in rest if before.groups.get(group, {}) != after.groups.get(group, {}))
    if moved and not live:
        return Check(name=name, ok=False, message=f"the offsets of {moved[0]} moved ({count_of(len(moved), 'group')})")
    members = f"; {len(active)} with members move their own" if active else ""
    return Check(
        name=name,
        ok=True,
        message=f"{count_of(len(rest), 'group')}: the offsets are what they were{meanwhile}{members}",
    )
