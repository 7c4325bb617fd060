"""What happened to group offsets that were to be written to the target."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ferry.kafka.groups.offsets import CommittedOffsets, GroupActive
from ferry.messages.catalogue import said, sentence
from ferry.model import AgeStats, GroupOutcome, Left, TopicPartition, Why


def outcome_of(
    wanted: Mapping[str, Collection[TopicPartition]],
    done: CommittedOffsets,
    *,
    left: Collection[Left],
    unchanged: int,
    at_ms: int,
) -> GroupOutcome:
    """Return the outcome of writing `wanted`; `left` are groups that were left before, for other reasons."""
    failed = [
        Left(
            group=group,
            place=None,
            why=Why.ACTIVE if isinstance(error, GroupActive) else Why.FAILED,
            message=said(error),
        )
        for group, error in done.failed.items()
    ]
    refused = [
        Left(group=group, place=place, why=Why.FAILED, message=sentence("group.troubled", group=group, why=why))
        for group, places in done.refused.items()
        for place, why in sorted(places.items())
    ]
    counts = [len(written(group, places, done)) for group, places in wanted.items()]
    return GroupOutcome(
        groups=sum(map(bool, counts)),
        offsets=sum(counts),
        unchanged=unchanged,
        left=(*left, *failed, *refused),
        inexact={},
        at_ms=at_ms,
    )


def latency_of(
    wanted: Mapping[str, Collection[TopicPartition]], done: CommittedOffsets, asked_ms: int
) -> AgeStats | None:
    """Return how long it took until the groups' offsets were on the target; None when none is."""
    took = [done.answered_ms[group] - asked_ms for group, places in wanted.items() if written(group, places, done)]
    if not took:
        return None
    return AgeStats(min=min(took), mean=sum(took) // len(took), max=max(took), records=len(took))


def written(group: str, places: Collection[TopicPartition], done: CommittedOffsets) -> set[TopicPartition]:
    """Return the partitions of a group that have their new offset."""
    return done.written.get(group, set()).intersection(places)
