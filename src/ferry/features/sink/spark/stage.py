"""What Spark tasks do to deliver a frame: find each record's partition and slot, and write a slot.

It imports no Spark.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ferry.errors import FerryError, Refused
from ferry.features.records.rules.partition_columns import partitions_of_records
from ferry.features.sink.acts.ids import SlotSpec
from ferry.features.sink.acts.slot import COLUMNS, write_slot
from ferry.features.sink.rules.dealing import first_numbers
from ferry.ledger.codec import Json, compact
from ferry.run.spark.columns import ints, strings
from ferry.run.spark.stage import error_json
from ferry.wire.arrow_columns import bytes_behind, edges_of, numbers_of, valid_of, with_narrow_edges

ANSWER = "slot int, failure string, receipts string"
"""How each slot ended, as JSON: `failure` is an error (`ferry.run.spark.stage`) or null; `receipts` are lists."""

Flags = npt.NDArray[np.bool_]


def placed(counts: Mapping[str, int], slots: int, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the rows with `partition` where it was null, and their `slot`.

    `counts` are the partitions of target topics. The key decides as in Kafka's default partitioner. Without a key, the
    record's own digest decides, so that an attempt that repeats sends it to the same partition. Rows that cannot be
    written go to slot 0, and are not written.
    """
    firsts = first_numbers(counts)
    for batch in batches:
        if not batch.num_rows:
            continue
        sound = ~valid_of(batch.column("trouble"))
        given = batch.column("partition")
        partitions = np.where(valid_of(given), numbers_of(given), -1).astype(np.int64)
        slot_numbers = np.zeros(batch.num_rows, np.int64)
        topics = batch.column("topic").dictionary_encode()
        codes = np.where(valid_of(topics.indices), numbers_of(topics.indices), -1)
        for code, topic in enumerate(topics.dictionary.to_pylist()):
            mine = sound & (codes == code)
            open_ones = np.flatnonzero(mine & (partitions < 0))
            if len(open_ones):
                partitions[open_ones] = _partitions_of(batch, open_ones, counts[topic])
            if mine.any():
                slot_numbers[mine] = (firsts[topic] + partitions[mine]) % slots  # the same as `slot_of`
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        columns["partition"] = ints(np.where(sound, partitions, 0).tolist())
        yield pa.RecordBatch.from_arrays([ints(slot_numbers.tolist()), *columns.values()], names=["slot", *columns])


def _partitions_of(batch: pa.RecordBatch, rows: npt.NDArray[np.int64], count: int) -> npt.NDArray[np.int64]:
    keys = batch.column("key")
    edges = edges_of(keys)
    digests = numbers_of(batch.column("digest")).view(np.uint64)[rows]
    turns = (digests % np.uint64(count)).astype(np.int64)
    return partitions_of_records(
        bytes_behind(keys),
        edges[:-1][rows],
        np.diff(edges)[rows],
        valid_of(keys)[rows],
        (np.zeros(len(rows), np.int32), turns),
        count,
    )


def delivered(specs: Mapping[int, SlotSpec], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Write the slot that the rows belong to, and yield how it ended.

    Raises other errors than FerryError: Spark retries.
    """
    left = (batch for batch in batches if batch.num_rows)
    first = next(left, None)
    if first is None:
        return
    number = int(first.column("slot")[0].as_py())

    def rows() -> Iterator[pa.RecordBatch]:
        yield first
        for batch in left:
            if (numbers_of(batch.column("slot")) != number).any():
                raise Refused(f"rows of another slot came to slot {number} (a bug): nothing of the transaction counts")
            yield batch

    failure: Json | None = None
    receipts: list[object] = []
    spec = specs[number]
    try:
        receipts = [
            [*one.place, *one.done, one.first, one.last, one.slot, one.generation]
            for one in write_slot(spec, (with_narrow_edges(batch.select(COLUMNS)) for batch in rows()))
        ]
    except FerryError as error:
        failure = error_json(error)
    failures = pa.array([None if failure is None else compact(failure).decode()], pa.string())
    yield pa.RecordBatch.from_arrays(
        [ints([number]), failures, strings([compact(receipts).decode()])], names=["slot", "failure", "receipts"]
    )
