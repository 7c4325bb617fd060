"""The data of Arrow's columns as numpy arrays, in place: pyarrow's own conversion imports pandas."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Flags = npt.NDArray[np.bool_]
Longs = npt.NDArray[np.int64]


def numbers_of(column: pa.Array) -> npt.NDArray[Any]:
    """Return the values of a column of whole numbers without nulls."""
    kind = np.dtype(f"i{column.type.bit_width // 8}")
    if not len(column):
        return np.zeros(0, kind)
    return np.frombuffer(column.buffers()[1], kind)[column.offset : column.offset + len(column)]


def edges_of(column: pa.Array) -> Longs:
    """Return where each row of a list, string or binary column begins in its data, and where the last one ends.

    The large types work, too; Spark passes them with `spark.sql.execution.arrow.useLargeVarTypes`. Raises TypeError for
    columns without such edges, such as views.
    """
    kind = column.type
    if pa.types.is_large_binary(kind) or pa.types.is_large_string(kind) or pa.types.is_large_list(kind):
        width: type[np.int32 | np.int64] = np.int64
    elif pa.types.is_binary(kind) or pa.types.is_string(kind) or pa.types.is_list(kind) or pa.types.is_map(kind):
        width = np.int32
    else:
        raise TypeError(f"a column of {kind} has no edges")
    if not len(column):
        return np.zeros(1, np.int64)
    found = np.frombuffer(column.buffers()[1], width)[column.offset : column.offset + len(column) + 1]
    return found.astype(np.int64)


def with_narrow_edges(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the same rows without large types. Raises ArrowInvalid for a column of more than 2 GiB."""
    columns = [column.cast(_narrow(column.type)) for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _narrow(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_large_binary(kind):
        return pa.binary()
    if pa.types.is_large_string(kind):
        return pa.string()
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_narrow(field.type)) for field in kind])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(kind.value_field.with_type(_narrow(kind.value_type)))
    return kind


def valid_of(column: pa.Array) -> Flags:
    """Return which rows are not null."""
    if not column.null_count:
        return np.ones(len(column), np.bool_)
    bits = np.unpackbits(np.frombuffer(column.buffers()[0], np.uint8), bitorder="little")
    return bits[column.offset : column.offset + len(column)].astype(np.bool_)


def name_bytes(column: pa.Array) -> list[bytes]:
    """Return a column of strings without nulls as bytes: names of headers, which not all producers write in UTF-8.

    Arrow and Spark carry these unchanged; only their conversion to strings of Python fails.
    """
    return column.cast(pa.binary()).to_pylist()  # type: ignore[no-any-return]


def bytes_behind(column: pa.Array) -> npt.NDArray[np.uint8]:
    """Return the bytes that the edges of a binary column refer to."""
    data = column.buffers()[2]
    return np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
