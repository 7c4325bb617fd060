"""From facts to a plan: what of the candidates a run copies, in which slot, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import partial
from typing import NamedTuple

from ferry.config.flow.guards import OnGuard
from ferry.errors import BadInput, Refused
from ferry.messages.catalogue import sentence
from ferry.model import Plan, Receipt, Refusal, RefusalKind, Sentence, Slice, TopicChange, TopicPartition
from ferry.plan.rules.absence import gone_note, gone_refusal, hidden_refusals
from ferry.plan.rules.blocking_transactions import held_notes, ledger_notes
from ferry.plan.rules.budget import Ahead, bytes_within, slice_of, within_budget
from ferry.plan.rules.candidates import Candidate, candidates
from ferry.plan.rules.capacity import Load, space_notes, without_room
from ferry.plan.rules.deletes import deletion
from ferry.plan.rules.empty_filter import FilterFindings, empty_filter
from ferry.plan.rules.facts import Facts, SourceFacts, SourceTopic, by_topic
from ferry.plan.rules.first_copies import slow_notes
from ferry.plan.rules.guards import cluster_facts, target_cluster_sentence
from ferry.plan.rules.origins import topic_refusals
from ferry.plan.rules.planning_rules import Rules
from ferry.plan.rules.repartition import deal_of
from ferry.plan.rules.repartition_refusals import dealt_before
from ferry.plan.rules.repartition_shares import Deal
from ferry.plan.rules.shares import assigned_slots
from ferry.plan.rules.topics import TopicChanges, owned, topic_refusal, without_new

NO_GENERATION = -1
"""The generation of a plan that no opened run has, such as a preview."""


def decide_plan(rules: Rules, facts: Facts, run: str, generation: int) -> Plan:
    """Decide the plan of a run. Pure: equal arguments give an equal plan.

    Raises Refused when nothing of the flow may be planned: another cluster under an alias, or one task for topics with
    and without a transform. Raises BadInput when the run is narrowed to a topic that the flow does not copy.
    """
    _refuse_what_cannot_be_planned(rules, facts)
    draft = _Draft(rules, facts)
    against = topic_refusals(rules, facts)
    receipts = by_topic(facts.lane.receipts)
    for name in sorted(facts.source.topics.keys() | facts.source.absent):
        if rules.only is not None and name not in rules.only:
            continue
        topic = facts.source.topics.get(name)
        if "" in facts.lane.pauses or name in facts.lane.pauses:
            draft.paused.append(name)
        elif topic is None:
            draft.add_absent(name)
        elif (refusal := against.get(name) or topic_refusal(rules, facts, topic)) is not None:
            draft.refusals.append(refusal)
        else:
            target = rules.policy.format_remote_topic(rules.flow.source, name)
            transform = rules.transform_of(name)
            if transform is not None and transform.partitions is not None:
                targets = rules.copies_of(name)
                draft.add_deal(topic, deal_of(rules, facts, topic, targets, transform, run, generation))
            elif (before := dealt_before(facts.lane, name, target)) is not None:
                draft.refusals.append(before)
            else:
                lasts = receipts.get(target, {})
                draft.changes.add(topic, target, lasts.values())
                draft.add(candidates(rules, facts, topic, lasts, run, generation))
    return draft.plan(run, generation)


def refuse_unplannable(rules: Rules, facts: Facts) -> None:
    """Raise what `decide_plan` raises for these facts, which may be an outline of them."""
    decide_plan(rules, facts, "", NO_GENERATION)


class _Draft:
    """What was found topic by topic, and the plan that results from it."""

    def __init__(self, rules: Rules, facts: Facts) -> None:
        self._rules = rules
        self._facts = facts
        self._candidates: list[Candidate] = []
        self._deals: list[Deal] = []
        vain = empty_filter(rules.flow, rules.guards, facts) if rules.only is None else FilterFindings()
        self._notes = [*vain.notes]
        self._lifted = [RefusalKind.TOPICS_NONE] * vain.lifted
        self.changes = TopicChanges(rules=rules, facts=facts)
        self.paused: list[str] = []
        self.refusals = [*hidden_refusals(facts.source, rules.flow, rules.only), *vain.refusals]

    def add(self, found: Iterable[Candidate | Refusal]) -> None:
        """Add the partitions of a topic."""
        for outcome in found:
            if isinstance(outcome, Refusal):
                self.refusals.append(outcome)
            else:
                self._candidates.append(outcome)
                self._notes += outcome.notes

    def add_deal(self, topic: SourceTopic, found: Deal | tuple[Refusal, ...]) -> None:
        """Add a topic that is repartitioned."""
        if isinstance(found, tuple):
            self.refusals += found
            return
        for target in found.targets:
            lasts = [last for last in self._facts.lane.units.values() if last.target.topic == target]
            self.changes.add(topic, target, lasts, found.era.partitions)
        self.refusals += found.refusals
        self._notes += found.notes
        self._deals.append(found)

    def add_absent(self, name: str) -> None:
        """Add a topic that was copied before and is gone from the source."""
        followed = deletion(self._rules, self._facts, name)
        if isinstance(followed, TopicChange):
            self.changes.due.append(followed)
            return
        gone = followed or gone_refusal(self._facts.lane, self._rules.flow, name)
        if self._rules.guards.topic_gone.of(name) is OnGuard.SKIP:
            self._notes.append(gone_note(gone))
            self._lifted.append(gone.kind)
        else:
            self.refusals.append(gone)

    def plan(self, run: str, generation: int) -> Plan:
        """Return the plan: as much as the budgets and the target's disks allow."""
        rules, facts, due = self._rules, self._facts, self.changes.due
        needs: list[Ahead] = [*self._ahead, *(need for deal in self._deals for need in deal.needs)]
        wanted = within_budget(rules, needs)
        weighed = self._weighed(wanted)
        planned_loads = [Load(source=piece.source, target=piece.target, bytes=weight) for piece, weight in weighed]
        no_space = without_room(rules, facts, planned_loads, due)
        loads = [Load(source=one.source, target=one.target, bytes=one.bytes) for one in self._candidates]
        loads += [load for deal in self._deals for load in deal.loads]
        planned = tuple(piece for piece, _ in weighed if piece.source not in no_space)
        shut_out = {place.topic for place in no_space} - {one.source.topic for one in planned}
        refusals = [*self.refusals, *dict.fromkeys(no_space.values())]
        return Plan(
            flow=rules.flow,
            lane=rules.lane,
            run=run,
            generation=generation,
            slots=rules.max_tasks,
            slices=planned,
            changes=tuple(without_new(due, shut_out)),
            drift=tuple(self.changes.drift),
            refusals=tuple(sorted(refusals, key=lambda item: (item.topic, item.partition or 0))),
            notes=(
                *self._notes,
                *held_notes(rules, facts),
                *idle_notes(rules, facts.source.topics),
                *ledger_notes(facts),
                *slow_notes(rules, facts.source, self._candidates, planned),
                *self.changes.notes(),
                *space_notes(rules, facts, loads, due, refused=bool(no_space)),
            ),
            gaps=(
                *(gap for candidate in self._candidates for gap in candidate.gaps),
                *(gap for deal in self._deals for gap in deal.gaps),
            ),
            eras=tuple(era for deal in self._deals for era in deal.eras if era.source_topic not in shut_out),
            lifted=tuple(self._lifted),
            paused=tuple(self.paused),
            flow_paused="" in facts.lane.pauses,
            source_cluster_id=facts.source.cluster_id,
            target_cluster_id=facts.target.cluster_id,
            max_seconds=rules.max_seconds,
            cut_short=any(wanted[need.source] < need.offsets for need in needs),
            caught_up=sum(candidate.offsets == 0 for candidate in self._candidates)
            + sum(lot.offsets == 0 for deal in self._deals for lot in deal.lots),
        )

    @property
    def _ahead(self) -> list[Candidate]:
        return [candidate for candidate in self._candidates if candidate.offsets > 0]

    def _weighed(self, wanted: Mapping[TopicPartition, int]) -> list[tuple[Slice, int]]:
        """Return each slice that is `wanted` (offsets by source partition), in its slot, with its bytes."""
        parts = [
            _Part(partial(slice_of, one, wanted), bytes_within(one, wanted), is_row=one.transform is not None)
            for one in self._ahead
            if wanted[one.source] > 0
        ]
        for deal in (one.limited(wanted) for one in self._deals):
            lots = [lot for lot in deal.lots if lot.offsets > 0]
            parts += [_Part(partial(deal.slice_of, lot), deal.bytes_of(lot), is_row=True) for lot in lots]
        slots = assigned_slots([part.bytes for part in parts], [part.is_row for part in parts], self._rules.max_tasks)
        return [(part.in_slot(slot), part.bytes) for part, slot in zip(parts, slots, strict=True)]


