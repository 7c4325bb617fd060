"""The work of a Spark job that writes rows: what its streams make, by which slots, and what is left out of it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from ferry.copy.task import TaskSpec
from ferry.features.records.acts.cutoffs import Withholding, without
from ferry.features.records.acts.source_logs import Marks
from ferry.features.records.rules.dead_letters import PoisonRule
from ferry.features.records.spark.steps import ArrowSteps
from ferry.features.records.spark.tally import Tally
from ferry.features.records.spark.transform import Read
from ferry.features.records.spark.unit_stage import Stage
from ferry.model import Plan, Slice

Change = Callable[[Read, Stage, StructType], DataFrame]
"""As `ferry.features.records.spark.transform.transformed`, of one transform."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """What one transform makes of a plan: slices, whose records keep their partition, or units, which deal them."""

    change: Change
    rule: PoisonRule
    pieces: tuple[Slice, ...]
    plain: ArrowSteps | None = None
    """All that `change` does, where there is no SQL in it: Python can do it alone."""
    timeout_s: float = 0.0
    """How long one Spark task of `change` may take; 0: as long as it does."""
    lost: str = ""
    """Why it cannot be carried out, as a sentence: nothing of it is read, and its pieces are refused; empty: it can."""

    def of_slots(self, slots: Collection[int]) -> Stream:
        """The part that these slots write."""
        return replace(self, pieces=tuple(piece for piece in self.pieces if piece.slot in slots))


@dataclass(frozen=True, slots=True, kw_only=True)
class RowJob:
    """What a Spark job that writes rows works with; `specs` by slot, `withheld` and `seen` by source partition."""

    spark: SparkSession
    plan: Plan
    specs: Mapping[int, TaskSpec]
    streams: Sequence[Stream]
    withheld: Withholding
    tally: Tally
    seen: Marks = field(default_factory=dict)
    """What `seen_before` has found of what passes through Spark."""
    alone: frozenset[int] = frozenset()
    """The slots that Python writes alone."""

    @property
    def spec(self) -> TaskSpec:
        """What is the same for all slots."""
        return next(iter(self.specs.values()))

    @property
    def pieces(self) -> list[Slice]:
        """What all streams make."""
        return [piece for stream in self.streams for piece in stream.pieces]

    def of_slots(self, slots: Collection[int]) -> RowJob:
        """The part that these slots write."""
        return replace(
            self,
            specs={slot: spec for slot, spec in self.specs.items() if slot in slots},
            streams=[stream.of_slots(slots) for stream in self.streams],
        )

    def left(self, withheld: Withholding) -> RowJob:
        """Without what is withheld."""
        streams = [replace(stream, pieces=without(stream.pieces, withheld)) for stream in self.streams]
        return replace(self, streams=streams, withheld=dict(withheld))

    def plain_slots(self) -> set[int]:
        """The slots that have nothing but slices of plain transforms, which Python can write alone.

        To be asked of all pieces: one of which nothing is left to read is still refused by its slot, which knows why.
        """
        plain: set[int] = set()
        other: set[int] = set()
        for stream in self.streams:
            for piece in stream.pieces:
                is_plain = stream.plain is not None and not piece.dealt
                (plain if is_plain else other).add(piece.slot)
        return plain - other
