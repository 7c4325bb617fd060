"""Headers of records, against those that kafka-python writes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatchBuilder

from ferry.wire.batch import batches
from ferry.wire.codecs import Malformed
from ferry.wire.content import contents
from ferry.wire.headers import NO_HEADERS, parse_headers

HEADERS = st.lists(
    st.tuples(st.text(st.characters(exclude_categories=["Cs"]), max_size=80), st.none() | st.binary(max_size=300)),
    max_size=5,
)


def written(headers: list[tuple[str, bytes | None]]) -> bytes:
    builder = DefaultRecordBatchBuilder(
        magic=2, compression_type=0, is_transactional=False, producer_id=-1, producer_epoch=-1, base_sequence=-1,
        batch_size=1 << 30,
    )  # fmt: skip
    builder.append(0, 1, b"k", b"v", headers)
    (batch,) = batches(bytes(builder.build()))
    (content,) = contents(batch, 1 << 20)
    return content.headers


@given(headers=HEADERS)
def test_headers_come_in_order_with_duplicates_and_nulls(headers: list[tuple[str, bytes | None]]) -> None:
    assert parse_headers(written(headers)) == [(name.encode(), value) for name, value in headers]


@given(headers=HEADERS, cut=st.integers(1, 100))
def test_headers_that_end_early_are_malformed(headers: list[tuple[str, bytes | None]], cut: int) -> None:
    data = written(headers)
    with pytest.raises(Malformed):
        parse_headers(data[:-cut] if cut < len(data) else b"")


@pytest.mark.parametrize("data", [b"", b"\x01", b"\x02\x01\x00", b"\x00\x00", b"\x02\x08a\x00"])
def test_what_is_no_headers(data: bytes) -> None:
    with pytest.raises(Malformed):
        parse_headers(data)


def test_a_record_without_headers() -> None:
    assert (written([]), parse_headers(NO_HEADERS)) == (NO_HEADERS, [])
