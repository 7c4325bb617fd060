"""The Spark data source `ferry`: bounded ranges of a cluster's records as a DataFrame, without any jar.

```python
from ferry.features.records.spark.source import register

register(spark)
frame = spark.read.format("ferry").option("config", "mm2.properties").option("cluster", "primary").load("orders")
```
Spark asks the class for a reader on the driver's machine, in a Python process of its own, and runs `read` in tasks.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    IsNotNull,
    LessThan,
    LessThanOrEqual,
    StringStartsWith,
)
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructType

from ferry.config.record_source import record_source
from ferry.errors import BadInput
from ferry.features.records.acts.reading import ReadSpec
from ferry.features.records.acts.survey import Surveyed, narrowed_ranges, survey
from ferry.features.records.rules.filters import Condition, Narrowing, Operator, narrowed
from ferry.features.records.rules.ranges import distributed
from ferry.features.records.spark.rows import record_rows
from ferry.features.records.spark.schema import SCHEMA
from ferry.run.spark.package import zip_package
from ferry.run.spark.session import is_remote

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
"""Spark passes filters to Python data sources only with this setting, and refuses a source that takes filters without
it."""

_OPERATORS: Mapping[type[Filter], Operator] = {
    EqualTo: Operator.EQUAL,
    EqualNullSafe: Operator.EQUAL,
    LessThan: Operator.LESS,
    LessThanOrEqual: Operator.AT_MOST,
    GreaterThan: Operator.MORE,
    GreaterThanOrEqual: Operator.AT_LEAST,
    In: Operator.ONE_OF,
    StringStartsWith: Operator.BEGINS_WITH,
    IsNotNull: Operator.IS_THERE,
}


def register(spark: SparkSession) -> None:
    """Register the format `ferry` in a session, and let Spark pass filters to it.

    On Spark Connect the server's workers get this version of Ferry; the packages that Ferry imports have to be there.
    """
    if is_remote(spark):
        with tempfile.TemporaryDirectory(prefix="ferry-") as folder:
            spark.addArtifacts(str(zip_package(Path(folder) / "ferry.zip")), pyfile=True)
    spark.conf.set(PUSHDOWN, "true")
    spark.dataSource.register(FerrySource)


class FerrySource(DataSource):
    """A bounded source: what there is to read is determined when a frame is loaded."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        """Read what the cluster has.

        Raises BadInput for options, topics or offsets that are wrong, Refused for what may not or cannot be read,
        Unreachable.
        """
        super().__init__({})  # references are resolved now; none has to travel as text
        self._found = survey(record_source({name.lower(): value for name, value in options.items()}))

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return "ferry"

    def schema(self) -> StructType:
        """Return the columns, which are always the same."""
        return SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader; BadInput for a schema given by the user."""
        if schema != SCHEMA:
            raise BadInput("the columns of format ferry are fixed: leave .schema(...) out, and select what is wanted")
        return FerryReader(self._found)


class FerryReader(DataSourceReader):
    """Narrows what was found by the query's filters, and assigns it to tasks."""

    def __init__(self, found: Surveyed) -> None:
        self._found = found
        self._where = Narrowing()

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        """Take the filters that narrow what is read, and return the others: Spark checks those for each record."""
        left = []
        for one in filters:
            condition = _condition(one)
            where, rest = narrowed([condition], self._where) if condition is not None else (self._where, [one])
            self._where = where
            if rest:
                left.append(one)
        return left

    def partitions(self) -> list[InputPartition]:
        """Return what each task reads. Raises BadInput, Refused and Unreachable as `survey` does."""
        ranges = narrowed_ranges(self._found, self._where)
        return [
            RecordsPartition(
                ReadSpec(
                    alias=self._found.alias,
                    connection=self._found.connection,
                    fetch=self._found.fetch,
                    pieces=pieces,
                    topic_ids={piece.place.topic: self._found.topic_ids[piece.place.topic] for piece in pieces},
                )
            )
            for pieces in distributed(ranges, self._found.task_records)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Return the records of one task's pieces. Raises Corrupt, Refused, Unreachable."""
        if not isinstance(partition, RecordsPartition):  # Spark makes one of its own if there is nothing to read
            return iter(())
        return record_rows(partition.spec, self._where, to_arrow_schema(SCHEMA, timezone="UTC"))


class RecordsPartition(InputPartition):
    """What one task reads."""

    def __init__(self, spec: ReadSpec) -> None:
        self.spec = spec


def _condition(one: Filter) -> Condition | None:
    operator = _OPERATORS.get(type(one))
    path: tuple[str, ...] = getattr(one, "attribute", ())
    if operator is None or len(path) != 1:
        return None
    value = getattr(one, "value", None)
    return Condition(path[0], operator, tuple(value) if isinstance(value, list) else value)
