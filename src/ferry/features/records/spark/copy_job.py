"""The copy step of a micro-run on Spark: slots that copy bytes (`ferry.run.spark.slots`), and slots that write rows."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from pathlib import Path

from pyspark.sql import SparkSession

from ferry.config.flow.flow import FlowConfig
from ferry.copy.slot_end import SlotEnd, failure_of
from ferry.copy.task import SlotTask
from ferry.errors import FerryError, Refused
from ferry.features.records.spark.counters import Counters
from ferry.features.records.spark.row_frames import RowJob
from ferry.features.records.spark.row_writing import Written, write_in_portions
from ferry.features.records.spark.streams import Transforms, streams_of, transforms_of
from ferry.ledger.progress import RunProgress
from ferry.ledger.report import pieces_sentence, sifted_notes, throttled_sentence, throttling
from ferry.model import Attempt, Origin, Plan, TopicPartition
from ferry.run.following import Following
from ferry.run.micro_run import MicroRuns
from ferry.run.pace import Milestones, progress_line
from ferry.run.spark.blocking_call import Call
from ferry.run.spark.job import Say, on_spark, run_job
from ferry.run.spark.session import session
from ferry.run.spark.slots import collect_slots

FENCE_PATIENCE_SECONDS = 5.0
PROGRESS_SECONDS = 5.0
"""The pause between two measurements of progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyRequest:
    """What to copy, for which run, and where to report it."""

    flow: FlowConfig
    run: str
    origin: Origin
    say: Say
    lane: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyJob:
    """The input of a Spark job that copies a plan; `specs` by slot."""

    flow: FlowConfig
    plan: Plan
    specs: Mapping[int, SlotTask]
    transforms: Transforms
    reached: Mapping[TopicPartition, int]
    """How far earlier attempts have come, by source partition; empty if there are no transforms."""
    say: Say


def copy_run(request: CopyRequest, connect: Callable[[], SparkSession]) -> None:
    """Copy what the plan of the run allows; return when all of it is in the ledger, at once when it was already.

    `connect` is called only when there is something to copy. However it ends, what was committed stays.

    Raises:
        BadInput: the ledger has no plan of the run.
        Superseded: a newer run, or a newer attempt at this one, has taken over.
        Retryable: slots failed, or Spark ended the job; the same run may be tried again.
        Refused: slots failed, all for reasons that another try meets again.
        Unreachable: all slots that failed did so because a cluster does not answer.
    """
    with MicroRuns(request.flow, lane=request.lane) as runs:
        request = replace(request, flow=runs.flow)  # as the lane has it
        plan = runs.sealed_plan(request.run)
        if not runs.unfinished_slices(plan):
            request.say(f"run {plan.run} of {plan.flow}: nothing is left to copy")
            return
        transforms = transforms_of(request.flow, plan)
        reached = runs.reached(plan) if transforms else {}
        attempt = runs.begin(plan, request.origin)
        specs = {slot: runs.slot_task(plan, slot, attempt) for slot in plan.used_slots}
        request.say(f"run {plan.run} of {plan.flow}: {pieces_sentence(plan)} in {len(specs)} tasks")
        job = CopyJob(
            flow=request.flow, plan=plan, specs=specs, transforms=transforms, reached=reached, say=request.say
        )

        began, milestones = time.monotonic(), Milestones()

        def show(progress: RunProgress) -> None:
            line = progress_line(plan, progress)
            if milestones.has(line, time.monotonic() - began):
                request.say(line)

        any_spec = next(iter(specs.values()))
        with Following(plan, any_spec, every_s=PROGRESS_SECONDS, show=show, say=request.say):
            ends, sifted = on_spark(
                connect,
                _tag(plan),
                lambda spark: _bytes_and_rows(spark, job),
                what=f"run {plan.run} of {plan.flow}",
                broken=lambda: end_chunks(request, plan, attempt),
            )
        runs.record_outcome(plan, attempt, ends, sifted)
        for sentence in sifted_notes(sifted):
            request.say(sentence)
        _report(plan, ends, request.say)


