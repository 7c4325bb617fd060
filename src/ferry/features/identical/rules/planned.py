"""What a plan needs so that its records get identical offsets: which slices are refused, and for which reason.

Nothing but data is written, and empty records before the first one. A source whose log has holes is refused, and so is
what only a quiet writer may send (ADR 57, "What is built"). Then a record's sequence number is its offset, and the
brokers compare each batch with the log.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ferry.features.identical.rules.empty import cost_of, empty_until, left_of, other_first, passed_of
from ferry.features.identical.rules.next_step import strict_for, unfit
from ferry.features.identical.rules.values import Code, Limits
from ferry.ledger.producer_codec import Continued
from ferry.messages.catalogue import sentence
from ferry.messages.refusals import refused
from ferry.model import LaneKind, Plan, Receipt, Refusal, Slice, TopicPartition
from ferry.model import RefusalKind as K
from ferry.plan.rules.shares import assigned_slots

LEASE_MS = 30_000
"""How long a writer may begin requests after it saw in the ledger that no newer run exists."""
MARGIN_MS = 60 * 60 * 1000
"""How much later than `connections.max.idle.ms` a request may arrive at least: an hour is 12,000 idle connections.

Nothing waits for it. So a quarter of what producer state lasts is reckoned with where that is more.
"""
LAST_SEQUENCE = 2**31 - 1
"""Kafka's highest sequence number."""
LEAST_KEPT_BYTES = 64 << 20
"""The least `retention.bytes` by which a target surely keeps its last batch."""

EXPIRATION, IDLE = "producer.id.expiration.ms", "connections.max.idle.ms"
EXPIRATION_SINCE = "3.4.0"
"""The first Kafka with that setting of producer state (KIP-854)."""
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

    may_lose: bool
    brokers: Mapping[int, Mapping[str, str]]
    topics: Mapping[str, TargetTopicFound]
    receipts: Mapping[TopicPartition, Receipt]
    lane: LaneKind | None = None
    """What the lane is for; None: it is a live one."""
    new: frozenset[str] = frozenset()
    """Topics that are not there, because a plan that is only shown creates none: their settings are not known yet."""
    translated: frozenset[str] = frozenset()
    """Source topics whose records do not keep their offsets: those that the file leaves out, and heartbeats."""
    heartbeats: frozenset[str] = frozenset()
    """Source topics of MirrorMaker 2's heartbeats, a part of `translated`."""
    written: frozenset[TopicPartition] = frozenset()
    """Target partitions to which any lane of the ledger may have sent batches at the source's offsets."""
    may_pass: bool = False
    """Whether copies may begin with empty records."""
    sent: Mapping[TopicPartition, frozenset[int]] = field(default_factory=dict)
    """The target partitions to which the lane may have sent batches, with the first offsets that had records."""
    may_mark: bool = False
    """Whether this login may write markers, which pass holes of the source."""
    marked: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Until when runs of the lane may have sent markers, by target partition; 0: all were answered."""
    begins: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Where the logs of target partitions begin, as far as that was asked and is known."""
    received: Mapping[TopicPartition, int] = field(default_factory=dict)
    """Where receipts begin, of target partitions that may have empty records, and whose receipts have no record."""
    continued: Mapping[TopicPartition, Continued] = field(default_factory=dict)
    """Where the lane continues after records of clients, by target partition."""
    limits: Mapping[str, int] = field(default_factory=dict)
    """`max.message.bytes` of target topics that get empty records, as far as it is shown."""
    denied: frozenset[str] = frozenset()
    """Topics whose settings this login may not see."""

    @property
    def appends(self) -> bool:
        """Whether the lane writes after the records of another one."""
        return self.lane is LaneKind.APPEND

    @property
    def has_scratch_topics(self) -> bool:
        """Whether the lane's topics are its own: their logs may begin later than the source's."""
        return self.lane is not None and self.lane.has_scratch_topics

    @property
    def passes(self) -> bool:
        """Whether copies may begin with empty records. Those of a drill may in any case: they have no real readers."""
        return self.may_pass or self.lane is LaneKind.DRILL


