from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

COUNTRIES = {"49": "DE", "33": "FR"}


def enriched(records: DataFrame) -> DataFrame:
    table = sf.create_map(*(sf.lit(word) for pair in COUNTRIES.items() for word in pair))
    prefix = sf.get_json_object(sf.col("value").cast("string"), "$.prefix")
    header = sf.struct(sf.lit("country").alias("key"), sf.try_element_at(table, prefix).cast("binary").alias("value"))
    return records.withColumn("headers", sf.array_append("headers", header))
