"""The groups of the old cluster, before they are moved: what it returns of them, and what the ledger remembers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

from ferry.config.flow.flow import FlowConfig
from ferry.errors import FerryError, Refused, Unreachable
from ferry.features.groups.acts.outside import groups_outside, why_outside
from ferry.features.groups.acts.translated import group_rules
from ferry.features.groups.rules.codec import held_groups
from ferry.features.groups.rules.outside import OutsideGroup, from_ledger, with_known
from ferry.features.groups.rules.selection import asked_by_name, chosen, is_own
from ferry.features.groups.rules.written_offsets import HeldGroup
from ferry.features.switch.acts.quiet import groups_at_work
from ferry.features.switch.rules.moving import groups_not_known, without_checkpoint
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.groups.listing import list_groups
from ferry.kafka.groups.offsets import FetchedOffsets, fetch_offsets
from ferry.lane.connections import TargetFirst
from ferry.ledger.checkpoint_codec import newest_outcome
from ferry.messages.catalogue import sentence
from ferry.model import CommittedOffset, Left, TopicPartition, Why
from ferry.model.switch import SwitchState, Verb
from ferry.words import several

GroupOffsets = dict[str, dict[TopicPartition, CommittedOffset]]


@dataclass(frozen=True, slots=True, kw_only=True)
class OldSide:
    """The groups of the old cluster: what it returns of them, and what the ledger remembers.

    `lost`: the old cluster does not answer. `aside` are groups of kinds that are never moved, and those that the
    operator leaves. `unknown` are the groups that the last run left without a checkpoint. Both have the reason.
    `unreported` says why there may be others. `listed` are those that it lists, and `at_work` of these have members.
    `outside` are groups that the file leaves out.
    """

    held: Mapping[str, HeldGroup]
    read: GroupOffsets = field(default_factory=dict)
    lost: bool = True
    aside: Mapping[str, str] = field(default_factory=dict)
    unknown: Mapping[str, Left] = field(default_factory=dict)
    unreported: str | None = None
    listed: frozenset[str] = frozenset()
    at_work: frozenset[str] = frozenset()
    outside: tuple[OutsideGroup, ...] = ()
    hidden: str = ""


async def old_side(flow: FlowConfig, connections: TargetFirst, state: SwitchState, settled: bool) -> OldSide:
    """Read the groups from the old cluster and from the ledger. The cluster's errors are raised if it must answer."""
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
    remembered_side = OldSide(
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
        listed=frozenset(listed.groups),
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
        where = str(min(places))
        raise Refused(sentence("switch.group-open", group=group, place=where, cluster=flow.flow.source))
    active = await groups_at_work(flow, source, state.switch.options)
    if active:
        names = several(sorted(active))
        raise Refused(sentence("switch.members", groups=len(active), names=names, cluster=flow.flow.source))
    return replace(seen, found={**seen.found, **fetched.found}, failed={**seen.failed, **fetched.failed})
