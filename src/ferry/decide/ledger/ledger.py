"""What the ledger says: the last word per key, the runs in order, and what a task must look for before it commits."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ferry.decide.ledger.codec import (
    SEAL,
    decode_key,
    decode_value,
    encode,
    parse_attempt,
    parse_gap,
    parse_pause,
    parse_receipt,
    parse_refusal,
    parse_run,
)
from ferry.decide.ledger.plan_codec import parse_plan
from ferry.decide.ledger.rolled import NOTHING_ROLLED, Rolled
from ferry.errors import BadInput
from ferry.model import (
    Attempt,
    Fate,
    Gap,
    LedgerRecord,
    OpenedRun,
    Pause,
    Plan,
    Receipt,
    Record,
    Refusal,
    RefusalKind,
    TopicPartition,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerView:
    """The committed ledger between two offsets, by key; `open` are records of transactions still undecided.

    `end` is the first offset that was not read. Records of aborted transactions do not exist here. Receipts, plans,
    outcomes and saved offsets before `rolled.upto` are not in `by_key`: they are known in short (ADR 20), and read when
    asked for.
    """

    end: int
    by_key: Mapping[str, LedgerRecord]
    runs: tuple[OpenedRun, ...]
    open: tuple[LedgerRecord, ...]
    rolled: Rolled = NOTHING_ROLLED

    def of_kind(self, kind: str) -> Iterable[tuple[list[Any], LedgerRecord]]:
        """The last record of every key of a kind, with the key's parts."""
        prefix = f'["{kind}",'
        for key, record in self.by_key.items():
            if key.startswith(prefix):
                yield json.loads(key), record


UNREAD = LedgerView(end=0, by_key={}, runs=(), open=())
"""The view of nothing: reading on from it is reading from the beginning."""


def fold(records: Iterable[LedgerRecord], end: int) -> LedgerView:
    """Reduce records in offset order to a view; raises BadInput on records of a newer format."""
    return fold_on(UNREAD, records, end)


def resume_at(view: LedgerView) -> int:
    """The offset from which reading on completes a view: its first undecided record, whose fate may be known by now."""
    return min((record.offset for record in view.open), default=view.end)


def fold_on(view: LedgerView, records: Iterable[LedgerRecord], end: int) -> LedgerView:
    """The view of everything up to `end`, from an earlier view and the records from `resume_at(view)` on.

    The same as `fold` over all records. What lies behind `resume_at` is taken in a second time, in its order.
    """
    by_key = dict(view.by_key)
    seen: list[str] = []
    deleted: list[tuple[Any, ...]] = []
    runs = [run for run in view.runs if run.generation < resume_at(view)]
    undecided: list[LedgerRecord] = []
    for record in records:
        if record.fate is Fate.ABORTED or record.offset < view.rolled.upto:
            continue
        if record.fate is Fate.OPEN:
            undecided.append(record)
            continue
        key = record.key.decode(errors="replace")  # a key that is not text is nobody's
        by_key.pop(key, None)  # the order of the mapping stays the order of the last records
        if key in view.rolled.left:
            seen.append(key)
        if record.value is None:
            continue
        by_key[key] = record
        if key.startswith('["deleted",'):
            # The tombstones of its receipts may be compacted away by now; this record stays.
            deleted.append(tuple(decode_key(record.key)[1:]))
        if key.startswith('["run",'):
            body = decode_value(record.value, f"run record at ledger offset {record.offset}")
            runs.append(OpenedRun(record=parse_run(body), generation=record.offset))
    rolled = view.rolled.without(seen, deleted) if seen or deleted else view.rolled
    return LedgerView(end=end, by_key=by_key, runs=tuple(runs), open=tuple(undecided), rolled=rolled)


def newest_run(view: LedgerView, lane: str) -> OpenedRun | None:
    """The run that owns the lane: the one with the highest generation."""
    return max((run for run in view.runs if run.record.lane == lane), key=lambda run: run.generation, default=None)


def opened_run(view: LedgerView, lane: str, run: str) -> OpenedRun | None:
    """The newest run record with this run id."""
    found = [opened for opened in view.runs if opened.record.lane == lane and opened.record.run == run]
    return max(found, key=lambda opened: opened.generation, default=None)


def slots_to_fence(view: LedgerView, lane: str) -> int:
    """How many slots any run of the lane may have writers on: all of them are fenced before positions are read.

    Opening a run again under its name lets compaction drop the earlier run record; what was fenced then still counts.
    """
    opened = [run.record.slots for run in view.runs if run.record.lane == lane]
    fenced = [int(_body(record)["slots"]) for key, record in view.of_kind("fenced") if key[1] == lane]
    return max([*opened, *fenced], default=0)


