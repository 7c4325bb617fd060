"""What steps do to the bytes of keys and values. Runs in Spark's Python workers; knows no Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

import pyarrow as pa

from ferry.config.flow.steps import Change, Json, OnlyFields
from ferry.config.text.json_path import parse_path
from ferry.decide.records.json_edit import (
    Edit,
    NotJson,
    hash_of,
    hashed,
    only_fields,
    redacted,
    redacted_string,
    removed,
)
from ferry.decide.records.json_quick import editor
from ferry.spark.columns import nullable_binaries
from ferry.wire.arrow_columns import edges_of


def change_of(step: Json | OnlyFields, salt: bytes) -> Callable[[bytes], bytes]:
    """What changes one value. It raises NotJson."""
    if isinstance(step, OnlyFields):
        include, renames = frozenset(step.include), dict(step.renames)
        return lambda value: only_fields(value, include, renames)
    edit: Edit = {
        Change.REDACT: redacted(step.replacement),
        Change.HASH: hashed(salt),
        Change.REMOVE: removed,
    }[step.change]
    of_string = redacted_string(step.replacement) if step.change is Change.REDACT else None
    return editor(map(parse_path, step.paths), edit, is_object_wanted=step.is_object, of_string=of_string)


def changed_values(
    changes: Sequence[Callable[[bytes], bytes]], values: pa.Array, wanted: Sequence[bool] | None
) -> tuple[pa.Array, dict[int, bytes]]:
    """The values after all changes, of those that are wanted (None: all); and by row, why one could not be changed.

    Null stays null, and so does a value that could not be changed.
    """
    found: list[bytes | None] = []
    poison: dict[int, bytes] = {}
    change = changes[0] if len(changes) == 1 else _one_after_the_other(changes)
    keep = found.append
    for at, value in enumerate(pieces(values)):
        if value is None or (wanted is not None and not wanted[at]):
            keep(value)
            continue
        try:
            keep(change(value))
        except NotJson as error:
            poison[at] = f"its value cannot be changed: {error}".encode()
            keep(value)
    return nullable_binaries(found, pa.binary()), poison


def _one_after_the_other(changes: Sequence[Callable[[bytes], bytes]]) -> Callable[[bytes], bytes]:
    def change(value: bytes) -> bytes:
        for one in changes:
            value = one(value)
        return value

    return change


def hashed_keys(keys: pa.Array, salt: bytes) -> pa.Array:
    """The HMAC-SHA-256 of each; null stays null."""
    found = [None if key is None else hash_of(key, salt).encode() for key in pieces(keys)]
    return nullable_binaries(found, pa.binary())


def pieces(column: pa.Array) -> Iterator[bytes | None]:
    """The values of a binary column, in half the time of `to_pylist`."""
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
