"""What the Spark tasks of the record path do: read, assign, write. Runs in Python workers, without Spark's API."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain

import pyarrow as pa

from ferry.copy.task import TaskSpec
from ferry.errors import Retryable
from ferry.features.records.acts.cutoffs import Failure, Unread, Withholding
from ferry.features.records.acts.reading import ReadSpec
from ferry.features.records.acts.row_slot import RowSlot
from ferry.features.records.acts.rows import COLUMNS, Rows
from ferry.features.records.acts.source_logs import Marks
from ferry.features.records.rules.dead_letters import PoisonRule
from ferry.features.records.rules.filters import Narrowing
from ferry.features.records.spark.rows import record_rows
from ferry.features.records.spark.slot_assignment import SLOT_INDEX
from ferry.model import TopicPartition
from ferry.spark.stage import batch_of_rows, rows, run_slot_in_spark

FIRST = -1
"""Target partition of the row that names a task's slot; it sorts before all records."""

LAST_TOPIC = "~"
"""Target topic of a slot's last row; it sorts after all names of topics. If the JVM ends, an Arrow stream seems
complete. Without this row the missing rows of a slot would then count as left out by the transform."""


def count(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Count the rows, as COUNT; all of their columns are made."""
    total = sum(batch.num_rows for batch in batches)
    yield pa.RecordBatch.from_arrays([pa.array([total], pa.int64())], names=["records"])


Stage = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""What a Python worker does with batches."""


def in_one_worker(*stages: Stage) -> Stage:
    """Join stages in one worker: each gets what the one before makes.

    A `mapInArrow` for each would start as many workers.
    """
    return partial(_in_turn, stages)


def _in_turn(stages: Sequence[Stage], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for stage in stages:
        batches = stage(batches)
    return iter(batches)


def read_apart(
    specs: Sequence[ReadSpec], schema: pa.Schema, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Return the records of the pieces that the rows name by number.

    Raises Unread for all partitions that cannot be read on together, after the others are read.
    """
    unread: dict[TopicPartition, Failure] = {}

    def on_failure(place: TopicPartition, failure: Failure) -> None:
        unread.setdefault(place, failure)

    for batch in batches:
        for number in batch.column("id").to_pylist():
            yield from record_rows(specs[number], Narrowing(), schema, on_failure)
    if unread:
        raise Unread(unread)


def write_slot(
    specs: Mapping[int, TaskSpec],
    rules: Mapping[str, PoisonRule],
    withheld: Withholding,
    seen: Marks,
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Write the rows of one slot, which the first row names by its index; a slot that fails is an answer, too.

    The stage comes after a shuffle: no row comes before all rows were read. `seen` is from before the first row was
    read. Anything but a FerryError is raised: Spark then tries the task again, perhaps elsewhere.
    """
    left = iter(batches)
    first = next((batch for batch in left if batch.num_rows), None)
    if first is None:
        return
    slots = sorted(specs)
    spec = specs[slots[first.column(SLOT_INDEX)[0].as_py()]]
    records = whole_rows(chain([first.slice(1)], left))
    port_of = partial(RowSlot, rows=Rows(records), rules=rules, withheld=withheld, seen=seen)
    yield batch_of_rows(rows(run_slot_in_spark(spec, port_of)))


def whole_rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Return the records before the row that ends them, as COLUMNS; Retryable if that row does not come."""
    ended = False
    for batch in batches:
        count = batch.num_rows
        if count and batch.column("target_topic")[count - 1].as_py() == LAST_TOPIC:
            ended, count = True, count - 1
        if count:
            yield batch.select(COLUMNS).slice(0, count)
    if not ended:
        raise Retryable("the rows of a slot broke off before their end: Spark's executor, or its disk, is gone")
