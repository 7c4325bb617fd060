"""What a lane has copied of each partition, by its ledger: the map for the comparison of two clusters."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ferry.ledger.adoption_codec import adoptions
from ferry.ledger.history import current_segments, holds_until
from ferry.ledger.ledger import LedgerView, gaps, shared_topics
from ferry.ledger.map_block import MapEntry, ReceiptChain
from ferry.ledger.pruning import Pruned, pruned
from ferry.ledger.receipts import receipts
from ferry.model import Adoption, Gap, Range, Segment, TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Copied:
    """What was copied of one source partition.

    `ranges` are the source offsets that receipts still hold, and those that they held until they were pruned; ascending
    and apart. `void` are target offsets of copies that do not count any more. The lane went back from there, or another
    replicator copied them before the lane took over. `target_next` is the target offset after the last record. The
    topic ids are those of the last receipt.
    """

    source: TopicPartition
    target: TopicPartition
    ranges: tuple[Range, ...]
    segments: tuple[Segment, ...]
    void: tuple[Range, ...]
    target_next: int
    shared: bool
    """Whether other flows write to the target topic, too."""
    source_topic_id: str = ""
    target_topic_id: str = ""
    transformed: tuple[tuple[Range, str], ...] = ()
    """Source offsets whose records a transform made, ascending and apart, with its digest."""
    pruned: tuple[Range, ...] = ()
    """Parts of `ranges` that no receipt names any more: how many records they had is not known."""


def copied(view: LedgerView, lane: str, rows: Mapping[ReceiptChain, Sequence[MapEntry]]) -> list[Copied]:
    """Return what the lane has copied, by source partition; `rows` are its receipts of the partitions of interest.

    If the policy renamed a copy in between, only the newest copy counts.
    """
    found: dict[TopicPartition, list[tuple[ReceiptChain, MapEntry]]] = {}
    for of, ones in rows.items():
        found.setdefault(of.source, []).extend((of, row) for row in ones)
    known, shared, adopted = gaps(view, lane), shared_topics(view), list(adoptions(view, lane))
    given_up = [one for one in pruned(view).values() if one.copy.lane == lane]
    return [_copied(found[source], known, shared, adopted, given_up) for source in sorted(found) if found[source]]


def _copied(
    every: list[tuple[ReceiptChain, MapEntry]],
    known: Sequence[Gap],
    shared: Collection[str],
    adopted: Sequence[Adoption],
    given_up: Sequence[Pruned],
) -> Copied:
    every.sort(key=lambda one: one[1].at)
    last, last_row = every[-1]
    mine = [row for of, row in every if of.target == last.target]
    digests = {of.transform for of, _ in every if of.target == last.target} - {""}
    later = [gap for gap in known if gap.source == last.source]
    gone = [one.held(later) for one in given_up if (one.source, one.copy.target) == (last.source, last.target)]
    theirs = [(one.target_start, one.target_next) for one in adopted if one.target == last.target]
    named = united((receipt.start, holds_until(receipt, later)) for receipt in mine)
    return Copied(
        source=last.source,
        target=last.target,
        ranges=united([*named, *gone]),
        pruned=without(gone, named),
        segments=tuple(current_segments(mine, later)),
        void=united([*_void(mine, later), *theirs]),
        target_next=last_row.target_next or 0,
        shared=last.target.topic in shared,
        source_topic_id=last.source_topic_id,
        target_topic_id=last.target_topic_id,
        transformed=tuple(
            sorted(
                (part, digest)
                for digest in digests
                for part in united(
                    (row.start, holds_until(row, later))
                    for of, row in every
                    if of.target == last.target and of.transform == digest
                )
            )
        ),
    )


def _void(every: Iterable[MapEntry], later: Sequence[Gap]) -> Iterable[Range]:
    """Yield the target offsets that receipts name and later gaps took back."""
    for receipt in every:
        until = holds_until(receipt, later)
        for part in receipt.segments:
            if part.source_end > until:
                yield part.target_start + max(0, until - part.source_start), part.target_end


def of_run(view: LedgerView, lane: str, run: str) -> dict[TopicPartition, tuple[Range, ...]]:
    """Return the source offsets that one run copied, by source partition.

    Empty when the ledger has no receipt of it.
    """
    found: dict[TopicPartition, list[Range]] = {}
    for receipt in receipts(view, lane=lane, run=run):
        found.setdefault(receipt.source, []).append((receipt.start, receipt.end))
    return {source: united(ranges) for source, ranges in found.items()}


def united(ranges: Iterable[Range]) -> tuple[Range, ...]:
    """Return the same offsets as ascending ranges that do not touch."""
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
    """Return the offsets that are in both."""
    there = list(others)
    return united((max(a, c), min(b, d)) for a, b in some for c, d in there)


def without(some: Iterable[Range], others: Iterable[Range]) -> tuple[Range, ...]:
    """Return the offsets of `some` that are not in `others`."""
    left = list(united(some))
    for start, end in others:
        left = [part for a, b in left for part in ((a, min(b, start)), (max(a, end), b)) if part[0] < part[1]]
    return united(left)
