"""Slots that copy bytes, as Spark jobs.

One job serves `local[*]`, a Spark cluster and Spark Connect. It is a DataFrame with one row per used slot, a Python
stage over Arrow that copies the slots, and a few rows in return.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from pyspark.sql import SparkSession

from ferry.copy.slot_end import AGAIN, TRIES, SlotEnd, joined
from ferry.copy.task import SlotTask
from ferry.run.spark.columns import Stage
from ferry.run.spark.job import Say
from ferry.run.spark.session import at_once, is_remote, sent_apart, slot_frame
from ferry.run.spark.stage import ROW, parse_rows, run_named_slots, run_packed_slots


def collect_slots(spark: SparkSession, specs: dict[int, SlotTask], say: Say) -> list[SlotEnd]:
    """Copy the slots and return every slot's end; failed ones are tried again. Spark repeats tasks that crashed."""
    specs, tasks = _sharing(spark, specs)
    ends: dict[int, SlotEnd] = {}
    todo = specs
    for _ in range(TRIES):
        for end in _collect(spark, todo, min(tasks, len(todo))):
            ends[end.slot] = joined(ends.get(end.slot), end)
        todo = {slot: specs[slot] for slot, end in ends.items() if isinstance(end.failure, AGAIN)}
        if not todo:
            break
        for slot in todo:
            say(f"slot {slot}: {ends[slot].failure}")
    return [end for _, end in sorted(ends.items())]


def _sharing(spark: SparkSession, specs: dict[int, SlotTask]) -> tuple[dict[int, SlotTask], int]:
    """Return the specs, and in how many tasks to copy them.

    If they share a rate, there are no more tasks than Spark runs at once. A task that waits for a core would leave its
    share of the rate unused.
    """
    if all(spec.limits.rate is None for spec in specs.values()):
        return specs, len(specs)
    tasks = min(len(specs), at_once(spark)) if len(specs) > 1 else 1
    return {slot: _sharing_rate(spec, tasks) for slot, spec in specs.items()}, tasks


def _sharing_rate(spec: SlotTask, at_once: int) -> SlotTask:
    rate = spec.limits.rate
    return spec if rate is None else replace(spec, limits=replace(spec.limits, rate=replace(rate, at_once=at_once)))


def _collect(spark: SparkSession, specs: dict[int, SlotTask], tasks: int) -> list[SlotEnd]:
    """Run one Spark job and return the ends of its slots."""
    answer = slot_frame(spark, specs, tasks).mapInArrow(_stage(spark, specs), ROW).collect()
    return parse_rows((row.slot, row.kind, row.body) for row in answer)


def _stage(spark: SparkSession, specs: dict[int, SlotTask]) -> Stage:
    """Return the function of the tasks.

    On Spark Connect its specs are sent separately, because the server logs functions.
    """
    if not is_remote(spark):
        return partial(run_named_slots, specs)
    return partial(run_packed_slots, sent_apart(spark, specs))
