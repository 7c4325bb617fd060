"""The writing of transformed rows in Spark: slots write what streams make; what cannot be carried out is left out.

Transformed slices are written in portions, a Spark job for each. So a job's shuffle stays bounded, and each portion
counts once it is written. A task that is repeated writes what it has not written yet, by the ledger. So does a job
that is repeated.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame

from ferry.clock import wall_ms
from ferry.config.record_source import TASK_RECORDS
from ferry.copy.row_scope import RowScope
from ferry.copy.slot_end import AGAIN, TRIES, SlotEnd, joined, portions_joined
from ferry.errors import FerryError, Retryable
from ferry.features.records.acts.cutoffs import Cutoff, cutoffs_at, without
from ferry.features.records.acts.source_logs import Seen, seen_before
from ferry.features.records.rules.locating import Ranges
from ferry.features.records.rules.pace import TransformTasks
from ferry.features.records.rules.ranges import distributed, ranges_of
from ferry.features.records.spark.compiling import compile_long_work
from ferry.features.records.spark.failures import SPARKS, cause_of, ferry_error_of, unread_of
from ferry.features.records.spark.record_errors import faults_of
from ferry.features.records.spark.row_frames import (
    ALONE,
    RowJob,
    Spread,
    read_by,
    share_of,
    shuffled_frame,
    together_of,
    unshuffled_frame,
)
from ferry.features.records.spark.row_stage import count
from ferry.features.records.spark.schema import COUNT
from ferry.features.records.spark.streams import Stream, refuse_remote
from ferry.features.records.spark.task_monitor import TooSlow, watched
from ferry.messages.refusals import refused
from ferry.model import FilterCounts, RefusalKind, Slice, TopicPartition
from ferry.plan.rules.portions import fits_one_portion, portion_of
from ferry.run.spark.session import at_once, gist
from ferry.run.spark.stage import parse_rows

log = logging.getLogger(__name__)


Written = tuple[list[SlotEnd], Mapping[str, FilterCounts]]
"""The end of every slot, and what transforms read and kept, by topic."""


def write_in_portions(job: RowJob, reached: Mapping[TopicPartition, int], each: int) -> Written:
    """Write a job, portion by portion, until all is done or the run's time is over.

    A portion has about `each` bytes for every task that Spark runs at once. `reached` says how far earlier attempts
    have come. A slice that is refused is not continued, nor are those of a slot that failed. Units cannot be cut, so
    all of them are in the first portion. If Spark fails, all slots of the job fail.
    """
    slices = {piece.source: piece for piece in job.pieces if not piece.dealt}
    at = {place: max(piece.start, reached.get(place, 0)) for place, piece in slices.items()}
    left = {place: piece for place, piece in slices.items() if at[place] < piece.end}
    units = {piece.slot for piece in job.pieces if piece.dealt}
    if not (units or left):
        return [], {}
    ends: dict[int, SlotEnd] = {}
    sifted: Mapping[str, FilterCounts] = {}
    try:
        compile_long_work(job.spark, job.streams)
        most = each if fits_one_portion(left.values(), at, each) else each * at_once(job.spark)
        while units or left:
            portion = portion_of(left.values(), at, most)
            slots = units | {left[place].slot for place in portion}
            written, counts = write_rows(_portion(job, portion, sorted(slots), units=bool(units)))
            for end in written:
                ends[end.slot] = portions_joined(ends.get(end.slot), end)
            sifted = _added(sifted, counts)
            units = set()
            at |= {place: end for place, (_, end) in portion.items()}
            left = {place: piece for place, piece in left.items() if at[place] < piece.end and _goes_on(ends, piece)}
            if _is_late(job):
                for piece in left.values():
                    ends[piece.slot] = replace(ends[piece.slot], time_over=True)
                break
    except PySparkException as error:
        failure = Retryable(f"Spark failed to copy the transformed topics ({gist(error)}): see its log")
        ends = {slot: SlotEnd(slot=slot, failure=failure) for slot in job.specs}
    return [end for _, end in sorted(ends.items())], sifted


def _portion(
    job: RowJob, portion: Mapping[TopicPartition, tuple[int, int]], slots: Sequence[int], *, units: bool
) -> RowJob:
    """Return the part of a job that is in a portion, which these slots write."""
    scope = RowScope(ranges=portion, units=units)
    return replace(
        job,
        specs={slot: replace(job.specs[slot], portion=scope) for slot in slots},
        streams=[replace(stream, pieces=_narrowed(stream.pieces, portion, units=units)) for stream in job.streams],
    )


def _added(counts: Mapping[str, FilterCounts], more: Mapping[str, FilterCounts]) -> Mapping[str, FilterCounts]:
    return {**counts, **{topic: counts.get(topic, FilterCounts()).with_more(one) for topic, one in more.items()}}


def _narrowed(
    pieces: Sequence[Slice], portion: Mapping[TopicPartition, tuple[int, int]], *, units: bool
) -> tuple[Slice, ...]:
    """Narrow the pieces to what is in a portion."""
    found: list[Slice] = []
    for piece in pieces:
        if piece.dealt:
            found += [piece] if units else []
        elif piece.source in portion:
            start, end = portion[piece.source]
            found.append(replace(piece, start=start, end=end))
    return tuple(found)


def _goes_on(ends: Mapping[int, SlotEnd], piece: Slice) -> bool:
    """Report whether the last portion of a slice was written completely, so that the slice continues."""
    end = ends.get(piece.slot)
    if end is None or end.failure is not None or end.stopped or end.time_over:
        return False
    return all((one.topic, one.partition) not in (piece.source, (piece.source.topic, None)) for one in end.refusals)


def _is_late(job: RowJob) -> bool:
    began_ms = min(spec.began_ms for spec in job.specs.values())
    return 0 < job.plan.max_seconds < (wall_ms() - began_ms) / 1000


def write_rows(job: RowJob) -> Written:
    """Write a job, whole.

    Slots that failed are tried once more. What is lost, what a transform breaks off at, and what cannot be read is
    refused, and all else is written. Raises Refused on Spark Connect, whose server logs functions with the connection
    data in them.
    """
    refuse_remote(job.spark)
    ends: dict[int, SlotEnd] = {}
    cutoffs = lost_of(job.streams)
    counts: Mapping[str, FilterCounts] = {}
    todo = set(job.specs)
    for _ in range(TRIES):
        for end in _despite_faults(job.of_slots(todo), cutoffs):
            ends[end.slot] = joined(ends.get(end.slot), end)
        counts = counts or job.tally.totals()  # another try reads a part of it again
        todo = {slot for slot, end in ends.items() if isinstance(end.failure, AGAIN)}
        if not todo:
            break
    return [end for _, end in sorted(ends.items())], counts


def lost_of(streams: Iterable[Stream]) -> dict[TopicPartition, Cutoff]:
    """Withhold all that lost streams would read, from its beginning."""
    found: dict[TopicPartition, Cutoff] = {}
    for piece, why in ((piece, one.lost) for one in streams if one.lost for piece in one.pieces):
        for place, start, _ in piece.spans:
            offset = 0 if piece.dealt else start
            refusal = refused("said", *place, kind=RefusalKind.TRANSFORM, why=why)
            found[place] = Cutoff(offset=offset, refusal=refusal)
    return found


def _despite_faults(job: RowJob, cutoffs: dict[TopicPartition, Cutoff]) -> list[SlotEnd]:
    """Write a job.

    If a transform breaks off, or records cannot be read, add those to `cutoffs` and write again without them. Records
    that pass through Spark are written only after all of them are changed: a job that breaks off has written none.
    The job is first without what is after the cutoffs, then also without what fell silent.
    """
    job = replace(job, alone=frozenset(job.plain_slots()))
    job.tally.forget()
    while True:
        rest = job.without(cutoffs)
        try:
            seen = _seen(rest)
        except FerryError as failure:
            return [SlotEnd(slot=slot, failure=failure) for slot in rest.specs]
        cutoffs |= cutoffs_at(seen.silent)
        rest = replace(rest.without(cutoffs), seen=seen.marks)
        try:
            return _written(rest)
        except SPARKS as error:
            log.warning("a job on transformed topics ended: %s", cause_of(error))
            try:
                found = _faults(rest, error)
            except FerryError as failure:
                return [SlotEnd(slot=slot, failure=failure) for slot in rest.specs]
            except TooSlow as slow:
                found = _given_up(rest, slow)
        except TooSlow as slow:
            found = _given_up(rest, slow)
        for sentence in sorted({held.refusal.message for held in found.values()}):
            log.warning("%s", sentence)
        cutoffs |= found
        job.tally.forget(but=ALONE)  # what Python wrote alone is committed


def _given_up(job: RowJob, slow: TooSlow) -> dict[TopicPartition, Cutoff]:
    """Withhold all that passes through Spark of the streams that were ended; what Python writes alone continues."""
    return lost_of(
        replace(stream, lost=slow.given_up.get(number, "")) for number, stream in enumerate(job.of_spark.streams)
    )


def _seen(job: RowJob) -> Seen:
    """Return the leader epochs of what slots will read that write after all is read. Raises Unreachable."""
    ranges = ranges_of(job.of_spark.pieces)
    return seen_before(job.plan.flow.source, job.spec.source, ranges, patience_s=job.spec.patience_s)


def _faults(job: RowJob, error: Exception) -> dict[TopicPartition, Cutoff]:
    """Return what has to be left out.

    Raises what a task of Ferry's own raised, and Retryable when the reason is none of these.
    """
    found = cutoffs_at(unread_of(error))
    own = ferry_error_of(error)
    if not found and own is not None:
        raise own
    if not found:
        for number, stream in enumerate(job.streams):
            if any(stream.plain is None or piece.dealt for piece in stream.pieces):
                found |= faults_of(stream.rule.transform, stream.pieces, partial(_attempt, job, number))
    if ranges_of(without(job.pieces, found)) == ranges_of(job.pieces):
        raise Retryable(f"Spark failed to copy the transformed topics ({cause_of(error)}): see its log")
    return found


def _attempt(job: RowJob, number: int, ranges: Ranges) -> None:
    """Carry out a stream's transform on these ranges, and write nothing. Raises what Spark raises, and TooSlow."""
    stream = job.streams[number]
    reads = distributed(ranges, TASK_RECORDS)
    together = together_of(job, len(reads))
    spread = Spread(reads=reads, tasks=together, together=together)
    counted = stream.change(read_by(job, stream.pieces, spread), count, COUNT)
    share = share_of(job, number, spread, 0)
    watched(job.spark, [share], share.tasks.stop, counted.collect)


def _written(job: RowJob) -> list[SlotEnd]:
    of_python = job.of_slots(job.alone)
    of_spark = job.of_spark
    answers = [unshuffled_frame(of_python)] if of_python.specs else []
    shares, tasks = list[TransformTasks](), 1
    if of_spark.specs:
        answer, shares, tasks = shuffled_frame(of_spark)
        answers.append(answer)
    if len(answers) == 1 or all(spec.limits.rate is None for spec in job.specs.values()):
        answers = [reduce(DataFrame.unionByName, answers)]  # at once; otherwise each has all of the rate
    found = watched(job.spark, shares, tasks, lambda: [row for frame in answers for row in frame.collect()])
    return parse_rows((row.slot, row.kind, row.body) for row in found)
