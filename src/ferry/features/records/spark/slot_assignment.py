"""Assigns transformed records to slots, batch by batch. Runs in Spark's Python workers, without Spark's API.

```
in   COLUMNS of `ferry.features.records.spark.transform`
out  slot int, then COLUMNS of `ferry.features.records.acts.rows`
```
A record that the transform cannot be applied to stays among the rows, marked as its rule says. The slot refuses it, or
makes it a dead letter. So it stops nothing but its own partition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from ferry.features.records.acts.cutoffs import Failure, Unread
from ferry.features.records.acts.rows import COLUMNS, columns_of
from ferry.features.records.rules.dead_letters import PoisonRule, unknown_target
from ferry.features.records.rules.partition_columns import Longs, partitions_of_records
from ferry.model import RefusalKind, Slice, TopicPartition
from ferry.run.spark.columns import ints, texts
from ferry.wire.arrow_columns import bytes_behind, edges_of, numbers_of, valid_of

SLOT_INDEX = "slot_index"
"""The column with the index of a row's slot among the slots of the job: the number of its partition in Spark."""


def kept_rows(
    indexes: dict[int, int], slices: Iterable[Slice], rule: PoisonRule, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Return the records of slices, each for the partition of its own number, with its slot's index.

    `indexes` is, by slot, the number of its partition in Spark.
    """
    places = {tuple(piece.source): (indexes[piece.slot], piece.target.topic) for piece in slices}
    for batch in batches:
        if not batch.num_rows:
            continue
        topics, partitions = (batch.column(name).to_pylist() for name in ("topic", "partition"))
        found = [places[place] for place in zip(topics, partitions, strict=True)]
        slots = ints([slot for slot, _ in found])
        yield _rows(rule, batch, slots, [target for _, target in found], batch.column("partition"))


def dealt_rows(
    indexes: dict[int, int], units: Iterable[Slice], rule: PoisonRule, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Return the records that some unit wants, with its target partition and its slot's index.

    `indexes` is, by slot, the number of its partition in Spark. A record that the transform cannot be applied to is
    assigned by its own key. Raises Unread after the last record if records go to topics that the rule does not list,
    because no slot writes to these.
    """
    of_topics: dict[str, list[Slice]] = {}
    for unit in units:
        of_topics.setdefault(unit.source.topic, []).append(unit)
    of_units = {topic: _TopicUnits(indexes, mine, rule.targets.get(topic, ())) for topic, mine in of_topics.items()}
    unknown: dict[TopicPartition, Failure] = {}
    for topic, rows in chain.from_iterable(map(by_topic, batches)):
        here = of_units[topic]
        names = chosen_names(rows, rule.targets.get(topic, ()))
        for place, failure in _unknown(rule, topic, rows, here, names):
            if place not in unknown or failure.offset < unknown[place].offset:
                unknown[place] = failure
        kept, aims, numbers, slots = here.chosen(rows, names)
        if len(kept):
            chosen = rows.take(ints(kept.tolist()))
            yield _rows(rule, chosen, ints(slots.tolist()), aims, ints(numbers.tolist()))
    if unknown:
        raise Unread(unknown)


def chosen_names(rows: pa.RecordBatch, targets: Sequence[str]) -> Longs:
    """Return by row which one of the targets it goes to: -1 for a topic that is not among them; 0 without targets.

    A record that the transform cannot be applied to goes to the first one.
    """
    if not targets:
        return np.zeros(rows.num_rows, np.int64)
    index = pc.index_in(rows.column("target"), value_set=pa.array(targets, pa.string()))
    index = pc.if_else(pc.is_null(rows.column("poison")), index, 0)
    return numbers_of(pc.fill_null(index, -1)).astype(np.int64)


def dealt_places(batch: pa.RecordBatch, count: int) -> tuple[npt.NDArray[np.int32], Longs, Longs]:
    """Return by row its source partition, its offset, and which of `count` target partitions it goes to.

    The key decides it, or without a key the source partition and the offset.
    """
    keys = batch.column("key")
    partitions, offsets = (numbers_of(batch.column(name)) for name in ("partition", "offset"))
    edges, data, valid = edges_of(keys), bytes_behind(keys), valid_of(keys)
    numbers = partitions_of_records(data, edges[:-1], np.diff(edges), valid, (partitions, offsets), count)
    return partitions, offsets, numbers


def _unknown(
    rule: PoisonRule, topic: str, rows: pa.RecordBatch, units: _TopicUnits, names: Longs
) -> Iterator[tuple[TopicPartition, Failure]]:
    """Return by source partition the first record, of those that units want, whose topic is not listed."""
    found = np.flatnonzero(names < 0)
    if not len(found):
        return
    some = rows.take(ints(found.tolist()))
    some = some.filter(pa.array(units.wanted_by_any(some), pa.bool_()))
    columns = (*(some.column(name).to_pylist() for name in ("partition", "offset")), texts(some.column("target")))
    firsts: dict[int, tuple[int, str | None]] = {}
    for partition, offset, name in zip(*columns, strict=True):
        if partition not in firsts or offset < firsts[partition][0]:
            firsts[partition] = offset, name
    for partition, (offset, name) in firsts.items():
        message = unknown_target(rule, topic, partition, offset, name)
        failure = Failure(kind=RefusalKind.TRANSFORM, message=message, offset=offset)
        yield TopicPartition(topic, partition), failure


def by_topic(batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Return the rows of each source topic in a batch, in their order."""
    topics = batch.column("topic").dictionary_encode()
    codes = numbers_of(topics.indices)
    for code, topic in enumerate(topics.dictionary.to_pylist()):
        rows = np.flatnonzero(codes == code)
        yield topic, batch if len(rows) == len(codes) else batch.take(ints(rows.tolist()))


class _TopicUnits:
    """The units of one source topic, as numbers: those of one target topic follow each other."""

    def __init__(self, indexes: Mapping[int, int], units: Sequence[Slice], targets: Sequence[str]) -> None:
        self._targets = targets or [units[0].target.topic]
        self._count = units[0].partitions
        width = max(len(unit.starts) for unit in units)
        # A partition without a unit wants nothing.
        self._starts, self._ends = np.zeros((2, len(self._targets) * self._count, width), np.int64)
        self._slots = np.zeros(len(self._targets) * self._count, np.int64)
        for unit in units:
            number = self._targets.index(unit.target.topic) * self._count + unit.target.partition
            self._starts[number, : len(unit.starts)] = unit.starts
            self._ends[number, : len(unit.ends)] = unit.ends
            self._slots[number] = indexes[unit.slot]

    def wanted_by_any(self, batch: pa.RecordBatch) -> npt.NDArray[np.bool_]:
        """Return which rows are in what is to be read for some unit, whichever unit they are for."""
        partitions, offsets = (numbers_of(batch.column(name)) for name in ("partition", "offset"))
        wanted = np.zeros(batch.num_rows, np.bool_)
        for number, (starts, ends) in enumerate(zip(self._starts.T, self._ends.T, strict=True)):
            rows = np.flatnonzero(partitions == number)
            if len(rows):
                at = offsets[rows][:, None]
                wanted[rows] = ((starts <= at) & (at < ends)).any(axis=1)
        return wanted

    def chosen(self, batch: pa.RecordBatch, names: Longs) -> tuple[Longs, list[str], Longs, Longs]:
        """Return which rows are wanted, by their units' starts and ends; their target topics, partitions and slots.

        `names` are the numbers of the targets, from `chosen_names`.
        """
        partitions, offsets, numbers = dealt_places(batch, self._count)
        is_known = (partitions < self._starts.shape[1]) & (names >= 0)
        of_source = np.where(is_known, partitions, 0)
        of_unit = np.where(is_known, names, 0) * self._count + numbers
        starts, ends = self._starts[of_unit, of_source], self._ends[of_unit, of_source]
        kept = np.flatnonzero(is_known & (starts <= offsets) & (offsets < ends))
        aims = [self._targets[name] for name in names[kept].tolist()]
        return kept, aims, numbers[kept], self._slots[of_unit[kept]]


def _rows(
    rule: PoisonRule, batch: pa.RecordBatch, slots: pa.Array, aims: Sequence[str], partitions: pa.Array
) -> pa.RecordBatch:
    """Return the rows as slots take them, with their slots' indexes; `aims` are the topics that they are for."""
    arrays = [slots, *columns_of(rule, batch, aims, partitions)]
    return pa.RecordBatch.from_arrays(arrays, names=[SLOT_INDEX, *COLUMNS])
