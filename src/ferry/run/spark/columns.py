"""Arrow columns made from buffers, and the type of what works on batches of them.

`pa.array` imports pandas: 0.3 CPU-seconds and 40 MB of every worker.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate

import pyarrow as pa

Stage = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]
"""What a Python worker does with batches: the function of a `mapInArrow`."""


def texts(column: pa.Array) -> list[str | None]:
    """Return the strings of a column, to compare and to print. Bytes that are not UTF-8 become U+FFFD.

    Casts of Spark leave such bytes. Spark and Arrow keep them unchanged; `to_pylist` raises.
    """
    try:
        return column.to_pylist()  # type: ignore[no-any-return]
    except UnicodeDecodeError:
        return [None if one is None else one.decode(errors="replace") for one in column.cast(pa.binary()).to_pylist()]


def ints(values: Sequence[int]) -> pa.Array:
    """Return a column of 32-bit numbers."""
    return pa.Array.from_buffers(pa.int32(), len(values), [None, pa.py_buffer(array("i", values))])


def longs(values: Sequence[int]) -> pa.Array:
    """Return a column of 64-bit numbers."""
    return pa.Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(array("q", values))])


def nullable_binaries(values: Sequence[bytes | None], kind: pa.DataType) -> pa.Array:
    """Return a column of bytes, or, if `kind` is a string type, of strings as UTF-8 bytes; None is null."""
    if None not in values:
        return _pieces(kind, values)  # type: ignore[arg-type]  # there is no None in it
    ends = array("i", accumulate((0 if value is None else len(value) for value in values), initial=0))
    valid = int("".join("0" if value is None else "1" for value in reversed(values)), 2)
    bitmap = valid.to_bytes((len(values) + 7) // 8, "little")
    data = b"".join(value for value in values if value is not None)
    return pa.Array.from_buffers(kind, len(values), [pa.py_buffer(bitmap), pa.py_buffer(ends), pa.py_buffer(data)])


def strings(values: Sequence[str]) -> pa.Array:
    """Return a column of strings."""
    if values and values.count(values[0]) == len(values):
        one = values[0].encode()
        ends = array("i", range(0, (len(values) + 1) * len(one), len(one)) if one else [0] * (len(values) + 1))
        return pa.Array.from_buffers(
            pa.string(), len(values), [None, pa.py_buffer(ends), pa.py_buffer(one * len(values))]
        )
    return _pieces(pa.string(), [value.encode() for value in values])


def binaries(values: Sequence[bytes]) -> pa.Array:
    """Return a column of bytes."""
    return _pieces(pa.binary(), values)


def _pieces(kind: pa.DataType, values: Sequence[bytes]) -> pa.Array:
    ends = array("i", accumulate(map(len, values), initial=0))
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(ends), pa.py_buffer(b"".join(values))])
