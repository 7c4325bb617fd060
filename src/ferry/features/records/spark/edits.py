"""What steps do to the bytes of keys and values. Runs in Spark's Python workers, without Spark's API."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa

from ferry.config.flow.steps import Cast, Change, Json, OnlyFields
from ferry.config.text.json_path import parse_path
from ferry.features.records.rules.json_cast import cast
from ferry.features.records.rules.json_column import Column, ColumnChange, Flags, column_editor, one_by_one
from ferry.features.records.rules.json_edit import (
    hash_of,
    hashed,
    only_fields,
    redacted,
    redacted_string,
    removed,
)
from ferry.features.records.rules.json_quick import editor
from ferry.run.spark.columns import nullable_binaries
from ferry.wire.arrow_columns import edges_of, valid_of

JSON_STEPS = Json | OnlyFields | Cast
"""Steps that change JSON: that of the value, except for a Cast of the key."""


def column_of(step: Json | OnlyFields | Cast) -> str:
    """Return the column that a step changes."""
    return "key" if isinstance(step, Cast) and step.of_key else "value"


def change_of(step: Json | OnlyFields | Cast, salt: bytes) -> ColumnChange:
    """Make the change of a column of values."""
    if isinstance(step, Cast):
        # One by one, because a cast may refuse a value.
        places = [parse_path(path) for path in step.paths] or [()]
        return one_by_one(editor(places, cast(step.to), is_object_wanted=step.is_object))
    if isinstance(step, OnlyFields):
        include, renames = frozenset(step.include), dict(step.renames)
        return one_by_one(lambda value: only_fields(value, include, renames))
    paths = [parse_path(path) for path in step.paths]
    if step.change is Change.REMOVE:
        return one_by_one(editor(paths, removed, is_object_wanted=step.is_object))
    if step.change is Change.HASH:
        return column_editor(paths, hashed(salt), is_object_wanted=step.is_object)
    of_string = redacted_string(step.replacement)
    return column_editor(paths, redacted(step.replacement), is_object_wanted=step.is_object, of_string=of_string)


def changed_values(
    changes: Sequence[ColumnChange], values: pa.Array, wanted: Flags | None, name: str = "value"
) -> tuple[pa.Array, dict[int, bytes]]:
    """Return the values after all changes, and, by row, why one could not be changed.

    `wanted` are the rows to change (None: all), `name` is the column's. Null stays null. A value that could not be
    changed is as the changes before left it: the caller restores its whole record.
    """
    valid = valid_of(values)
    column, left = _column_of(values), valid if wanted is None else valid & wanted
    poison: dict[int, bytes] = {}
    for change in changes:
        column, reasons = change(column, left)
        for row, reason in reasons.items():
            poison[row] = f"its {name} cannot be changed: {reason}".encode()
        if reasons:
            left = left.copy()
            left[list(reasons)] = False
    bitmap = pa.py_buffer(np.packbits(valid, bitorder="little")) if values.null_count else None
    ends = pa.py_buffer(column.edges.astype(np.int32))
    buffers = [bitmap, ends, pa.py_buffer(column.data)]
    return pa.Array.from_buffers(pa.binary(), len(values), buffers), poison


def _column_of(values: pa.Array) -> Column:
    edges = edges_of(values)
    first, last = int(edges[0]), int(edges[-1])
    data = values.buffers()[2] if len(values) else None
    return Column(b"" if data is None else data.slice(first, last - first).to_pybytes(), edges - first)


def hashed_keys(keys: pa.Array, salt: bytes) -> pa.Array:
    """Return the HMAC-SHA-256 of each key; null stays null."""
    found = [None if key is None else hash_of(key, salt).encode() for key in pieces(keys)]
    return nullable_binaries(found, pa.binary())


def pieces(column: pa.Array) -> Iterator[bytes | None]:
    """Iterate over the values of a binary column, in half the time of `to_pylist`."""
    if not len(column):
        return
    if column.null_count:
        yield from column.to_pylist()
        return
    edges = edges_of(column).tolist()
    data = column.buffers()[2]
    whole = data.to_pybytes() if data is not None else b""
    for start, end in pairwise(edges):
        yield whole[start:end]
