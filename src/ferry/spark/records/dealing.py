"""Which slot a transformed record goes to, batch by batch. Runs in Spark's Python workers; knows no Spark.

```
in   COLUMNS of `ferry.spark.records.transform`
out  slot int, then COLUMNS of `ferry.run.records.rows`
```
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

import pyarrow as pa

from ferry.decide.records.partitioner import partition_of_key, partition_of_record
from ferry.decide.records.units import wants
from ferry.errors import Refused
from ferry.model import Slice, Unit
from ferry.run.records.rows import COLUMNS

SLOT = "slot"
_KEYS_KNOWN = 200_000
_KINDS = (pa.int32(), pa.string(), pa.int32())


def kept_rows(
    indexes: dict[int, int], slices: Iterable[Slice], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The records of slices, each for the partition of its own number. Raises as `dealt_rows`."""
    places = {tuple(piece.source): (indexes[piece.slot], piece.target.topic) for piece in slices}
    for batch in batches:
        if not batch.num_rows:
            continue
        names = ("topic", "target", "partition", "poison")
        topics, aims, partitions, poisons = (batch.column(name).to_pylist() for name in names)
        found = [places[place] for place in zip(topics, partitions, strict=True)]
        wrong = next(
            (at for at, (_, target) in enumerate(found) if aims[at] != target or poisons[at] is not None), None
        )
        if wrong is not None:
            offset = batch.column("offset")[wrong].as_py()
            why = poisons[wrong] or f"it is sent to topic {aims[wrong]} in place of {found[wrong][1]}"
            raise _refused(topics[wrong], partitions[wrong], offset, why)
        partition = batch.column("partition")
        slots = pa.array([slot for slot, _ in found], _KINDS[0])
        arrays = [slots, batch.column("target"), partition, *(batch.column(name) for name in COLUMNS[2:])]
        yield pa.RecordBatch.from_arrays(arrays, names=[SLOT, *COLUMNS])


def _refused(topic: str, partition: int, offset: int, why: str) -> Refused:
    return Refused(
        f"the record at offset {offset} of {topic}-{partition} cannot be transformed: {why}; correct the transform, or "
        "leave the record out by it"
    )


def dealt_rows(
    indexes: dict[int, int], units: Iterable[Unit], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The records that some unit wants, with its target partition and its slot's index.

    `indexes`: by slot, which of Spark's partitions it is. Raises Refused for a record that cannot be transformed, or
    goes to a topic that the plan does not have: nothing may be left out in silence.
    """
    targets: dict[tuple[str, str], dict[int, Unit]] = defaultdict(dict)
    for unit in units:
        targets[unit.source_topic, unit.target.topic][unit.target.partition] = unit
    of_key = lru_cache(maxsize=_KEYS_KNOWN)(partition_of_key)
    for batch in batches:
        kept, numbers, slots = _chosen(indexes, targets, of_key, batch)
        if not kept:
            continue
        chosen = batch.take(pa.array(kept, pa.int32()))
        arrays = [
            pa.array(slots, _KINDS[0]),
            chosen.column("target"),
            pa.array(numbers, _KINDS[2]),
            *(chosen.column(name) for name in COLUMNS[2:]),
        ]
        yield pa.RecordBatch.from_arrays(arrays, names=[SLOT, *COLUMNS])


def _chosen(
    indexes: dict[int, int],
    targets: dict[tuple[str, str], dict[int, Unit]],
    of_key: Callable[[bytes, int], int],
    batch: pa.RecordBatch,
) -> tuple[list[int], list[int], list[int]]:
    """The numbers of the rows that are wanted, and of each its target partition and its slot's index."""
    kept: list[int] = []
    numbers: list[int] = []
    slots: list[int] = []
    topics, aims, partitions, offsets, keys, poisons = (
        batch.column(name).to_pylist() for name in ("topic", "target", "partition", "offset", "key", "poison")
    )
    for at, (topic, aim, partition, offset, key, poison) in enumerate(
        zip(topics, aims, partitions, offsets, keys, poisons, strict=True)
    ):
        units = targets.get((topic, aim))
        if poison is not None or units is None:
            why = poison or f"it is sent to topic {aim}, which the plan does not have"
            raise _refused(topic, partition, offset, why)
        count = next(iter(units.values())).partitions
        number = partition_of_record(None, partition, offset, count) if key is None else of_key(key, count)
        unit = units.get(number)
        if unit is not None and wants(unit, partition, offset):
            kept.append(at)
            numbers.append(number)
            slots.append(indexes[unit.slot])
    return kept, numbers, slots
