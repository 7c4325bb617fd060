"""Write a ledger to a Parquet file, and read it again. Only this module uses pyarrow, which comes with Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from ferry.errors import BadInput
from ferry.features.archive.rules.export import Exported, record_line
from ferry.ledger.codec import compact, decode_key, is_unicode
from ferry.ledger.reading import is_whole_number
from ferry.model import Record

_ROWS_AT_ONCE = 50_000
_LINES = b"ferry.lines"
"""The key of the file's metadata with the first and the last line."""

_RECEIPT_TEXTS = ("lane", "run", "topic", "target_topic")
_RECEIPT_NUMBERS = ("partition", "target_partition", "start", "end", "target_next", "records", "bytes", "at_ms")
_SCHEMA = pa.schema(
    [
        ("ledger_offset", pa.int64()),
        ("kind", pa.string()),
        ("key", pa.binary()),
        ("value", pa.binary()),
        *((name, pa.string()) for name in _RECEIPT_TEXTS),
        *((name, pa.int64()) for name in _RECEIPT_NUMBERS),
    ]
)


def _receipt_row(value: bytes) -> dict[str, Any]:
    """Return the columns of a receipt; they are None if the value is not one of Ferry's."""
    try:
        body = json.loads(value)
    except (ValueError, RecursionError):
        body = None
    found = body if isinstance(body, dict) else {}
    texts = {name: one for name in _RECEIPT_TEXTS if isinstance(one := found.get(name), str) and is_unicode(one)}
    numbers = {name: one for name in _RECEIPT_NUMBERS if is_whole_number(one := found.get(name))}
    return dict.fromkeys((*_RECEIPT_TEXTS, *_RECEIPT_NUMBERS)) | texts | numbers


class ParquetLines:
    """A LinesWriter for Parquet, with the columns offset, kind, key and value.

    The most used fields of receipts are columns, too.
    """

    def __init__(self, file: IO[bytes]) -> None:
        """Write to a file that is open."""
        self._writer = pq.ParquetWriter(file, _SCHEMA, compression="zstd")
        self._rows: list[dict[str, Any]] = []
        self._lines: list[str] = []

    def line(self, line: bytes, one: Exported | None) -> None:
        """Write the next line: a record as a row, and the head and the end to the metadata."""
        if one is None:
            self._lines.append(line.decode())
            return
        kind = str((decode_key(one.record.key) or [""])[0])
        row = _receipt_row(one.record.value if kind == "receipt" and one.record.value is not None else b"")
        row |= {"ledger_offset": one.offset, "kind": kind, "key": one.record.key, "value": one.record.value}
        self._rows.append(row)
        if len(self._rows) >= _ROWS_AT_ONCE:
            self._flush()

    def _flush(self) -> None:
        self._writer.write_table(pa.Table.from_pylist(self._rows, schema=_SCHEMA))
        self._rows = []

    def close(self) -> None:
        """Write the rows that are left, and the metadata."""
        self._flush()
        self._writer.add_key_value_metadata({_LINES.decode(): compact(self._lines).decode()})
        self._writer.close()


def parquet_lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of an export in Parquet. Raises BadInput if the file cannot be read, or is not an export."""
    try:
        file = pq.ParquetFile(path)
    except (OSError, pa.ArrowInvalid) as error:
        raise BadInput(f"{path} cannot be read as a Parquet file, or is cut off: {error}") from error
    lines = json.loads((file.metadata.metadata or {}).get(_LINES, b"[]"))
    if len(lines) != 2:
        raise BadInput(f"{path} is not an export of a ledger: give a file that `ferry ledger export` has written")
    yield lines[0].encode()
    for batch in file.iter_batches(columns=["ledger_offset", "key", "value"]):
        for row in batch.to_pylist():
            yield record_line(Exported(offset=row["ledger_offset"], record=Record(key=row["key"], value=row["value"])))
    yield lines[1].encode()
