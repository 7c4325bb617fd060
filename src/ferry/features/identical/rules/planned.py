"""What a plan needs so that its records get identical offsets: which slices are refused, and for which reason.

Nothing but data is written: a source whose log has holes is refused, and so is what only a quiet writer may send (ADR
57, "What is built"). Then a record's sequence number is its offset, and the brokers compare each batch with the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from ferry.features.identical.rules.next_step import strict_for, unfit
from ferry.features.identical.rules.values import Code, Limits
from ferry.messages.refusals import refused
from ferry.model import Plan, Receipt, Refusal, Slice, TopicPartition

LEASE_MS = 30_000
"""How long a writer may begin requests after it saw in the ledger that no newer run exists."""
MARGIN_MS = 60 * 60 * 1000
"""How much later than `connections.max.idle.ms` a request may arrive: an hour is 12,000 idle connections a thread."""
LAST_SEQUENCE = 2**31 - 1
"""Kafka's highest sequence number."""
LEAST_KEPT_BYTES = 64 << 20
"""The least `retention.bytes` by which a target surely keeps its last batch."""

EXPIRATION, IDLE = "producer.id.expiration.ms", "connections.max.idle.ms"
BROKER_SETTINGS = (EXPIRATION, IDLE)
CLEANUP, RETENTION, RETENTION_BYTES = "cleanup.policy", "retention.ms", "retention.bytes"
UNCLEAN, MIN_IN_SYNC = "unclean.leader.election.enable", "min.insync.replicas"
TIMESTAMPS = "message.timestamp.type"
TOPIC_SETTINGS = (CLEANUP, RETENTION, RETENTION_BYTES, UNCLEAN, MIN_IN_SYNC, TIMESTAMPS)


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetTopicFound:
    """What the target shows of one topic: its settings in force, and replicas in sync by partition."""

    settings: Mapping[str, str]
    in_sync: Mapping[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a plan is compared with.

    `brokers` are the brokers' settings by broker. `topics` has only those whose settings this login may see. `receipts`
    are the lane's last, by target partition.
    """

    own_lane: bool
    may_lose: bool
    brokers: Mapping[int, Mapping[str, str]]
    topics: Mapping[str, TargetTopicFound]
    receipts: Mapping[TopicPartition, Receipt]
    new: frozenset[str] = frozenset()
    """Topics that are not there, because a plan that is only shown creates none: their settings are not known yet."""


def with_identical(plan: Plan, found: Found, producer: int) -> Plan:
    """Return the plan whose slices keep the source's offsets; those that cannot are refused."""
    slices, refusals = judged(plan, found)
    kept = tuple(replace(piece, producer=producer, max_age_ms=max_age_of(piece, found)) for piece in slices)
    return replace(plan, slices=kept, refusals=_sorted((*plan.refusals, *refusals)))


def without_unfit(plan: Plan, found: Found) -> Plan:
    """Return a plan that is only shown, without the slices that its run would refuse."""
    slices, refusals = judged(plan, found)
    return replace(plan, slices=tuple(slices), refusals=_sorted((*plan.refusals, *refusals)))


def judged(plan: Plan, found: Found) -> tuple[list[Slice], list[Refusal]]:
    """Return the slices whose records can have identical offsets, and the refusals of the others."""
    gaps = {gap.source for gap in plan.gaps}
    slices, refusals = [], []
    for piece in plan.slices:
        refusal = refusal_of(piece, found, passed=piece.source in gaps)
        if refusal is None:
            slices.append(piece)
        else:
            refusals.append(refusal)
    return slices, list(dict.fromkeys(refusals))


def stays_identical(plan: Plan) -> Plan:
    """Return the plan of a lane that wrote identical offsets and whose file asks for translated ones: all refused."""
    topics = {piece.source.topic for piece in plan.slices}
    return plan.without({topic: refused("identical.stays", topic) for topic in topics})


def refusal_of(piece: Slice, found: Found, *, passed: bool) -> Refusal | None:
    """Return why the records of a slice cannot have identical offsets; None if nothing is known against it.

    `passed`: whether offsets of its partition are passed over, or copied again, by a guard.
    """
    return _of_slice(piece, found, passed=passed) or _of_target(piece, found)


def _of_slice(piece: Slice, found: Found, *, passed: bool) -> Refusal | None:
    last = found.receipts.get(piece.target)
    stands = piece.target_next or 0
    if not found.own_lane:
        return _refused(piece, "identical.lane")
    if piece.dealt or piece.transform:
        return _refused(piece, "identical.transform", name=piece.transform or "a new number of partitions")
    if piece.merged:
        return _refused(piece, "identical.merged", place=str(piece.target))
    if piece.source.partition != piece.target.partition:
        return _refused(piece, "identical.transform", name="another partition")
    if last is not None and (not last.identical or last.adopted):
        return _refused(piece, "identical.translated", place=str(piece.target), offset=stands)
    if passed or piece.since >= 0:
        return _refused(piece, "identical.passed", offset=piece.start)
    if piece.start != stands:
        return _refused(piece, "identical.begins", offset=piece.start, place=str(piece.target), end=stands)
    if piece.end > LAST_SEQUENCE:
        return _refused(piece, "identical.too-long", offset=piece.end, most=LAST_SEQUENCE)
    if piece.compacted:
        return _refused(piece, "identical.compacted", where="at the source")
    end = piece.target_end
    if end is not None and end > piece.end:
        return _refused(piece, "identical.ahead", place=str(piece.target), end=end, planned=piece.end)
    if end is not None and end < stands:
        return _refused(piece, "identical.lost", place=str(piece.target), end=end, stands=stands)
    return None


def _of_target(piece: Slice, found: Found) -> Refusal | None:
    if piece.target.topic in found.new:
        return None
    topic = found.topics.get(piece.target.topic)
    if topic is None:
        return _refused(piece, "identical.unknown", topic_there=piece.target.topic, what="its settings")
    missing = [name for name in TOPIC_SETTINGS if name not in topic.settings]
    if missing:
        return _refused(piece, "identical.unknown", topic_there=piece.target.topic, what=missing[0])
    if not found.brokers or any(name not in one for one in found.brokers.values() for name in BROKER_SETTINGS):
        return _refused(piece, "identical.unknown", topic_there=piece.target.topic, what=" and ".join(BROKER_SETTINGS))
    if "compact" in topic.settings[CLEANUP]:
        return _refused(piece, "identical.compacted", where=f"as {piece.target.topic} at the target")
    if topic.settings[TIMESTAMPS] != "CreateTime":
        value_there = topic.settings[TIMESTAMPS]
        return _refused(piece, "identical.timestamps", topic_there=piece.target.topic, value=value_there)
    name, value = shortest_of(topic, found)
    match unfit(limits_of(piece, found)):
        case Code.LATE_UNBOUNDED:
            return _refused(piece, "identical.late-unbounded", setting=IDLE, value=_idle(found))
        case Code.STATE_TOO_SHORT:
            needed = strict_for(limits_of(piece, found))
            return _refused(piece, "identical.state-too-short", setting=name, value=value, needed=needed)
        case Code.MAY_LOSE:
            unclean = topic.settings[UNCLEAN] != "false"
            setting = UNCLEAN if unclean else MIN_IN_SYNC
            return _refused(
                piece,
                "identical.may-lose",
                topic_there=piece.target.topic,
                setting=setting,
                value=topic.settings[setting],
                in_sync=topic.in_sync.get(piece.target.partition, 0),
            )
    return None


def limits_of(piece: Slice, found: Found) -> Limits:
    """Return the bounds of time for a slice whose topic and brokers show their settings."""
    topic = found.topics[piece.target.topic]
    idle = _idle(found)
    in_sync = min(topic.in_sync.get(piece.target.partition, 0), int(topic.settings[MIN_IN_SYNC]))
    return Limits(
        lease=LEASE_MS,
        lateness=idle + MARGIN_MS if idle >= 0 else None,
        expiration=shortest_of(topic, found)[1],
        keeps_acknowledged=found.may_lose or (topic.settings[UNCLEAN] == "false" and in_sync >= 2),
        markers_allowed=False,
        slack=0,
        bulk_from=0,
    )


def max_age_of(piece: Slice, found: Found) -> int:
    """Return how old a batch may be, by its largest timestamp, so that its state outlives what may be late."""
    limits = limits_of(piece, found)
    return limits.expiration - strict_for(limits)


def shortest_of(topic: TargetTopicFound, found: Found) -> tuple[str, int]:
    """Return the setting that ends producer state first, and how long it lasts after a batch's largest timestamp.

    A broker that loads a log reads the state from the batches that are left. So retention ends it, too.
    """
    ends = [(EXPIRATION, min(int(one[EXPIRATION]) for one in found.brokers.values()))]
    if "delete" in topic.settings[CLEANUP]:
        if int(topic.settings[RETENTION]) >= 0:
            ends.append((RETENTION, int(topic.settings[RETENTION])))
        if 0 <= int(topic.settings[RETENTION_BYTES]) < LEAST_KEPT_BYTES:
            ends.append((RETENTION_BYTES, 0))
    return min(ends, key=lambda one: one[1])


def _idle(found: Found) -> int:
    """Return the longest time after which a broker closes an idle connection; -1: one never does."""
    idle = [int(one[IDLE]) for one in found.brokers.values()]
    return -1 if min(idle) < 0 else max(idle)


def _refused(piece: Slice, code: str, **facts: Any) -> Refusal:
    return refused(code, piece.source.topic, piece.source.partition, **facts)


def _sorted(refusals: Iterable[Refusal]) -> tuple[Refusal, ...]:
    return tuple(sorted(refusals, key=lambda one: one.order))
