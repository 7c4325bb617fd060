"""Decides for each consumer group whether its translated offsets are written to the target, left alone or reported.

Brokers keep one offset for each group and partition, and do not record who wrote it. So the ledger keeps what Ferry
wrote, and which offset of Ferry's was there before (`Held`). An offset that is neither of the two was written by
another process. A write is in the ledger before it is made, so what a crash leaves on the target is one of the two as
well.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ferry.features.groups.rules.repartition_map import most_read, reads_on
from ferry.features.groups.rules.selection import NOT_TRANSLATABLE, GroupRules, merged_sentence
from ferry.features.groups.rules.translated import TranslatedGroups
from ferry.features.groups.rules.written_offsets import Held, HeldGroup, Wrote
from ferry.messages.catalogue import said, sentence
from ferry.model import Checkpoint, CommittedOffset, Fact, Left, ListedGroup, Offsets, TopicPartition, Why

RENEW_MS = 24 * 60 * 60 * 1000
"""An offset that did not change is written again after this time. Brokers delete offsets of a group without members
after `offsets.retention.minutes`, a week by default."""


@dataclass(frozen=True, slots=True)
class Write:
    """One offset to write: the checkpoint, the offset that it replaces, and which write of Ferry's that was, if any."""

    checkpoint: Checkpoint
    before: CommittedOffset | None
    prior: Wrote | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetGroups:
    """The target's side of the groups. `failed` holds the groups of which nothing is known, with the reason.

    `pending` are partitions with a transactional commit that is not decided, `denied` topics that this login may not
    see. Offsets of groups with members are not asked for.
    """

    listed: Mapping[str, ListedGroup]
    offsets: Mapping[str, Mapping[TopicPartition, CommittedOffset]]
    pending: Mapping[str, frozenset[TopicPartition]] = field(default_factory=dict)
    denied: Mapping[str, frozenset[str]] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """What is to be written, by group, what is left, and how many offsets are right already."""

    writes: dict[str, list[Write]]
    left: list[Left]
    unchanged: int
    gone: dict[str, frozenset[TopicPartition]]
    """Partitions that the ledger need not keep any more: the group has no offset there, and none is to be written."""
    settled: dict[str, frozenset[TopicPartition]]
    """Partitions whose last write was seen on the target: an offset that was there before it does not count as Ferry's
    now."""


def decide_groups(
    rules: GroupRules,
    found: TranslatedGroups,
    target: TargetGroups,
    held: Mapping[str, HeldGroup],
    *,
    now_ms: int,
) -> Decided:
    """Decide for each translated offset whether it is written.

    A group is written only while it has no member on the target. Its offset there must still be the one that Ferry
    wrote last, or none may be there. Then the group follows the source, or its map, also backwards.

    `held` has only groups of which everything is known. Their partitions that `found.committed` lacks have no offset at
    the source any more. In repartitioned topics a group goes back only with the source: if receipts are gone, what was
    written still applies.
    """
    work = _Work(rules=rules, target=target)
    for group, checkpoints in found.checkpoints.items():
        work.group(group, checkpoints, held.get(group), now_ms)
    for group, places in found.uncopied.items():
        work.uncopied(group, places)
    for group, topics in found.merged.items():
        work.merged(group, topics)
    for group, troubles in found.troubled.items():
        work.troubled(group, troubles)
    for group in held:
        work.missing(group, held[group], found)
        work.settle(group, held[group])
    return Decided(writes=work.writes, left=work.left, unchanged=work.unchanged, gone=work.gone, settled=work.settled)


def without_checkpoint(rules: GroupRules, decided: Decided, held: Mapping[str, HeldGroup]) -> dict[str, str]:
    """Return the groups that have, or need, an offset on the target that Ferry did not write.

    If the source is lost, what these have read there is not known. Each has a sentence with the remedy.
    """
    found = {one.group: one.message for one in decided.left if one.why is Why.MOVED}
    for group, writes in decided.writes.items():
        known = held[group].offsets.keys() if group in held else frozenset[TopicPartition]()
        new = [write.checkpoint.target for write in writes if write.checkpoint.target not in known]
        if new:
            found.setdefault(
                group,
                f"no run has written an offset of group {group} in {new[0]} on {rules.flow.target} yet: the next one "
                f"does, or ferry groups sync '{rules.flow}' --group {group}",
            )
    return dict(sorted(found.items()))


