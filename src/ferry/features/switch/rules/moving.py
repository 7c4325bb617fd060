"""The offsets of consumer groups on the new cluster: for all partitions of a group, or for none. Pure.

Two offset maps translate a group's offsets at the old cluster. The map of the flow along which clients move is for
records that began on the old cluster. The reversed map of the flow back is for records copied there from the new one.
If one topic holds both, the flow whose map has the next record decides.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from ferry.features.groups.rules.both_ways import BackMaps, OwnMaps, chosen, passes_over
from ferry.features.groups.rules.offset_map import Ahead, Approximate, Exact, LogStart
from ferry.features.groups.rules.outside import OutsideGroup, named_with_reason, offsets_clause
from ferry.features.groups.rules.repartition_map import most_read
from ferry.features.groups.rules.selection import NOT_TRANSLATABLE
from ferry.features.groups.rules.translated import Maps
from ferry.features.groups.rules.written_offsets import Held, HeldGroup, Wrote
from ferry.model import (
    WANTED,
    Checkpoint,
    CommittedOffset,
    Flow,
    GroupKind,
    GroupOutcome,
    Left,
    ListedGroup,
    Offsets,
    TopicPartition,
)
from ferry.words import agreeing, count_of, several

CHECKPOINT = "checkpoint"
"""The word for an offset from the ledger: the old cluster does not return how far the group has read since."""

Starts = Mapping[TopicPartition, Mapping[TopicPartition, int]]
"""The partitions that producers continue in, by partition of the old cluster, with their ends before producers came."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """One offset on the new cluster: what a group gets in `place`, and how the offset was found.

    `source` is the partition of the old cluster that it was translated from, and `source_offset` the offset there.
    `source` is None for a topic that the group has not read before. `by` is `via`, `back` or `start`. `read` comes
    from a checkpoint: the offsets that the group had read of the source partitions. `again` is how many records it
    reads again at most, by a checkpoint or by `without_receipt`; None: not known.
    """

    place: TopicPartition
    offset: int
    word: str
    by: str
    source: TopicPartition | None = None
    source_offset: int = -1
    metadata: str = ""
    read: Offsets = ()
    again: int | None = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Moving:
    """What happens to one group. `why` is the reason against moving it, a sentence; nothing of such a group is written.

    `kept` are partitions in which its offset on the new cluster is beyond the translated one: it has read there
    already. If `aside`, it does not hold up a switch: no group of its kind is ever moved, or the operator or the file
    leaves it. `outside` is a group that the file leaves out; `named`: the operator leaves it by name. It reads at
    most `again` records again; None: not known.
    """

    group: str
    writes: tuple[Placed, ...] = ()
    unchanged: tuple[Placed, ...] = ()
    kept: tuple[tuple[Placed, int], ...] = ()
    notes: tuple[str, ...] = ()
    why: str | None = None
    active: bool = False
    aside: bool = False
    again: int | None = None
    outside: OutsideGroup | None = None
    named: bool = False

    @property
    def offsets(self) -> tuple[tuple[TopicPartition, int], ...]:
        """The group's offsets after the move."""
        found = [(one.place, one.offset) for one in (*self.writes, *self.unchanged)]
        return tuple(sorted([*found, *((one.place, there) for one, there in self.kept)]))


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSide:
    """The groups of the new cluster; `ends` are the log ends of its partitions, where they are known.

    `read_ends` are the ends that count for what a group reads again, where they are not the log ends (`copy_end`).
    None: not known. `failed` has, by group, why its offsets are not known.
    """

    alias: str
    listed: Mapping[str, ListedGroup]
    offsets: Mapping[str, Mapping[TopicPartition, CommittedOffset]]
    pending: Mapping[str, Collection[TopicPartition]] = field(default_factory=dict)
    ends: Mapping[TopicPartition, int] = field(default_factory=dict)
    read_ends: Mapping[TopicPartition, int | None] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)

    def read_end(self, place: TopicPartition) -> int | None:
        """Return the offset up to which groups may read records of a partition again; None: not known."""
        return self.read_ends.get(place, self.ends.get(place))


