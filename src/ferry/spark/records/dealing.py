"""Which slot a transformed record goes to, batch by batch. Runs in Spark's Python workers; knows no Spark.

```
in   COLUMNS of `ferry.spark.records.transform`
out  slot int, then COLUMNS of `ferry.run.records.rows`
```
A record that the transform cannot be applied to goes along, marked as its rule says: the slot refuses it, or makes it a
dead letter. So it stops nothing but its own partition.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

import pyarrow as pa

from ferry.config.flow.transforms import Poison
from ferry.decide.records.letters import PoisonRule, poison_sentence
from ferry.decide.records.partitioner import partition_of_key, partition_of_record
from ferry.decide.records.units import wants
from ferry.model import Slice, TopicPartition, Unit
from ferry.run.records.rows import COLUMNS
from ferry.spark.columns import ints, nullable_binaries, strings

SLOT = "slot"
_KEYS_KNOWN = 200_000
_KINDS = (pa.int32(), pa.string(), pa.int32())


def kept_rows(
    indexes: dict[int, int], slices: Iterable[Slice], rule: PoisonRule, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The records of slices, each for the partition of its own number, with its slot's index.

    `indexes`: by slot, which of Spark's partitions it is.
    """
    places = {tuple(piece.source): (indexes[piece.slot], piece.target.topic) for piece in slices}
    for batch in batches:
        if not batch.num_rows:
            continue
        topics, partitions = (batch.column(name).to_pylist() for name in ("topic", "partition"))
        found = [places[place] for place in zip(topics, partitions, strict=True)]
        slots = ints([slot for slot, _ in found])
        yield _rows(rule, batch, slots, [target for _, target in found], batch.column("partition"))


def rows_of_piece(rule: PoisonRule, batch: pa.RecordBatch, target: TopicPartition) -> pa.RecordBatch:
    """The records of one partition, as slots take them, without the slot: COLUMNS."""
    aims = [target.topic] * batch.num_rows
    return _rows(rule, batch, ints([0] * batch.num_rows), aims, ints([target.partition] * batch.num_rows)).select(
        COLUMNS
    )


def dealt_rows(
    indexes: dict[int, int], units: Iterable[Unit], rule: PoisonRule, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The records that some unit wants, with its target partition and its slot's index; `indexes` as above.

    A record that the transform cannot be applied to is dealt by the key that it has.
    """
    targets: dict[str, tuple[str, dict[int, Unit]]] = {}
    for unit in units:
        targets.setdefault(unit.source_topic, (unit.target.topic, {}))[1][unit.target.partition] = unit
    of_key = lru_cache(maxsize=_KEYS_KNOWN)(partition_of_key)
    for batch in batches:
        kept: list[int] = []
        numbers: list[int] = []
        slots: list[int] = []
        aims: list[str] = []
        columns = (batch.column(name).to_pylist() for name in ("topic", "partition", "offset", "key"))
        for at, (topic, partition, offset, key) in enumerate(zip(*columns, strict=True)):
            aim, of_topic = targets[topic]
            count = next(iter(of_topic.values())).partitions
            number = partition_of_record(None, partition, offset, count) if key is None else of_key(key, count)
            dealt = of_topic.get(number)
            if dealt is not None and wants(dealt, partition, offset):
                kept.append(at)
                numbers.append(number)
                slots.append(indexes[dealt.slot])
                aims.append(aim)
        if kept:
            chosen = batch.take(ints(kept))
            yield _rows(rule, chosen, ints(slots), aims, ints(numbers))


def _rows(
    rule: PoisonRule, batch: pa.RecordBatch, slots: pa.Array, aims: Sequence[str], partitions: pa.Array
) -> pa.RecordBatch:
    """The rows as slots take them; `aims` are the topics that they are for."""
    arrays = [
        slots,
        strings(aims),
        partitions,
        *(batch.column(name) for name in COLUMNS[2:8]),
        *_judged(rule, batch, aims),
    ]
    return pa.RecordBatch.from_arrays(arrays, names=[SLOT, *COLUMNS])


def _judged(rule: PoisonRule, batch: pa.RecordBatch, aims: Sequence[str]) -> tuple[pa.Array, pa.Array]:
    """Refusals and letters of the rows. None may go to another topic than the plan has for it, whatever the rule."""
    poisons, named = batch.column("poison"), batch.column("target").to_pylist()
    if poisons.null_count == batch.num_rows and named == aims:
        return pa.nulls(batch.num_rows, _KINDS[1]), pa.nulls(batch.num_rows, _KINDS[1])
    refusals: list[str | None] = [None] * batch.num_rows
    letters = refusals.copy()
    topics, partitions, offsets = (batch.column(name).to_pylist() for name in ("topic", "partition", "offset"))

    def refused(at: int, why: str) -> str:
        return poison_sentence(rule, topics[at], partitions[at], offsets[at], why)

    for at, (why, name, aim) in enumerate(zip(poisons.to_pylist(), named, aims, strict=True)):
        if why is not None and rule.poison is Poison.SKIP:
            letters[at] = why
        elif why is not None and rule.poison is Poison.FAIL:
            refusals[at] = refused(at, why)
        elif name != aim:
            refusals[at] = refused(at, f"it is sent to topic {name} in place of {aim}")
    return _texts(refusals), _texts(letters)


def _texts(found: Sequence[str | None]) -> pa.Array:
    return nullable_binaries([None if one is None else one.encode() for one in found], _KINDS[1])
