"""Settings of a Spark session that decide what an expression means: transforms use Spark's own defaults for them.

The digest of a transform has the version of PySpark, and so its defaults. With a cluster's own settings
(`spark-defaults.conf`) the same SQL would make something else of a record, and nothing would report it.
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import SparkSession

from ferry.config.flow.transforms import ANSI, TIME_ZONE

SETTINGS: Mapping[str, str] = {"spark.sql.session.timeZone": TIME_ZONE, "spark.sql.ansi.enabled": str(ANSI).lower()}
"""What transforms set themselves: part of the digest."""

_FAMILIES = (
    "spark.sql.ansi.",
    "spark.sql.avro.",
    "spark.sql.collation.",
    "spark.sql.csv.",
    "spark.sql.decimalOperations.",
    "spark.sql.execution.pandas.",
    "spark.sql.execution.pythonUDF.",
    "spark.sql.function.",
    "spark.sql.icu.",
    "spark.sql.json.",
    "spark.sql.jsonGenerator.",
    "spark.sql.legacy.",
    "spark.sql.parser.",
    "spark.sql.variable.",
    "spark.sql.variant.",
    "spark.sql.xml.",
)
_SINGLE = frozenset(
    {
        "spark.sql.caseSensitive",
        "spark.sql.charAsVarchar",
        "spark.sql.chunkBase64String.enabled",
        "spark.sql.columnNameOfCorruptRecord",
        "spark.sql.execution.arrow.useLargeVarTypes",
        "spark.sql.execution.pyspark.binaryAsBytes",
        "spark.sql.mapKeyDedupPolicy",
        "spark.sql.preserveCharVarcharTypeInfo",
        "spark.sql.readSideCharPadding",
        "spark.sql.timestampType",
    }
)
"""Settings of SQLConf. The others decide how fast something is done, or how files and catalogues are read."""


def other_meanings(spark: SparkSession) -> list[str]:
    """Return the settings of a session that may give SQL another meaning than Spark's defaults do.

    When they are unset, they are the defaults. Settings that a session cannot change are not among them.
    """
    return [
        name
        for name in sorted(spark.conf.getAll)
        if (name.startswith(_FAMILIES) or name in _SINGLE) and name not in SETTINGS and spark.conf.isModifiable(name)
    ]
