"""Consumer groups after the copy: translated by the offset maps, and written to the target where that is allowed.

The steps: read both sides, decide, write to the ledger, read again, write to the target. An obstacle to one group stops
only that group: the others are done.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ferry.clock import wall_ms
from ferry.config.flow.flow import FlowConfig
from ferry.errors import FerryError, Refused
from ferry.features.groups.acts.blank_maps import blank_maps
from ferry.features.groups.acts.both_ways import both_ways
from ferry.features.groups.acts.offset_maps import offset_maps
from ferry.features.groups.acts.repartitioned import maps_of_dealt
from ferry.features.groups.acts.saved_offsets import with_saved
from ferry.features.groups.acts.translated import deals, group_rules
from ferry.features.groups.acts.written import latency_of, outcome_of, written
from ferry.features.groups.rules.checkpoints import RENEW_MS, Decided, TargetGroups, Write, decide_groups, holds_for
from ferry.features.groups.rules.codec import (
    Saved,
    Snapshot,
    dropped_snapshots,
    group_record,
    held_groups,
    saved_groups,
    saved_record,
    snapshot_record,
    snapshots,
)
from ferry.features.groups.rules.concurrent_changes import (
    ConcurrentChanges,
    concurrent_changes,
    left_to_others,
    still_there,
)
from ferry.features.groups.rules.kept_snapshots import surplus
from ferry.features.groups.rules.repartition_map import read_of
from ferry.features.groups.rules.selection import GroupRules, asked_by_name, chosen, is_own
from ferry.features.groups.rules.translated import TranslatedGroups, translated
from ferry.features.groups.rules.written_offsets import Held, HeldGroup, Wrote
from ferry.kafka.groups.listing import ListedGroups, list_groups
from ferry.kafka.groups.offsets import CommittedOffsets, FetchedOffsets, LastCheck, commit_offsets, fetch_offsets
from ferry.kafka.produce.ledger_topic import LedgerTopic
from ferry.lane.connections import FlowConnections
from ferry.ledger.ledger import LedgerView
from ferry.ledger.rebuilt import newest_rebuild
from ferry.messages.catalogue import said, sentence
from ferry.model import (
    Checkpoint,
    CommittedOffset,
    Found,
    GroupOutcome,
    LedgerRecord,
    Left,
    Offsets,
    Record,
    TopicPartition,
    Why,
)


class StoodBack(Refused):
    """The flow was paused, or a newer run began, while groups were read. So this run leaves the groups alone."""


def last_check(
    ledger: LedgerTopic,
    seen: int,
    lane: str,
    *,
    is_run: bool,
    own: Collection[int] = (),
    yielded: Collection[str] = (),
    what: str = "groups",
) -> LastCheck:
    """Return the check right before writes: it raises StoodBack for what came into the ledger since its offset `seen`.

    These are:

    - a pause of the flow
    - a newer run of the lane, with `is_run`: a run or a schedule asked
    - a record of another process that writes one of the groups `yielded`

    Records at the offsets `own` are this process's. The error says that `what` is left alone.
    """

    async def check() -> None:
        since = await ledger.read_untransacted(seen, await ledger.end())
        found = concurrent_changes(since, lane, own=own, now_ms=wall_ms(), is_run=is_run)
        _stand_back(found, what)
        for group in found.taken.keys() & set(yielded):
            raise StoodBack(f"groups are left alone: {found.taken[group]} wrote group {group} while they were checked")

    return LastCheck(check)


def _stand_back(found: ConcurrentChanges, what: str = "groups") -> None:
    if found.why is not None:
        raise StoodBack(f"{what} are left alone: {found.why}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """The positions of the groups on both sides, and what is to be done.

    `left` also has the groups that could not be read.
    """

    groups: TranslatedGroups
    """All checkpoints, also those of groups that are not written."""
    decided: Decided
    held: Mapping[str, HeldGroup]
    left: tuple[Left, ...]
    untranslated: tuple[str, ...]
    """Messages of `left`: why groups, or parts of them, are not among the checkpoints, independent of the target."""
    asked_ms: int
    """When the source was asked for its offsets, in milliseconds."""
    listed: ListedGroups
    """The groups of the source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSync:
    """The groups of one flow in one lane over open connections, on the event loop of these."""

    flow: FlowConfig
    lane: str
    connections: FlowConnections

    def rules(self, *, only: frozenset[str] | None = None, force: bool = False) -> GroupRules:
        """Return what the flow's file says of groups, narrowed to `only`."""
        return group_rules(self.flow, only=only, force=force)

    async def look(self, view: LedgerView, rules: GroupRules, *, every: bool = False) -> Looked:
        """Read the groups and decide; writes nothing. BadInput when the flow never ran, Unreachable.

        Without `every`, and if the flow's file turns the search for new groups off, only groups that Ferry has written
        are read.
        """
        source, target = self.connections.source, self.connections.target
        loop = self.connections.loop
        asked = [loop.call_soon_with_future(list_groups, cluster) for cluster in (source, target)]
        here, there = [await answer for answer in asked]
        rules = replace(rules, rebuilt=newest_rebuild(view))
        held = held_groups(view, self.lane, rules.concern)
        if held and rules.only is None and not (every or self.flow.finds_new_groups):
            rules = replace(rules, takes_group=held.__contains__)
        taken, left = chosen(rules, here.groups)
        unlisted = self._unlisted(rules, here, held)
        asked_ms = wall_ms()
        read = await fetch_offsets(source, dict.fromkeys([*(group.name for group in taken), *unlisted]), stable=False)
        left += [_failed(group, error) for group, error in read.failed.items()]
        left += [_failed(group, why) for group in sorted(rules.only or ()) if (why := self._why_not(group, here, read))]
        left += _silent(self.flow.flow.source, here)
        missing = await self._missing(held, read.found)
        left += [_failed(group, error) for group, error in missing.failed.items()]
        untranslated = [one.message for one in left if one.why is Why.FAILED]
        left += _silent(self.flow.flow.target, there)
        offsets = {
            group: {**places, **missing.found.get(group, {})}
            for group, places in read.found.items()
            if group not in missing.failed
        }
        denied = {
            group: read.denied.get(group, frozenset()) | missing.denied.get(group, frozenset())
            for group in read.denied.keys() | missing.denied.keys()
        }
        known = {group: one for group, one in held.items() if group in offsets}
        groups = await self._translated(rules, offsets, denied, deals(self.flow, view), known)
        untranslated += groups.troubles()
        targets = await self._target(there, groups, known)
        decided = decide_groups(rules, groups, targets, known, now_ms=wall_ms())
        return Looked(
            groups=groups,
            decided=decided,
            held=held,
            left=(*left, *decided.left),
            untranslated=tuple(untranslated),
            asked_ms=asked_ms,
            listed=here,
        )

    def _why_not(self, group: str, here: ListedGroups, read: FetchedOffsets) -> str | None:
        """Return why a group that was asked for by name is not read; None when it is."""
        if is_own(group):
            return sentence("group.own", group=group)
        if not self.flow.groups.filter.takes(group):
            return sentence("group.left-out", group=group)
        if group in here.groups or read.found.get(group) or group in read.failed:
            return None
        return sentence("group.not-there", group=group, source=self.flow.flow.source)

    def _unlisted(self, rules: GroupRules, here: ListedGroups, held: Mapping[str, HeldGroup]) -> list[str]:
        """Return the groups to ask for by name: a broker lists neither hidden groups nor those that are gone."""
        return asked_by_name(self.flow.groups.filter.include.items, rules, here.groups, held)

    async def _missing(
        self, held: Mapping[str, HeldGroup], offsets: Mapping[str, Mapping[TopicPartition, CommittedOffset]]
    ) -> FetchedOffsets:
        """Ask by name for offsets that Ferry wrote once and that are not in the answer.

        When *all* offsets are asked for, a broker silently omits those whose topic the login may not see.
        """
        missing: dict[str, list[TopicPartition]] = {}
        for group, one in held.items():
            asked = {at for place in one.offsets for at in one.sources_of(place)}
            places = sorted(asked - offsets.get(group, {}).keys())
            if places and group in offsets:
                missing[group] = places
        return await fetch_offsets(self.connections.source, missing, stable=False)

    async def _translated(
        self,
        rules: GroupRules,
        offsets: Mapping[str, Mapping[TopicPartition, CommittedOffset]],
        denied: Mapping[str, frozenset[str]],
        deals: Callable[[str], bool],
        held: Mapping[str, HeldGroup],
    ) -> TranslatedGroups:
        copied: dict[str, bool] = {}
        merged: set[str] = set()
        other: set[str] = set()  # repartitioned, by the file or by the ledger
        asked: dict[TopicPartition, set[int]] = {}
        for committed in offsets.values():
            for place, at in committed.items():
                takes = copied.get(place.topic)
                if takes is None:
                    takes = copied[place.topic] = rules.takes_topic(place.topic)
                    if takes and rules.merges(place.topic):
                        merged.add(place.topic)
                    elif takes and deals(place.topic):
                        other.add(place.topic)
                if takes and place.topic not in merged:
                    asked.setdefault(place, set()).add(at.offset)
        repartitioned = (
            await maps_of_dealt(self.connections, self.lane, self._reads(offsets, other, held)) if other else {}
        )
        asked = {place: some for place, some in asked.items() if place.topic not in repartitioned}
        maps = await offset_maps(self.connections, self.lane, asked) if asked else {}
        if blank := {place for place in asked.keys() - maps.keys() if place.topic not in other}:
            maps |= await blank_maps(self.flow, self.connections.target, blank)
        led = await both_ways(self.flow, self.connections, asked, maps)
        known = replace(
            rules,
            takes_topic=lambda topic: copied.get(topic, False),
            merges=merged.__contains__,
        )
        return translated(known, offsets, led, denied, repartitioned)

    def _reads(
        self,
        offsets: Mapping[str, Mapping[TopicPartition, CommittedOffset]],
        topics: Collection[str],
        held: Mapping[str, HeldGroup],
    ) -> dict[str, set[Offsets]]:
        """Return what groups have read of these topics, as far as no offsets were written for it yet."""
        found: dict[str, set[Offsets]] = {topic: set() for topic in topics}
        for group, committed in offsets.items():
            for topic, read in read_of({place: at.offset for place, at in committed.items()}, found).items():
                copy = self.flow.copy_of(topic)
                if group not in held or held[group].read.get(copy) != read:
                    found[topic].add(read)
        return found

    async def _target(
        self, there: ListedGroups, groups: TranslatedGroups, held: Mapping[str, HeldGroup]
    ) -> TargetGroups:
        """Read the target's side of groups that have something to be written, or were written before.

        If all brokers have answered, a group that none lists has no offsets, because a login that may write them sees
        it. Groups that Ferry wrote are asked for even so, because a login may have lost that right.
        """
        wanted: dict[str, set[TopicPartition]] = {}
        for group, checkpoints in groups.checkpoints.items():
            wanted[group] = {one.target for one in checkpoints}
        for group, one in held.items():
            wanted.setdefault(group, set()).update(one.offsets)
        listed = there.groups
        named = {
            group: places
            for group, places in wanted.items()
            if (not listed[group].is_active if group in listed else bool(there.silent) or group in held)
        }
        read = await fetch_offsets(self.connections.target, named, stable=True, operation="READ")
        return TargetGroups(
            listed=listed,
            offsets=read.found,
            pending=read.pending,
            denied=read.denied,
            failed={group: str(error) for group, error in read.failed.items()},
        )

    async def write(
        self, view: LedgerView, looked: Looked, run: str, *, is_run: bool, yields: bool = False
    ) -> GroupOutcome:
        """Write what was decided. The ledger first gets what is on the target, and what is to be written.

        Reading may take long, so the decision is compared with the ledger and the target once more. Raises StoodBack,
        with nothing more written to the target, when the flow was paused since `view`, or (`is_run`) a newer run of the
        lane began. With `yields` it does so, too, when another process wrote one of these groups since, whose offsets
        may be newer.
        """
        ledger, now_ms = self.connections.ledger, wall_ms()
        # Once before the records, which would hide those of another pass, and once after them: of two passes at the
        # same time the one whose records come first continues.
        end = await ledger.end()
        looked = self._relieved(looked, await ledger.read_untransacted(view.end, end), is_run=is_run)
        kept = await with_saved(ledger, view, self.lane, run)
        records = _records(kept, self.lane, looked, run, now_ms)
        if records:
            own = await ledger.append_each(records)
            since, end = await ledger.read_untransacted(end, own[-1] + 1), own[-1] + 1
            looked = self._relieved(looked, since, own=frozenset(own), is_run=is_run)
        decided = looked.decided
        now = await self._now(decided.writes)
        writes, changed = still_there(decided.writes, now, self.flow.flow.target)
        wanted = {
            group: {
                write.checkpoint.target: CommittedOffset(
                    offset=write.checkpoint.target_offset, metadata=write.checkpoint.metadata
                )
                for write in ones
            }
            for group, ones in writes.items()
        }
        last = last_check(ledger, end, self.lane, is_run=is_run, yielded=wanted.keys() if yields else ())
        done = await commit_offsets(self.connections.target, wanted, last_check=last)
        outcome = outcome_of(wanted, done, left=(*looked.left, *changed), unchanged=decided.unchanged, at_ms=now_ms)
        latency = latency_of(wanted, done, looked.asked_ms)
        return replace(outcome, inexact=_inexact(writes, done), again=_again(writes, done), latency=latency)

    def _relieved(
        self, looked: Looked, since: Iterable[LedgerRecord], *, own: frozenset[int] = frozenset(), is_run: bool
    ) -> Looked:
        """Return what was decided, without the groups that another process wrote since.

        StoodBack when the flow was paused or a newer run began.
        """
        found = concurrent_changes(since, self.lane, own=own, now_ms=wall_ms(), is_run=is_run)
        _stand_back(found)
        if not found.taken:
            return looked
        decided = looked.decided
        left = left_to_others(found.taken, decided.writes.keys())
        decided = replace(
            decided,
            writes={group: ones for group, ones in decided.writes.items() if group not in found.taken},
            gone={group: ones for group, ones in decided.gone.items() if group not in found.taken},
            settled={group: ones for group, ones in decided.settled.items() if group not in found.taken},
        )
        return replace(looked, decided=decided, left=(*looked.left, *left))

    async def _now(self, writes: Mapping[str, Collection[Write]]) -> TargetGroups:
        """Read the offsets that are on the target now where offsets are to be written."""
        places = {group: [write.checkpoint.target for write in ones] for group, ones in writes.items()}
        read = await fetch_offsets(self.connections.target, places, stable=True, operation="READ")
        return TargetGroups(
            listed={},
            offsets=read.found,
            pending=read.pending,
            failed={group: str(error) for group, error in read.failed.items()},
        )