def moved_offsets(rows: Iterable[Mapping[str, Any]]) -> dict[str, dict[TopicPartition, int]]:
    """Return the offsets of the groups that the step `groups` moved, from the rows of its evidence."""
    return {
        row["group"]: {TopicPartition(topic, number): offset for topic, number, offset in row["offsets"]}
        for row in rows
        if row["outcome"] == "moved"
    }


def place_group(
    committed: Mapping[TopicPartition, CommittedOffset],
    via: Mapping[TopicPartition, OwnMaps],
    back: Mapping[TopicPartition, BackMaps],
    starts: Starts,
    log_starts: Mapping[TopicPartition, int],
) -> tuple[dict[TopicPartition, Placed], list[str]]:
    """Return a group's offsets on the new cluster, and the reasons against using them.

    `via` maps partitions of the old cluster to copies. `back` (reversed) maps copies on the old cluster to their
    origins. `starts` has, by partition of the old cluster, the partitions that producers continue in, with their ends.
    A group begins at those ends, unless a map has another offset.
    """
    found: dict[TopicPartition, Placed] = {}
    against: list[str] = []
    for source, at in sorted(committed.items()):
        forward, backward = via.get(source), back.get(source)
        if forward is not None and _is_same(forward, at.offset):
            backward = None  # the number is the same, whichever flow copied the record
        troubles = [why for one in (forward, backward) if one is not None and (why := one.trouble_at(at.offset))]
        if troubles:
            against += troubles
            continue
        found_by = chosen(
            None if forward is None else forward.translate(at.offset),
            None if backward is None else backward.translate(at.offset),
        )
        if found_by is not None:
            by, outcome = found_by
            there = forward.target if by == "via" and forward is not None else None
            place = there if there is not None else backward.source if backward is not None else None
            if place is not None:
                first = log_starts.get(place, 0)
                late = outcome.offset < first
                found[place] = Placed(
                    place=place,
                    offset=first if late else outcome.offset,
                    word=LogStart.word if late else outcome.word,
                    by=by,
                    source=source,
                    source_offset=at.offset,
                    metadata=at.metadata,
                )
    return _with_starts(found, starts, {source.topic for source in committed}), against


def _is_same(forward: OwnMaps, offset: int) -> bool:
    if not forward.identical or forward.trouble_at(offset) is not None:
        return False
    return isinstance(forward.translate(offset), Exact)


def place_dealt(checkpoints: Iterable[Checkpoint]) -> dict[TopicPartition, Placed]:
    """Return a group's offsets on the new cluster in topics that have other numbers of partitions there."""
    return {
        one.target: Placed(
            place=one.target,
            offset=one.target_offset,
            word=one.outcome.value,
            by="via",
            source=one.source,
            source_offset=one.source_offset,
            read=one.read,
            again=one.again,
        )
        for one in checkpoints
    }


def dealt_notes(checkpoints: Iterable[Checkpoint]) -> list[str]:
    """Make one note for each such topic: how many records a group reads again."""
    of_topic: dict[str, list[Checkpoint]] = {}
    for one in checkpoints:
        of_topic.setdefault(one.target.topic, []).append(one)
    notes = []
    for topic, ones in sorted(of_topic.items()):
        what = f"of {topic}, which has other partitions than its source,"
        many = sum(one.again or 0 for one in ones)
        if any(one.again is None for one in ones):
            notes.append(f"{what} it is not known how many records it reads again, because their receipts have gone")
        elif many:
            notes.append(f"{what} it reads {count_of(many, 'record')} at most again")
    return notes


