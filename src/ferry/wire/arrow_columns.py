"""What lies in Arrow's columns, as numpy sees it where it lies: pyarrow's own way there imports pandas."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Flags = npt.NDArray[np.bool_]
Longs = npt.NDArray[np.int64]


def numbers_of(column: pa.Array) -> npt.NDArray[Any]:
    """The values of a column of whole numbers without nulls."""
    kind = np.dtype(f"i{column.type.bit_width // 8}")
    if not len(column):
        return np.zeros(0, kind)
    return np.frombuffer(column.buffers()[1], kind)[column.offset : column.offset + len(column)]


def edges_of(column: pa.Array) -> Longs:
    """Where each row of a list, string or binary column begins in what is behind it, and where the last one ends."""
    if not len(column):
        return np.zeros(1, np.int64)
    found = np.frombuffer(column.buffers()[1], np.int32)[column.offset : column.offset + len(column) + 1]
    return found.astype(np.int64)


def valid_of(column: pa.Array) -> Flags:
    """Which rows are not null."""
    if not column.null_count:
        return np.ones(len(column), np.bool_)
    bits = np.unpackbits(np.frombuffer(column.buffers()[0], np.uint8), bitorder="little")
    return bits[column.offset : column.offset + len(column)].astype(np.bool_)


def name_bytes(column: pa.Array) -> list[bytes]:
    """A column of strings without nulls as bytes: names of headers, which some producers do not write in UTF-8.

    Arrow and Spark carry these as they are; only what makes strings of Python of them fails.
    """
    return column.cast(pa.binary()).to_pylist()  # type: ignore[no-any-return]


def bytes_behind(column: pa.Array) -> npt.NDArray[np.uint8]:
    """What the edges of a binary column count in."""
    data = column.buffers()[2]
    return np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
