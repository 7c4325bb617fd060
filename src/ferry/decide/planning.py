"""From facts to a plan: which offsets of which partitions, in which slot, and what stands against it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from ferry.config.guards import OnGuard
from ferry.decide.absence import absence_notes, gone_note, gone_refusal, hidden_refusals, lost_partitions, lost_refusal
from ferry.decide.capacity import Load, space_notes, without_room
from ferry.decide.deletes import deletion
from ferry.decide.facts import Facts, SourceTopic, by_topic
from ferry.decide.guards import (
    cluster_refusal,
    leaderless_refusal,
    position_note,
    target_cluster_refusal,
    unserved_refusal,
)
from ferry.decide.held import held_notes
from ferry.decide.onward import onward
from ferry.decide.origins import returning_refusal, stranger_refusal, topic_refusals
from ferry.decide.progress import estimated_bytes, next_offset
from ferry.decide.rules import Rules
from ferry.decide.shares import even_bins, fair_shares
from ferry.decide.topics import TopicChanges, owned, topic_refusal, without_new
from ferry.errors import BadInput, Refused
from ferry.model import Gap, Plan, Receipt, Refusal, RefusalKind, Slice, TopicChange, TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidate:
    source: TopicPartition
    target: TopicPartition
    start: int
    end: int
    bytes: int
    last_generation: int
    """Of the run that copied the partition last; -1 when none did."""
    source_topic_id: str
    target_topic_id: str
    target_next: int
    log_start: int
    merged: bool
    target_end: int
    since: int
    compacted: bool
    gaps: tuple[Gap, ...]

    @property
    def first(self) -> bool:
        return self.last_generation < 0

    @property
    def offsets(self) -> int:
        return self.end - self.start


def decide_plan(rules: Rules, facts: Facts, run: str, generation: int) -> Plan:
    """The plan of a run. Pure: equal arguments give an equal plan.

    Raises Refused when nothing of the flow may be planned (another cluster under the source alias), BadInput when the
    run is narrowed to a topic that the flow does not copy.
    """
    _refuse_what_cannot_be_planned(rules, facts)
    refusals = hidden_refusals(facts, rules.flow, rules.only)
    changes = TopicChanges(rules=rules, facts=facts)
    notes = absence_notes(facts, rules.flow) if rules.only is None else []
    paused: list[str] = []
    candidates: list[_Candidate] = []
    against = topic_refusals(rules, facts)
    receipts = by_topic(facts.receipts)
    for name in sorted(facts.sources.keys() | facts.absent):
        if rules.only is not None and name not in rules.only:
            continue
        if "" in facts.pauses or name in facts.pauses:
            paused.append(name)
            continue
        topic = facts.sources.get(name)
        if topic is None:
            followed = deletion(rules, facts, name)
            if isinstance(followed, TopicChange):
                changes.due.append(followed)
                continue
            gone = followed or gone_refusal(facts, rules.flow, name)
            if rules.guards.topic_gone.of(name) is OnGuard.SKIP:
                notes.append(gone_note(gone))
            else:
                refusals.append(gone)
            continue
        refusal = against.get(name) or topic_refusal(rules, facts, topic)
        if refusal is not None:
            refusals.append(refusal)
            continue
        target_name = rules.policy.format_remote_topic(rules.flow.source, name)
        lasts = receipts.get(target_name, {})
        changes.add(topic, lasts.values())
        for outcome in _partitions(rules, facts, topic, lasts, notes, run, generation):
            if isinstance(outcome, Refusal):
                refusals.append(outcome)
            else:
                candidates.append(outcome)
    slices = _within_budget(rules, [candidate for candidate in candidates if candidate.offsets > 0])
    no_space = without_room(rules, facts, slices, changes.due)
    refusals += dict.fromkeys(no_space.values())
    loads = (Load(target=candidate.target, bytes=candidate.bytes) for candidate in candidates)
    notes += [
        *held_notes(rules, facts),
        *changes.notes(),
        *space_notes(rules, facts, loads, changes.due, refused=bool(no_space)),
    ]
    planned = tuple(piece for piece in slices if piece.source not in no_space)
    shut_out = {place.topic for place in no_space} - {piece.source.topic for piece in planned}
    return Plan(
        flow=rules.flow,
        lane=rules.lane,
        run=run,
        generation=generation,
        slots=rules.max_tasks,
        slices=planned,
        changes=tuple(without_new(changes.due, shut_out)),
        drift=tuple(changes.drift),
        refusals=tuple(sorted(refusals, key=lambda item: (item.topic, item.partition or 0))),
        notes=tuple(notes),
        gaps=tuple(gap for candidate in candidates for gap in candidate.gaps),
        paused=tuple(paused),
        source_cluster_id=facts.source_cluster_id,
        target_cluster_id=facts.target_cluster_id,
        max_seconds=rules.max_seconds,
        caught_up=sum(candidate.offsets == 0 for candidate in candidates),
    )


def _refuse_what_cannot_be_planned(rules: Rules, facts: Facts) -> None:
    unknown = sorted((rules.only or frozenset()) - facts.sources.keys() - facts.absent - facts.hidden)
    if unknown:
        raise BadInput(
            f"flow {rules.flow} does not copy topic {unknown[0]}: cluster {rules.flow.source} has no such "
            "topic, or the filters leave it out"
        )
    for last in facts.receipts.values():
        why = cluster_refusal(facts, last)
        if why is not None and rules.guards.cluster_changed.default is OnGuard.FAIL:
            raise Refused(why)
        why = target_cluster_refusal(facts, last)
        if why is not None:
            raise Refused(why)


def without_foreign(plan: Plan, claims: Mapping[str, str]) -> Plan:
    """The plan without the slices whose target topic another lane claimed first; each such topic is refused."""
    lost = {
        (piece.source.topic, piece.target.topic)
        for piece in plan.slices
        if claims.get(piece.target.topic, plan.lane) != plan.lane
    }
    if not lost:
        return plan
    refusals = tuple(owned(topic, target, claims[target]) for topic, target in sorted(lost))
    targets = {target for _, target in lost}
    return replace(
        plan,
        slices=tuple(piece for piece in plan.slices if piece.target.topic not in targets),
        gaps=tuple(gap for gap in plan.gaps if gap.source.topic not in {topic for topic, _ in lost}),
        refusals=(*plan.refusals, *refusals),
    )


def _partitions(
    rules: Rules,
    facts: Facts,
    topic: SourceTopic,
    lasts: Mapping[int, Receipt],
    notes: list[str],
    run: str,
    generation: int,
) -> Iterator[_Candidate | Refusal]:
    target_name = rules.policy.format_remote_topic(rules.flow.source, topic.name)
    target = facts.targets.get(target_name)
    for number in topic.leaderless:
        yield leaderless_refusal(topic, number)
    for lost in lost_partitions(lasts.values(), topic):
        yield lost_refusal(topic, lost)
    for number, part in sorted(topic.partitions.items()):
        place = TopicPartition(topic=target_name, partition=number)
        last = facts.receipts.get(place)
        unserved = unserved_refusal(topic, number, target)
        if unserved is not None:
            yield unserved
            continue
        source = TopicPartition(topic=topic.name, partition=number)
        found = onward(rules, facts, topic, number, target, last, run, generation)
        start = next_offset(facts, source, part, last) if isinstance(found, Refusal) else found.start
        # A loop first: it is what the other findings come from.
        refusal = returning_refusal(rules, source, start, part.end, facts.returned.get(source, ()))
        if refusal is not None:
            yield refusal
            continue
        if isinstance(found, Refusal):
            yield found
            continue
        refusal = stranger_refusal(facts, source, place)
        if refusal is not None:
            yield refusal
            continue
        notes += found.notes
        note = position_note(last, facts.positions[place]) if last is not None and place in facts.positions else None
        if note is not None:
            notes.append(note)
        yield _Candidate(
            source=source,
            target=place,
            start=start,
            end=max(start, part.end),
            bytes=estimated_bytes(part, max(0, part.end - start)),
            last_generation=last.generation if last else -1,
            source_topic_id=topic.topic_id,
            target_topic_id=target.topic_id if target else "",
            target_next=found.target_next,
            log_start=part.log_start,
            merged=rules.merges(topic.name)
            or rules.guards.of(RefusalKind.FOREIGN_WRITER, topic.name) is not OnGuard.FAIL,
            target_end=-1 if target is None else target.ends.get(number, -1),
            since=found.since,
            compacted=topic.compacted,
            gaps=found.gaps,
        )


def _within_budget(rules: Rules, candidates: list[_Candidate]) -> tuple[Slice, ...]:
    """Cut candidates to the run's budgets, fairly, and deal them to slots by bytes.

    Where a budget is too small for all, those come first that were copied longest ago: nobody starves.
    """
    by_turn = sorted(candidates, key=lambda candidate: candidate.last_generation)
    wanted = {candidate.source: candidate.offsets for candidate in by_turn}
    if rules.max_records is not None:
        wanted = fair_shares(wanted, rules.max_records)
    if rules.max_bytes is not None:
        needs = {c.source: max(1, c.bytes * wanted[c.source] // c.offsets) for c in by_turn if wanted[c.source]}
        shares = fair_shares(needs, rules.max_bytes)
        for source, share in shares.items():
            if share < needs[source]:
                wanted[source] = max(1, wanted[source] * share // needs[source]) if share else 0
    chosen = [candidate for candidate in candidates if wanted[candidate.source] > 0]
    weights = [c.bytes * wanted[c.source] // c.offsets for c in chosen]
    slots = even_bins(weights, rules.max_tasks)
    return tuple(
        Slice(
            source=candidate.source,
            target=candidate.target,
            start=candidate.start,
            end=candidate.start + wanted[candidate.source],
            slot=slot,
            bytes_estimate=weight,
            first=candidate.first,
            source_topic_id=candidate.source_topic_id,
            target_topic_id=candidate.target_topic_id,
            target_next=candidate.target_next,
            log_start=candidate.log_start,
            merged=candidate.merged,
            target_end=candidate.target_end,
            since=candidate.since,
            compacted=candidate.compacted,
        )
        for candidate, weight, slot in zip(chosen, weights, slots, strict=True)
    )
