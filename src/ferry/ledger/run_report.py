"""The report of a run as the ledger has it: its plan compared with its receipts, its groups, its verification."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from ferry.ledger.checkpoint_codec import group_outcome
from ferry.ledger.codec import DELETED, DeletedCopy
from ferry.ledger.ledger import LedgerView
from ferry.ledger.mirror_state import mirror_notes
from ferry.ledger.pruning import Copy, pruned
from ferry.ledger.reading import read_as
from ferry.ledger.receipts import lane_ends, last_receipts
from ferry.ledger.report import Report
from ferry.ledger.run_codec import Outcome
from ferry.ledger.runs import outcome, superseded_by
from ferry.ledger.unit_codec import last_units, unit_receipts
from ferry.ledger.units import is_done
from ferry.ledger.verified_codec import run_verified
from ferry.messages.catalogue import sentence
from ferry.model import OpenedRun, Plan, Receipt, RefusalKind, Slice, TopicPartition

NOTHING_DEALT: Mapping[TopicPartition, Receipt] = {}


def run_report(view: LedgerView, plan: Plan, opened: OpenedRun, done: Iterable[Receipt]) -> Report:
    """Return all that the ledger has of a run with a plan: its copy, its groups, and its own verification."""
    lane, run = plan.lane, plan.run
    done = tuple(done)
    lasts = last_receipts(view, lane)
    ends, deleted = lane_ends(view, lane, plan, lasts), _deleted_since(view, opened)
    gone = [piece for piece in plan.kept if piece.target in deleted]
    reached = {piece.target: deleted[piece.target].ends[piece.target.partition] for piece in gone}
    uncounted = tuple(piece for piece in gone if reached[piece.target] > piece.start)
    for piece in gone:
        ends[piece.source] = max(ends.get(piece.source, -1), reached[piece.target])
    forgotten = {piece.target.topic: deleted[piece.target] for piece in gone}
    notes = [
        sentence("topic.forgotten", topic=name, run=one.run, at_ms=one.at_ms) for name, one in sorted(forgotten.items())
    ]
    plan = replace(plan, notes=(*plan.notes, *mirror_notes(view, lane, run), *notes))
    units = last_units(view, lane) if plan.dealt else NOTHING_DEALT
    report = report_of(
        plan,
        opened.record.started_ms,
        [*done, *(unit_receipts(view, lane, run, opened.generation) if plan.dealt else ())],
        ends,
        outcome(view, lane, run),
        units,
    )
    report = _without_later(report, view, opened.generation, deleted, {**lasts, **units})
    newer = superseded_by(view, lane, opened.generation) if report.unfinished else None
    return replace(
        report,
        groups=group_outcome(view, lane, run),
        verified=run_verified(view, lane, run),
        superseded="" if newer is None else newer.record.run,
        uncounted=uncounted,
    )


def _without_later(
    report: Report,
    view: LedgerView,
    generation: int,
    deleted: Collection[TopicPartition],
    lasts: Mapping[TopicPartition, Receipt],
) -> Report:
    """Return the report with the slices that later runs copied apart from those that the run itself copied.

    Its own receipts show which these are. Where they are pruned or deleted, or were written again after the lane went
    back, they show nothing: then the slice counts as the run's. Receipts of units are not pruned while their run is
    remembered.
    """
    plan = report.plan
    own: dict[TopicPartition, Receipt] = {}
    for one in sorted(report.receipts, key=lambda one: one.end):
        own[one.target] = one
    short = {piece.target: piece for piece in plan.slices if not _reached(piece, own.get(piece.target))}
    for piece in (*report.unfinished, *report.left):
        short.pop(piece.target, None)
    refused = {(one.topic, one.partition) for one in report.refusals}
    gone = {copy: one.end for copy, one in pruned(view).items()} if short else {}
    later = tuple(
        piece
        for target, piece in short.items()
        if target not in deleted
        and (piece.source.topic, piece.source.partition) not in refused
        and (last := lasts.get(target)) is not None
        and last.generation > generation
        and last.since == piece.since
        and _reached(piece, last)
        and gone.get(Copy(plan.lane, target, piece.since), -1) <= piece.start
    )
    if not later:
        return report
    ended = outcome(view, plan.lane, plan.run)
    over = ended.time_over if ended else frozenset()
    return replace(
        report,
        later=tuple(piece for piece in later if piece.slot not in over),
        left=(*report.left, *(piece for piece in later if piece.slot in over)),
        done=report.done - len(later),
    )


def _reached(piece: Slice, last: Receipt | None) -> bool:
    """Return whether a receipt of its target partition shows that a slice or a unit was copied up to its end."""
    if piece.dealt:
        return is_done(piece, last)
    return last is not None and last.end >= piece.end


def _deleted_since(view: LedgerView, opened: OpenedRun) -> dict[TopicPartition, DeletedCopy]:
    """Return by target partition what was deleted after a run had begun. A deletion before that is of another copy."""
    found: dict[TopicPartition, DeletedCopy] = {}
    for key, record in view.of_kind("deleted"):
        if key[1] == opened.record.lane and record.offset > opened.generation:
            copy = read_as(record, DELETED.load)
            found |= {TopicPartition(key[2], number): copy for number in copy.ends}
    return found


def report_of(
    plan: Plan,
    started_ms: int,
    receipts: Iterable[Receipt],
    lane_ends: Mapping[TopicPartition, int],
    ended: Outcome | None,
    lasts: Mapping[TopicPartition, Receipt] = NOTHING_DEALT,
) -> Report:
    """Return the report of a run from its plan, its receipts and what its copy step recorded.

    `lane_ends` are the positions of the lane by source partition. What a later run, or a later attempt at this one,
    copied of its slices is not missing, even if the slot failed at first. `lasts` are the last receipts of
    repartitioned slices, by target partition, for the same purpose.
    """
    written = tuple(sorted(receipts, key=lambda one: (one.dealt, one.target if one.dealt else one.source, one.start)))
    copied = {
        (piece.source.topic, piece.source.partition)
        for piece in plan.kept
        if lane_ends.get(piece.source, -1) >= piece.end
    }
    copied |= {
        (unit.source.topic, unit.source.partition) for unit in plan.dealt if is_done(unit, lasts.get(unit.target))
    }
    of_end = [
        refusal
        for refusal in (ended.refusals if ended else ())
        if refusal.kind is not RefusalKind.SLOT_FAILED or (refusal.topic, refusal.partition) not in copied
    ]
    refusals = (*plan.refusals, *of_end)
    settled = copied | {(refusal.topic, refusal.partition) for refusal in refusals}
    time_over = ended.time_over if ended else frozenset()
    short = [piece for piece in plan.slices if (piece.source.topic, piece.source.partition) not in settled]
    return Report(
        plan=plan,
        started_ms=started_ms,
        receipts=written,
        refusals=refusals,
        unfinished=tuple(piece for piece in short if piece.slot not in time_over),
        left=tuple(piece for piece in short if piece.slot in time_over),
        done=len(copied),
        sifted=ended.sifted if ended else {},
    )
