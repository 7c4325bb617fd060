"""The lanes in a ledger, and the tombstones that delete one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ferry.ledger.codec import encode
from ferry.ledger.copied import copied, united
from ferry.ledger.history import PastRun, past_runs
from ferry.ledger.kinds import KINDS_OF_LANE
from ferry.ledger.ledger import LedgerView, claims
from ferry.ledger.map_block import MapEntry, ReceiptChain
from ferry.ledger.producer_codec import PRODUCER
from ferry.ledger.receipt_codec import receipt_key
from ferry.ledger.unit_codec import last_units
from ferry.ledger.window_codec import Dropped, dropped_record, recorded_windows
from ferry.model import LaneKind, Range, Record, TopicPartition, lane_kind
from ferry.run.pace import outlook, share_copied
from ferry.words import count_of

_LAST_TO_GO = ("claim", "fenced", "run")
"""The kinds of records that show that a lane exists.

They are deleted last, so that an interrupted drop can continue.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LanePart:
    """One source partition that a lane has copied: the offsets, and how many records its receipts count."""

    source: TopicPartition
    target: TopicPartition
    ranges: tuple[Range, ...]
    records: int
    pruned: int = 0
    """Offsets whose receipts were pruned; their records are not counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """A lane in its ledger. `kind` is None for a live one."""

    name: str
    kind: LaneKind | None
    topics: tuple[str, ...]
    """The topics on the target that it owns or has written."""
    parts: tuple[LanePart, ...]
    windows: int
    last_run: PastRun | None
    whole: int = 0
    """How many source offsets all of its windows have."""
    left: int = 0
    """How many of them are not copied."""
    dealt: int = 0
    """Target partitions with repartitioned records; `parts` has none of these."""
    deleted: int = 0
    """Copies that were deleted after their source, with their receipts; `parts` has none of these, either."""

    @property
    def records(self) -> int:
        """How many records it has copied, as far as receipts of single partitions still count them."""
        return sum(part.records for part in self.parts)

    @property
    def pruned(self) -> int:
        """How many source offsets have pruned receipts."""
        return sum(part.pruned for part in self.parts)

    @property
    def uncounted(self) -> str:
        """What `records` does not count, in words that follow "not counted: "; empty if nothing is missing."""
        some = [
            *([f"records of {count_of(self.pruned, 'offset')} whose receipts were pruned"] if self.pruned else []),
            *([f"records that were repartitioned into {count_of(self.dealt, 'partition')}"] if self.dealt else []),
            *([f"records of {count_of(self.deleted, 'topic')} deleted after the source's"] if self.deleted else []),
        ]
        return ", ".join(some)


def outlook_of(lane: Lane, now_ms: int) -> str:
    """Say how far a lane's windows are copied, and about how long the rest takes; empty for a lane without windows.

    The time is only there while a run is active that has copied something, at the pace of that run.
    """
    if not lane.whole:
        return ""
    seconds = 0.0
    run = lane.last_run
    if run is not None and run.report is not None and run.has_not_ended and not run.is_silent(now_ms):
        done = sum(receipt.end - receipt.start for receipt in run.report.kept)
        # The time that all that is copied would have taken at this run's pace.
        seconds = max(0, now_ms - run.opened.record.started_ms) / 1000 / done * (lane.whole - lane.left) if done else 0
    return outlook(lane.whole, lane.left, seconds) if seconds else share_copied(lane.whole, lane.left)


def lane_names(view: LedgerView) -> list[str]:
    """Return the lanes of which a ledger has more than the record that they were dropped."""
    keys = (json.loads(key) for key in view.by_key if key.startswith(tuple(f'["{kind}",' for kind in _LAST_TO_GO)))
    return sorted({parts[2] if parts[0] == "claim" else parts[1] for parts in keys})


def lane_of(view: LedgerView, name: str, rows: Mapping[ReceiptChain, Sequence[MapEntry]]) -> Lane:
    """Return a lane. `rows` are its receipts, and `view` has its newest run with all records."""
    parts = tuple(
        LanePart(
            source=one.source,
            target=one.target,
            ranges=one.ranges,
            records=sum(segment.count for segment in one.segments),
            pruned=sum(end - start for start, end in one.pruned),
        )
        for one in copied(view, name, {of: ones for of, ones in rows.items() if of.lane == name})
    )
    wanted: dict[TopicPartition, list[Range]] = {}
    for window in recorded_windows(view, name):
        for number, part in window.ranges.items():
            wanted.setdefault(TopicPartition(window.topic, number), []).append(part)
    whole, left = _counted(wanted, {part.source: part.ranges for part in parts})
    owned = {topic for topic, owner in claims(view).items() if owner == name}
    return Lane(
        name=name,
        kind=lane_kind(name),
        topics=tuple(sorted(owned | {part.target.topic for part in parts})),
        parts=parts,
        windows=len({one.window for one in recorded_windows(view, name)}),
        last_run=next(iter(past_runs(view, name, 1)), None),
        whole=whole,
        left=left,
        dealt=len(last_units(view, name)),
        deleted=sum(key[1] == name for key, _ in view.of_kind("deleted")),
    )


def _counted(
    wanted: Mapping[TopicPartition, Sequence[Range]], done: Mapping[TopicPartition, Sequence[Range]]
) -> tuple[int, int]:
    """Count the wanted offsets, and those of them that are not done; ranges may overlap."""
    whole = left = 0
    for place, some in wanted.items():
        for start, end in united(some):
            whole += end - start
            left += end - start - sum(max(0, min(end, b) - max(start, a)) for a, b in done.get(place, ()))
    return whole, left


def forgetting_lane(
    view: LedgerView, last_word: Dropped, rows: Mapping[ReceiptChain, Sequence[MapEntry]], blocks: Iterable[bytes]
) -> list[Record]:
    """Return tombstones for all records of a lane, and the record that it was dropped, in the order of writing.

    `rows` are its receipts. `blocks` are the keys of the records that hold them in short.
    """
    lane = last_word.lane
    receipts = [
        receipt_key(lane, of.target, row.start, of.since)
        for of, ones in rows.items()
        if of.lane == lane
        for row in ones
    ]
    known = [json.loads(key) for key in (*view.by_key, *view.rolled.left) if key.startswith('["')]
    own = [parts for parts in known if _is_of(parts, lane)]
    first = [encode(parts) for parts in own if parts[0] not in _LAST_TO_GO]
    last = [encode(parts) for parts in own if parts[0] in _LAST_TO_GO]
    return [
        *(Record(key=key, value=None) for key in dict.fromkeys([*receipts, *blocks, *first])),
        dropped_record(last_word),
        *(Record(key=key, value=None) for key in last),
    ]


def _is_of(parts: list[Any], lane: str) -> bool:
    """Return whether a record goes with a lane.

    Those on a producer id stay, because late requests may come to topics that are created again under the same names.
    The name of a drill is used once, so its topics are not.
    """
    at = 2 if parts[0] == "claim" else 1
    kinds = (*KINDS_OF_LANE, "claim", *([PRODUCER] if lane_kind(lane) is LaneKind.DRILL else []))
    return bool(parts[0] in kinds and parts[at] == lane)
