"""The ledger as a view: the last record of each key, and the runs in order."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ferry.ledger.block_index import NOTHING_ROLLED, LedgerDigest
from ferry.ledger.codec import ACCOUNTED, decode_key, is_key, parse_gap, parse_pause
from ferry.ledger.reading import read_as
from ferry.ledger.receipt_codec import parse_receipt
from ferry.ledger.run_codec import parse_run
from ferry.model import Fate, Gap, LedgerRecord, OpenedRun, Pause, Receipt, Record, RefusalKind, TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerView:
    """The committed ledger between two offsets, by key; `open` are records of transactions that are undecided.

    `end` is the first offset that was not read. Records of aborted transactions are not in it. Receipts, plans,
    outcomes and saved offsets before `rolled.upto` are not in `by_key`: `rolled` has them in short (ADR 20), and they
    are read when needed. `runs` are all that were read: their slots may still write, even when their records are
    deleted.
    """

    end: int
    by_key: Mapping[str, LedgerRecord]
    runs: tuple[OpenedRun, ...]
    open: tuple[LedgerRecord, ...]
    rolled: LedgerDigest = NOTHING_ROLLED
    _kinds: dict[str, list[str]] = field(default_factory=dict, init=False, repr=False, compare=False)
    parsed: dict[str, tuple[LedgerRecord, Receipt]] = field(default_factory=dict, repr=False, compare=False)
    """Last receipts by key, with the records that they were read from; shared with the views that continue this one."""

    def remembered(self, lane: str) -> list[OpenedRun]:
        """Return the lane's runs whose records the ledger still has, oldest first: a later run may delete a record."""
        names = {parts[2] for parts, _ in self.of_kind("run") if parts[1] == lane}
        found = [run for run in self.runs if run.record.lane == lane and run.record.run in names]
        return sorted(found, key=lambda run: run.generation)

    def of_kind(self, kind: str) -> Iterable[tuple[list[Any], LedgerRecord]]:
        """Yield the last record of every key of a kind, with the key's parts."""
        for key in self.keys(kind):
            record = self.by_key[key]
            parts = decode_key(record.key)
            if parts:  # else it is none of Ferry's
                yield parts, record

    def last(self, key: str) -> Receipt:
        """Return the receipt of a record of kind `last`; parsed once, also for the views that continue this one."""
        record, known = self.by_key[key], self.parsed.get(key)
        if known is None or known[0] is not record:
            known = self.parsed[key] = record, read_as(record, parse_receipt)
        return known[1]

    def keys(self, kind: str) -> Sequence[str]:
        """Return the keys of a kind, in the order of their last records.

        They are sorted by kinds once, not at each call.
        """
        if not self._kinds:
            for key in self.by_key:
                self._kinds.setdefault(key[2 : key.find('"', 2)] if key.startswith('["') else "", []).append(key)
        return self._kinds.get(kind, ())


UNREAD = LedgerView(end=0, by_key={}, runs=(), open=())
"""The empty view: to continue it means to read from the beginning."""


def overwritten(since: Iterable[LedgerRecord], own: Iterable[Record]) -> list[Record]:
    """Return what others wrote meanwhile under the keys of `own`, to be written again: the last value of each key."""
    last = {one.key: one.value for one in since}
    keys = dict.fromkeys(one.key for one in own)
    return [Record(key=key, value=last[key]) for key in keys if key in last]


def fold(records: Iterable[LedgerRecord], end: int) -> LedgerView:
    """Reduce records in offset order to a view. Raises BadInput on records of a newer format."""
    return fold_on(UNREAD, records, end)


def resume_at(view: LedgerView) -> int:
    """Return the offset from which to continue a view: its first undecided record, whose fate may be known by now."""
    return min((record.offset for record in view.open), default=view.end)


