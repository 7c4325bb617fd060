"""Writes transformed slices in portions: a job's shuffle stays bounded, and each portion counts once it is written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from pyspark.sql import SparkSession

from ferry.clock import wall_ms
from ferry.copy.row_scope import RowScope
from ferry.copy.slot_end import SlotEnd, portions_joined
from ferry.copy.task import TaskSpec
from ferry.features.records.spark.row_job import Stream
from ferry.model import Plan, Slice, TopicPartition
from ferry.plan.rules.portions import fits_one_portion, portion_of
from ferry.spark.session import at_once

Write = Callable[[Mapping[int, TaskSpec], Sequence[Stream]], list[SlotEnd]]
"""Writes all of some streams, and returns the end of every slot."""


def write_in_portions(
    spark: SparkSession,
    plan: Plan,
    specs: Mapping[int, TaskSpec],
    streams: Sequence[Stream],
    reached: Mapping[TopicPartition, int],
    write: Write,
    each: int,
) -> list[SlotEnd]:
    """Write the streams, portion by portion, until all is done or the run's time is over. Return the end of every slot.

    A portion has about `each` bytes for every task that Spark runs at once. `reached` says how far earlier attempts
    have come. A slice that is refused is not continued, nor are those of a slot that failed. Units cannot be cut, so
    all of them are in the first portion.
    """
    pieces = [piece for stream in streams for piece in stream.pieces]
    left = {piece.source: piece for piece in pieces if not piece.dealt}
    at = {place: max(piece.start, reached.get(place, 0)) for place, piece in left.items()}
    most = each if fits_one_portion(left.values(), at, each) else each * at_once(spark)
    ends: dict[int, SlotEnd] = {}
    units = {piece.slot for piece in pieces if piece.dealt}
    while units or left:
        portion = portion_of(left.values(), at, most)
        mine = [replace(stream, pieces=_narrowed(stream.pieces, portion, units=bool(units))) for stream in streams]
        scope = RowScope(ranges=portion, units=bool(units))
        slots = units | {left[place].slot for place in portion}
        for end in write({slot: replace(specs[slot], portion=scope) for slot in sorted(slots)}, mine):
            ends[end.slot] = portions_joined(ends.get(end.slot), end)
        units = set()
        at |= {place: end for place, (_, end) in portion.items()}
        left = {place: piece for place, piece in left.items() if at[place] < piece.end and _goes_on(ends, piece)}
        if _is_late(plan, specs):
            for piece in left.values():
                ends[piece.slot] = replace(ends[piece.slot], time_over=True)
            break
    return [end for _, end in sorted(ends.items())]


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


def _is_late(plan: Plan, specs: Mapping[int, TaskSpec]) -> bool:
    began_ms = min(spec.began_ms for spec in specs.values())
    return 0 < plan.max_seconds < (wall_ms() - began_ms) / 1000
