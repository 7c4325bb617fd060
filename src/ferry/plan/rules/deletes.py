"""Deletions at the source that a flow follows: which copies may be deleted, and what the ledger then forgets.

A topic that a login may not see cannot be told apart from a deleted one in a list. So a topic counts as deleted only if
all brokers of the source answer that no topic has its id any more. With `ferry.sync.topic.deletes.enabled`, its copy is
deleted if all of this is true:

- this lane alone owns the copy;
- the copy is still the topic that was written;
- the copy holds nothing but what the receipts name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ferry.config.flow.guards import OnGuard
from ferry.ledger.codec import DeletedCopy, deleted_record, encode
from ferry.ledger.kinds import KINDS
from ferry.ledger.ledger import LedgerView
from ferry.ledger.map_block import MapEntry, ReceiptChain
from ferry.ledger.receipt_codec import receipt_key
from ferry.messages.catalogue import sentence
from ferry.messages.refusals import refused
from ferry.model import ChangeKind, Plan, Receipt, Record, Refusal, RefusalKind, Sentence, TopicChange
from ferry.plan.rules.facts import Facts, OtherFacts, TargetTopic
from ferry.plan.rules.planning_rules import Rules
from ferry.plan.rules.topics import hidden_copy

_MARKER = 1
"""Offsets of the lane's own after the last receipt's data: the marker of its commit. Identical offsets have none."""


def deletion(rules: Rules, facts: Facts, topic: str) -> TopicChange | Refusal | None:
    """Return the deletion of an absent topic's copy, or its refusal; None when the deletion is not to be followed."""
    if not rules.topic_deletes or topic not in facts.source.deleted:
        return None
    lasts = [last for last in facts.lane.receipts.values() if last.source.topic == topic]
    name = lasts[0].target.topic
    if name in facts.target.hidden:
        return hidden_copy(topic, name, rules.flow.target)
    why = _against(rules, facts, topic, name, lasts)
    if why is not None:
        return refused("source.deleted.copy-left", topic, target=name, why=why)
    target = facts.target.topics.get(name)
    return TopicChange(
        kind=ChangeKind.DELETE,
        topic=name,
        source_topic=topic,
        partitions=0 if target is None else target.partitions,
        replication_factor=0,
    )


def _against(rules: Rules, facts: Facts, topic: str, name: str, lasts: list[Receipt]) -> str | None:
    if rules.merges(topic) or name in facts.lane.shared or any(last.target.topic != name for last in lasts):
        return "several sources write it"
    if any(last.source.topic != topic for last in facts.lane.receipts.values() if last.target.topic == name):
        return "records of another source topic are in it"
    if facts.lane.claims.get(name) != rules.lane:
        return f"lane {rules.lane} has no claim on it"
    target = facts.target.topics.get(name)
    # If it is missing, an earlier run deleted it and ended before it wrote that to the ledger.
    return None if target is None else _foreign(rules, facts.others, topic, target, lasts)


def _foreign(rules: Rules, others: OtherFacts, topic: str, target: TargetTopic, lasts: list[Receipt]) -> str | None:
    """Return which records of a target topic the last receipts do not account for, as half a sentence; None if all.

    The log after the last record and its marker was searched for foreign records (`OtherFacts.accounted`). That proves
    nothing if the flow's guard continues in spite of foreign writers.
    """
    if any(last.target_topic_id != target.topic_id for last in lasts) or not target.topic_id:
        return "it was deleted and created again"
    written = {last.target.partition: (last.target_next or 0) + (0 if last.identical else _MARKER) for last in lasts}
    if rules.guards.of(RefusalKind.FOREIGN_WRITER, topic) is OnGuard.FAIL:
        for place in (last.target for last in lasts if last.target not in others.foreign):
            written[place.partition] = max(written[place.partition], others.accounted.get(place, 0))
    for number in range(target.partitions):
        end = target.ends.get(number)
        if end is None:
            return f"it is not known where partition {number} ends"
        if end > written.get(number, 0):
            return f"partition {number} has offsets up to {end} that the ledger does not account for"
    return None


def deleted_notes(changes: Iterable[TopicChange]) -> list[Sentence]:
    """Return the plan's notes on deletions that were made."""
    return [
        sentence("topic.deleted", topic=change.source_topic, copy=change.topic)
        for change in changes
        if change.kind is ChangeKind.DELETE
    ]


def forgetting(
    view: LedgerView,
    facts: Facts,
    plan: Plan,
    changes: Iterable[TopicChange],
    rows: Mapping[ReceiptChain, Sequence[MapEntry]],
) -> list[Record]:
    """Return the records to write when copies are deleted: a record of the deletion, and tombstones of all about them.

    `rows` are the lane's receipts of the copies. A source topic that is created again under the name is a new one, and
    is copied from where a new topic begins.
    """
    gone = {change.topic: change.source_topic for change in changes}
    if not gone:
        return []
    lane = plan.lane
    records = []
    for name, topic in sorted(gone.items()):
        lasts = [last for last in facts.lane.receipts.values() if last.target.topic == name]
        copy = DeletedCopy(
            topic=topic,
            target_topic=name,
            source_topic_id=lasts[0].source_topic_id,
            target_topic_id=lasts[0].target_topic_id,
            ends={last.target.partition: last.end for last in lasts},
            run=plan.run,
            at_ms=facts.now_ms,
        )
        records.append(deleted_record(lane, copy))
    records += [
        Record(key=receipt_key(lane, of.target, row.start, of.since), value=None)
        for of, ones in rows.items()
        if of.lane == lane and of.target.topic in gone
        for row in ones
    ]
    for kind in (name for name, of in KINDS.items() if of.goes_with_copy):
        names = gone.values() if "source" in KINDS[kind].key else gone.keys()
        records += [
            Record(key=record.key, value=None)
            for key, record in view.of_kind(kind)
            if key[1] == lane and key[2] in names
        ]
    return [*records, *(Record(key=encode(["claim", name, lane]), value=None) for name in sorted(gone))]


def forgotten(facts: Facts, changes: Iterable[TopicChange]) -> Facts:
    """Return the facts after the copies were deleted and the ledger has forgotten them."""
    gone = {change.topic: change.source_topic for change in changes}
    lane = replace(
        facts.lane,
        receipts={place: last for place, last in facts.lane.receipts.items() if place.topic not in gone},
        positions={place: word for place, word in facts.lane.positions.items() if place.topic not in gone},
        claims={name: lane for name, lane in facts.lane.claims.items() if name not in gone},
    )
    source = replace(facts.source, absent=facts.source.absent - frozenset(gone.values()))
    return replace(facts, source=source, lane=lane)
