"""Slots whose transforms are plain steps: one Python process reads, changes and writes, and Spark only starts it.

No record passes through Spark's JVM, nothing is shuffled: the partitions of a slot are read one after the other, in the
order in which they are written. Runs in Python workers; knows no Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from operator import itemgetter

import pyarrow as pa

from ferry.decide.records.filters import EVERYTHING
from ferry.decide.records.letters import PoisonRule
from ferry.model import TopicPartition
from ferry.run.copy.task import TaskSpec
from ferry.run.records.reading import ReadSpec, read_batches
from ferry.run.records.row_slot import RowSlot
from ferry.run.records.rows import Rows
from ferry.spark.records.dealing import rows_of_piece
from ferry.spark.records.plain import PlainChange
from ferry.spark.records.rows import rows_of
from ferry.spark.stage import attempted, batch_of_rows, rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Alone:
    """All that a process needs for one slot; changes and rules are by source topic."""

    spec: TaskSpec
    read: ReadSpec
    """The pieces in the order in which they are written."""
    targets: Mapping[TopicPartition, TopicPartition]
    changes: Mapping[str, PlainChange]
    rules: Mapping[str, PoisonRule]


def write_alone(
    slots: Mapping[int, Alone], schema: pa.Schema, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Copy every slot named in `batches`, as `ferry.spark.stage.copy_slots`; `schema` is that of the source `ferry`."""
    for batch in batches:
        for slot in batch.column("slot").to_pylist():
            one = slots[slot]
            writer = partial(RowSlot, Rows(changed_rows(one, schema)), rules=one.rules)
            yield batch_of_rows(rows(attempted(one.spec, writer)))


def changed_rows(one: Alone, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The slot's records, changed, as COLUMNS of `ferry.run.records.rows`. Raises as `read_batches`."""
    for piece, batches in groupby(read_batches(one.read), itemgetter(0)):
        topic = piece.place.topic
        change, rule, target = one.changes[topic], one.rules[topic], one.targets[piece.place]
        for batch in rows_of(batches, EVERYTHING, schema):
            changed = change(batch)
            if changed.num_rows:
                yield rows_of_piece(rule, changed, target)