def unmapped(
    committed: Mapping[TopicPartition, CommittedOffset],
    via: Mapping[TopicPartition, Maps],
    back: Mapping[TopicPartition, BackMaps],
) -> list[str]:
    """Make a note about the partitions that a group has read and that no map has: the group gets no offset for them."""
    places = sorted(str(place) for place in committed if place not in via and place not in back)
    if not places:
        return []
    them = agreeing(len(places), "partition that it has read gets", "partitions that it has read get")
    what = f"{them} no offset, because nothing was copied there ({several(places)})"
    return [f"{what}: there it begins by its own auto.offset.reset"]


def _with_starts(
    found: dict[TopicPartition, Placed], starts: Starts, topics: Collection[str]
) -> dict[TopicPartition, Placed]:
    """Add the starts that belong to topics that the group has read on the old cluster."""
    for source, lives in starts.items():
        for place, end in lives.items() if source.topic in topics else ():
            found.setdefault(place, Placed(place=place, offset=end, word="start", by="start"))
    return found


def decide_moving(
    group: str,
    placed: Mapping[TopicPartition, Placed],
    against: Collection[str],
    new: NewSide,
    held: HeldGroup | None,
    notes: Collection[str] = (),
    blank: Mapping[TopicPartition, int | None] = MappingProxyType({}),
) -> Moving:
    """Decide whether a group is moved as a whole, and which offsets have to be written; `notes` are known already.

    `blank` are partitions of topics that it reads for which no offset of it is known, each with the number of records
    there; None: not known.

    The old cluster's offset replaces one that Ferry wrote, even if it is lower. It replaces an offset that another
    client committed only if it is higher. If that client's offset is higher, the group has read there before, and keeps
    it. A start (`by` is `start`) replaces no offset.
    """
    there = new.listed.get(group)
    why = _why_not(group, placed, against, new)
    if why is not None:
        return Moving(group=group, why=why, active=group not in new.failed and there is not None and there.is_active)
    offsets = new.offsets.get(group, {})
    writes, unchanged, kept, said = [], [], [], list(notes)
    for place, one in sorted(placed.items()):
        now = offsets.get(place)
        own = (
            held is not None and place in held.offsets and now is not None and held.offsets[place].found_as(now.offset)
        )
        if one.word == CHECKPOINT and now is not None and not own and now.offset != one.offset:
            return Moving(group=group, why=_unusable(group, one, now.offset, new))
        if now is None or (now.offset != one.offset and (own or now.offset < one.offset) and one.by != "start"):
            writes.append(one)
        elif now.offset == one.offset:
            unchanged.append(one)
        else:
            kept.append((one, now.offset))
        if now is not None and (one.by == "start" or not own):
            said += _noted(one, now.offset)
    for one, at in (*kept, *((one, one.offset) for one in (*unchanged, *writes))):
        end = new.ends.get(one.place)
        if end is not None and at > end:
            return Moving(group=group, why=_beyond_end(group, one, at, end, new, is_there=one not in writes))
    said += _blank_note(blank)
    found = Moving(group=group, writes=tuple(writes), unchanged=tuple(unchanged), kept=tuple(kept), notes=tuple(said))
    return replace(found, again=_again(found, new, blank.values()))


def without_receipt(one: Placed, end: int | None) -> Placed:
    """Return an offset of a partition with identical offsets, with what the group reads again there at most.

    A group that had read further than the last receipt begins there, and the copy may have records after it, up to
    `end`; None: not known.
    """
    if one.word != Ahead.word:
        return one
    return replace(one, again=None if end is None else max(0, min(one.source_offset, end) - one.offset))


def _blank_note(blank: Mapping[TopicPartition, int | None]) -> list[str]:
    filled = sorted(str(place) for place, count in blank.items() if count != 0)
    if not filled:
        return []
    what = f"{count_of(len(filled), 'partition')} of topics that it reads have no checkpoint ({several(filled)})"
    return [f"{what}: there it begins by its own auto.offset.reset, and may read all again, or with latest skip all"]


