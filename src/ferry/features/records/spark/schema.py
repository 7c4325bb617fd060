"""The columns of records in Spark: those of Spark's own Kafka source, except for the timestamp.

```
topic string | partition int | offset bigint | timestamp bigint | timestampType int | key binary | value binary
headers array<struct<key: string, value: binary>>
```
`timestamp` is Kafka's own number, milliseconds since 1970: Spark's type counts microseconds and cannot hold all.
`timestampType` is -1 (none), 0 (CreateTime) or 1 (LogAppendTime), as in Kafka's `TimestampType`. Key and value may be
null, and so may a header's value. Headers keep their order and may repeat. A record without headers has an empty list.
"""

from __future__ import annotations

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
)

HEADERS = ArrayType(
    StructType([StructField("key", StringType(), nullable=False), StructField("value", BinaryType(), nullable=True)]),
    containsNull=False,
)

SCHEMA = StructType(
    [
        StructField("topic", StringType(), nullable=False),
        StructField("partition", IntegerType(), nullable=False),
        StructField("offset", LongType(), nullable=False),
        StructField("timestamp", LongType(), nullable=False),
        StructField("timestampType", IntegerType(), nullable=False),
        StructField("key", BinaryType(), nullable=True),
        StructField("value", BinaryType(), nullable=True),
        StructField("headers", HEADERS, nullable=False),
    ]
)

WRITTEN = tuple(SCHEMA[name] for name in ("partition", "offset", "timestamp", "key", "value", "headers"))
"""The columns of a record that is written, or compared with what was: where it came from, and what goes into the
batch."""

CHANGED = StructType(
    [
        SCHEMA["topic"],
        StructField("target", StringType(), nullable=True),
        *WRITTEN,
        StructField("poison", StringType(), nullable=True),
    ]
)
"""What a transform returns: COLUMNS of `ferry.features.records.spark.steps`."""

COUNT = StructType([StructField("records", LongType(), nullable=False)])
"""The number of rows."""
