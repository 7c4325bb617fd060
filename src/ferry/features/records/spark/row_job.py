"""The work of a Spark job that writes rows: what its streams make, which slots write it, and what is left out of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from ferry.copy.task import TaskSpec
from ferry.features.records.acts.cutoffs import Withholding, without
from ferry.features.records.acts.source_logs import Marks
from ferry.features.records.rules.dead_letters import PoisonRule
from ferry.features.records.spark.counters import Counters
from ferry.features.records.spark.row_stage import Stage
from ferry.features.records.spark.steps import ArrowSteps
from ferry.features.records.spark.transform import Read
from ferry.model import Plan, Slice

Change = Callable[[Read, Stage, StructType], DataFrame]
"""Applies one transform to what is read (`ferry.features.records.spark.transform.transformed`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """What one transform makes of a plan: slices, which keep their partitions, or units, which repartition records."""

    change: Change
    rule: PoisonRule
    pieces: tuple[Slice, ...]
    plain: ArrowSteps | None = None
    """All that `change` does, if there is no SQL in it: Python can do it alone."""
    timeout_s: float = 0.0
    """Most seconds that one Spark task of `change` may take; 0: no limit."""
    lost: str = ""
    """Why it cannot be carried out, as a sentence: nothing of it is read, and its pieces are refused. Empty: it can."""

    def of_slots(self, slots: Collection[int]) -> Stream:
        """Return the part that these slots write."""
        return replace(self, pieces=tuple(piece for piece in self.pieces if piece.slot in slots))


@dataclass(frozen=True, slots=True, kw_only=True)
class RowJob:
    """The input of a Spark job that writes rows; `specs` by slot, `withheld` and `seen` by source partition."""

    spark: SparkSession
    plan: Plan
    specs: Mapping[int, TaskSpec]
    streams: Sequence[Stream]
    withheld: Withholding
    tally: Counters
    seen: Marks = field(default_factory=dict)
    """What `seen_before` has found of what passes through Spark."""
    alone: frozenset[int] = frozenset()
    """The slots that Python writes alone."""

    @property
    def spec(self) -> TaskSpec:
        """Return the specification of one slot, for the values that all slots share."""
        return next(iter(self.specs.values()))

    @property
    def pieces(self) -> list[Slice]:
        """Return the pieces of all streams."""
        return [piece for stream in self.streams for piece in stream.pieces]

    def of_slots(self, slots: Collection[int]) -> RowJob:
        """Return the part that these slots write."""
        return replace(
            self,
            specs={slot: spec for slot, spec in self.specs.items() if slot in slots},
            streams=[stream.of_slots(slots) for stream in self.streams],
        )

    def left(self, withheld: Withholding) -> RowJob:
        """Return the job without what is withheld."""
        streams = [replace(stream, pieces=without(stream.pieces, withheld)) for stream in self.streams]
        return replace(self, streams=streams, withheld=dict(withheld))

    def plain_slots(self) -> set[int]:
        """Return the slots that have nothing but slices of plain transforms, which Python can write alone.

        Call it with all pieces: a piece of which nothing is left to read is still refused by its slot, which has the
        reason.
        """
        plain: set[int] = set()
        other: set[int] = set()
        for stream in self.streams:
            for piece in stream.pieces:
                is_plain = stream.plain is not None and not piece.dealt
                (plain if is_plain else other).add(piece.slot)
        return plain - other