def continuing(piece: Slice, continued: Mapping[TopicPartition, Continued]) -> Slice:
    """Return a slice that continues after records of clients that both sides have.

    It has the lane's receipts, which end before them, or none.
    """
    one = continued.get(piece.target)
    if one is None:
        return piece
    return replace(piece, continued_at=one.at, target_next=max(one.at, piece.target_next or 0))


def with_identical(plan: Plan, found: Found, producer: int) -> Plan:
    """Return the plan whose slices keep the source's offsets; those that cannot are refused.

    `producer` is the lane's producer id, for partitions that have none of their own.
    """
    slices, refusals = judged(plan, found)
    kept = [
        replace(
            piece,
            producer=found.continued[piece.target].producer_id if piece.target in found.continued else producer,
            max_age_ms=max_age_of(piece, found),
            late_ms=late_of(found) if found.may_mark else None,
            marked_ms=found.marked.get(piece.target),
            empty_until=empty_until(
                piece,
                found.sent.get(piece.target, ()),
                found.received.get(piece.target),
                found.begins.get(piece.target),
            ),
        )
        if is_kept(piece, found)
        else piece
        for piece in slices
    ]
    return _apart(_costing(_narrowed(plan, kept, refusals), found), found)


def without_unfit(plan: Plan, found: Found) -> Plan:
    """Return a plan that is only shown, without the slices that its run would refuse."""
    slices, refusals = judged(plan, found)
    return _apart(_costing(_narrowed(plan, slices, refusals), found), found)


def is_kept(piece: Slice, found: Found) -> bool:
    """Return whether the records of a slice are to have identical offsets."""
    return piece.source.topic not in found.translated


def judged(plan: Plan, found: Found) -> tuple[list[Slice], list[Refusal]]:
    """Return the slices that can be copied, with identical offsets or translated, and the refusals of the others."""
    gaps = {gap.source for gap in plan.gaps}
    slices, refusals = [], []
    for planned in plan.slices:
        kept = is_kept(planned, found)
        piece = continuing(planned, found.continued) if kept else planned
        if kept:
            refusal = refusal_of(piece, found, passed=piece.source in gaps)
        else:
            refusal = _stays(piece) if piece.target in found.written else None
        if refusal is None:
            slices.append(piece)
        else:
            refusals.append(refusal)
    return slices, list(dict.fromkeys(refusals))


def stays_identical(plan: Plan, sent: Collection[TopicPartition]) -> Plan:
    """Return the plan of a lane whose file asks for translated offsets, without what it began with identical ones.

    `sent` are the target partitions to which the lane may have sent batches at the source's offsets.
    """
    begun = [piece for piece in plan.slices if piece.target in sent]
    kept = [piece for piece in plan.slices if piece.target not in sent]
    return _narrowed(plan, kept, [_stays(piece) for piece in begun])


def _stays(piece: Slice) -> Refusal:
    return _refused(piece, "identical.stays", place=str(piece.target))


def without_skips(plan: Plan, copy_of: Callable[[str], str], keeps: Callable[[str], bool]) -> Plan:
    """Return the plan whose refusals of retention that passed name what an operator can do here.

    The kernel's have a guard that skips, which identical offsets do not permit. They also say that nothing was copied,
    but a run that died may have written records without receipts. `copy_of` names a source topic's copy. `keeps`:
    whether a source topic's records keep their offsets; refusals of others stay.
    """
    return replace(plan, refusals=tuple(_gone(one, copy_of) if keeps(one.topic) else one for one in plan.refusals))


def _gone(refusal: Refusal, copy_of: Callable[[str], str]) -> Refusal:
    facts = dict(refusal.facts)
    if (
        refusal.kind is not K.RETENTION_PASSED
        or refusal.partition is None
        or not {"log_start", "start"} <= facts.keys()
    ):
        return refusal
    place = f"{copy_of(refusal.topic)}-{refusal.partition}"
    return refused(
        "identical.gone",
        refusal.topic,
        refusal.partition,
        place=place,
        log_start=facts["log_start"],
        start=facts["start"],
    )


def refusal_of(piece: Slice, found: Found, *, passed: bool) -> Refusal | None:
    """Return why the records of a slice cannot have identical offsets; None if nothing is known against it.

    `passed`: whether offsets of its partition are skipped, or copied again, by a guard.
    """
    return _of_slice(piece, found, passed=passed) or _of_target(piece, found)