def _again(moving: Moving, new: NewSide, blank: Iterable[int | None]) -> int | None:
    """Count the records that a group reads again at most, as offsets; None: not known. `blank` are whole partitions.

    After a checkpoint the group may have read all that was copied. In a topic that producers continue in, it may have
    read all that is there as copies on the old cluster.
    """
    total = 0
    begins = [(one, one.offset) for one in (*moving.writes, *moving.unchanged)]
    for one, at in (*begins, *((one, there) for one, there in moving.kept if one.by == "start")):
        known = one.again
        if one.word == CHECKPOINT or one.by == "start":
            end = new.read_end(one.place)
            known = None if end is None else max(0, end - at)
        elif one.word == Approximate.word:
            known = None
        if known is None:
            return None
        total += known
    for count in blank:
        if count is None:
            return None
        total += count
    return total


def _beyond_end(group: str, one: Placed, at: int, end: int, new: NewSide, *, is_there: bool) -> str:
    if is_there:
        return (
            f"group {group} is at {at} of {one.place} on {new.alias}, beyond its end {end}: reset it there, or "
            f"leave it with --leave-group {group}"
        )
    return (
        f"group {group} would get offset {at} of {one.place} on {new.alias}, beyond its end {end}: records that it has "
        f"read are not there; leave it with --leave-group {group}, and set its offset by hand"
    )


def _unusable(group: str, one: Placed, now: int, new: NewSide) -> str:
    return (
        f"group {group} has no usable checkpoint, because it is at {now} of {one.place} on {new.alias}, but runs last "
        f"wrote {one.offset}: how far it had read elsewhere is not known; leave it unchanged with --leave-group "
        f"{group}"
    )


def without_checkpoint(left: Iterable[Left], held: Mapping[str, HeldGroup]) -> dict[str, Left]:
    """Return the groups that the last run `left` and that have no usable offset in the ledger, with the reason."""
    found: dict[str, Left] = {}
    for one in left:
        if not one.group or one.why not in WANTED:
            continue
        known = held.get(one.group)
        if known is None or (one.place is not None and one.place not in known.offsets):
            found.setdefault(one.group, one)
    return found


def not_known(left: Left, flow: Flow, there: ListedGroup | None) -> Moving:
    """Make the decision about a group that the last run `left` without a checkpoint.

    The old cluster returns no offsets of it. `there` is the group on the new cluster.
    """
    group = left.group
    return Moving(
        group=group,
        why=f"group {group} has no checkpoint on {flow.target}, because the last run left it ({left.message}); how "
        f"far it had read on {flow.source} is not known. Bring {flow.source} back and write one with ferry "
        f"groups sync '{flow}' --force --group {group}, or leave the group where it is with --leave-group "
        f"{group}: it reads again all records after its offset",
        active=there is not None and there.is_active,
    )


def groups_not_known(flow: Flow, last: GroupOutcome | None, *, unsynced: str, left: bool = False) -> str | None:
    """Say why the ledger may not know all groups, from the `last` run with a checkpoint; None if it knows them.

    `unsynced`: why the flow's runs do not write the groups' offsets; empty if they do. `left`: the operator has decided
    to leave such groups (--leave-unknown), so the sentence names no remedy.
    """
    source = flow.source
    if unsynced:
        what = f"{unsynced}, so runs of {flow} write no offsets of groups"
    elif last is None:
        what = f"no run of {flow} has recorded its groups"
    elif last.unnamed:
        what = f"the ledger does not name {count_of(last.unnamed, 'group')} that the last run left without a checkpoint"
    else:
        silent = [one.message for one in last.left if not one.group and one.why in WANTED]
        if not silent:
            return None
        what = f"the last run did not see all groups ({silent[0]})"
    remedy = "" if left else f": bring {source} back, or begin the failover with --leave-unknown"
    return (
        f"{what}, and {source} does not answer, so which groups there are is not known{remedy}; a group that is not "
        "known begins at its own offset, or by its own auto.offset.reset"
    )


