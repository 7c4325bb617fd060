"""What the Spark tasks that write rows do: `write_unshuffled`, or `write_slot` after a shuffle.

`write_unshuffled` has slots whose transforms are plain steps: one Python process reads, changes and writes, and Spark
only starts it. No record passes through Spark's JVM, and nothing is shuffled. The partitions of a slot are read one
after the other, in the order in which they are written. Runs in Python workers, without Spark's API.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain, groupby
from operator import itemgetter

import numpy as np
import pyarrow as pa

from ferry.copy.task import SlotTask
from ferry.errors import Retryable
from ferry.features.records.acts.cutoffs import Cutoff, Cutoffs, Failure
from ferry.features.records.acts.reading import ReadSpec, ReadWaits, read_batches
from ferry.features.records.acts.row_slot import RowSlot
from ferry.features.records.acts.rows import COLUMNS, Rows, rows_of_piece
from ferry.features.records.acts.source_logs import EpochNotes, Marks
from ferry.features.records.rules.dead_letters import PoisonRule
from ferry.features.records.rules.filters import EVERYTHING
from ferry.features.records.rules.ranges import ReadRange
from ferry.features.records.spark.counters import KEPT, READ, Found
from ferry.features.records.spark.rows import rows_of
from ferry.features.records.spark.slot_assignment import SLOT_INDEX
from ferry.features.records.spark.steps import ArrowSteps
from ferry.messages.refusals import refused_as
from ferry.model import RefusalKind, TopicPartition
from ferry.run.spark.stage import answer_rows, batch_of_rows, run_slot_in_spark
from ferry.wire.arrow_columns import numbers_of

FIRST = -1
"""Target partition of the row that names a task's slot; it sorts before all records."""

LAST_TOPIC = "~"
"""Target topic of a slot's last row; it sorts after all names of topics. If the JVM ends, an Arrow stream seems
complete. Without this row the missing rows of a slot would then count as left out by the transform."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alone:
    """All that a process needs for one slot; changes and rules are by source topic."""

    spec: SlotTask
    read: ReadSpec
    """The pieces in the order in which they are written."""
    targets: Mapping[TopicPartition, TopicPartition]
    changes: Mapping[str, ArrowSteps]
    rules: Mapping[str, PoisonRule]


def write_unshuffled(
    slots: Mapping[int, Alone],
    withheld: Cutoffs,
    schema: pa.Schema,
    tell: Callable[[int, Found], None],
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """Copy every slot named in `batches`; the end of a slot that failed is an answer, too, so that the others continue.

    Slices are refused from what is `withheld` on. `schema` is that of the source `ferry`. `tell` gets, by slot,
    how many records were read and kept: none of a slot that was committed before, and reads nothing. Anything but a
    FerryError is raised: Spark then tries the task again, perhaps elsewhere.
    """
    for batch in batches:
        for slot in batch.column("slot").to_pylist():
            counts: Counter[tuple[str, str]] = Counter()
            one, cutoffs, notes, waits = slots[slot], dict(withheld), EpochNotes(), ReadWaits()
            records = Rows(changed_rows(one, schema, cutoffs, counts, notes, waits))
            port_of = partial(RowSlot, rows=records, rules=one.rules, cutoffs=cutoffs, notes=notes, waits=waits)
            end = run_slot_in_spark(one.spec, port_of)
            tell(slot, counts)
            yield batch_of_rows(answer_rows(end))


def changed_rows(
    one: Alone,
    schema: pa.Schema,
    cutoffs: dict[TopicPartition, Cutoff],
    counts: Counter[tuple[str, str]],
    notes: EpochNotes,
    waits: ReadWaits,
) -> Iterator[pa.RecordBatch]:
    """Return the slot's records, changed, as COLUMNS of `ferry.features.records.acts.rows`.

    A batch of which nothing is kept comes empty, so that the slot can look at its time. It adds to `counts`, `notes`
    and `waits`. If a partition cannot be read from a record on, or a step breaks off there, the partition's rows end
    there. The failure is put into `cutoffs` before the first row after it comes. Raises what `read_batches` raises
    without `on_failure`.
    """

    def on_failure(place: TopicPartition, failure: Failure) -> None:
        known = cutoffs.get(place)
        if known is None or failure.offset < known.offset:
            refusal = refused_as(failure.message, *place, kind=failure.kind)
            cutoffs[place] = Cutoff(offset=failure.offset, refusal=refusal)

    for piece, batches in groupby(read_batches(one.read, on_failure, notes.note, waits), itemgetter(0)):
        topic = piece.place.topic
        rule, target = one.rules[topic], one.targets[piece.place]
        for batch in rows_of(batches, EVERYTHING, schema, on_failure):
            changed, failure = _changed(one.changes[topic], rule, piece, batch)
            counts[READ, topic] += batch.num_rows if failure is None else _before(failure.offset, batch)
            counts[KEPT, topic] += changed.num_rows
            yield rows_of_piece(rule, changed, target)
            if failure is not None:
                on_failure(piece.place, failure)
                break


def _before(offset: int, batch: pa.RecordBatch) -> int:
    """Count the rows of a partition that come before an offset."""
    return int(np.searchsorted(numbers_of(batch.column("offset")), offset))


def _changed(
    change: ArrowSteps, rule: PoisonRule, piece: ReadRange, batch: pa.RecordBatch
) -> tuple[pa.RecordBatch, Failure | None]:
    """Return the changed rows, up to the first one at which the change breaks off: no step should."""
    try:
        return change(batch), None
    except Exception as error:
        if batch.num_rows > 1:
            half = batch.num_rows // 2
            first, failure = _changed(change, rule, piece, batch.slice(0, half))
            if failure is not None:
                return first, failure
            second, failure = _changed(change, rule, piece, batch.slice(half))
            return pa.concat_batches([first, second]), failure
        offset = batch.column("offset")[0].as_py()
        message = (
            f"ferry.transform.{rule.transform} breaks off at the record at offset {offset} of {piece.place}: "
            f"{type(error).__name__} in a step (a bug): pass the record with ferry skip, and report it"
        )
        failure = Failure(kind=RefusalKind.TRANSFORM, message=message, offset=offset)
        return change(batch.slice(0, 0)), failure


def write_slot(
    specs: Mapping[int, SlotTask],
    rules: Mapping[str, PoisonRule],
    cutoffs: Cutoffs,
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
    port_of = partial(RowSlot, rows=Rows(records), rules=rules, cutoffs=cutoffs, seen=seen)
    yield batch_of_rows(answer_rows(run_slot_in_spark(spec, port_of)))


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
