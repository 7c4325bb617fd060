"""Transformed rows in a scripted lane: what stands for Spark, and the real slot that writes them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from ferry.config.flow.dead_letters import DeadLetters
from ferry.config.flow.transforms import Poison
from ferry.copy.kafka_slot import SlotWiring
from ferry.features.records.acts.row_slot import RowSlot
from ferry.features.records.acts.rows import Rows
from ferry.features.records.rules.dead_letters import PoisonRule
from ferry.plan.rules.planning_rules import Transform
from tests.pure.protocol.world import TOPIC
from tests.pure.run.unit_flows import record_batches
from tests.pure.scripted.batches import row
from tests.pure.scripted.lane import Lane, PortOf

LETTERS = "letters"
RULE = PoisonRule(
    transform="small", poison=Poison.SKIP, letters=DeadLetters(topic=LETTERS, replication_factor=None, context=False)
)


def rows_port(lane: Lane) -> PortOf:
    """What makes a slot of rows: all records of the source, unchanged, in their partitions."""

    def made(wiring: SlotWiring) -> RowSlot:
        return RowSlot(wiring, rows=Rows(rows_of(lane)))

    return made


def rows_of(lane: Lane) -> Iterator[pa.RecordBatch]:
    """The rows that the lane's plan has, sorted; their values are their offsets, as in `Lane.produce`."""
    slices = lane.plan.slices if lane.plan else ()
    rows: list[tuple[Any, ...]] = [
        (TOPIC, number, number, offset, 1_000, b"%d" % number, b"%d" % offset, [])
        for number, begin, end in sorted((one.source.partition, one.start, one.end) for one in slices)
        for offset in range(begin, end)
    ]
    return record_batches(rows, 2)


class Dealt:
    """A lane whose topic is repartitioned, with a dead letter of each source partition."""

    def __init__(self, lane: Lane, partitions: int) -> None:
        """`partitions`: of the target topic."""
        self.lane = lane
        self.partitions = partitions
        lane.transform = Transform(name=RULE.transform, partitions=partitions, digest="d")
        lane.target.topic(LETTERS)
        lane.port = self._made

    def _made(self, wiring: SlotWiring) -> RowSlot:
        return RowSlot(wiring, rows=Rows(record_batches(self._rows(), 2)), rules={TOPIC: RULE})

    def _rows(self) -> list[tuple[Any, ...]]:
        """A record's value names its source partition and offset; every other one goes to the next target partition.

        As in Spark, there are rows for the units of the plan alone.
        """
        planned = {unit.target.partition for unit in self.lane.plan.dealt} if self.lane.plan else set()
        return [
            (TOPIC, number, part, at, 1_000, b"k", b"%d-%d" % (part, at), [], None, why)
            for number in range(self.partitions)
            if number in planned
            for part, at, why in self._dealt_to(number)
        ]

    def _dealt_to(self, number: int) -> list[tuple[int, int, str | None]]:
        return [
            (part, at, "no JSON" if at == 1 else None)
            for part, sizes in enumerate(self.lane.sizes)
            for at in range(sum(sizes))
            if (part + at) % self.partitions == number
        ]

    def wanted(self, number: int) -> list[bytes]:
        """The values that a target partition has in the end, in order."""
        return [b"%d-%d" % (part, at) for part, at, why in self._dealt_to(number) if why is None]

    @property
    def letters(self) -> list[bytes]:
        """The values that are dead letters in the end, in no order."""
        every = [one for number in range(self.partitions) for one in self._dealt_to(number)]
        return sorted(b"%d-%d" % (part, at) for part, at, why in every if why is not None)

    def got(self, topic: str, number: int = 0) -> list[bytes]:
        """The values that a read_committed consumer gets of a partition of the target."""
        return [row(payload)[2] or b"" for _, payload in self.lane.target.log(topic, number).committed()]

    def is_whole(self) -> bool:
        """Whether each record is in its partition once, in order, or among the dead letters, once."""
        copied = all(self.got(TOPIC, number) == self.wanted(number) for number in range(self.partitions))
        return copied and sorted(self.got(LETTERS)) == self.letters