class _Part(NamedTuple):
    """A slice that has no slot yet: what makes it for a slot, its bytes, and whether it is copied as rows."""

    in_slot: Callable[[int], Slice]
    bytes: int
    is_row: bool


def idle_notes(rules: Rules, topics: Collection[str]) -> list[Sentence]:
    """Return a note for each transform that names none of the `topics` that the flow has found.

    A run that is narrowed to some topics says nothing of the others.
    """
    if rules.only is not None or not topics:
        return []
    return [
        sentence("transform.idle", transform=name, topics=len(topics), source=rules.flow.source, flow=str(rules.flow))
        for name, names in rules.transforms.items()
        if not any(map(names, topics))
    ]


def _refuse_what_cannot_be_planned(rules: Rules, facts: Facts) -> None:
    source = facts.source
    unknown = sorted((rules.only or frozenset()) - source.topics.keys() - source.absent - source.hidden)
    if unknown:
        raise BadInput(
            f"flow {rules.flow} does not copy topic {unknown[0]}: cluster {rules.flow.source} has no such "
            "topic, or the filters leave it out"
        )
    _refuse_one_task_for_both_kinds(rules, facts.source)
    lasts: list[Receipt] = [*facts.lane.receipts.values(), *facts.lane.units.values()]
    for last in lasts:
        moved = cluster_facts(facts.source, last)
        if moved is not None and rules.guards.cluster_changed.default is OnGuard.FAIL:
            raise Refused(sentence("source.cluster-changed", **moved))
        why = target_cluster_sentence(facts.target, last)
        if why is not None:
            raise Refused(why)


def _refuse_one_task_for_both_kinds(rules: Rules, source: SourceFacts) -> None:
    """Raise Refused if one task would have to copy topics with and without a transform.

    It counts all topics that exist, not those to be copied now: otherwise a run would be refused only now and then.
    """
    found: dict[bool, tuple[str, str]] = {}
    for topic in sorted(source.topics.keys() if rules.only is None else rules.only & source.topics.keys()):
        transform = rules.transform_of(topic)
        found.setdefault(transform is not None, (topic, "" if transform is None else transform.name))
    if len(found) > 1 and rules.max_tasks < 2:
        topic, name = found[True]
        raise Refused(
            f"flow {rules.flow} changes topic {topic} by transform {name} and copies {found[False][0]} as it is, which "
            f"takes a task each, and tasks.max is {rules.max_tasks}: set tasks.max = 2 or more"
        )


def without_foreign(plan: Plan, claims: Mapping[str, str]) -> Plan:
    """Return the plan without slices for a target topic that another lane claimed first; each such topic is refused."""
    lost = [(topic, target) for topic, target in plan.copies if claims.get(target, plan.lane) != plan.lane]
    return plan.without({topic: owned(topic, target, claims[target]) for topic, target in lost}) if lost else plan
