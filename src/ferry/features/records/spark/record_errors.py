"""Finds the records at which a transform breaks off in tasks, and why, each as one sentence. Nothing is written for it.

What it breaks off at is left out, so that all else continues.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence

from ferry.features.records.acts.cutoffs import Cutoff, Failure, cutoffs_at, without
from ferry.features.records.rules.locating import Ranges, located
from ferry.features.records.rules.ranges import ranges_of
from ferry.features.records.spark.failures import SPARKS, cause_of, ferry_error_of, unread_of
from ferry.model import RefusalKind, Slice, TopicPartition

LOCATE_SECONDS = 240.0
"""Seconds for which records of a transform are located; after that all of what is left is named."""

MOST_OF_TOPIC = 2
"""So many records of a topic are located; with one more the whole topic is left out."""


def faults_of(
    transform: str, pieces: Sequence[Slice], attempt: Callable[[Ranges], None]
) -> dict[TopicPartition, Cutoff]:
    """Return what to leave out of these pieces so that the transform can be carried out on the others.

    It is empty if the transform can be carried out on all, or does not always fail. `attempt` carries it out on some
    ranges of the pieces, and writes nothing. What cannot be read is found, too. Raises other errors of Ferry's own
    tasks.
    """
    held: dict[TopicPartition, Cutoff] = {}
    counts: Counter[str] = Counter()
    until = time.monotonic() + LOCATE_SECONDS
    last: Exception | None = None

    def fails(ranges: Ranges) -> bool:
        nonlocal last
        try:
            attempt(ranges)
        except SPARKS as error:
            _raise_own(error)
            last = error
            return True
        return False

    while left := ranges_of(without(pieces, held)):
        try:
            found = located(left, fails, lambda: time.monotonic() < until) if fails(left) else None
        except _Unread as unread:
            failures = unread.failures
        else:
            if found is None or last is None:
                break
            topics = {place.topic for place in found}
            counts.update(topics)
            if max(counts[topic] for topic in topics) > MOST_OF_TOPIC:
                found = {place: span for place, span in left.items() if place.topic in topics and place not in held}
            failures = _failures(transform, found, cause_of(last))
        held |= cutoffs_at(failures)
        if ranges_of(without(pieces, held)) == left:
            break
    return held


class _Unread(Exception):
    """The reading failed, not the transform."""

    def __init__(self, failures: dict[TopicPartition, Failure]) -> None:
        super().__init__()
        self.failures = failures


def _raise_own(error: Exception) -> None:
    unread = unread_of(error)
    if unread:
        raise _Unread(unread)
    own = ferry_error_of(error)
    if own is not None:
        raise own


def _failures(transform: str, found: Ranges, cause: str) -> dict[TopicPartition, Failure]:
    message = (
        f"ferry.transform.{transform} breaks off at {_where(found)}: {cause}; correct it, or let it leave "
        "such records out: in SQL by WHERE, or by a function that answers null, as try_cast"
    )
    return {
        place: Failure(kind=RefusalKind.TRANSFORM, message=message, offset=start) for place, (start, _) in found.items()
    }


def _where(ranges: Ranges) -> str:
    """Name the record, or what it is among."""
    if len(ranges) > 1:
        topics = sorted({place.topic for place in ranges})
        return f"a record of {', '.join(topics)} ({len(ranges)} partitions)"
    ((place, (start, end)),) = ranges.items()
    one = end - start == 1
    return f"the record at offset {start} of {place}" if one else f"a record of {place} at offset {start} or later"
