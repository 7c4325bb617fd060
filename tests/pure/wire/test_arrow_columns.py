"""What numpy sees of Arrow's columns is what Arrow says itself, in whichever width its offsets are."""

from __future__ import annotations

from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferry.wire.arrow_columns import bytes_behind, edges_of, valid_of, with_narrow_edges
from tests.golden import Golden


@given(st.lists(st.none() | st.binary(max_size=5), max_size=20), st.integers(0, 5), st.integers(0, 20))
def test_values_lie_between_their_edges(values: list[bytes | None], start: int, length: int) -> None:
    for kind in (pa.binary(), pa.large_binary()):
        column = pa.array(values, kind).slice(start, length)
        edges, data, valid = edges_of(column), bytes_behind(column).tobytes(), valid_of(column)
        found = [data[low:high] if there else None for low, high, there in zip(edges, edges[1:], valid, strict=False)]
        assert found == column.to_pylist()
        assert len(edges) == len(column) + 1


@given(st.lists(st.lists(st.integers(0, 9), max_size=4), max_size=9), st.integers(0, 4))
def test_so_do_those_of_lists(values: list[list[int]], start: int) -> None:
    for kind in (pa.list_(pa.int64()), pa.large_list(pa.int64())):
        column = pa.array(values, kind).slice(start)
        edges = edges_of(column)
        behind = column.values.to_pylist()
        assert [behind[low:high] for low, high in pairwise(edges)] == column.to_pylist()


def test_rows_of_large_types_are_the_same_without_them() -> None:
    headers = [{"key": "x", "value": b"y"}, {"key": "z", "value": None}]
    rows = [{"n": 1, "k": b"a", "s": None, "h": headers}, {"n": 2, "k": None, "s": "u", "h": []}]
    for text, data, listed in (
        (pa.string(), pa.binary(), pa.list_),
        (pa.large_string(), pa.large_binary(), pa.large_list),
    ):
        header = pa.struct([pa.field("key", text, nullable=False), pa.field("value", data)])
        schema = pa.schema([("n", pa.int32()), ("k", data), ("s", text), ("h", listed(header))])
        batch = with_narrow_edges(pa.RecordBatch.from_pylist(rows, schema))
        assert batch.to_pylist() == rows
        assert "large" not in str(batch.schema)


@pytest.mark.parametrize(
    "column", [pa.array([1, 2]), pa.array([b"a"], pa.binary_view()), pa.array([], pa.null())], ids=lambda one: one.type
)
def test_a_column_without_edges_is_told(column: pa.Array, golden: Golden) -> None:
    with pytest.raises(TypeError) as caught:
        edges_of(column)
    golden(caught.value)