def moved_sentence(moving: Collection[Moving], old: str, *, source_answers: bool, unknown: str | None) -> str:
    """Say what became of the groups; `unknown`: why there may be others that are not known, if there may be."""
    if not moving and unknown is not None:
        return f"no group moved: {unknown}"
    moved = [one for one in moving if one.why is None]
    offsets, again = sum(len(one.writes) for one in moved), sum(len(one.unchanged) for one in moved)
    return (
        f"{count_of(len(moved), 'group')} moved: {count_of(offsets, 'offset')} written, {again} right already, "
        f"{len(moving) - len(moved)} left"
        + outside_sentence(moving)
        + ("" if source_answers else f"; {old} does not answer, so the last checkpoint counts")
        + again_sentence(moved)
        + ("" if unknown is None else f"; {unknown}")
    )


def outside_sentence(moving: Iterable[Moving]) -> str:
    """Say which groups the file leaves out, as the end of a sentence; empty if there is none."""
    outside = [one.outside for one in moving if one.outside is not None and not one.named]
    if not outside:
        return ""
    return f"; {offsets_clause(outside, 'topics of the flow')}, left out by the file ({named_with_reason(outside)})"


def again_sentence(moved: Collection[Moving]) -> str:
    """Say how many records groups read again, as the end of a sentence; empty if no group reads any again."""
    some = [one for one in moved if one.again != 0]
    if not some:
        return ""
    some.sort(key=lambda one: (one.again is not None, -(one.again or 0), one.group))
    texts = [f"{one.group} {'not known' if one.again is None else f'{one.again} at most'}" for one in some]
    return f"; records that groups read again: {several(texts)}"


def left_at_work(group: str, flow: Flow) -> Moving:
    """Make the decision about a group that stays on the cluster that is left, because it has members there."""
    return Moving(group=group, why=f"group {group} has members on {flow.source}: it is left there", active=True)


def members_sentence(unknown: Collection[str], old: str) -> str:
    """Say which groups are moved though they may have members, as the end of a sentence; empty if there is none."""
    if not unknown:
        return ""
    have = agreeing(len(unknown), "moved group has", "moved groups have")
    them = "it" if len(unknown) == 1 else "them"
    names = several(sorted(unknown))
    return f"; whether {have} members on {old} is not known ({names}), so --leave-active did not leave {them}"


def moved_at_work(moving: Moving, flow: Flow) -> Moving:
    """Return the decision to move a group that has members on the cluster that is left.

    What its members read since is not known, so `again` is None.
    """
    note = f"it has members on {flow.source} still: what they read since its offsets were seen, it reads again"
    return replace(moving, again=None, notes=(*moving.notes, note))


def set_aside(group: str, why: str) -> Moving:
    """Make the decision about a group that no switch moves, whatever offsets it has."""
    return Moving(group=group, why=why, aside=True)


def set_outside(one: OutsideGroup, flow: Flow, *, named: bool) -> Moving:
    """Make the decision about a group that the file leaves out; `named`: the operator leaves it by name."""
    why = f"group {one.group} is left where it is (--leave-group)"
    if not named:
        why = f"group {one.group} is not moved, because {one.why}: it begins on {flow.target} by its own offset there, "
        why += "or by its own auto.offset.reset"
    notes = [f"it has members on {flow.source}"] if one.is_active else []
    notes += [f"its offsets on {flow.source} are not known"] if one.offsets is None else []
    return Moving(
        group=one.group,
        why=why,
        aside=True,
        again=None if one.has_read else 0,
        outside=one,
        named=named,
        notes=tuple(notes),
    )