def superseded_by(view: LedgerView, lane: str, generation: int) -> OpenedRun | None:
    """The newer run of the lane, if there is one; a task that sees it must stop."""
    newest = newest_run(view, lane)
    return newest if newest is not None and newest.generation > generation else None


def newer_attempt(view: LedgerView, lane: str, run: str, generation: int, number: int) -> Attempt | None:
    """Why the attempt with this number must stop: a later one at the same opened run, or its own end.

    None when it need not. An end says nothing about attempts that began after the one that it names.
    """
    for key, record in view.of_kind("attempt"):
        if key[1:] == [lane, run]:
            last = parse_attempt(run, record.offset, _body(record))
            if last.generation == generation and (last.number > number or (last.ended and last.number == number)):
                return last
    return None


def outlived(view: LedgerView, lane: str, keep: int) -> list[Record]:
    """Tombstones for the run, plan, attempt, outcome and checkpoint records of all but the lane's `keep` newest runs.

    To be written only by a run that has fenced their slots. Receipts stay: they are the offset map.
    """
    newest = sorted((run for run in view.runs if run.record.lane == lane), key=lambda run: -run.generation)
    kept = {run.record.run for run in newest[:keep]}
    kinds = ("run", "plan", "attempt", "outcome", "checkpoint")
    known = [key for kind in kinds for key, _ in view.of_kind(kind)]
    left = [json.loads(key) for key in view.rolled.left]
    return [
        Record(key=encode(key), value=None)
        for key in [*known, *left]
        if key[0] in kinds and key[1] == lane and key[2] not in kept
    ]


def sealed_plan(view: LedgerView, lane: str, run: str, generation: int) -> tuple[Plan, int] | None:
    """The plan that a run sealed at this generation, and the offset of its seal; None when there is none.

    A run that is opened again under its name has another generation, and so a plan of its own.
    """
    seal: LedgerRecord | None = None
    parts: dict[int, bytes] = {}
    for key, record in view.of_kind("plan"):
        if key[1:4] != [lane, run, generation]:
            continue
        if key[4] == SEAL:
            seal = record
        elif record.value is not None:
            parts[key[4]] = record.value
    if seal is None or seal.value is None:
        return None
    return parse_plan(parts, seal.value, f"plan of run {run}"), seal.offset


def last_receipts(
    view: LedgerView, lane: str, words: Collection[Collection[bytes]] | None = None
) -> dict[TopicPartition, Receipt]:
    """The last committed receipt of every target partition of the lane; with `words` of those that have all of one."""
    return {
        TopicPartition(topic=key[2], partition=key[3]): parse_receipt(_body(record))
        for key, record in view.of_kind("last")
        if key[1] == lane and (words is None or _has(record.value or b"", words))
    }


def _has(value: bytes, words: Collection[Collection[bytes]]) -> bool:
    return any(all(word in value for word in together) for together in words)


def lane_ends(view: LedgerView, lane: str, plan: Plan | None = None) -> dict[TopicPartition, int]:
    """How far the lane has come, as source offsets by source partition.

    As a `plan` has it to know: a partition that it went back on is left out as long as nobody has copied since. One
    that a later run went back on has come as far as the plan wanted: what the plan left there is not missing any more.
    """
    pieces = {} if plan is None else {piece.source: piece for piece in plan.slices}
    ends: dict[TopicPartition, int] = {}
    for last in last_receipts(view, lane).values():
        piece = pieces.get(last.source)
        if piece is None or last.since == piece.since:
            ends[last.source] = last.end
        elif last.since > piece.since:
            ends[last.source] = max(last.end, piece.end)
    return ends


def receipts(
    view: LedgerView,
    *,
    lane: str | None = None,
    run: str | None = None,
    topic: str | None = None,
    target: TopicPartition | None = None,
) -> Iterable[Receipt]:
    """Committed receipts in ledger order, narrowed by lane, run, source topic or target partition."""
    named = [encode(name) for name in (run, topic) if name is not None]
    for key, record in view.of_kind("receipt"):
        if lane is not None and key[1] != lane:
            continue
        if target is not None and key[2:4] != [target.topic, target.partition]:
            continue
        # A search is a hundred times quicker than decoding.
        if record.value is not None and not all(name in record.value for name in named):
            continue
        receipt = parse_receipt(_body(record))
        if (run is None or receipt.run == run) and (topic is None or receipt.source.topic == topic):
            yield receipt


def heard_receipts(
    records: Iterable[LedgerRecord], kind: str, lane: str, generation: int
) -> tuple[list[Receipt], int | None]:
    """A run's committed receipts (kind "receipt", or the "last" of each partition) in a part of the ledger.

    Also the offset of the first record that is undecided, from which to read again; None when there is none.
    """
    found: list[Receipt] = []
    first_open: int | None = None
    for record in records:
        if record.fate is Fate.OPEN and first_open is None:
            first_open = record.offset
        if record.fate is not Fate.COMMITTED or record.value is None or decode_key(record.key)[:2] != [kind, lane]:
            continue
        receipt = parse_receipt(_body(record))
        if receipt.generation == generation:
            found.append(receipt)
    return found, first_open


