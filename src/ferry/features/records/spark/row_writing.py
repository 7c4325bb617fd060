"""The exactly-once sink as a Spark job: slots write what streams make, and what cannot be carried out is left out.

A task that is repeated writes what it has not written yet, by the ledger. So does a job that is repeated.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce

from pyspark.sql import DataFrame, SparkSession

from ferry.config.record_source import TASK_RECORDS
from ferry.copy.slot_end import AGAIN, TRIES, SlotEnd, joined
from ferry.copy.task import TaskSpec
from ferry.errors import FerryError, Refused, Retryable
from ferry.features.records.acts.cutoffs import Withheld, withheld_at, without
from ferry.features.records.acts.source_logs import Seen, seen_before
from ferry.features.records.rules.locating import Ranges
from ferry.features.records.rules.pace import Share
from ferry.features.records.rules.ranges import distributed, ranges_of
from ferry.features.records.spark.counters import Counters
from ferry.features.records.spark.failures import SPARKS, cause_of, told_by_ferry, unread_of
from ferry.features.records.spark.record_errors import faults_of
from ferry.features.records.spark.row_frames import alone_frame, read_by, share_of, shuffled_frame
from ferry.features.records.spark.row_job import RowJob, Stream
from ferry.features.records.spark.row_stage import count
from ferry.features.records.spark.schema import COUNT
from ferry.features.records.spark.task_monitor import TooSlow, watched
from ferry.messages.refusals import refused
from ferry.model import FilterCounts, Plan, RefusalKind, TopicPartition
from ferry.spark.session import is_remote
from ferry.spark.stage import parse_rows

log = logging.getLogger(__name__)


def write_rows(
    spark: SparkSession,
    plan: Plan,
    counts: dict[str, FilterCounts],
    specs: Mapping[int, TaskSpec],
    streams: Sequence[Stream],
) -> list[SlotEnd]:
    """Write what the streams make, with `specs` by slot, and return the end of every slot.

    Slots that failed are tried once more. What is lost, what a transform breaks off at, and what cannot be read is
    refused, and all else is written. `counts`, by topic, are added to. Raises Refused on Spark Connect, whose server
    logs functions with the connection data in them.
    """
    refuse_remote(spark)
    ends: dict[int, SlotEnd] = {}
    withheld = lost_of(streams)
    found: Mapping[str, FilterCounts] = {}
    every = RowJob(spark=spark, plan=plan, specs=specs, streams=streams, withheld=withheld, tally=Counters(spark))
    todo = set(specs)
    for _ in range(TRIES):
        job = replace(every.of_slots(todo), tally=Counters(spark))
        for end in _despite_faults(job, withheld):
            ends[end.slot] = joined(ends.get(end.slot), end)
        found = found or job.tally.totals()  # another try reads a part of it again
        todo = {slot for slot, end in ends.items() if isinstance(end.failure, AGAIN)}
        if not todo:
            break
    for topic, sifted in found.items():
        counts[topic] = counts.get(topic, FilterCounts()).with_more(sifted)
    return [end for _, end in sorted(ends.items())]


def lost_of(streams: Iterable[Stream]) -> dict[TopicPartition, Withheld]:
    """Withhold all that lost streams would read, from its beginning."""
    found: dict[TopicPartition, Withheld] = {}
    for piece, why in ((piece, one.lost) for one in streams if one.lost for piece in one.pieces):
        for place, start, _ in piece.spans:
            offset = 0 if piece.dealt else start
            refusal = refused("said", *place, kind=RefusalKind.TRANSFORM, why=why)
            found[place] = Withheld(offset=offset, refusal=refusal)
    return found


def _despite_faults(every: RowJob, withheld: dict[TopicPartition, Withheld]) -> list[SlotEnd]:
    """Write a job.

    If a transform breaks off, or records cannot be read, add those to `withheld` and write again without them. Records
    that pass through Spark are written only after all of them are changed: a job that breaks off has written none.
    The job is first without what is withheld, then also without what fell silent.
    """
    every = replace(every, alone=frozenset(every.plain_slots()))
    while True:
        job = every.left(withheld)
        try:
            seen = _seen(job)
        except FerryError as failure:
            return [SlotEnd(slot=slot, failure=failure) for slot in job.specs]
        withheld |= withheld_at(seen.silent)
        job = replace(job.left(withheld), seen=seen.marks)
        try:
            return _written(job)
        except SPARKS as error:
            log.warning("a job on transformed topics ended: %s", cause_of(error))
            try:
                found = _faults(job, error)
            except FerryError as failure:
                return [SlotEnd(slot=slot, failure=failure) for slot in job.specs]
            except TooSlow as slow:
                found = _given_up(job, slow)
        except TooSlow as slow:
            found = _given_up(job, slow)
        for sentence in sorted({held.refusal.message for held in found.values()}):
            log.warning("%s", sentence)
        withheld |= found
        job.tally.forget()


def _given_up(job: RowJob, slow: TooSlow) -> dict[TopicPartition, Withheld]:
    return lost_of(replace(one, lost=slow.given_up.get(one.rule.transform, "")) for one in job.streams)


def _seen(job: RowJob) -> Seen:
    """Return the leader epochs of what slots will read that write after all is read. Raises Unreachable."""
    ranges = ranges_of([piece for piece in job.pieces if piece.slot not in job.alone])
    return seen_before(job.plan.flow.source, job.spec.source, ranges, patience_s=job.spec.patience_s)


def _faults(job: RowJob, error: Exception) -> dict[TopicPartition, Withheld]:
    """Return what has to be left out.

    Raises what a task of Ferry's own raised, and Retryable when the reason is none of these.
    """
    found = withheld_at(unread_of(error))
    own = told_by_ferry(error)
    if not found and own is not None:
        raise own
    if not found:
        for stream in job.streams:
            if any(stream.plain is None or piece.dealt for piece in stream.pieces):
                found |= faults_of(stream.rule.transform, stream.pieces, partial(_attempt, job, stream))
    if ranges_of(without(job.pieces, found)) == ranges_of(job.pieces):
        raise Retryable(f"Spark failed to copy the transformed topics ({cause_of(error)}): see its log")
    return found


def _attempt(job: RowJob, stream: Stream, ranges: Ranges) -> None:
    """Carry out a stream's transform on these ranges, and write nothing. Raises what Spark raises, and TooSlow."""
    tasks = distributed(ranges, TASK_RECORDS)
    counted = stream.change(read_by(job, stream.pieces, tasks), count, COUNT)
    share = share_of(stream, tasks, 0)
    watched(job.spark, [share], share.tasks.stop, counted.collect)


def refuse_remote(spark: SparkSession) -> None:
    """Raise Refused on Spark Connect."""
    if is_remote(spark):
        raise Refused("transformed topics are not written on Spark Connect: use a Spark session without it")


def _written(job: RowJob) -> list[SlotEnd]:
    of_python = job.of_slots(job.alone)
    of_spark = job.of_slots(job.specs.keys() - job.alone)
    answers = [alone_frame(of_python)] if of_python.specs else []
    shares, tasks = list[Share](), 1
    if of_spark.specs:
        answer, shares, tasks = shuffled_frame(of_spark)
        answers.append(answer)
    if len(answers) == 1 or all(spec.limits.rate is None for spec in job.specs.values()):
        answers = [reduce(DataFrame.unionByName, answers)]  # at once; otherwise each has all of the rate
    found = watched(job.spark, shares, tasks, lambda: [row for frame in answers for row in frame.collect()])
    return parse_rows((row.slot, row.kind, row.body) for row in found)
