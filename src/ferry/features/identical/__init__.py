"""Identical offsets: a record stands at the target under the offset that it has at the source."""