def _of_slice(piece: Slice, found: Found, *, passed: bool) -> Refusal | None:
    last = found.receipts.get(piece.target)
    stands, place = piece.target_next or 0, str(piece.target)
    end = stands if piece.target_end is None else piece.target_end
    other = "a new number of partitions" if piece.dealt else piece.transform
    if not other and piece.source.partition != piece.target.partition:
        other = "another partition"
    passes, firsts = passed_of(piece), found.sent.get(piece.target, ()) if piece.target_next is None else ()
    first = other_first(piece.start, firsts)
    # To a partition that was sent to, nothing is copied with translated offsets.
    first_code = "identical.first.rest" if piece.target in found.written | found.sent.keys() else "identical.first"
    translated = last is not None and (not last.identical or bool(last.adopted))
    checks: tuple[tuple[bool, str, dict[str, Any]], ...] = (
        (found.appends, "identical.lane", {}),
        (bool(other), "identical.transform", {"name": other}),
        (piece.merged, "identical.merged", {"place": place}),
        (translated, "identical.translated", {"place": place, "offset": stands}),
        (passed or piece.since >= 0, "identical.passed", {"offset": piece.start}),
        (
            piece.start != stands and not (passes and (piece.start == piece.log_start or found.has_scratch_topics)),
            "identical.begins",
            {"offset": piece.start, "place": place, "end": stands},
        ),
        (first is not None, "identical.first.other", {"offset": piece.start, "place": place, "first": first}),
        (piece.end > LAST_SEQUENCE, "identical.too-long", {"offset": piece.end, "most": LAST_SEQUENCE}),
        (piece.compacted, "identical.compacted", {"where": "at the source"}),
        (end > piece.end, "identical.ahead", {"place": place, "end": end, "planned": piece.end}),
        (end < stands, "identical.lost", {"place": place, "end": end, "stands": stands}),
        (left_of(piece) > 0 and not found.passes, first_code, _costs(piece, found)),
    )
    return _first(piece, checks)


def _costs(piece: Slice, found: Found) -> dict[str, Any]:
    cost, place = cost_of([_to_pass(piece, found)]), str(piece.target)
    return {
        "offset": piece.start,
        "place": place,
        "offsets": cost.offsets,
        "seconds": cost.seconds,
        "bytes": cost.bytes,
    }


def _to_pass(piece: Slice, found: Found) -> tuple[int, int | None]:
    return left_of(piece), found.limits.get(piece.target.topic)


def _costing(plan: Plan, found: Found) -> Plan:
    """Return the plan with a note on what the offsets cost that have to be passed."""
    parts = [_to_pass(piece, found) for piece in plan.slices if is_kept(piece, found) and left_of(piece)]
    if not parts:
        return plan
    cost = cost_of(parts)
    note = sentence(
        "identical.first.note",
        partitions=len(parts),
        offsets=cost.offsets,
        seconds=cost.seconds,
        bytes=cost.bytes,
    )
    return replace(plan, notes=(*plan.notes, note))


def _of_target(piece: Slice, found: Found) -> Refusal | None:
    name = piece.target.topic
    if name in found.new:
        return None
    if name not in found.topics and name not in found.denied:
        return _refused(piece, "identical.not-shown", topic_there=name)
    old = [str(node) for node, shown in sorted(found.brokers.items()) if IDLE in shown and EXPIRATION not in shown]
    if old:
        return _refused(piece, "identical.too-old", brokers=", ".join(old), setting=EXPIRATION, since=EXPIRATION_SINCE)
    unknown = _unknown(found, name)
    if unknown:
        return _refused(piece, "identical.unknown", topic_there=name, what=unknown)
    topic, limits = found.topics[name], limits_of(piece, found)
    code, settings = unfit(limits), topic.settings
    setting, value = shortest_of(topic, found)
    doubtful = UNCLEAN if settings[UNCLEAN] != "false" else MIN_IN_SYNC
    in_sync = topic.in_sync.get(piece.target.partition, 0)
    stamped = settings[TIMESTAMPS]
    losing = {"topic_there": name, "setting": doubtful, "value": settings[doubtful], "in_sync": in_sync}
    short = {"setting": setting, "value": value, "needed": strict_for(limits)}
    checks: tuple[tuple[bool, str, dict[str, Any]], ...] = (
        ("compact" in settings[CLEANUP], "identical.compacted", {"where": f"as {name} at the target"}),
        (stamped != "CreateTime", "identical.timestamps", {"topic_there": name, "value": stamped}),
        (code is Code.LATE_UNBOUNDED, "identical.late-unbounded", {"setting": IDLE, "value": _idle(found)}),
        (code is Code.STATE_TOO_SHORT, "identical.state-too-short", short),
        (code is Code.MAY_LOSE, "identical.may-lose", losing),
    )
    return _first(piece, checks)