def _inexact(found: Mapping[str, Collection[Write]], done: CommittedOffsets) -> Mapping[str, int]:
    """Count the written offsets that were not translated exactly, by how they were translated."""
    words = (
        write.checkpoint.outcome.value
        for group, writes in found.items()
        for write in writes
        if write.checkpoint.outcome is not Found.EXACT
        and write.checkpoint.target in written(group, [write.checkpoint.target], done)
    )
    return dict(Counter(words))


def _again(found: Mapping[str, Collection[Write]], done: CommittedOffsets) -> int:
    """Count how many records at most are read again after the written offsets of outcome `again`.

    For an offset of another outcome it is none, or it is not known.
    """
    return sum(
        write.checkpoint.again or 0
        for group, writes in found.items()
        for write in writes
        if write.checkpoint.target in written(group, [write.checkpoint.target], done)
    )


def _records(view: LedgerView, lane: str, looked: Looked, run: str, now_ms: int) -> list[Record]:
    """Make the records that the ledger must have before anything is written."""
    decided = looked.decided
    records: list[Record] = []
    earlier = saved_groups(view, lane, run)  # of an earlier attempt at this run: what was there first counts
    for group, writes in decided.writes.items():
        saved = {write.checkpoint.target: Saved(write.before, write.checkpoint.target_offset) for write in writes}
        for place, first in earlier.get(group, {}).items():
            later = saved.get(place)
            saved[place] = first if later is None else Saved(first.before, later.wrote)
        records.append(saved_record(lane, run, group, saved))
    if decided.writes:
        count = len(earlier.keys() | decided.writes.keys())
        records.append(snapshot_record(lane, Snapshot(name=run, at_ms=now_ms, groups=count)))
        records += dropped_snapshots(view, lane, surplus(snapshots(view, lane).values(), run))
    for group in decided.writes.keys() | decided.gone.keys() | decided.settled.keys():
        settled = decided.settled.get(group, frozenset())
        writes = decided.writes.get(group, [])
        held = _remembered(looked.held.get(group), looked.groups.checkpoints.get(group, ()), writes, settled, now_ms)
        forgotten = decided.gone.get(group, frozenset())
        kept = {place: one for place, one in held.offsets.items() if place not in forgotten}
        records.append(group_record(lane, group, replace(held, offsets=kept), run=run, at_ms=now_ms))
    return records


