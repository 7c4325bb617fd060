"""The data source `ferry`; the name that applications import."""

from ferry.features.records.spark.source import FerrySource, register

__all__ = ["FerrySource", "register"]
