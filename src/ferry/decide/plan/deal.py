"""What a run copies of a topic that gets other partitions: facts -> parts of target partitions, or what stands against.

The source's partitions and the target's are in trouble each by itself: one of the source is left out of all parts, one
of the target has no part. What is left out now is where it was when the next plan is made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ferry.config.flow.guards import OnGuard
from ferry.decide.plan.dealt_parts import Deal, Part
from ferry.decide.plan.facts import Facts, SourceTopic, TargetTopic
from ferry.decide.plan.guards import ANEW, Trouble, leaderless_refusal, retention_trouble, unserved_refusal
from ferry.decide.plan.origins import returning_refusal
from ferry.decide.plan.progress import estimated_bytes, next_offset, place_of_lane
from ferry.decide.plan.rules import Rules, Transform
from ferry.decide.plan.tombstones import tombstone_trouble
from ferry.decide.plan.undecided import undecided_sentence
from ferry.decide.records.units import Log, Replanned, family, of_partition, places_of, replanned
from ferry.model import (
    Era,
    Gap,
    LaneKind,
    Lifted,
    Refusal,
    RefusalKind,
    TopicPartition,
    UnitReceipt,
    lane_kind,
)
from ferry.words import several


def deal_of(
    rules: Rules, facts: Facts, topic: SourceTopic, targets: Sequence[str], rule: Transform, run: str, generation: int
) -> Deal | tuple[Refusal, ...]:
    """The parts of a topic, or why it has none. Pure. `targets` are the names of its copies: most topics have one.

    A `rule` without digest is taken for the one that is in force: nobody writes what comes of it.
    """
    partitions = rule.partitions or 1
    known = _known(facts, topic, targets)
    before = family(facts.eras.values(), known) if known is not None else ()
    old_names = tuple(era.target_topic for era in before)
    all_names = dict.fromkeys([*targets, *old_names])
    lasts = {place: last for place, last in facts.units.items() if place.topic in all_names}
    for target in targets:
        against = _against(rules, facts, topic, target, rule, known, lasts)
        if against is not None:
            return (against,)
    read = max([len(known.begins) if known else 0, *(len(last.reached) for last in lasts.values())])
    width = _width(topic, read)
    unserved = tuple(leaderless_refusal(topic, number) for number in topic.leaderless)
    if known is None and unserved:
        return (*unserved, _not_begun(topic, unserved))
    begins = tuple(
        place_of_lane(facts, TopicPartition(topic.name, number), part, None)
        if (part := topic.partitions.get(number)) is not None
        else 0
        for number in range(width)
    )
    wish = Era(
        source_topic=topic.name,
        target_topic=targets[0],
        since=generation,
        begins=begins,
        digest=rule.digest or ("" if known is None else known.digest),
        partitions=partitions,
        source_topic_id=topic.topic_id,
        target_topic_id=_id_of(facts, targets[0]),
        spec=rule.text,
    )
    look = _Look(rules, facts, topic, known, lasts, wish, width, tuple(sorted(targets)), old_names)
    found, refusals, lifted = look.sources()
    lost_rule = next((facts.lost_rules[name] for name in old_names if name in facts.lost_rules), None)
    if found.finishing and lost_rule is not None:
        return (_lost_rule(found.era, rule, lost_rule),)
    copies = [copy for name in targets if (copy := facts.targets.get(name)) is not None]
    large = next((copy for copy in copies if copy.partitions > partitions), None)
    if not found.finishing and large is not None:
        return (_too_many(topic, large, rule),)
    is_new = found.era != known
    names = look.names(found)
    parts, lost = look.parts(found)
    note = _note(rule, found, known, names)
    return Deal(
        era=found.era,
        is_new=is_new,
        finishing=found.finishing,
        parts=tuple(parts),
        eras=_begun_eras(facts, found.era, names) if is_new else before,
        targets={name: _id_of(facts, name) for name in names},
        ahead=_ahead(topic, parts),
        refusals=(*unserved, *refusals, *lost),
        gaps=tuple(_gap(facts, topic, one, run, generation) for one in lifted),
        notes=(*([] if note is None else [note]), *map(_lifted_note, lifted)),
    )


def _known(facts: Facts, topic: SourceTopic, targets: Iterable[str]) -> Era | None:
    """The newest rule by which records were dealt to some of these topics. None: to none of them, it is a new copy."""
    own = (facts.eras.get(name) for name in targets)
    eras = [era for era in own if era is not None]
    mine = [era for era in eras if era.source_topic == topic.name]
    return max(mine or eras, key=lambda era: era.since, default=None)


def _begun_eras(facts: Facts, era: Era, names: Iterable[str]) -> tuple[Era, ...]:
    return tuple(replace(era, target_topic=name, target_topic_id=_id_of(facts, name)) for name in names)


def _id_of(facts: Facts, name: str) -> str:
    copy = facts.targets.get(name)
    return "" if copy is None else copy.topic_id


def dealt_before(facts: Facts, topic: str, target: str) -> Refusal | None:
    """Why a topic may not keep its partitions now: records of its copy were dealt to others; None: none were."""
    last = max((one for one in facts.units.values() if one.target.topic == target), key=_at, default=None)
    if last is None:
        return None
    era = facts.eras.get(target)
    count = f"{era.partitions} partitions" if era is not None else "other partitions"
    return _refusal(
        topic,
        f"target topic {target} was dealt to {count} by run {last.run}, and topic {topic} is to keep its own now: "
        f"write ferry.transform.NAME.partitions again, or {ANEW}",
    )


def _at(last: UnitReceipt) -> int:
    return last.at_ms


def _refusal(topic: str, message: str, kind: RefusalKind = RefusalKind.TRANSFORM) -> Refusal:
    return Refusal(topic=topic, partition=None, kind=kind, message=message)


def _against(
    rules: Rules,
    facts: Facts,
    topic: SourceTopic,
    target: str,
    rule: Transform,
    known: Era | None,
    lasts: Mapping[TopicPartition, UnitReceipt],
) -> Refusal | None:
    """What stands against the whole topic."""
    key = f"ferry.transform.{rule.name}.partitions"
    other = _against_lane(rules, topic, rule)
    if other is not None:
        return other
    if rules.merges(topic.name):
        return _refusal(
            topic.name,
            f"topic {topic.name} gets other partitions ({key}), and its target {target} is shared with other flows "
            "(ferry.merge.topics): take it out of one of both",
        )
    before = next((last for last in facts.receipts.values() if last.target.topic == target), None)
    if before is not None:
        return _refusal(
            topic.name,
            f"target topic {target} was copied partition by partition up to now, and transform {rule.name} would deal "
            f"topic {topic.name} to {rule.partitions} partitions: remove {key}, or {ANEW}",
        )
    ids = {last.source_topic_id for last in lasts.values()} | {"" if known is None else known.source_topic_id}
    read = max([0 if known is None else len(known.begins), *(len(last.reached) for last in lasts.values())])
    count = len(topic.partitions) + len(topic.leaderless)
    if (topic.topic_id and ids - {"", topic.topic_id}) or read > count:
        how = f"it has {count} partition(s) where {read} were read" if read > count else f"its id is {topic.topic_id}"
        return _refusal(
            topic.name,
            f"source topic {topic.name} was deleted and created again since it was copied to {target} ({how}): {ANEW}",
            RefusalKind.TOPIC_RECREATED,
        )
    if any(
        last.source_cluster_id and facts.source_cluster_id and last.source_cluster_id != facts.source_cluster_id
        for last in lasts.values()
    ):
        return _refusal(
            topic.name,
            f"topic {topic.name} was dealt to {target} from another cluster than {rules.flow.source} leads to now, and "
            f"cannot go on behind that: {ANEW}",
            RefusalKind.CLUSTER_CHANGED,
        )
    return _changed_target(facts, topic, target, lasts)


def _against_lane(rules: Rules, topic: SourceTopic, rule: Transform) -> Refusal | None:
    """What stands against a topic in this lane."""
    if lane_kind(rules.lane) in (LaneKind.BACKFILL, LaneKind.APPEND):
        return _refusal(
            topic.name,
            f"topic {topic.name} gets other partitions (ferry.transform.{rule.name}.partitions), and a window of it "
            "cannot be copied by itself: name other topics (--topic), or copy all of it anew under another alias of "
            "the source cluster",
        )
    if rule.targets and rules.scratch:
        return _refusal(
            topic.name,
            f"records of topic {topic.name} choose among several topics (ferry.transform.{rule.name}.targets), and "
            f"lane {rules.lane} has scratch topics of its own: leave the topic out here (--topic)",
        )
    return None


def _changed_target(
    facts: Facts, topic: SourceTopic, target: str, lasts: Mapping[TopicPartition, UnitReceipt]
) -> Refusal | None:
    copy = facts.targets.get(target)
    written = [last for last in lasts.values() if last.target_next >= 0 and last.target.topic == target]
    if not written:
        return None
    if copy is None:
        what = f"target topic {target} is gone although records were dealt to {len(written)} partition(s) of it"
    elif copy.topic_id and any(last.target_topic_id not in ("", copy.topic_id) for last in written):
        what = f"target topic {target} was deleted and created again since the last receipt"
    elif max(last.target.partition for last in written) >= copy.partitions:
        what = f"target topic {target} has {copy.partitions} partition(s), fewer than were written"
    else:
        return None
    return _refusal(topic.name, f"{what}: find out who did it, then {ANEW}", RefusalKind.TARGET_CHANGED)


def _width(topic: SourceTopic, read: int) -> int:
    """How many source partitions are copied: those that were read, and new ones up to the first that nobody serves."""
    count = len(topic.partitions) + len(topic.leaderless)
    return next((number for number in range(read, count) if number not in topic.partitions), count)


def _not_begun(topic: SourceTopic, unserved: Sequence[Refusal]) -> Refusal:
    names = several([f"{topic.name}-{one.partition}" for one in unserved])
    return _refusal(
        topic.name,
        f"the copy of topic {topic.name} does not begin, for where it begins is settled for all partitions at once and "
        f"{names} cannot be asked: bring their brokers back, the next run copies it",
        RefusalKind.NO_LEADER,
    )


def _lost_rule(era: Era, rule: Transform, why: str) -> Refusal:
    return _refusal(
        era.source_topic,
        f"transform {rule.name} has changed, and what some partitions of {era.target_topic} have already has to be "
        f"finished for the others by what it was, which cannot be carried out: {why}; or {ANEW}",
    )


def _too_many(topic: SourceTopic, copy: TargetTopic, rule: Transform) -> Refusal:
    return _refusal(
        topic.name,
        f"target topic {copy.name} has {copy.partitions} partitions, transform {rule.name} wants {rule.partitions}, "
        f"and Kafka takes none away: write ferry.transform.{rule.name}.partitions = {copy.partitions}, or "
        f"{'delete the target topic so that Ferry creates it' if not any(copy.ends.values()) else ANEW}",
        RefusalKind.PARTITION_COUNT,
    )


@dataclass(frozen=True, slots=True)
class _Look:
    """One topic's facts, and what they say partition by partition."""

    rules: Rules
    facts: Facts
    topic: SourceTopic
    known: Era | None
    lasts: Mapping[TopicPartition, UnitReceipt]
    wish: Era
    width: int
    targets: tuple[str, ...]
    """Of the wish; `before` are those of the known rule."""
    before: tuple[str, ...]

    def names(self, found: Replanned) -> tuple[str, ...]:
        """The target topics of the rule that is carried out."""
        return self.before if found.era == self.known else self.targets

    def sources(self) -> tuple[Replanned, list[Refusal], list[Trouble]]:
        """What is copied of which source partitions, what stands against others, and what policies pass over."""
        found = self._replanned(frozenset())
        troubles = [
            retention_trouble(self.topic, one.partition, max(one.start, self._by_hand(one.partition)))
            for one in found.passed
        ]
        troubles += [self._tombstones(number) for number in sorted(self.topic.partitions)]
        refusals: dict[int, Refusal] = {}
        lifted: list[tuple[int, Trouble]] = []
        for trouble in troubles:
            if trouble is None or (number := trouble.refusal.partition) is None:
                continue
            if self.rules.guards.of(trouble.refusal.kind, self.topic.name) is OnGuard.SKIP:
                lifted.append((number, trouble))
            else:
                refusals.setdefault(number, trouble.refusal)
        for number, reached, _ in found.cut:
            end = self.topic.partitions[number].log_end
            if reached > end:
                refusals[number] = self._truncated(number, reached, end)
        for number, part in self.topic.partitions.items():
            if part.diverged is not None:
                reached = max(of_partition(last.reached, number) for last in self.lasts.values())
                refusals[number] = self._truncated(number, reached, part.diverged)
        for number in range(self.width):
            place = TopicPartition(self.topic.name, number)
            low, high = _span(found, number)
            loop = returning_refusal(self.rules, place, low, high, self.facts.returned.get(place, ()))
            if loop is not None:
                refusals[number] = loop
        if refusals:
            found = self._replanned(frozenset(refusals))
        passed = [trouble for number, trouble in lifted if number not in refusals]
        return found, [refusal for _, refusal in sorted(refusals.items())], passed

    def _tombstones(self, number: int) -> Trouble | None:
        """Whether the lane has rested so long that keys of a compacted topic may have gone unseen."""
        place, part = TopicPartition(self.topic.name, number), self.topic.partitions[number]
        if place not in self.facts.dealt:
            return None
        start = next_offset(self.facts, place, part, None)
        return tombstone_trouble(self.facts, self.topic, number, start, remedy=ANEW)

    def _replanned(self, shut: frozenset[int]) -> Replanned:
        """As `ferry.decide.records.units.replanned`, with nothing to copy of the partitions in `shut`, or unserved."""
        closed = shut | {number for number in range(self.width) if number not in self.topic.partitions}
        logs = [self._log(number, closed) for number in range(self.width)]
        found = replanned(self.known, self.lasts.values(), self.wish, logs, before=self.before, names=self.targets)
        if not closed:
            return found
        ranges = tuple(
            (
                starts,
                tuple(start if n in closed else end for n, (start, end) in enumerate(zip(starts, ends, strict=True))),
            )
            for starts, ends in found.ranges
        )
        return found._replace(ranges=ranges)

    def _log(self, number: int, closed: frozenset[int]) -> Log:
        if number in closed:
            places = [self.wish.begins, *(last.reached for last in self.lasts.values())]
            places += [] if self.known is None else [self.known.begins]
            return Log(0, max(vector[number] for vector in places if number < len(vector)))
        part = self.topic.partitions[number]
        start = max(part.log_start, self._by_hand(number))
        return Log(start, max(start, part.end))

    def _by_hand(self, number: int) -> int:
        """Up to where somebody passed a source partition by hand; 0: nobody did."""
        place = TopicPartition(self.topic.name, number)
        if place not in self.facts.dealt or number not in self.topic.partitions:
            return 0
        at = next_offset(self.facts, place, self.topic.partitions[number], None)
        return at if at > self.facts.dealt[place] else 0

    def _truncated(self, number: int, reached: int, end: int) -> Refusal:
        return Refusal(
            topic=self.topic.name,
            partition=number,
            kind=RefusalKind.SOURCE_TRUNCATED,
            message=f"source {self.topic.name}-{number} was copied up to offset {reached}, but its log was truncated "
            f"to {end} since (unclean leader election?): compare both sides, then {ANEW}",
        )

    def parts(self, found: Replanned) -> tuple[list[Part], list[Refusal]]:
        """The target partitions' parts, and what stands against others."""
        parts, refusals = [], []
        places = places_of(found.era, self.names(found))
        for number, (place, (starts, ends)) in enumerate(zip(places, found.ranges, strict=True)):
            last, copy = self.lasts.get(place), self.facts.targets.get(place.topic)
            refusal = unserved_refusal(self.topic, place.partition, copy) or self._trouble(place, last, copy)
            if refusal is not None:
                refusals.append(replace(refusal, partition=number))  # as of its unit
                continue
            end = -1 if copy is None else copy.ends.get(place.partition, -1)
            parts.append(Part(target=place, starts=starts, ends=ends, last=last, target_end=end))
        return parts, refusals

    def _trouble(self, place: TopicPartition, last: UnitReceipt | None, copy: TargetTopic | None) -> Refusal | None:
        """A target partition that lost records, or has some of somebody else's."""
        kind, behind = RefusalKind.TARGET_CHANGED, -1 if last is None else last.target_next
        end = 0 if copy is None else copy.ends.get(place.partition, 0)
        if behind >= 0 and (end < behind or place in self.facts.cut):
            at = min(end, self.facts.cut.get(place, end))
            message = f"target {place} was written up to {behind} by the last receipt and has that up to {at}: it lost "
            message += f"records; find out who did it, then {ANEW}"
        elif place in self.facts.foreign:
            kind, offset = RefusalKind.FOREIGN_WRITER, self.facts.foreign[place]
            ours = f"behind our last record at {behind - 1}" if behind > 0 else "where the ledger has no receipt of any"
            message = f"target {place} has a record of somebody else at offset {offset}, {ours}: find the writer and "
            message += f"take its right to write, then {ANEW}"
        elif place in self.facts.undecided:
            kind = RefusalKind.FOREIGN_WRITER
            message = undecided_sentence(f"target {place}", place, self.facts.undecided[place])
        else:
            return None
        return Refusal(topic=self.topic.name, partition=place.partition, kind=kind, message=message)