def _unknown(found: Found, name: str) -> str:
    """Return which settings of a target topic, or of the brokers, are not known; empty: none."""
    topic = found.topics.get(name)
    if topic is None:
        return "its settings"
    missing = [one for one in TOPIC_SETTINGS if one not in topic.settings]
    brokers = found.brokers.values()
    missing += [one for one in BROKER_SETTINGS if not brokers or any(one not in broker for broker in brokers)]
    return ", ".join(missing)


def _first(piece: Slice, checks: Iterable[tuple[bool, str, dict[str, Any]]]) -> Refusal | None:
    return next((_refused(piece, code, **facts) for holds, code, facts in checks if holds), None)


def limits_of(piece: Slice, found: Found) -> Limits:
    """Return the bounds of time for a slice whose topic and brokers show their settings."""
    topic = found.topics[piece.target.topic]
    idle, expiration = _idle(found), shortest_of(topic, found)[1]
    in_sync = min(topic.in_sync.get(piece.target.partition, 0), int(topic.settings[MIN_IN_SYNC]))
    return Limits(
        lease=LEASE_MS,
        lateness=max(idle + MARGIN_MS, (expiration - LEASE_MS) // 4) if idle >= 0 else None,
        expiration=expiration,
        keeps_acknowledged=found.may_lose or (topic.settings[UNCLEAN] == "false" and in_sync >= 2),
        markers_allowed=found.may_mark,
        slack=0,
        bulk_from=0,
    )


def max_age_of(piece: Slice, found: Found) -> int:
    """Return how old a batch may be, by its largest timestamp, so that its state outlives what may be late."""
    limits = limits_of(piece, found)
    return limits.expiration - strict_for(limits)


def late_of(found: Found) -> int:
    """Return how late a marker may arrive: after that brokers have closed the connection of its writer."""
    return _idle(found) + MARGIN_MS


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


def _apart(plan: Plan, found: Found) -> Plan:
    """Return the plan whose slots have one kind of offsets each, with notes on topics that are translated.

    A run of the flow has two slots at least (`IdenticalSettings.least_slots`).
    """
    translated = [not is_kept(piece, found) for piece in plan.slices]
    if not any(translated):
        return plan
    slots = max(2, plan.slots)
    numbers = assigned_slots([piece.bytes_estimate for piece in plan.slices], translated, slots, cost=1)
    topics = {piece.source.topic for piece in plan.slices} & found.translated
    named = {"identical.heartbeats": topics & found.heartbeats, "identical.others": topics - found.heartbeats}
    notes = [sentence(code, topics=", ".join(sorted(some))) for code, some in named.items() if some]
    return replace(
        plan,
        slots=slots,
        slices=tuple(replace(piece, slot=slot) for piece, slot in zip(plan.slices, numbers, strict=True)),
        notes=(*plan.notes, *notes),
    )


def _narrowed(plan: Plan, slices: Iterable[Slice], refusals: Collection[Refusal]) -> Plan:
    """Return the plan with these slices; the gaps of partitions that are refused are left out, too."""
    out = {(one.topic, one.partition) for one in refusals}
    return replace(
        plan,
        slices=tuple(slices),
        gaps=tuple(gap for gap in plan.gaps if (gap.source.topic, gap.source.partition) not in out),
        refusals=tuple(sorted((*plan.refusals, *refusals), key=lambda one: one.order)),
    )
