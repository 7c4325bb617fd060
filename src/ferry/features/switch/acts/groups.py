"""Commit the groups' offsets on the new cluster before it is promoted: all partitions of a group, or none."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping

from ferry.clock import wall_ms
from ferry.config.flow.flow import FlowConfig
from ferry.errors import Refused
from ferry.features.groups.acts.saved_offsets import with_saved
from ferry.features.groups.rules.codec import (
    Saved,
    Snapshot,
    group_record,
    saved_groups,
    saved_record,
    snapshot_record,
    snapshots,
)
from ferry.features.switch.acts.engine import StillMine
from ferry.features.switch.acts.group_plan import GroupPlan, plan_groups
from ferry.features.switch.acts.sides import Sides
from ferry.features.switch.rules.moving import (
    Moving,
    members_sentence,
    moved_offsets,
    moved_sentence,
    remembered,
)
from ferry.kafka.groups.listing import list_groups
from ferry.kafka.groups.offsets import LastCheck, commit_offsets, fetch_offsets
from ferry.lane.connections import TargetConnection
from ferry.ledger.ledger import UNREAD, LedgerView
from ferry.messages.catalogue import caused, sentence
from ferry.model import CommittedOffset, TopicPartition
from ferry.model.switch import Evidence, Step, SwitchState
from ferry.words import several

log = logging.getLogger(__name__)

WHO = "switch"
"""Who took the snapshot of a switch: no operator has this name, which is `user@host`."""

MEMBERS_LEAVE_SECONDS = 60.0
"""How long groups may have members on the new cluster: a consumer's session.timeout.ms is 45 s by default."""

LOOK_SECONDS = 2.0


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
            raise Refused(caused("switch.groups-stay", against[0].why, groups=len(against), names=names))
        log.info("waiting for the members of %d groups (%s) to leave %s", len(against), names, sides.new)
        time.sleep(LOOK_SECONDS)
    moved = [one for one in made.moving if one.why is None]
    _commit_all(sides.via, made, moved, state, still_mine, patience_s)
    offsets = sum(len(one.writes) for one in moved)
    return Evidence(
        sentence=moved_sentence(made.moving, sides.old, source_answers=made.source_answers, unknown=made.unknown)
        + (f"; which other groups there are is not known: {made.hidden}" if made.hidden else "")
        + members_sentence(made.members_unknown, sides.old),
        facts={
            "groups": len(moved),
            "offsets": offsets,
            "left": len(made.moving) - len(moved),
            "source_answers": made.source_answers,
            "unknown": made.unknown,
            "outside_known": made.source_answers and not made.hidden,
            "hidden": made.hidden or None,
            **({"members_unknown": [*made.members_unknown]} if state.switch.options.leave_active else {}),
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
            view = await with_saved(connection.ledger, await connection.view(), flow.lane, state.switch.id)
            refuse_named(view, flow, state.switch.id)
            still_mine()
            await _commit(flow, connection, view, made, moved, state.switch.id, still_mine)

        connection.run(work)


def refuse_named(view: LedgerView, flow: FlowConfig, switch: str) -> None:
    """Raise Refused if the switch's id is the name of a snapshot that it did not take.

    The switch keeps the offsets from before it under that name.
    """
    found = snapshots(view, flow.lane).get(switch)
    if found is not None and found.who != WHO:
        raise Refused(sentence("switch.snapshot-named", name=switch, flow=str(flow.flow)))


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
    records.append(snapshot_record(flow.lane, Snapshot(name=switch, at_ms=now_ms, who=WHO, groups=groups)))
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
