"""The answers of the ledger and the clusters, cut to what one page shows of them; pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TypeVar

from ferry.clock import wall_ms
from ferry.features.lanes.rules.listing import Lane, LanePart, outlook_of
from ferry.ledger.history import Forgotten, Holder, PastRun
from ferry.ledger.report import Report
from ferry.ledger.units import read_ranges
from ferry.model import Plan, Receipt
from ferry.page.cut import A_PAGE, Cut, lines
from ferry.plan.rules.change_sentences import differences
from ferry.reader.documents import (
    FEW,
    SHOWN_SEGMENTS,
    SHOWN_SLICES,
    SHOWN_TOPICS,
    ChangeLine,
    DealLine,
    DealtPage,
    GapLine,
    HolderLine,
    LaneLine,
    PartLine,
    PlanStory,
    ReceiptLine,
    ReceiptStory,
    Remains,
    RunFigures,
    RunStory,
    SliceLine,
    UnitLine,
    WhereLine,
)
from ferry.reader.questions import OfDealt, OfReceipt, OfRun
from ferry.reader.repartitioned import DealtStory
from ferry.reader.run_sentences import done_besides, not_done
from ferry.reader.snapshot import digest_of
from ferry.reader.status import in_short

MOST_WHERE = 1000
SHOWN_RANGES = 4
A = TypeVar("A")
B = TypeVar("B")


def part_of(rows: Sequence[A], page: int, total: int, size: int = A_PAGE) -> Cut[A]:
    """Return the rows of one page as a Cut; the others were not read. The page may be after the last one."""
    return Cut(rows=rows, page=page, pages=max(1, -(-total // size)), total=total, first=(page - 1) * size + 1)


def receipt_line(receipt: Receipt) -> ReceiptLine:
    """Return a receipt as a line of a list."""
    short = replace(receipt, segments=receipt.segments[:SHOWN_SEGMENTS])
    return ReceiptLine(receipt=short, segments=len(receipt.segments))


def _unit_line(one: Receipt) -> UnitLine:
    return UnitLine(
        source_topic=one.source.topic,
        target=one.target,
        target_start=one.target_start,
        target_next=one.target_next,
        offsets=one.end - one.start,
        records=one.records,
        bytes=one.bytes,
        digest=one.digest,
        at_ms=one.at_ms,
    )


def run_story(found: PastRun | Forgotten, asked: OfRun) -> RunStory:
    """Return a run, with a page of each of its lists."""
    past = found if isinstance(found, PastRun) else None
    gone = found if isinstance(found, Forgotten) else None
    report = past.report if past else None
    left = gone or (past.earlier if past and not report else None)
    written = report or left
    wanted = asked.q.strip().lower()
    receipts = [one for one in (written.kept if written else ()) if wanted in one.source.topic.lower()]
    units = [one for one in (written.dealt if written else ()) if wanted in one.source.topic.lower()]
    return RunStory(
        opened=past.opened if past else None,
        state=past.state if past else None,
        figures=_figures(report) if report else None,
        remains=_remains(left) if left else None,
        units=len(written.dealt) if written else 0,
        receipts=lines(Cut.of(receipts, asked.page), receipt_line),
        dealt=lines(Cut.of(units, asked.dealt), _unit_line),
        refused=Cut.of(not_done(report, at_work=asked.at_work) if report else (), asked.refused),
        others=Cut.of(done_besides(report) if report else (), asked.notes),
        followed=past is not None and past.followed,
        progress=past.progress if past else None,
    )


def _figures(report: Report) -> RunFigures:
    return RunFigures(
        records=report.records,
        bytes=report.bytes,
        batches=report.batches,
        seconds=report.seconds,
        uncounted=len(report.uncounted),
        slices=len(report.plan.kept),
        units=len(report.plan.dealt),
        caught_up=report.plan.caught_up,
        done=report.done,
        refused=len(report.refusals),
        unfinished=len(report.unfinished) + len(report.later),
        left=len(report.left),
        cut_short=report.plan.cut_short,
    )


def _remains(left: Forgotten) -> Remains:
    return Remains(records=left.records, bytes=left.bytes, receipts=len(left.kept), units=len(left.dealt))


def receipt_story(receipt: Receipt, asked: OfReceipt) -> ReceiptStory:
    """Return a receipt with a page of its segments."""
    return ReceiptStory(receipt=replace(receipt, segments=()), segments=Cut.of(receipt.segments, asked.page))


def dealt_page(story: DealtStory, asked: OfDealt) -> DealtPage:
    """Return the page of a repartitioned partition."""
    return DealtPage(
        parts=Cut.of(story.parts, asked.parts),
        chunks=part_of(story.spans, asked.page, story.total),
        where=tuple(
            WhereLine(target=one.target, state=one.state, keyless=one.keyless, span=span)
            for one, span in story.where[:MOST_WHERE]
        ),
    )


def holder_line(holder: Holder) -> HolderLine:
    """Return a receipt with an offset in its range as a line."""
    receipt = holder.receipt
    return HolderLine(
        source=receipt.source,
        start=receipt.start,
        end=receipt.end,
        run=receipt.run,
        at_ms=receipt.at_ms,
        segment=holder.segment,
        void=holder.void.reason if holder.void else None,
    )


def lane_line(lane: Lane, outlook: str | None = None) -> LaneLine:
    """Return the summary of a lane; its `outlook` is computed now, unless it is given."""
    return LaneLine(
        name=lane.name,
        kind=lane.kind,
        topics=lane.topics[:SHOWN_TOPICS],
        topics_in_all=len(lane.topics),
        parts=len(lane.parts),
        records=lane.records,
        windows=lane.windows,
        uncounted=lane.uncounted,
        outlook=outlook_of(lane, wall_ms()) if outlook is None else outlook,
        last=in_short(digest_of(lane.last_run)) if lane.last_run else None,
    )


def part_line(part: LanePart) -> PartLine:
    """Return what a lane has copied of a partition."""
    return PartLine(
        source=part.source,
        target=part.target,
        ranges=part.ranges[:SHOWN_RANGES],
        ranges_in_all=len(part.ranges),
        records=part.records,
        pruned=part.pruned,
    )


def plan_story(plan: Plan) -> PlanStory:
    """Return a plan in figures, with the first of each kind of its parts."""
    read = read_ranges(plan.dealt)
    return PlanStory(
        offsets=sum(piece.offsets for piece in plan.kept) + sum(high - low for low, high in read.values()),
        bytes=sum(piece.bytes_estimate for piece in plan.kept),
        caught_up=plan.caught_up,
        refusals=Cut.of(plan.refusals, 1, FEW),
        gaps=_first(plan.gaps, lambda one: GapLine(how=one.how.value, source=one.source, start=one.start, end=one.end)),
        changes=_first(
            plan.changes, lambda one: ChangeLine(kind=one.kind.value, topic=one.topic, partitions=one.partitions)
        ),
        drift=Cut.of(tuple(line.removeprefix("drift: ") for line in differences(plan.drift)), 1, FEW),
        acls=Cut.of(tuple(f"{one.kind} {one.binding}" for one in plan.acls), 1, FEW),
        not_copied=Cut.of(tuple(left.message for left in plan.not_copied), 1, FEW),
        paused=Cut.of(plan.held_back, 1, FEW),
        notes=Cut.of(plan.notes, 1, FEW),
        slices=_first(
            plan.kept,
            lambda one: SliceLine(
                source=one.source,
                target=one.target,
                start=one.start,
                end=one.end,
                bytes_estimate=one.bytes_estimate,
            ),
            SHOWN_SLICES,
        ),
        units=_first(
            plan.dealt,
            lambda one: DealLine(target=one.target, source_topic=one.source.topic, offsets=one.offsets),
            SHOWN_SLICES,
        ),
    )


def _first(rows: Iterable[A], line: Callable[[A], B], most: int = FEW) -> Cut[B]:
    return lines(Cut.of(tuple(rows), 1, most), line)
