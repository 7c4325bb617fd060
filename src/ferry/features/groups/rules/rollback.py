"""Going back to offsets that groups had on the target: how these differ from now, and which of them may be written."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from ferry.features.groups.rules.checkpoints import TargetGroups
from ferry.features.groups.rules.codec import Saved
from ferry.features.groups.rules.written_offsets import Held, HeldGroup
from ferry.messages.catalogue import said, sentence
from ferry.model import CommittedOffset, Left, TopicPartition, Why

Offsets = Mapping[TopicPartition, CommittedOffset]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A group's offset on one target partition then and now. None: it had none, or has none."""

    group: str
    place: TopicPartition
    then: int | None
    now: int | None


def differences(
    alias: str, saved: Mapping[str, Mapping[TopicPartition, Saved]], target: TargetGroups
) -> tuple[list[Difference], list[Left]]:
    """Return the offsets of groups that now differ from the snapshot, and those that the target `alias` hides."""
    found: list[Difference] = []
    left: list[Left] = []
    for group, places in sorted(saved.items()):
        if group in target.failed:
            left.append(Left(group=group, place=None, why=Why.FAILED, message=said(target.failed[group])))
            continue
        unknown = _unknown(alias, group, places, target, "DESCRIBE")
        left += dict.fromkeys(unknown.values())
        offsets = target.offsets.get(group, {})
        for place, one in sorted(places.items()):
            if place in unknown:
                continue
            then = None if one.before is None else one.before.offset
            at = offsets[place].offset if place in offsets else None
            if then != at:
                found.append(Difference(group=group, place=place, then=then, now=at))
    return found, left


@dataclass(frozen=True, slots=True, kw_only=True)
class Rollback:
    """What is to be written back, by group; what is left; how many offsets are unchanged."""

    writes: dict[str, dict[TopicPartition, CommittedOffset]]
    left: list[Left]
    unchanged: int


def decide_rollback(
    alias: str,
    saved: Mapping[str, Mapping[TopicPartition, Saved]],
    target: TargetGroups,
    held: Mapping[str, HeldGroup],
    *,
    force: bool,
) -> Rollback:
    """Decide which offsets of a snapshot may be written to the target `alias`.

    A group must have no members there, its offsets must be known, and the offset that is replaced must be one that
    Ferry wrote; `force` lifts the last condition. No offset is deleted: if a group had none before, it keeps what it
    has.
    """
    writes: dict[str, dict[TopicPartition, CommittedOffset]] = {}
    left: list[Left] = []
    unchanged = 0
    for group, places in sorted(saved.items()):
        why = _whole(alias, group, target)
        if why is not None:
            left.append(why)
            continue
        if unknown := _unknown(alias, group, places, target, "READ"):
            left += dict.fromkeys(unknown.values())
            continue
        offsets = target.offsets.get(group, {})
        own = held[group].offsets if group in held else {}
        for place, one in sorted(places.items()):
            there = offsets.get(place)
            if there == one.before or (there and one.before and there.offset == one.before.offset):
                unchanged += 1
                continue
            is_own = there is None or there.offset == one.wrote
            if there is not None and place in own:
                is_own = is_own or own[place].found_as(there.offset) is not None
            if one.before is None:
                message = sentence("group.created", group=group, place=str(place), target=alias)
                left.append(Left(group=group, place=place, why=Why.CREATED, message=message))
            elif there is not None and not is_own and not force:
                message = sentence(
                    "group.moved.rollback",
                    group=group,
                    offset=there.offset,
                    place=str(place),
                    target=alias,
                    before=one.before.offset,
                )
                left.append(Left(group=group, place=place, why=Why.MOVED, message=message))
            else:
                writes.setdefault(group, {})[place] = one.before
    return Rollback(writes=writes, left=left, unchanged=unchanged)


def held_before(held: HeldGroup, places: Collection[TopicPartition], there: Offsets) -> HeldGroup:
    """Return what the ledger holds of a group until the offsets of `places` are written back.

    For each of them it is the offset that is on the target, if Ferry wrote it. So a rollback that fails can be
    repeated, and runs never take an offset that is written back for one of Ferry's.
    """
    kept = dict(held.offsets)
    for place in places:
        one = kept.pop(place, None)
        own = one.found_as(there[place].offset) if one is not None and place in there else None
        if own is not None:
            kept[place] = Held(own)
    return replace(held, offsets=kept)


def held_after(held: HeldGroup, failed: Collection[TopicPartition]) -> HeldGroup:
    """Return what the ledger holds of a group after a rollback: of its offsets, only those that it `failed` to write.

    So runs move none of the other offsets, also where the snapshot has none, or has the one that is there.
    """
    return replace(held, offsets={at: one for at, one in held.offsets.items() if at in failed})


def _unknown(
    alias: str, group: str, places: Collection[TopicPartition], target: TargetGroups, operation: str
) -> dict[TopicPartition, Left]:
    """Return the partitions of which it is not known what the group has there, each with the reason.

    `operation` is the permission that is needed.
    """
    denied = target.denied.get(group, frozenset())
    pending = target.pending.get(group, frozenset())
    found: dict[TopicPartition, Left] = {}
    for place in sorted(places):
        if place.topic in denied:
            message = sentence("group.denied", group=group, topic=place.topic, cluster=alias, operation=operation)
            found[place] = Left(group=group, place=None, why=Why.FAILED, message=message)
        elif place in pending:
            message = sentence("group.pending", group=group, place=str(place), target=alias)
            found[place] = Left(group=group, place=place, why=Why.PENDING, message=message)
    return found


def _whole(alias: str, group: str, target: TargetGroups) -> Left | None:
    if group in target.failed:
        return Left(group=group, place=None, why=Why.FAILED, message=said(target.failed[group]))
    there = target.listed.get(group)
    if there is not None and there.is_active:
        message = sentence("group.active.rollback", group=group, state=there.state, target=alias)
        return Left(group=group, place=None, why=Why.ACTIVE, message=message)
    return None
