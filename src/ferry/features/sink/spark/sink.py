"""Write any DataFrame to Kafka exactly once, with record timestamps, in transactions; return its offsets (ADR 41).

```python
from ferry.features.sink.spark.sink import write

written = write(
    frame,
    to={"config": "mm2.properties", "cluster": "backup"},
    topics=["enriched"],
    application="enriched",
    batch=17,
)
written.parts  # topic, partition, first, last, records
```

The columns of `frame` are those of the source `ferry`, and of Spark's own Kafka sink apart from the timestamp:

```
topic string            optional if `topics` has one
partition int           optional, may be null: then the key decides, as in Kafka's default partitioner
timestamp bigint        milliseconds since 1970, as in Kafka
key, value              binary or string, may be null
headers                 array<struct<key: string, value: binary>>, optional, may be null
```

Other columns are ignored. `to` has options of the source `ferry`, and `ledger.replication.factor` (3) and
`transaction.timeout.ms` (60000).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, Row
from pyspark.sql import functions as sf
from pyspark.sql.types import (
    AtomicType,
    BinaryType,
    ByteType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
)

from ferry.config.record_target import check_application, record_target
from ferry.errors import BadInput, FerryError, Refused, Retryable, Superseded, Unreachable
from ferry.features.records.spark.schema import HEADERS
from ferry.features.sink.acts.driver import Delivering, delivering
from ferry.features.sink.acts.ids import DeliverySpec, SlotSpec
from ferry.features.sink.spark.stage import ANSWER, delivered, placed
from ferry.model import TopicPartition
from ferry.model.delivery import DeliveryReceipt, Due, Written
from ferry.run.spark.session import at_once, is_remote
from ferry.run.spark.stage import parse_error

TRIES = 3
"""How many times failed slots are started within one call."""

_AGAIN = (Retryable, Unreachable)
_ORDER = "order_{}"
_LOW = (1 << 32) - 1


def write(
    frame: DataFrame,
    *,
    to: Mapping[str, str],
    topics: Sequence[str],
    application: str,
    batch: int,
    order_by: Sequence[str] = (),
    slots: int | None = None,
) -> Written:
    """Write the records of a frame once, even if processes are killed or it is called again; return their offsets.

    In a target partition, records are in the order of the columns `order_by`, then of their timestamps. `slots` is the
    most tasks, and transactions, at the same time; by default as many as Spark has cores. Records go only to `topics`,
    which must exist. If the batch was written whole already, its offsets are returned, and nothing is written.

    Raises:
        BadInput: a value, a column, or a record that cannot be written; nothing was written.
        Refused: the frame has other records than when this batch was begun, or the cluster does not take them.
        Superseded: a later call for this application has begun.
        Retryable, Unreachable: call it again; what was written is kept.
    """
    check_application(application, batch)
    target = record_target({name.lower(): value for name, value in to.items()})
    _check_frame(frame, topics, order_by, slots)
    spark = frame.sparkSession
    spec = DeliverySpec(
        alias=target.alias,
        connection=target.connection,
        compression=target.compression,
        application=application,
        batch=batch,
        ledger_replicas=target.ledger_replicas,
        transaction_timeout_ms=target.transaction_timeout_ms,
    )
    with delivering(spec, list(topics), slots or at_once(spark)) as delivery:
        ordered = _ordered(_prepared(frame, topics, delivery.counts, order_by), delivery, len(order_by))
        ordered = ordered.persist(StorageLevel.DISK_ONLY)  # what is counted is what is written
        try:
            written = delivery.settle(_due(ordered, spec))
            if written is not None:
                return written
            return delivery.close(_by_slots(ordered, delivery.slot_specs()))
        finally:
            ordered.unpersist()


def _check_frame(frame: DataFrame, topics: Sequence[str], order_by: Sequence[str], slots: int | None) -> None:
    if is_remote(frame.sparkSession):
        raise Refused("frames are not written on Spark Connect: use a Spark session without it")
    if frame.isStreaming:
        raise BadInput("the frame is a stream: call write in writeStream.foreachBatch, with the number that it passes")
    if isinstance(topics, str) or not topics or not all(topics):
        raise BadInput(f"topics is {topics!r}: write a list of the topics that records may go to")
    if isinstance(order_by, str):
        raise BadInput(f"order_by is {order_by!r}: write a list of columns")
    if slots is not None and not 1 <= slots <= 1000:
        raise BadInput(f"slots is {slots}: write a number from 1 to 1000")
    types = {field.name: field.dataType for field in frame.schema.fields}
    if "topic" not in types and len(topics) > 1:
        raise BadInput(f"the frame has no column topic, and there are {len(topics)} topics: add the column")
    _check_type(types, "topic", (StringType,), "a string", needed=False)
    _check_type(types, "timestamp", (LongType,), "milliseconds since 1970 as bigint: unix_millis(...) gives them")
    _check_type(types, "partition", (IntegerType, ShortType, ByteType), "int", needed=False)
    _check_type(types, "key", (BinaryType, StringType), "binary or string", needed=False)
    _check_type(types, "value", (BinaryType, StringType), "binary or string")
    if "headers" in types and types["headers"].simpleString() != HEADERS.simpleString():
        raise BadInput(f"column headers is {types['headers'].simpleString()}: it has to be {HEADERS.simpleString()}")
    for name in order_by:
        _check_type(types, name, (AtomicType,), "a number, a time, a string or binary")


def _check_type(
    types: Mapping[str, object], name: str, wanted: tuple[type, ...], what: str, *, needed: bool = True
) -> None:
    if name not in types:
        if needed:
            raise BadInput(f"the frame has no column {name}: add it, as {what}")
    elif not isinstance(types[name], wanted):
        raise BadInput(f"column {name} of the frame is {types[name]}: it has to be {what}")


def _prepared(frame: DataFrame, topics: Sequence[str], counts: Mapping[str, int], order_by: Sequence[str]) -> DataFrame:
    """Return the columns of a delivery, a digest of each record, and why it cannot be written, or null."""
    there = set(frame.columns)
    headers = sf.col("headers") if "headers" in there else sf.lit(None)
    columns = {
        "topic": sf.col("topic") if "topic" in there else sf.lit(topics[0]),
        "partition": sf.col("partition").cast("int") if "partition" in there else sf.lit(None).cast("int"),
        "timestamp": sf.col("timestamp"),
        "key": sf.col("key").cast("binary") if "key" in there else sf.lit(None).cast("binary"),
        "value": sf.col("value").cast("binary"),
        "headers": sf.coalesce(headers.cast(_NULLABLE), sf.array().cast(_NULLABLE)),
        **{_ORDER.format(number): sf.col(name) for number, name in enumerate(order_by)},
    }
    named = frame.select(*(column.alias(name) for name, column in columns.items()))
    hashed: list[Column] = [sf.col("timestamp")]
    for name in ("key", "value", *(_ORDER.format(number) for number in range(len(order_by)))):
        hashed += [sf.isnull(name), sf.col(name)]
    hashed += [sf.col("headers"), sf.transform("headers", lambda header: sf.isnull(header["value"]))]
    return named.withColumns({"digest": sf.xxhash64(*hashed), "trouble": _trouble(counts)})


_NULLABLE = "array<struct<key: string, value: binary>>"


def _trouble(counts: Mapping[str, int]) -> Column:
    """Return why a record cannot be written; null if it can."""
    pairs: list[Column] = [column for name, count in counts.items() for column in (sf.lit(name), sf.lit(count))]
    count = sf.try_element_at(sf.create_map(*pairs), sf.col("topic"))
    partition, timestamp = sf.col("partition"), sf.col("timestamp")
    no_name = sf.exists("headers", lambda header: sf.isnull(header) | sf.isnull(header["key"]))
    return (
        sf.when(sf.isnull("topic"), sf.lit("has no topic"))
        .when(sf.isnull(count), sf.format_string("goes to topic %s, which is not among topics", "topic"))
        .when(
            (partition < 0) | (partition >= count),
            sf.format_string("goes to partition %d of %s, which has %d", partition, sf.col("topic"), count),
        )
        .when(sf.isnull(timestamp), sf.lit("has no timestamp"))
        .when(timestamp < 0, sf.format_string("has timestamp %d, before 1970", timestamp))
        .when(no_name, sf.lit("has a header without a name"))
    )


def _ordered(prepared: DataFrame, delivery: Delivering, orders: int) -> DataFrame:
    """Return the rows by slot, in each slot in the order of writing: the same records always have the same order.

    Rows that are equal in all sort columns are equal in all that is written.
    """
    slot = StructField("slot", IntegerType(), nullable=False)
    schema = StructType([slot, *prepared.schema.fields])
    names = [_ORDER.format(number) for number in range(orders)]
    placed_rows = prepared.mapInArrow(partial(placed, dict(delivery.counts), delivery.slots), schema)
    return placed_rows.repartitionById(delivery.slots, sf.col("slot")).sortWithinPartitions(
        "topic", "partition", *names, "timestamp", "digest", "key", "value", "headers"
    )


def _due(ordered: DataFrame, spec: DeliverySpec) -> dict[TopicPartition, Due]:
    """Return the number of records and the digest of each target partition.

    Raises BadInput for an unwritable record.
    """
    digest = sf.col("digest")
    counted = ordered.groupBy("topic", "partition").agg(
        sf.count(sf.lit(1)).alias("records"),
        sf.sum(digest.bitwiseAND(sf.lit(_LOW))).alias("low"),
        sf.sum(sf.shiftrightunsigned(digest, 32)).alias("high"),
        sf.min("trouble").alias("trouble"),
    )
    found: dict[TopicPartition, Due] = {}
    for row in counted.collect():
        if row.trouble is not None:
            raise BadInput(f"a record of {spec} {row.trouble}: correct or leave out what is so; nothing was written")
        total = ((row.high << 32) + row.low) % (1 << 64)
        found[TopicPartition(row.topic, row.partition)] = Due(row.records, total)
    return found


def _by_slots(ordered: DataFrame, specs: dict[int, SlotSpec]) -> dict[TopicPartition, DeliveryReceipt]:
    """Let all slots write, and start failed ones again. Raises the error of a slot that failed for good."""
    receipts: dict[TopicPartition, DeliveryReceipt] = {}
    todo = dict(specs)
    for last in range(TRIES - 1, -1, -1):
        if not todo:
            break
        rows = ordered.where(sf.col("slot").isin(*todo)).mapInArrow(partial(delivered, dict(todo)), ANSWER).collect()
        failures: list[FerryError] = []
        for row in rows:
            if row.failure is None:
                receipts |= {one.place: one for one in _receipts(row)}
                del todo[row.slot]
            else:
                failures.append(parse_error(json.loads(row.failure)))
        final = [one for one in failures if not isinstance(one, _AGAIN)]
        if final:
            raise next((one for one in final if isinstance(one, Superseded)), final[0])
        if todo and not last:
            raise next(iter(failures), Retryable("Spark lost the answers of slots: see its log, and call it again"))
    return receipts


def _receipts(row: Row) -> list[DeliveryReceipt]:
    return [
        DeliveryReceipt(
            place=TopicPartition(topic, partition),
            done=Due(records, digest),
            first=first,
            last=last,
            slot=slot,
            generation=generation,
        )
        for topic, partition, records, digest, first, last, slot, generation in json.loads(row.receipts)
    ]