def every_receipt(view: LedgerView) -> Iterable[Receipt]:
    """Committed receipts of all lanes, and those whose transactions are not decided yet."""
    yield from receipts(view)
    yield from open_receipts(view)


def open_receipts(view: LedgerView, lane: str | None = None) -> Iterable[Receipt]:
    """Receipts (of a lane) whose transactions are not decided yet."""
    for record in view.open:
        key = decode_key(record.key)
        if record.value is not None and key[:1] == ["receipt"] and lane in (None, key[1]):
            yield parse_receipt(_body(record))


def gaps(view: LedgerView, lane: str) -> list[Gap]:
    """What the lane passed over, or went back from, on purpose, in ledger order."""
    return [parse_gap(_body(record)) for key, record in view.of_kind("gap") if key[1] == lane]


def skips(view: LedgerView, lane: str) -> dict[TopicPartition, tuple[Gap, ...]]:
    """What somebody passed by hand, by source partition, ascending; nothing else moves a lane without a receipt."""
    found: dict[TopicPartition, list[Gap]] = {}
    for gap in gaps(view, lane):
        if gap.why is RefusalKind.STUCK:
            found.setdefault(gap.source, []).append(gap)
    return {source: tuple(sorted(ones, key=lambda gap: gap.start)) for source, ones in found.items()}


def shared_topics(view: LedgerView) -> frozenset[str]:
    """Target topics that this flow agrees to write together with other flows."""
    return frozenset(key[1] for key, _ in view.of_kind("share"))


def accounted(view: LedgerView, lane: str, ids: Mapping[str, str] | None = None) -> dict[TopicPartition, int]:
    """How far each target partition was looked through for records of others.

    With `ids` (topic ids by target topic) without topics that were created again since.
    """
    return {
        TopicPartition(topic=key[2], partition=number): offset
        for key, record in view.of_kind("accounted")
        if key[1] == lane and (body := _body(record)).get("topic_id", "") in ("", (ids or {}).get(key[2], ""))
        for number, offset in body["offsets"]
    }


def pauses(view: LedgerView, now_ms: int) -> dict[str, Pause]:
    """Pauses in force at `now_ms` by source topic; the key "" pauses the flow."""
    found = {key[1]: parse_pause(_body(record)) for key, record in view.of_kind("pause")}
    return {topic: pause for topic, pause in found.items() if pause.holds_at(now_ms)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What the tasks of a run refused, and the slots that stopped because the run's time was over."""

    refusals: tuple[Refusal, ...]
    time_over: frozenset[int]


def outcome(view: LedgerView, lane: str, run: str) -> Outcome | None:
    """The outcome that a run's copy step recorded; None when it did not (yet)."""
    for key, record in view.of_kind("outcome"):
        if key[1:] == [lane, run]:
            body = _body(record)
            return Outcome(
                refusals=tuple(parse_refusal(item) for item in body["refusals"]),
                time_over=frozenset(body["time_over"]),
            )
    return None


def claims(view: LedgerView) -> dict[str, str]:
    """Owning lane of each claimed target topic: the first unreleased claim wins."""
    owners: dict[str, str] = {}
    for key, _ in sorted(view.of_kind("claim"), key=lambda entry: entry[1].offset):
        owners.setdefault(key[1], key[2])
    return owners


def intruder(
    records: Iterable[LedgerRecord],
    *,
    lane: str,
    generation: int,
    own_offsets: frozenset[int],
    starts: Mapping[TopicPartition, int],
) -> str | None:
    """The last look before a commit: why the chunk must be abandoned, or None.

    `records` lie between the plan and the own receipts; `own_offsets` are where the own ones lie; `starts` is where
    this chunk begins per target partition (source offsets). A newer run record, or another non-aborted receipt that
    reaches past one of those starts, stands against the commit.
    """
    for record in records:
        if record.fate is Fate.ABORTED or record.offset in own_offsets or record.value is None:
            continue
        key = decode_key(record.key)
        if key[:2] == ["run", lane] and record.offset > generation:
            return f"run {key[2]} opened the lane at ledger offset {record.offset}"
        if key[:2] == ["receipt", lane]:
            place = TopicPartition(topic=key[2], partition=key[3])
            start = starts.get(place)
            if start is not None and parse_receipt(_body(record)).end > start:
                return f"another receipt of {place} lies at ledger offset {record.offset}"
    return None


def _body(record: LedgerRecord) -> dict[str, Any]:
    if record.value is None:
        raise BadInput(f"ledger record at offset {record.offset} has no value")
    return decode_value(record.value, f"ledger record at offset {record.offset}")
