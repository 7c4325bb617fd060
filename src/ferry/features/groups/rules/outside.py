"""Groups that the file leaves out, though they have offsets in topics that a flow copies or that came from its target.

No run writes their offsets and no switch moves them. They are clients all the same, so an answer about groups names
them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from ferry.config.text.filters import TopicSelection
from ferry.features.groups.rules.written_offsets import HeldGroup
from ferry.model import TopicPartition
from ferry.policy import is_heartbeats_topic, would_loop
from ferry.words import agreeing, several


@dataclass(frozen=True, slots=True, kw_only=True)
class OutsideGroup:
    """A group that the file leaves out: `why`, half a sentence, and its `offsets` in topics of the flow.

    `offsets` None: they are not known. `is_active`: it has members.
    """

    group: str
    why: str
    offsets: Mapping[TopicPartition, int] | None
    is_active: bool = False

    @property
    def has_read(self) -> bool:
        """Whether it may have read records, which it can then read twice."""
        return self.offsets is None or any(offset > 0 for offset in self.offsets.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """The `groups` that the file leaves out, and `hidden`: why there may be others. It is empty if all are known."""

    groups: tuple[OutsideGroup, ...] = ()
    hidden: str = ""


def why_hidden(alias: str, sees_all: bool | None) -> str:
    """Say why a cluster may have groups that it does not list to this login; empty if the login sees all.

    `sees_all` None: the brokers do not report that.
    """
    if sees_all:
        return ""
    if sees_all is None:
        return (
            f"the brokers of {alias} do not report whether they list all groups to Ferry's login: upgrade them to "
            "Kafka 2.3 or newer"
        )
    return (
        f"{alias} lists to Ferry's login only the groups that it may describe: grant DESCRIBE on the cluster "
        "(ferry acls required)"
    )


def concerns(selection: TopicSelection, topic: str) -> bool:
    """Report whether an offset in `topic` counts: the flow copies the topic, or it came from the flow's target."""
    if selection.takes(topic):
        return True
    if selection.is_internal(topic) or is_heartbeats_topic(selection.policy, topic):
        return False
    return would_loop(selection.policy, topic, selection.flow.target)


def from_ledger(held: Mapping[str, HeldGroup], why: Mapping[str, str]) -> tuple[OutsideGroup, ...]:
    """Return the groups that the ledger `held` of earlier runs, and that the file leaves out now, with the reason."""
    found = []
    for group, one in sorted(held.items()):
        if group in why and one.offsets:
            pairs = ((one.source_of(place), each.wrote.source) for place, each in one.offsets.items())
            offsets = {place: offset for place, offset in pairs if place is not None}
            found.append(OutsideGroup(group=group, why=why[group], offsets=offsets))
    return tuple(found)


def with_known(
    found: Iterable[OutsideGroup], known: Iterable[OutsideGroup], listed: Collection[str], *, is_whole: bool
) -> tuple[OutsideGroup, ...]:
    """Return the groups that were `found`, and those `known` before that a list in part leaves open.

    `listed` are the names that the cluster listed; `is_whole`: these are all that it has.
    """
    more = () if is_whole else (one for one in known if one.group not in listed)
    return tuple(sorted((*found, *more), key=lambda one: one.group))


def offsets_clause(groups: Collection[OutsideGroup], where: str) -> str:
    """Say how many groups have offsets in topics of the flow (`where`), and of how many that is not known."""
    known = sum(one.offsets is not None for one in groups)
    unknown = len(groups) - known
    found = [agreeing(known, f"group has offsets in {where}", f"groups have offsets in {where}")] if known else []
    if unknown:
        whether = agreeing(unknown, "group", "groups")
        found.append(f"whether {whether} {'has' if unknown == 1 else 'have'} offsets in {where} is not known")
    return " and ".join(found)


def named_with_reason(groups: Collection[OutsideGroup]) -> str:
    """Name the groups by the reason that the file leaves them out."""
    by_why: dict[str, list[str]] = {}
    for one in sorted(groups, key=lambda one: one.group):
        by_why.setdefault(one.why, []).append(one.group)
    return "; ".join(f"{why}: {several(names)}" for why, names in by_why.items())
