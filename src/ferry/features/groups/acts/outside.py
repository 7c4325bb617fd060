"""Reads the groups that the file leaves out, though they have offsets in topics of the flow."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ferry.config.flow.flow import FlowConfig
from ferry.features.groups.rules.outside import LeftOut, OutsideGroup, concerns, why_hidden
from ferry.features.groups.rules.selection import is_own
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.groups.listing import sees_all_groups
from ferry.kafka.groups.offsets import fetch_offsets
from ferry.model import GroupKind, ListedGroup


async def groups_outside(
    flow: FlowConfig,
    source: Cluster,
    listed: Mapping[str, ListedGroup],
    *,
    active: bool = False,
    only: Collection[str] | None = None,
) -> LeftOut:
    """Return the `listed` groups of the source that the file leaves out, and that have offsets in topics of the flow.

    With `active`, only those that have members. `only` names topics; None: all of the flow. A share group has no
    committed offsets. Groups that the source does not list to this login are not among them: `LeftOut.hidden`.
    """
    hidden = why_hidden(source.alias, await sees_all_groups(source))
    whys = {name: why_outside(flow, name) for name in sorted(listed)}
    left = {
        name: why
        for name, why in whys.items()
        if why is not None and listed[name].kind is not GroupKind.SHARE and (listed[name].is_active or not active)
    }
    if not left:
        return LeftOut(hidden=hidden)
    fetched = await fetch_offsets(source, dict.fromkeys(left), stable=False)
    found = []
    for name, why in left.items():
        at = {place: one.offset for place, one in fetched.found.get(name, {}).items()}
        offsets = {
            place: offset
            for place, offset in at.items()
            if concerns(flow.topics.selection, place.topic) and (only is None or place.topic in only)
        }
        if offsets or name in fetched.failed:
            known = None if name in fetched.failed else offsets
            found.append(OutsideGroup(group=name, why=why, offsets=known, is_active=listed[name].is_active))
    return LeftOut(groups=tuple(found), hidden=hidden)


def why_outside(flow: FlowConfig, group: str) -> str | None:
    """Return why the file leaves `group` out, as half a sentence; None: it does not, or the group is Ferry's own."""
    return None if is_own(group) else flow.groups.filter.why_not(group)
