"""Identical offsets: a record has the same offset at the target as at the source."""