def _span(found: Replanned, number: int) -> tuple[int, int]:
    """What of a source partition some target partition wants."""
    return min(starts[number] for starts, _ in found.ranges), max(ends[number] for _, ends in found.ranges)


def _ahead(topic: SourceTopic, parts: Iterable[Part]) -> dict[int, tuple[int, int]]:
    spans: dict[int, tuple[int, int]] = {}
    for part in parts:
        for number, (start, end) in enumerate(zip(part.starts, part.ends, strict=True)):
            low, high = spans.get(number, (start, end))
            spans[number] = min(low, start), max(high, end)
    return {
        number: (high - low, estimated_bytes(topic.partitions[number], high - low).bytes)
        for number, (low, high) in spans.items()
        if number in topic.partitions
    }


def _note(rule: Transform, found: Replanned, known: Era | None, names: Sequence[str]) -> str | None:
    """That the rule changes, or is going to."""
    era = found.era
    if known is None or (not found.finishing and era == known):
        return None
    partitions = f"{era.partitions * len(names)} partitions of {several(list(names))}"
    if found.finishing:
        return (
            f"topic {era.source_topic}: transform {rule.name} has changed, and counts once all {partitions} stand at "
            "one place; this run finishes by the rule of before what some of them have"
        )
    return (
        f"topic {era.source_topic}: transform {rule.name} counts as it is now from here on, for {partitions}; what was "
        "copied before stays where it is"
    )


def _gap(facts: Facts, topic: SourceTopic, trouble: Trouble, run: str, generation: int) -> Gap:
    """What is passed over where a policy lets the topic go on."""
    why = trouble.refusal.kind
    start, end = trouble.lost
    return Gap(
        source=TopicPartition(topic.name, trouble.refusal.partition or 0),
        start=start,
        end=end,
        why=why,
        run=run,
        at_ms=facts.now_ms,
        how=Lifted.SKIP,
        who=f"ferry.guard.{why.replace('-', '.')}",
        reason=_what(trouble),
        generation=generation,
        topic_id=topic.topic_id,
    )


def _lifted_note(trouble: Trouble) -> str:
    return f"{_what(trouble)}: skipped, as ferry.guard.{trouble.refusal.kind.replace('-', '.')} says"


def _what(trouble: Trouble) -> str:
    return trouble.refusal.message.partition(": ")[0]