def _why_not(group: str, placed: Mapping[TopicPartition, Placed], against: Collection[str], new: NewSide) -> str | None:
    """Return the reason against moving a group that does not depend on its offsets on the new cluster.

    It is None if there is none.
    """
    there = new.listed.get(group)
    if (why := new.failed.get(group)) is not None:
        return why
    if there is not None and there.is_active:
        return (
            f"group {group} has members on {new.alias}: stop them (those that died with a broker go when their "
            f"session.timeout.ms is over), or leave it with --leave-group {group}"
        )
    if there is not None and there.kind in NOT_TRANSLATABLE:
        return f"group {group} is a {_kind(there.kind)} group on {new.alias}: name it otherwise"
    pending = sorted(set(new.pending.get(group, ())) & placed.keys())
    if pending:
        return (
            f"group {group} has an offset of {pending[0]} on {new.alias} in a transaction that is still open: end it, "
            "or wait for it to end"
        )
    return f"group {group}: {next(iter(against))}" if against else None


def _noted(one: Placed, now: int) -> list[str]:
    """Make the note about an offset, not one of Ferry's own, that a group has on the new cluster already."""
    stands, between = f"{one.place}: it is at {now}", abs(now - one.offset)
    if now == one.offset or (one.by == "start" and now > one.offset):
        return []
    if one.by == "start":
        why = "it reads again those that it had read as copies on the old cluster"
        return [f"{stands}, {between} offsets before the cut-over; {why}"]
    if now > one.offset:
        why = "the records between count as read there before"
        return [f"{stands}, {between} offsets beyond {one.offset}, its offset according to the old cluster: {why}"]
    there = f"{one.place}: it had committed {now} there"
    return [f"{there}, {count_of(between, 'offset')} before {one.offset}, which replaces that"]


def _kind(kind: GroupKind) -> str:
    return "share" if kind is GroupKind.SHARE else "Streams"


def remembered(moving: Moving, new: NewSide, held: HeldGroup | None, now_ms: int) -> HeldGroup | None:
    """Return what the ledger must remember of a group before it is written; None if nothing changes.

    It remembers offsets in copies alone, because a checkpoint writes no others.
    """
    offsets = dict(held.offsets) if held is not None else {}
    sources = dict(held.sources) if held is not None else {}
    read = dict(held.read) if held is not None else {}
    there = new.offsets.get(moving.group, {})
    changed = False
    for one in moving.writes:
        if one.by != "via" or one.source is None:
            continue
        before, now = offsets.get(one.place), there.get(one.place)
        prior = before.found_as(now.offset) if before is not None and now is not None else None
        offsets[one.place] = Held(Wrote(one.source_offset, one.offset), prior)
        sources[one.place.topic] = one.source.topic
        if one.read:
            read[one.place.topic] = most_read(read.get(one.place.topic, ()), one.read)
        changed = True
    if not changed:
        return None
    renewed_ms = held.renewed_ms if held is not None else now_ms
    return HeldGroup(offsets=offsets, sources=sources, renewed_ms=renewed_ms, read=read)


def from_memory(
    held: HeldGroup,
    via: Mapping[TopicPartition, OwnMaps],
    starts: Starts,
    log_starts: Mapping[TopicPartition, int] = MappingProxyType({}),
) -> dict[TopicPartition, Placed]:
    """Return a group's offsets if the old cluster does not return them: the last checkpoint, by today's offset map.

    No offset is lower than its log start (`log_starts`, where known), because that would be out of range.
    """
    found = {}
    for place, one in held.offsets.items():
        source = held.source_of(place)
        led = _led_by_now(one.wrote, place, None if source is None else via.get(source))
        found[place] = Placed(
            place=place,
            offset=max(led, log_starts.get(place, 0)),
            word=CHECKPOINT,
            by="via",
            source=source,
            source_offset=one.wrote.source,
        )
    return _with_starts(found, starts, set(held.sources.values()))


def _led_by_now(wrote: Wrote, place: TopicPartition, way: OwnMaps | None) -> int:
    """Return the target offset of a checkpoint by today's map.

    A group that had read further than the copy got the end of the copy then; more has been copied since.
    """
    if way is None or way.target != place or way.trouble_at(wrote.source) is not None:
        return wrote.target
    if passes_over(way, wrote.source):
        return wrote.target
    return max(wrote.target, way.translate(wrote.source).offset)
