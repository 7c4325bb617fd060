"""What a selection of records leaves out; the name that applications import."""

from ferry.features.records.spark.selection import own_columns, selected, selected_by

__all__ = ["own_columns", "selected", "selected_by"]