def _remembered(
    held: HeldGroup | None,
    found: Sequence[Checkpoint],
    writes: Sequence[Write],
    settled: frozenset[TopicPartition],
    now_ms: int,
) -> HeldGroup:
    """Return what the ledger is to hold of a group, with what is about to be written."""
    offsets = dict(held.offsets) if held is not None else {}
    sources = dict(held.sources) if held is not None else {}
    read = dict(held.read) if held is not None else {}
    for place in settled:
        offsets[place] = Held(offsets[place].wrote)
    for write in writes:
        one = write.checkpoint
        renews = write.prior is not None and write.prior.target == one.target_offset
        offsets[one.target] = Held(Wrote(one.source_offset, one.target_offset), None if renews else write.prior)
        sources[one.target.topic] = one.source.topic
    written = [write.checkpoint for write in writes]
    for topic in {one.target.topic for one in written if one.read}:
        read[topic] = holds_for(held, topic, found, written)
    renewed_ms = held.renewed_ms if held is not None else now_ms
    if writes and now_ms - renewed_ms >= RENEW_MS:
        renewed_ms = now_ms
    return HeldGroup(offsets=offsets, sources=sources, renewed_ms=renewed_ms, read=read)


def _failed(group: str, error: FerryError | str) -> Left:
    return Left(
        group=group,
        place=None,
        why=Why.FAILED,
        message=said(error),
    )


def _silent(alias: str, listed: ListedGroups) -> list[Left]:
    return [
        _failed("", sentence("groups.silent-broker", broker=node, cluster=alias, why=why))
        for node, why in listed.silent.items()
    ]
