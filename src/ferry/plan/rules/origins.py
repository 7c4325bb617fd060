"""Where a topic's records come from and go to: clashing names, loops, and offsets that came from the target."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ferry.ledger.other_flows import owned_elsewhere
from ferry.messages.refusals import refused
from ferry.model import Flow, Range, Refusal, RefusalKind, TopicPartition, scratch_lane
from ferry.plan.rules.facts import Facts, LaneFacts, NoReceipt, OtherFacts
from ferry.plan.rules.planning_rules import Rules
from ferry.policy import MAX_TOPIC_NAME, illegal_name, is_ferry_internal


def topic_refusals(rules: Rules, facts: Facts) -> dict[str, Refusal]:
    """Return refusals by source topic of the run: its name, or its way through all flows, forbids a copy."""
    targets = {name: rules.copies_of(name) for name in facts.source.topics}
    writers = _writers(facts.lane, targets)
    found = {}
    for name, copies in targets.items():
        if rules.only is not None and name not in rules.only:
            continue
        refusal = _lost(rules, name) or _unknown(rules, name) or _of_copies(rules, facts.others, name, copies, writers)
        if refusal is not None:
            found[name] = refusal
    return found


def _of_copies(
    rules: Rules, others: OtherFacts, name: str, copies: Iterable[str], writers: Mapping[str, tuple[str, ...]]
) -> Refusal | None:
    """Return why the names of a topic's copies, or a loop of flows, forbid a copy; None if nothing does."""
    for target in copies:
        refusal = (
            _name(rules, name, target)
            or _clash(rules, name, target, writers[target])
            or _circle(rules, others, name)
            or _owned(rules, others, name, target)
        )
        if refusal is not None:
            return refusal
    return None


def _lost(rules: Rules, topic: str) -> Refusal | None:
    """Return the refusal of a topic whose transform cannot be carried out; topics of other transforms are copied."""
    found = rules.transform_of(topic)
    if found is None or not found.why_lost:
        return None
    return refused("said", topic, kind=RefusalKind.TRANSFORM, why=found.why_lost)


def _unknown(rules: Rules, topic: str) -> Refusal | None:
    """Return the refusal of a topic whose records name its copies, if those names are not known before.

    What a run writes to must be known, claimed and guarded before it writes.
    """
    found = rules.transform_of(topic)
    if found is None or not found.why_unknown:
        return None
    return refused("transform.unknown-target", topic, transform=found.name, why=found.why_unknown)


def renaming(rules: Rules, topic: str) -> str | None:
    """Return the key of the transform that names the copy of a topic; None if the policy names it."""
    found = rules.transform_of(topic)
    return f"ferry.transform.{found.name}" if found is not None and found.renames else None


def _name(rules: Rules, topic: str, target: str) -> Refusal | None:
    key = renaming(rules, topic)
    why = illegal_name(target) or (None if key is None else _reserved(rules, target))
    if why is None or len(target) > MAX_TOPIC_NAME:  # too long a name is another refusal
        return None
    it = "the policy" if key is None else "it"
    return refused("name.invalid", topic, by=key or rules.policy_name, target=target, why=why, it=it)


def _reserved(rules: Rules, target: str) -> str | None:
    """Return what a name is reserved for, as half a sentence; None if it is free."""
    if is_ferry_internal(target):
        return "is the name of a ledger of Ferry"
    if scratch_lane(target) is not None and not rules.scratch:
        return "is the name of a lane's scratch topic"
    return "is a name of Kafka's or MirrorMaker's own topics" if rules.policy.is_internal_topic(target) else None


def _writers(lane: LaneFacts, targets: Mapping[str, Iterable[str]]) -> dict[str, tuple[str, ...]]:
    """Return by target topic the source topics that would be written to it; only the ledger's if it has one."""
    found: dict[str, set[str]] = {}
    for name, copies in targets.items():
        for target in copies:
            found.setdefault(target, set()).add(name)
    for last in (*lane.receipts.values(), *lane.units.values()):
        if last.target.topic in found:
            found[last.target.topic] = {last.source.topic}
    return {target: tuple(sorted(names)) for target, names in found.items()}


def _clash(rules: Rules, topic: str, target: str, writers: tuple[str, ...]) -> Refusal | None:
    others = [name for name in writers if name != topic]
    if not others:
        return None
    key = renaming(rules, topic) or renaming(rules, others[0])
    by = "the replication policy" if key is None else f"{key}, which names it"
    return refused("name.clash", topic, target=target, other=others[0], by=by)


def _circle(rules: Rules, others: OtherFacts, topic: str) -> Refusal | None:
    """Return the refusal of a topic that other flows bring back to this source; None without such a loop.

    Of two opposite flows one may copy while the other is paused: a switch exchanges them (ADR 30).
    """
    way = rules.way_back(topic)
    back = (Flow(source=rules.flow.target, target=rules.flow.source),)
    if not way or (way == back and others.back_paused):
        return None
    flows = ", ".join(str(flow) for flow in (rules.flow, *way))
    code = "way.loop.opposite" if way == back else "way.loop"
    return refused(code, topic, cluster=rules.flow.source, flows=flows, last=str(way[-1]))


def _owned(rules: Rules, others: OtherFacts, topic: str, target: str) -> Refusal | None:
    return owned_elsewhere(topic, target, rules.merges(topic), others.flows)


def foreign_refusal(others: OtherFacts, source: TopicPartition, target: TopicPartition) -> Refusal | None:
    """Return why nothing more is written to a merged partition: it holds a record that none of its flows wrote."""
    offset = others.unaccounted.get(target)
    if offset is None:
        return None
    return refused("foreign.merged", source.topic, source.partition, offset=offset, place=str(target))


def no_receipt_refusal(
    rules: Rules, source: TopicPartition, start: int, end: int, found: NoReceipt | None
) -> Refusal | None:
    """Return why source offsets `[start, end)` may not go to the target: some may have come from there, unrecorded."""
    if rules.scratch or found is None or found.end <= start or end <= found.start:
        return None
    code = "way.unread" if found.why else "way.no-receipt"
    return refused(
        code,
        source.topic,
        source.partition,
        start=found.start,
        last=found.end - 1,
        cluster=rules.flow.target,
        writer=found.writer,
        why=found.why,
    )


def returning_refusal(
    rules: Rules, source: TopicPartition, start: int, end: int, came: Iterable[Range]
) -> Refusal | None:
    """Return why source offsets `[start, end)` may not go to the target: some of them (`came`) came from there.

    They may go to scratch topics, which no flow copies.
    """
    if rules.scratch:
        return None
    back = [(low, high) for low, high in came if low < end and start < high]
    if not back:
        return None
    behind = max(high for _, high in back)
    flow = rules.flow
    return refused(
        "way.returning",
        source.topic,
        source.partition,
        start=back[0][0],
        last=behind - 1,
        behind=behind,
        cluster=flow.target,
        flow=str(flow),
        back=f"{flow.target}->{flow.source}",
    )
