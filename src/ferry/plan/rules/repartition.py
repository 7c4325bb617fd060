"""What a run copies of a repartitioned topic: from facts to lots of target partitions, or to refusals.

Source or target partitions that are left out now are at the same position when the next plan is made.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ferry.ledger.units import Replanned, family
from ferry.messages.catalogue import sentence
from ferry.messages.refusals import passed, what_of
from ferry.model import Era, Gap, Refusal, Resolution, Sentence, TopicPartition
from ferry.plan.rules.facts import Facts, LaneFacts, SourceTopic, TargetFacts
from ferry.plan.rules.guards import Mismatch, leaderless_refusal
from ferry.plan.rules.planning_rules import Rules, Transform
from ferry.plan.rules.progress import estimated_bytes, place_of_lane
from ferry.plan.rules.repartition_bounds import DealLook
from ferry.plan.rules.repartition_refusals import deal_refusal, lost_rule, not_begun, too_many
from ferry.plan.rules.repartition_shares import Deal, Lot
from ferry.plan.rules.topics import hidden_copy
from ferry.words import several


def deal_of(
    rules: Rules, facts: Facts, topic: SourceTopic, targets: Sequence[str], rule: Transform, run: str, generation: int
) -> Deal | tuple[Refusal, ...]:
    """Return the lots of a topic, or the refusals. Pure. `targets` are the names of its copies: most topics have one.

    A `rule` without a digest is taken for the one in force: its plan is not written.
    """
    partitions = rule.partitions or 1
    known = _known(facts.lane, topic, targets)
    before = family(facts.lane.eras.values(), known) if known is not None else ()
    old_names = tuple(era.target_topic for era in before)
    all_names = dict.fromkeys([*targets, *old_names])
    lasts = {place: last for place, last in facts.lane.units.items() if place.topic in all_names}
    hidden = next((name for name in all_names if name in facts.target.hidden), None)
    if hidden is not None:
        return (hidden_copy(topic.name, hidden, rules.flow.target),)
    for target in targets:
        against = deal_refusal(rules, facts, topic, target, rule, known, lasts)
        if against is not None:
            return (against,)
    read = max([len(known.begins) if known else 0, *(len(last.ends) for last in lasts.values())])
    width = _width(topic, read)
    unserved = tuple(leaderless_refusal(topic, number) for number in topic.leaderless)
    if known is None and unserved:
        return (*unserved, not_begun(topic, unserved))
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
        target_topic_id=_id_of(facts.target, targets[0]),
        spec=rule.text,
    )
    look = DealLook(rules, facts, topic, known, lasts, wish, width, tuple(sorted(targets)), old_names)
    found, refusals, lifted = look.sources()
    text = next((facts.lane.lost_rules[name] for name in old_names if name in facts.lane.lost_rules), None)
    if found.finishing and text is not None:
        return (lost_rule(found.era, rule, text),)
    copies = [copy for name in targets if (copy := facts.target.topics.get(name)) is not None]
    large = next((copy for copy in copies if copy.partitions > partitions), None)
    if not found.finishing and large is not None:
        return (too_many(topic, large, rule),)
    is_new = found.era != known
    names = look.names(found)
    lots, lost = look.lots(found)
    note = _note(rule, found, known, names)
    return Deal(
        era=found.era,
        is_new=is_new,
        finishing=found.finishing,
        lots=tuple(lots),
        eras=_begun_eras(facts.target, found.era, names) if is_new else before,
        targets={name: _id_of(facts.target, name) for name in names},
        ahead=_ahead(topic, lots),
        refusals=(*unserved, *refusals, *lost),
        gaps=tuple(_gap(facts.now_ms, topic, one, run, generation) for one in lifted),
        notes=(*([] if note is None else [note]), *map(_lifted_note, lifted)),
    )


def _known(lane: LaneFacts, topic: SourceTopic, targets: Iterable[str]) -> Era | None:
    """Return the newest rule by which records were written to some of these topics; None for a new copy."""
    own = (lane.eras.get(name) for name in targets)
    eras = [era for era in own if era is not None]
    mine = [era for era in eras if era.source_topic == topic.name]
    return max(mine or eras, key=lambda era: era.since, default=None)


def _begun_eras(target: TargetFacts, era: Era, names: Iterable[str]) -> tuple[Era, ...]:
    return tuple(replace(era, target_topic=name, target_topic_id=_id_of(target, name)) for name in names)


def _id_of(target: TargetFacts, name: str) -> str:
    copy = target.topics.get(name)
    return "" if copy is None else copy.topic_id


def _width(topic: SourceTopic, read: int) -> int:
    """Return how many source partitions are copied: those read before, and new ones up to the first unserved one."""
    count = len(topic.partitions) + len(topic.leaderless)
    return next((number for number in range(read, count) if number not in topic.partitions), count)


def _ahead(topic: SourceTopic, lots: Iterable[Lot]) -> dict[int, tuple[int, int]]:
    spans: dict[int, tuple[int, int]] = {}
    for lot in lots:
        for number, (start, end) in enumerate(zip(lot.starts, lot.ends, strict=True)):
            low, high = spans.get(number, (start, end))
            spans[number] = min(low, start), max(high, end)
    return {
        number: (high - low, estimated_bytes(topic.partitions[number], high - low).bytes)
        for number, (low, high) in spans.items()
        if number in topic.partitions
    }


def _note(rule: Transform, found: Replanned, known: Era | None, names: Sequence[str]) -> Sentence | None:
    """Return a note that the rule changes now, or will change; None if it does neither."""
    era = found.era
    if known is None or (not found.finishing and era == known):
        return None
    partitions = f"{era.partitions * len(names)} partitions of {several(list(names))}"
    if found.finishing:
        return sentence("transform.finishing", topic=era.source_topic, transform=rule.name, partitions=partitions)
    return sentence("transform.begun", topic=era.source_topic, transform=rule.name, partitions=partitions)


def _gap(now_ms: int, topic: SourceTopic, mismatch: Mismatch, run: str, generation: int) -> Gap:
    """Return the gap of source offsets that are skipped because a policy lets the topic continue."""
    why = mismatch.refusal.kind
    start, end = mismatch.lost
    return Gap(
        source=TopicPartition(topic.name, mismatch.refusal.partition or 0),
        start=start,
        end=end,
        why=why,
        run=run,
        at_ms=now_ms,
        how=Resolution.SKIP,
        who=f"ferry.guard.{why.replace('-', '.')}",
        reason=what_of(mismatch.refusal),
        generation=generation,
        topic_id=topic.topic_id,
    )


def _lifted_note(mismatch: Mismatch) -> Sentence:
    return passed("passed.skipped", mismatch.refusal)
