"""Where a topic's records come from and go to: names that clash, circles, and offsets that came from the target."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ferry.ledger.neighbours import owned_elsewhere, owned_refusal
from ferry.model import Flow, Range, Refusal, RefusalKind, TopicPartition, scratch_lane
from ferry.plan.rules.facts import Facts
from ferry.plan.rules.rules import Rules
from ferry.policy import MAX_TOPIC_NAME, illegal_name, is_ferry_internal


def topic_refusals(rules: Rules, facts: Facts) -> dict[str, Refusal]:
    """By source topic that the run is for what its name, or its way through all flows, has against copying it."""
    targets = {name: rules.copies_of(name) for name in facts.sources}
    writers = _writers(facts, targets)
    found = {}
    for name, copies in targets.items():
        if rules.only is not None and name not in rules.only:
            continue
        refusal = _lost(rules, name) or _unknown(rules, name) or _of_copies(rules, facts, name, copies, writers)
        if refusal is not None:
            found[name] = refusal
    return found


def _of_copies(
    rules: Rules, facts: Facts, name: str, copies: Iterable[str], writers: Mapping[str, tuple[str, ...]]
) -> Refusal | None:
    """What the names of a topic's copies have against it, or the way of the flows."""
    for target in copies:
        refusal = (
            _name(rules, name, target)
            or _clash(rules, name, target, writers[target])
            or _circle(rules, facts, name)
            or _owned(rules, facts, name, target)
        )
        if refusal is not None:
            return refusal
    return None


def _lost(rules: Rules, topic: str) -> Refusal | None:
    """A topic whose transform cannot be carried out; what others are for is copied."""
    found = rules.transform_of(topic)
    if found is None or not found.why_lost:
        return None
    return Refusal(topic=topic, partition=None, kind=RefusalKind.TRANSFORM, message=found.why_lost)


def _unknown(rules: Rules, topic: str) -> Refusal | None:
    """A topic whose copy is named by each record: what a run writes to is known, claimed and guarded before it does."""
    found = rules.transform_of(topic)
    if found is None or not found.why_unknown:
        return None
    return Refusal(
        topic=topic,
        partition=None,
        kind=RefusalKind.TRANSFORM,
        message=f"ferry.transform.{found.name} names the copy of topic {topic} record by record ({found.why_unknown}), "
        f"and a run has to know it before: list the topics that they may name in ferry.transform.{found.name}.targets, "
        "name it by topic, target and constants alone, or RegexRouter without such a predicate, or leave the topic out "
        "(topics.exclude)",
    )


def renaming(rules: Rules, topic: str) -> str | None:
    """The key of the transform that names the copy of a topic; None: the policy does."""
    found = rules.transform_of(topic)
    return f"ferry.transform.{found.name}" if found is not None and found.renames else None


def _name(rules: Rules, topic: str, target: str) -> Refusal | None:
    key = renaming(rules, topic)
    why = illegal_name(target) or (None if key is None else _reserved(rules, target))
    if why is None or len(target) > MAX_TOPIC_NAME:  # that is another refusal
        return None
    return Refusal(
        topic=topic,
        partition=None,
        kind=RefusalKind.INVALID_NAME,
        message=f"{key or rules.policy_name} names topic {topic} {target!r} on the target, which {why}: correct "
        f"{'the policy' if key is None else 'it'}, or exclude the topic",
    )


def _reserved(rules: Rules, target: str) -> str | None:
    """For whom a name is kept, as half a sentence; None: for nobody."""
    if is_ferry_internal(target):
        return "is the name of a ledger of Ferry"
    if scratch_lane(target) is not None and not rules.scratch:
        return "is the name of a lane's scratch topic"
    return "is a name of Kafka's or MirrorMaker's own topics" if rules.policy.is_internal_topic(target) else None


def _writers(facts: Facts, targets: Mapping[str, Iterable[str]]) -> dict[str, tuple[str, ...]]:
    """By target topic the source topics that would be written to it; when the ledger knows whose it is, that one."""
    found: dict[str, set[str]] = {}
    for name, copies in targets.items():
        for target in copies:
            found.setdefault(target, set()).add(name)
    for last in facts.receipts.values():
        if last.target.topic in found:
            found[last.target.topic] = {last.source.topic}
    for dealt in facts.units.values():
        if dealt.target.topic in found:
            found[dealt.target.topic] = {dealt.source_topic}
    return {target: tuple(sorted(names)) for target, names in found.items()}


def _clash(rules: Rules, topic: str, target: str, writers: tuple[str, ...]) -> Refusal | None:
    others = [name for name in writers if name != topic]
    if not others:
        return None
    key = renaming(rules, topic) or renaming(rules, others[0])
    return Refusal(
        topic=topic,
        partition=None,
        kind=RefusalKind.NAME_CLASH,
        message=f"target topic {target} would hold both {others[0]} and {topic}: exclude one of them, or correct "
        f"{'the replication policy' if key is None else f'{key}, which names it'}",
    )


def _circle(rules: Rules, facts: Facts, topic: str) -> Refusal | None:
    """Of two opposite flows one may copy while the other one rests: a switch makes them change places (ADR 30)."""
    way = rules.way_back(topic)
    back = (Flow(source=rules.flow.target, target=rules.flow.source),)
    if not way or (way == back and facts.back_rests):
        return None
    rest = f"let {back[0]} rest until a switch (ferry pause '{back[0]}' --why standby), or " if way == back else ""
    flows = ", ".join(str(flow) for flow in (rules.flow, *way))
    return Refusal(
        topic=topic,
        partition=None,
        kind=RefusalKind.LOOP,
        message=f"topic {topic} would come back to cluster {rules.flow.source} and be copied again (by {flows}): "
        f"{rest}exclude it from one of these flows, for example in {way[-1]}.topics.exclude, or use "
        "DefaultReplicationPolicy",
    )


def _owned(rules: Rules, facts: Facts, topic: str, target: str) -> Refusal | None:
    why = owned_elsewhere(target, rules.merges(topic), facts.neighbours)
    return None if why is None else owned_refusal(topic, target, why)


def stranger_refusal(facts: Facts, source: TopicPartition, target: TopicPartition) -> Refusal | None:
    """Why nothing more is written to a merged partition: it holds a record that none of its flows wrote."""
    offset = facts.strangers.get(target)
    if offset is None:
        return None
    return Refusal(
        topic=source.topic,
        partition=source.partition,
        kind=RefusalKind.FOREIGN_WRITER,
        message=f"offset {offset} of merged {target} was written by somebody else: none of the ledgers of the flows "
        "that share it names it; grant READ on topics ferry-ledger.* at the target if one of them is hidden from this "
        "login, else find the writer and copy under a new target name",
    )


def returning_refusal(
    rules: Rules, source: TopicPartition, start: int, end: int, came: Iterable[Range]
) -> Refusal | None:
    """Why source offsets `[start, end)` may not go to the target: some of them (`came`) came from there."""
    back = [(low, high) for low, high in came if low < end and start < high]
    if not back:
        return None
    behind = max(high for _, high in back)
    return Refusal(
        topic=source.topic,
        partition=source.partition,
        kind=RefusalKind.LOOP,
        message=f"offsets {back[0][0]} to {behind - 1} of {source} came from cluster {rules.flow.target}, and would go "
        f"back there: disable the flow {rules.flow.target}->{rules.flow.source}, and copy what lies behind them in a "
        f"new lane with {rules.flow}.ferry.start = {source.topic}:{source.partition}:{behind}",
    )