def not_back(one: Checkpoint, held: HeldGroup | None) -> Checkpoint:
    """Return the checkpoint, in a repartitioned topic not before what was written for a group that had read no more.

    No unread record was before that offset then. So none is now, even if the receipts that showed it are gone.
    """
    if held is None or one.target not in held.offsets or one.target.topic not in held.read:
        return one
    at = held.offsets[one.target].wrote.target
    if not one.read or at <= one.target_offset or not reads_on(one.read, held.read[one.target.topic]):
        return one
    return one._replace(target_offset=at)


def holds_for(held: HeldGroup | None, topic: str, found: Iterable[Checkpoint], writes: Iterable[Checkpoint]) -> Offsets:
    """Return what a group must have read at least to miss nothing after the offsets that are kept of `topic`.

    `topic` is a repartitioned target topic. `found` are the group's checkpoints there now, `writes` those that are
    written. If the group went back at the source, an offset that is not written may be further on. Then the group must
    have read what it had before.
    """
    places = {one.target: one.target_offset for one in found if one.target.topic == topic}
    read = next(one.read for one in writes if one.target.topic == topic)
    known = held.read.get(topic) if held is not None else None
    if held is None or known is None or reads_on(read, known):
        return read
    others = held.offsets.keys() - {one.target for one in writes}
    still = all(held.offsets[at].wrote.target <= places.get(at, -1) for at in others if at.topic == topic)
    return read if still else most_read(known, read)


def _denied(group: str, topic: str, alias: str, operation: str) -> str:
    return sentence("group.denied", group=group, topic=topic, cluster=alias, operation=operation)


_NOTHING: Mapping[TopicPartition, Held] = {}
_NOWHERE: Mapping[TopicPartition, CommittedOffset] = {}


