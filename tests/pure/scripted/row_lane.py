"""Transformed rows in a scripted lane: what stands for Spark, and the real slot that writes them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from ferry.copy.kafka_slot import SlotWiring
from ferry.features.records.acts.row_slot import RowSlot
from ferry.features.records.acts.rows import Rows
from tests.pure.protocol.world import TOPIC
from tests.pure.run.unit_flows import record_batches
from tests.pure.scripted.lane import Lane, PortOf


def rows_port(lane: Lane) -> PortOf:
    """What makes a slot of rows: all records of the source, unchanged, in their partitions."""

    def made(wiring: SlotWiring) -> RowSlot:
        return RowSlot(wiring, rows=Rows(rows_of(lane)))

    return made


def rows_of(lane: Lane) -> Iterator[pa.RecordBatch]:
    """The rows of the lane's source, sorted; their values are their offsets, as in `Lane.produce`."""
    rows: list[tuple[Any, ...]] = [
        (TOPIC, partition, partition, offset, 1_000, b"%d" % partition, b"%d" % offset, [])
        for partition, sizes in enumerate(lane.sizes)
        for offset in range(sum(sizes))
    ]
    return record_batches(rows, 2)