def fold_on(
    view: LedgerView, records: Iterable[LedgerRecord], end: int, own: Collection[int] = frozenset()
) -> LedgerView:
    """Return the view of everything up to `end`, from an earlier view and the records from `resume_at(view)` on.

    The result is that of `fold` over all records. Records after `resume_at` are taken in a second time, in their order.
    Records at the offsets of `own` count as committed before their marker is there.
    """
    by_key = dict(view.by_key)
    seen: list[str] = []
    deleted: list[tuple[Any, ...]] = []
    dropped: dict[Any, int] = {}
    runs = [run for run in view.runs if run.generation < resume_at(view)]
    undecided: list[LedgerRecord] = []
    for record in records:
        if record.fate is Fate.ABORTED or record.offset < view.rolled.upto:
            continue
        if record.fate is Fate.OPEN and record.offset not in own:
            undecided.append(record)
            continue
        key = record.key.decode(errors="replace")  # a key that is not text is not Ferry's
        if not _is_ours(key, record.key):
            continue
        by_key.pop(key, None)  # the order of the mapping stays the order of the last records
        if key in view.rolled.left:
            seen.append(key)
        if record.value is None:
            continue
        by_key[key] = record
        if key.startswith('["deleted",'):
            # The tombstones of its receipts may be compacted away by now; this record stays.
            deleted.append(tuple(decode_key(record.key)[1:]))
        if key.startswith('["dropped",'):
            dropped[decode_key(record.key)[1]] = record.offset
        if key.startswith('["run",'):
            runs.append(OpenedRun(record=read_as(record, parse_run), generation=record.offset))
    if dropped:  # by a run that had fenced all slots of the lane
        runs = [one for one in runs if one.generation > dropped.get(one.record.lane, -1)]
    rolled = view.rolled.without(seen, deleted, dropped) if seen or deleted or dropped else view.rolled
    parsed = {} if view is UNREAD else view.parsed  # all callers share the empty view
    return LedgerView(end=end, by_key=by_key, runs=tuple(runs), open=tuple(undecided), rolled=rolled, parsed=parsed)


def _is_ours(key: str, raw: bytes) -> bool:
    """Return whether a key of one of Ferry's kinds has its parts.

    A key that is not Ferry's is kept, and means nothing.
    """
    return not key.startswith('["') or is_key(raw)


def gaps(view: LedgerView, lane: str) -> list[Gap]:
    """Return what the lane skipped, or went back from, on purpose, in ledger order."""
    return [read_as(record, parse_gap) for key, record in view.of_kind("gap") if key[1] == lane]


def skips(view: LedgerView, lane: str) -> dict[TopicPartition, tuple[Gap, ...]]:
    """Return the gaps of `ferry skip`, by source partition, ascending; nothing else moves a lane without a receipt."""
    found: dict[TopicPartition, list[Gap]] = {}
    for gap in gaps(view, lane):
        if gap.why is RefusalKind.STUCK:
            found.setdefault(gap.source, []).append(gap)
    return {source: tuple(sorted(ones, key=lambda gap: gap.start)) for source, ones in found.items()}


def shared_topics(view: LedgerView) -> frozenset[str]:
    """Return the target topics that this flow agrees to write together with other flows."""
    return frozenset(key[1] for key, _ in view.of_kind("share"))


def accounted(view: LedgerView, lane: str, ids: Mapping[str, str] | None = None) -> dict[TopicPartition, int]:
    """Return how far each target partition was searched for records of other producers.

    With `ids` (topic ids by target topic), topics that were created again since are left out.
    """
    return {
        TopicPartition(topic=key[2], partition=number): offset
        for key, record in view.of_kind("accounted")
        if key[1] == lane
        for found in [read_as(record, ACCOUNTED.load)]
        if found.topic_id in ("", (ids or {}).get(key[2], ""))
        for number, offset in found.offsets.items()
    }


def pauses(view: LedgerView, now_ms: int) -> dict[str, Pause]:
    """Return the pauses in force at `now_ms` by source topic; the key "" pauses the flow."""
    found = {key[1]: read_as(record, parse_pause) for key, record in view.of_kind("pause")}
    return {topic: pause for topic, pause in found.items() if pause.holds_at(now_ms)}


def claims(view: LedgerView) -> dict[str, str]:
    """Return the owning lane of each claimed target topic: the first unreleased claim wins.

    A claim whose transaction is undecided counts: of two lanes or flows that claim at once, one has to see the other's.
    """
    undecided = ((decode_key(record.key), record) for record in view.open if record.value is not None)
    found = [*view.of_kind("claim"), *((key, record) for key, record in undecided if key[:1] == ["claim"])]
    owners: dict[str, str] = {}
    for key, _ in sorted(found, key=lambda entry: entry[1].offset):
        owners.setdefault(key[1], key[2])
    return owners