def _bytes_and_rows(spark: SparkSession, job: CopyJob) -> Written:
    """Copy slices as bytes and write those that are transformed, after all transforms are checked.

    If transforms cannot be carried out at all, on Spark Connect, only their slots fail. Both kinds run at the same
    time, with `tasks.max` for both together, so that neither waits until the run's time is over. If they share a rate,
    one comes after the other.
    """
    of_rows = {slot: spec for slot, spec in job.specs.items() if slot in job.plan.row_slots}
    of_bytes = {slot: spec for slot, spec in job.specs.items() if slot not in of_rows}

    try:
        streams = streams_of(spark, job.flow, job.transforms)
    except Refused as failure:
        lost = [SlotEnd(slot=slot, failure=failure) for slot in of_rows]
        of_rows, streams = {}, []
    else:
        lost = []

    def copied() -> list[SlotEnd]:
        spark.addTag(_tag(job.plan))  # each thread has its own
        return collect_slots(spark, of_bytes, job.say) if of_bytes else []

    def changed() -> Written:
        if not of_rows:
            return [], {}
        rows = RowJob(spark=spark, plan=job.plan, specs=of_rows, streams=streams, tally=Counters(spark))
        return write_in_portions(rows, job.reached, job.flow.copy.portion_bytes)

    if any(spec.limits.rate is not None for spec in job.specs.values()):
        bytes_ends = copied()
        rows_ends, sifted = changed()
        return [*lost, *bytes_ends, *rows_ends], sifted
    copying = Call(copied)
    rows_ends, sifted = changed()
    return sorted([*lost, *copying.result(), *rows_ends], key=attrgetter("slot")), sifted


def _tag(plan: Plan) -> str:
    return f"ferry-{plan.generation}"


def _report(plan: Plan, ends: Sequence[SlotEnd], say: Say) -> None:
    """Report what was done, the sum last; raise for slots that failed."""
    receipts = [receipt for end in ends for receipt in end.receipts]
    records, size = sum(r.records for r in receipts), sum(r.bytes for r in receipts)
    held_back = throttled_sentence(throttling(receipts))
    if held_back is not None:
        say(held_back)
    for message in dict.fromkeys(refusal.message for end in ends for refusal in end.refusals):
        say(f"refused: {message}")  # once, if all target partitions of a topic wait for the same
    say(f"run {plan.run} of {plan.flow}: copied {records} records, {size / 1e6:.1f} MB, {len(receipts)} receipts")
    failure = failure_of(plan, ends)
    if failure is not None:
        raise failure


def end_chunks(request: CopyRequest, plan: Plan, attempt: Attempt) -> None:
    """End the open transactions of the attempt at once, over new connections, because the caller's may be in a call.

    Nothing is done once a newer run or attempt has begun, because it owns the slots.
    """
    try:
        with MicroRuns(request.flow, lane=request.lane, patience_s=FENCE_PATIENCE_SECONDS) as runs:
            if runs.end_attempt(plan, attempt):
                request.say(f"run {plan.run} of {plan.flow}: ended the open chunks; what was committed stays")
    except FerryError as error:
        request.say(f"open chunks end by their transaction timeout ({error})")


def main(
    *,
    config: Path,
    clients: Path | None,
    flow: str,
    run: str,
    lane: str | None,
    origin: Origin,
    end: Path | None = None,
) -> int:
    """Run the whole job, and return its exit code: 0 done, 1 try again, 2 refused, 3 unreachable, 143 SIGTERM.

    `run_job` reads the file, takes the connection data from the pipe `clients`, and leaves an error in the file `end`.
    """

    def work(found: FlowConfig, say: Say) -> int:
        request = CopyRequest(flow=found, run=run, origin=origin, say=say, lane=lane)
        copy_run(request, lambda: session(f"ferry {flow} {run}"))
        return 0

    return run_job(work, config=config, clients=clients, flow=flow, end=end)
