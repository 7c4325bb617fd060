"""`write`: any DataFrame, exactly once; the name that applications import."""

from ferry.features.sink.spark.sink import write

__all__ = ["write"]