@dataclass(slots=True, kw_only=True)
class _Work:
    rules: GroupRules
    target: TargetGroups
    writes: dict[str, list[Write]] = field(default_factory=dict)
    left: list[Left] = field(default_factory=list)
    unchanged: int = 0
    gone: dict[str, frozenset[TopicPartition]] = field(default_factory=dict)
    settled: dict[str, frozenset[TopicPartition]] = field(default_factory=dict)

    def group(self, group: str, checkpoints: Sequence[Checkpoint], held: HeldGroup | None, now_ms: int) -> None:
        if (why := self.target.failed.get(group)) is not None:
            self._leave(group, None, Why.FAILED, why)
            return
        there = self.target.listed.get(group)
        if there is not None and there.is_active:
            alias = self.rules.flow.target
            self._leave(
                group,
                None,
                Why.ACTIVE,
                sentence("group.active", group=group, state=there.state, target=alias, source=self.rules.flow.source),
            )
            return
        if there is not None and there.kind in NOT_TRANSLATABLE:
            alias, source = self.rules.flow.target, self.rules.flow.source
            self._leave(
                group,
                None,
                Why.FAILED,
                sentence("group.of-another-kind", group=group, type=there.kind.value, target=alias, source=source),
            )
            return
        offsets = self.target.offsets.get(group, _NOWHERE)
        pending = self.target.pending.get(group, frozenset())
        denied = self.target.denied.get(group, frozenset())
        for topic in sorted(denied & {one.target.topic for one in checkpoints}):
            self._leave(group, None, Why.FAILED, _denied(group, topic, self.rules.flow.target, "READ"))
        remembered = held.offsets if held is not None else _NOTHING
        renew = held is not None and now_ms - held.renewed_ms >= RENEW_MS
        writes = []
        for found in checkpoints:
            one = not_back(found, held)
            if one.target.topic in denied:
                continue
            if one.target in pending:
                self._leave(group, one.target, Why.PENDING, self._pending(one))
                continue
            write = self._partition(one, offsets.get(one.target), remembered.get(one.target), renew, self._doubt(held))
            if write is not None:
                writes.append(write)
        if writes:
            self.writes[group] = writes

    def _partition(
        self, one: Checkpoint, there: CommittedOffset | None, held: Held | None, renew: bool, doubt: str
    ) -> Write | None:
        if there is None:
            return Write(one, None, None)
        own = held.found_as(there.offset) if held is not None else None
        if there.offset == one.target_offset and (own is None or there.metadata == one.metadata):
            if own is not None and renew:
                return Write(one, there, own)
            self.unchanged += 1
            return None
        if own is None and not self.rules.force:
            self._leave(one.group, one.target, Why.MOVED, self._moved(one, there, held, doubt))
            return None
        return Write(one, there, own)

    def uncopied(self, group: str, places: Iterable[TopicPartition]) -> None:
        for place in places:
            self._leave(
                group,
                place,
                Why.NOT_COPIED,
                sentence("group.not-copied", group=group, place=str(place), source=self.rules.flow.source),
            )

    def merged(self, group: str, topics: Iterable[str]) -> None:
        for topic in sorted(topics):
            self._leave(group, None, Why.MERGED, merged_sentence(self.rules.flow, group, topic))

    def troubled(self, group: str, troubles: Mapping[TopicPartition, str]) -> None:
        for why in dict.fromkeys(troubles.values()):
            places = [place for place, one in troubles.items() if one == why]
            place = places[0] if len(places) == 1 else None
            self._leave(group, place, Why.FAILED, sentence("group.troubled", group=group, why=why))

    def missing(self, group: str, held: HeldGroup, found: TranslatedGroups) -> None:
        """Report partitions that Ferry wrote before, and for which there is nothing to write now."""
        denied = found.denied.get(group, frozenset())
        for topic in sorted(filter(self.rules.takes_topic, denied)):
            self._leave(group, None, Why.FAILED, _denied(group, topic, self.rules.flow.source, "DESCRIBE"))
        if not self._is_known(group):
            return
        here = {one.target for one in found.checkpoints.get(group, ())} | found.troubled.get(group, {}).keys()
        committed = found.committed.get(group, ())
        there = self.target.offsets.get(group, _NOWHERE)
        unknown = self.target.denied.get(group, frozenset())
        pending = self.target.pending.get(group, frozenset())
        missing = [
            place
            for place in held.offsets
            if place not in here and place not in pending and place.topic not in unknown
            if held.sources.get(place.topic) not in denied
        ]
        forgettable = frozenset(place for place in missing if place not in there)
        if forgettable:
            self.gone[group] = forgettable
        source, alias = self.rules.flow.source, self.rules.flow.target
        for place in missing:
            copied = held.sources_of(place)
            if place not in there or not copied or any(one in committed for one in copied):
                continue
            if held.offsets[place].found_as(there[place].offset) is not None:
                what = copied[0].topic if place.topic in held.read else copied[0]
                self._leave(
                    group,
                    place,
                    Why.DELETED,
                    sentence(
                        "group.deleted",
                        group=group,
                        what=str(what),
                        source=source,
                        target=alias,
                        offset=there[place].offset,
                        place=str(place),
                    ),
                )

    def settle(self, group: str, held: HeldGroup) -> None:
        """Record which of the last writes are on the target."""
        there = self.target.offsets.get(group, _NOWHERE)
        settled = frozenset(
            place
            for place, one in held.offsets.items()
            if one.prior is not None and place in there and there[place].offset == one.wrote.target
        )
        if settled and self._is_known(group):
            self.settled[group] = settled

    def _is_known(self, group: str) -> bool:
        """Report whether the target was asked for the group's offsets, and returned them."""
        there = self.target.listed.get(group)
        return group not in self.target.failed and (there is None or not there.is_active)

    def _leave(self, group: str, place: TopicPartition | None, why: Why, message: str) -> None:
        self.left.append(Left(group=group, place=place, why=why, message=said(message)))

    def _doubt(self, held: HeldGroup | None) -> str:
        """Add that Ferry may have put an offset there, if the ledger was rebuilt and has nothing of the time before."""
        rebuilt = self.rules.rebuilt
        if rebuilt is None or (held is not None and held.at > rebuilt.offset):
            return ""
        return f"; or Ferry did, for {rebuilt.sentence}"

    def _moved(self, one: Checkpoint, there: CommittedOffset, held: Held | None, doubt: str) -> str:
        facts: dict[str, Fact] = {
            "group": one.group,
            "offset": there.offset,
            "place": str(one.target),
            "target": self.rules.flow.target,
            "doubt": doubt,
            "source": self.rules.flow.source,
            "wanted": one.target_offset,
        }
        if held is None:
            return sentence("group.moved.unknown", **facts)
        return sentence("group.moved", wrote=held.wrote.target, **facts)

    def _pending(self, one: Checkpoint) -> str:
        return sentence("group.pending", group=one.group, place=str(one.target), target=self.rules.flow.target)
