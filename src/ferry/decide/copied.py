"""What a lane has copied of each partition, as its ledger says: the map along which two clusters are compared."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from ferry.decide.history import current_segments, holds_until
from ferry.decide.ledger import LedgerView, gaps, receipts, shared_topics
from ferry.model import Gap, Range, Receipt, Segment, TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Copied:
    """One source partition. `ranges` are the source offsets that receipts still hold, ascending and apart.

    `void` are target offsets of copies that do not count any more: the lane went back from there. `target_next` is the
    target offset behind the last record. The topic ids are those of the last receipt.
    """

    source: TopicPartition
    target: TopicPartition
    ranges: tuple[Range, ...]
    segments: tuple[Segment, ...]
    void: tuple[Range, ...]
    target_next: int
    shared: bool
    """Whether others write to the target topic, too."""
    source_topic_id: str = ""
    target_topic_id: str = ""


def copied(
    view: LedgerView, lane: str, *, topics: Collection[str] | None = None, partition: int | None = None
) -> list[Copied]:
    """What the lane has copied (narrowed to source topics and a partition), by source partition.

    Where the policy renamed a copy in between, of the newest copy.
    """
    found: dict[TopicPartition, list[Receipt]] = {}
    for receipt in receipts(view, lane=lane):
        if (topics is None or receipt.source.topic in topics) and partition in (None, receipt.source.partition):
            found.setdefault(receipt.source, []).append(receipt)
    known, shared = gaps(view, lane), shared_topics(view)
    return [_copied(found[source], known, shared) for source in sorted(found)]


def _copied(every: Sequence[Receipt], known: Sequence[Gap], shared: Collection[str]) -> Copied:
    last = every[-1]
    mine = [receipt for receipt in every if receipt.target == last.target]
    later = [gap for gap in known if gap.source == last.source]
    return Copied(
        source=last.source,
        target=last.target,
        ranges=united((receipt.start, holds_until(receipt, later)) for receipt in mine),
        segments=tuple(current_segments(mine, later)),
        void=united(_void(mine, later)),
        target_next=last.target_next,
        shared=last.target.topic in shared,
        source_topic_id=last.source_topic_id,
        target_topic_id=last.target_topic_id,
    )


def _void(every: Iterable[Receipt], later: Sequence[Gap]) -> Iterable[Range]:
    """Target offsets of what receipts say and later gaps took back."""
    for receipt in every:
        until = holds_until(receipt, later)
        for part in receipt.segments:
            if part.source_end > until:
                yield part.target_start + max(0, until - part.source_start), part.target_end


def of_run(view: LedgerView, lane: str, run: str) -> dict[TopicPartition, tuple[Range, ...]]:
    """The source offsets that one run copied, by source partition; empty when the ledger has no receipt of it."""
    found: dict[TopicPartition, list[Range]] = {}
    for receipt in receipts(view, lane=lane, run=run):
        found.setdefault(receipt.source, []).append((receipt.start, receipt.end))
    return {source: united(ranges) for source, ranges in found.items()}


def united(ranges: Iterable[Range]) -> tuple[Range, ...]:
    """The same offsets as ascending ranges that do not touch."""
    out: list[Range] = []
    for start, end in sorted(ranges):
        if start >= end:
            continue
        if out and start <= out[-1][1]:
            out[-1] = out[-1][0], max(end, out[-1][1])
        else:
            out.append((start, end))
    return tuple(out)


def common(some: Iterable[Range], others: Iterable[Range]) -> tuple[Range, ...]:
    """The offsets that are in both."""
    there = list(others)
    return united((max(a, c), min(b, d)) for a, b in some for c, d in there)


def without(some: Iterable[Range], others: Iterable[Range]) -> tuple[Range, ...]:
    """The offsets of `some` that are not in `others`."""
    left = list(united(some))
    for start, end in others:
        left = [part for a, b in left for part in ((a, min(b, start)), (max(a, end), b)) if part[0] < part[1]]
    return united(left)
