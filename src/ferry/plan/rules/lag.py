"""How far a lane is behind its source, per partition; pure, over the same facts as a plan."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from ferry.errors import BadInput
from ferry.model import Receipt, TopicPartition
from ferry.plan.rules.absence import lost_partitions
from ferry.plan.rules.facts import Facts, SourceTopic, by_topic
from ferry.plan.rules.progress import BytesFrom, estimated_bytes, next_offset
from ferry.policy import ReplicationPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionLag:
    """One source partition and how far the lane has come; None is "not known" (gone, no leader, no timestamp).

    `position` is the source offset that the next run begins at, `source_end` the high watermark. `records` counts the
    offsets between them, so it is an upper bound: markers and records of aborted transactions are among them, and what
    open transactions hold back, which no run copies before they end. `seconds` is the age of the oldest record that is
    not yet copied, by its batch's first timestamp; 0 when none is.
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
    """Whether its records go to other partitions: of `target` the topic alone counts. `position` is as far as all of
    those have come."""

    @property
    def read_at(self) -> int | None:
        """Where the oldest record that is not yet copied lies; None when there is none, or nobody knows."""
        return self.position if self.records else None


@dataclass(frozen=True, slots=True, kw_only=True)
class TotalLag:
    """All partitions together: sums of what is known, and the age of the oldest record that tells its own.

    Of the `partitions`, `behind` have something to copy, and `unknown` do not tell how much or how old it is. `seconds`
    is None when only those are behind.
    """

    partitions: int
    behind: int
    unknown: int
    records: int
    bytes: int
    seconds: float | None


def total_of(lags: Collection[PartitionLag]) -> TotalLag:
    """The sums over partitions."""
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
    """The lag of every partition of the source's topics (narrowed to `only`) but for the ages, in order.

    Partitions that were copied and are gone are not known. BadInput for a topic of `only` that the source lacks.
    """
    unknown = sorted(set(only or ()) - facts.sources.keys() - facts.absent)
    if unknown:
        raise BadInput(
            f"cluster {alias} has no topic {unknown[0]}, or does not show it to this login: correct the name, or grant "
            "DESCRIBE on it"
        )
    receipts = by_topic(facts.receipts)
    dealt_to = {era.source_topic: era.target_topic for era in facts.eras.values()}
    rows = [
        *(
            lag
            for name, topic in facts.sources.items()
            for lag in _of_topic(facts, topic, policy.format_remote_topic(alias, name), receipts)
        ),
        *(
            _not_known(last.source, last.target, last.end)
            for last in facts.receipts.values()
            if last.source.topic in facts.absent
        ),
        *(
            _not_known(place, TopicPartition(dealt_to[place.topic], place.partition), position, dealt=True)
            for place, position in facts.dealt.items()
            if place.topic in facts.absent
        ),
    ]
    return sorted((row for row in rows if only is None or row.source.topic in only), key=lambda row: row.source)


def _of_topic(
    facts: Facts, topic: SourceTopic, target: str, receipts: Mapping[str, Mapping[int, Receipt]]
) -> Iterable[PartitionLag]:
    for lost in lost_partitions(receipts.get(target, {}).values(), topic):
        yield _not_known(lost.source, lost.target, lost.end)
    for number in {*topic.partitions, *topic.leaderless}:
        source = TopicPartition(topic=topic.name, partition=number)
        place = TopicPartition(topic=target, partition=number)
        part, last = topic.partitions.get(number), facts.receipts.get(place)
        if part is None:
            position = facts.dealt.get(source) if last is None else last.end
            yield _not_known(source, place, position, dealt=target in facts.eras)
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
            dealt=target in facts.eras,
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
    """The same with the ages of the oldest records; `oldest_ms` holds their timestamps by source partition."""
    return [
        replace(lag, seconds=max(0, now_ms - oldest_ms[lag.source]) / 1000) if lag.source in oldest_ms else lag
        for lag in lags
    ]


def is_behind(lag: PartitionLag, *, max_records: int | None, max_seconds: float | None) -> bool:
    """Whether a partition exceeds a limit; unknown counts as behind: silence is not health."""
    return (max_records is not None and (lag.records is None or lag.records > max_records)) or (
        max_seconds is not None and (lag.seconds is None or lag.seconds > max_seconds)
    )
