"""The lag of a lane for each partition; pure, over the same facts as a plan."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ferry.errors import BadInput
from ferry.model import Receipt, TopicPartition
from ferry.plan.rules.absence import lost_partitions
from ferry.plan.rules.facts import Facts, SourceTopic, by_topic
from ferry.plan.rules.progress import BytesFrom, estimated_bytes, next_offset
from ferry.policy import ReplicationPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionLag:
    """One source partition and the lane's lag in it; None is "not known" (gone, hidden, no leader, no timestamp).

    - `position`: the source offset at which the next run begins.
    - `source_end`: the high watermark.
    - `records`: the offsets between them, so an upper bound. It counts markers and records of aborted transactions. It
      also counts what open transactions hold back, which no run copies before they end.
    - `seconds`: the age of the oldest record that is not yet copied, by its batch's first timestamp; 0 when there is
      none. A timestamp later than now shows no age.
    """

    source: TopicPartition
    target: TopicPartition
    position: int | None
    source_end: int | None
    records: int | None
    bytes: int | None
    seconds: float | None
    bytes_from: BytesFrom | None = None
    """What `bytes` was estimated from; it never comes from the data, which is not read."""
    dealt: bool = False
    """Whether the topic is repartitioned: then only the topic of `target` is meaningful.

    `position` is then the offset that all target partitions have reached.
    """

    @property
    def read_at(self) -> int | None:
        """The offset of the oldest record that is not yet copied; None when there is none, or it is not known."""
        return self.position if self.records else None


@dataclass(frozen=True, slots=True, kw_only=True)
class TotalLag:
    """The lag of all partitions together: sums of what is known, and the age of the oldest record of known age.

    Of the `partitions`, `behind` have something to copy. Of `unknown` ones the amount or the age is not known.
    `seconds` is None if no age is known and some partition is unknown.
    """

    partitions: int
    behind: int
    unknown: int
    records: int
    bytes: int
    seconds: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LagLook:
    """The lag of a flow, with what decides whether it is known."""

    lags: Sequence[PartitionLag]
    hidden: frozenset[str] = frozenset()
    """Topics that the flow names and that its login may not see at the source."""
    begun: bool = True
    """Whether the lane ever had a plan. If not, its positions are only where its first run would begin now."""
    ends: Mapping[TopicPartition, int] = field(default_factory=dict)
    """The offset up to which each partition is awaited; partitions without one are not known."""

    @property
    def is_known(self) -> bool:
        """Whether it has all partitions that the flow takes, and there is at least one."""
        return self.begun and not self.hidden and bool(self.lags)


@dataclass(frozen=True, slots=True, kw_only=True)
class Awaited:
    """A source partition that is not copied up to the offset `end`; None is "not known"."""

    source: TopicPartition
    position: int | None
    end: int | None


def total_of(lags: Collection[PartitionLag]) -> TotalLag:
    """Return the sums over partitions."""
    unknown = sum(1 for lag in lags if lag.records is None or lag.seconds is None)
    oldest = max((lag.seconds for lag in lags if lag.records and lag.seconds is not None), default=None)
    return TotalLag(
        partitions=len(lags),
        behind=sum(1 for lag in lags if lag.records),
        unknown=unknown,
        records=sum(lag.records or 0 for lag in lags),
        bytes=sum(lag.bytes or 0 for lag in lags),
        seconds=0.0 if oldest is None and not unknown else oldest,
    )


def lag_of(
    facts: Facts, policy: ReplicationPolicy, alias: str, only: Collection[str] | None = None
) -> list[PartitionLag]:
    """Return the lag of every partition of the source's topics (narrowed to `only`) in order, without the ages.

    The lag of partitions that were copied and are gone is not known. Nor is that of a topic that the login may not see:
    it has one row, of partition 0. Raises BadInput for a topic of `only` that the source does not have.
    """
    unknown = sorted(set(only or ()) - facts.source.topics.keys() - facts.source.absent)
    if unknown:
        raise BadInput(
            f"cluster {alias} has no topic {unknown[0]}, or does not show it to this login: correct the name, or grant "
            "DESCRIBE on it"
        )
    receipts = by_topic(facts.lane.receipts)
    dealt_to = {era.source_topic: era.target_topic for era in facts.lane.eras.values()}
    rows = [
        *(
            lag
            for name, topic in facts.source.topics.items()
            for lag in _of_topic(facts, topic, policy.format_remote_topic(alias, name), receipts)
        ),
        *(
            _not_known(last.source, last.target, last.end)
            for last in facts.lane.receipts.values()
            if last.source.topic in facts.source.absent
        ),
        *(
            _not_known(place, TopicPartition(dealt_to[place.topic], place.partition), position, dealt=True)
            for place, position in facts.lane.dealt.items()
            if place.topic in facts.source.absent
        ),
    ]
    for name in facts.source.hidden - {row.source.topic for row in rows}:
        copy = policy.format_remote_topic(alias, name)
        rows.append(_not_known(TopicPartition(name, 0), TopicPartition(copy, 0), None))
    return sorted((row for row in rows if only is None or row.source.topic in only), key=lambda row: row.source)


def _of_topic(
    facts: Facts, topic: SourceTopic, target: str, receipts: Mapping[str, Mapping[int, Receipt]]
) -> Iterable[PartitionLag]:
    for lost in lost_partitions(receipts.get(target, {}).values(), topic):
        yield _not_known(lost.source, lost.target, lost.end)
    for number in {*topic.partitions, *topic.leaderless}:
        source = TopicPartition(topic=topic.name, partition=number)
        place = TopicPartition(topic=target, partition=number)
        part, last = topic.partitions.get(number), facts.lane.receipts.get(place)
        if part is None:
            position = facts.lane.dealt.get(source) if last is None else last.end
            yield _not_known(source, place, position, dealt=target in facts.lane.eras)
            continue
        position = next_offset(facts, source, part, last)
        records = max(0, part.log_end - max(position, part.log_start))
        size = estimated_bytes(part, records, last)
        yield PartitionLag(
            source=source,
            target=place,
            position=position,
            source_end=part.log_end,
            records=records,
            bytes=size.bytes,
            bytes_from=size.by,
            seconds=None if records else 0.0,
            dealt=target in facts.lane.eras,
        )


def _not_known(
    source: TopicPartition, target: TopicPartition, position: int | None, *, dealt: bool = False
) -> PartitionLag:
    return PartitionLag(
        source=source,
        target=target,
        position=position,
        source_end=None,
        records=None,
        bytes=None,
        seconds=None,
        dealt=dealt,
    )


def with_ages(lags: Iterable[PartitionLag], oldest_ms: Mapping[TopicPartition, int], now_ms: int) -> list[PartitionLag]:
    """Return the lags with the ages of the oldest records; `oldest_ms` holds their timestamps by source partition."""
    return [
        replace(lag, seconds=age_s(oldest_ms[lag.source], now_ms)) if lag.source in oldest_ms else lag for lag in lags
    ]


def age_s(stamp_ms: int | None, now_ms: int) -> float | None:
    """Return the seconds since a timestamp (ms); None, not known, without one, and if it is later than `now_ms`."""
    return None if stamp_ms is None or stamp_ms > now_ms else (now_ms - stamp_ms) / 1000


def is_behind(lag: PartitionLag, *, max_records: int | None, max_seconds: float | None) -> bool:
    """Return whether a partition's lag exceeds a limit; a lag that is not known does: no answer is not health."""
    return (max_records is not None and (lag.records is None or lag.records > max_records)) or (
        max_seconds is not None and (lag.seconds is None or lag.seconds > max_seconds)
    )


def awaited(look: LagLook) -> list[Awaited]:
    """Return the partitions that the lane has not copied up to their ends; what is not known is not copied.

    What a run or an operator skipped counts as copied: the position is after it.
    """
    found = []
    for lag in look.lags:
        end = look.ends.get(lag.source)
        if end is None or lag.position is None or lag.position < end:
            found.append(Awaited(source=lag.source, position=lag.position, end=end))
    return found


def is_caught_up(look: LagLook) -> bool:
    """Return whether the lane has copied every partition up to its end; what is not known is not copied."""
    return look.is_known and not awaited(look)


def is_below(look: LagLook, *, records: int | None, seconds: float | None) -> bool:
    """Return whether a flow's lag is below each limit that is given; a lag that is not known is not.

    `records` is the limit of all partitions together, `seconds` that of the oldest record of any partition.
    """
    if not look.is_known:
        return False
    if records is not None and any(lag.records is None for lag in look.lags):
        return False
    if records is not None and sum(lag.records or 0 for lag in look.lags) >= records:
        return False
    return seconds is None or all(lag.seconds is not None and lag.seconds < seconds for lag in look.lags)
