"""Every reader of records is bounded, knows all codecs without the tests' libraries, and names what it cannot read."""

from __future__ import annotations

import pytest

from ferry.errors import BadInput
from ferry.model import Codec, Record
from ferry.wire import records as own
from ferry.wire.batch import Batch, batches
from ferry.wire.codecs import Malformed, TooLong
from ferry.wire.records import ProducerIdentity, build_batch, open_batch, record_digests
from tests.pure.wire.hostile import packed, raw_batch, record


@pytest.mark.slow
def test_many_small_records_are_bounded_in_a_topic_of_ours() -> None:
    count = own.MOST_RECORDS + 1
    batch = packed(Codec.ZSTD, b"".join(record(index, None, None) for index in range(count)), count=count)
    with pytest.raises(TooLong):
        open_batch(batch)


@pytest.mark.parametrize(
    "found",
    [[Record(key=b"k", value=bytes(own.MOST_BYTES))], [Record(key=b"k", value=None)] * (own.MOST_RECORDS + 1)],
    ids=["bytes", "records"],
)
def test_what_could_not_be_read_again_is_not_written(found: list[Record]) -> None:
    with pytest.raises(BadInput):
        build_batch(found, 0, ProducerIdentity())


def test_what_is_just_small_enough_is_written_and_read() -> None:
    (batch,) = batches(build_batch([Record(key=b"k", value=bytes(own.MOST_BYTES - 100))], 0, ProducerIdentity()))
    assert [len(value or b"") for _, _, value in open_batch(batch)] == [own.MOST_BYTES - 100]


def test_names_of_headers_may_be_any_bytes() -> None:
    one = packed(Codec.GZIP, record(0, b"k", b"v", [(b"\xff\xfe", b"1")]))
    other = packed(Codec.GZIP, record(0, b"k", b"v", [(b"\xff\xfd", b"1")]))
    digests = [digest for batch in (one, other) for _, _, digest in record_digests(batch, 1 << 20)]
    assert len(set(digests)) == 2


def damaged(codec: Codec) -> Batch:
    """Its checksum is right, its records are cut off."""
    (batch,) = batches(raw_batch(b"\x28\xb5\x2f\xfd\x1f\x8b\x08", codec=codec))
    return batch


@pytest.mark.parametrize("codec", list(Codec))
def test_a_damaged_payload_is_malformed_in_every_codec(codec: Codec) -> None:
    with pytest.raises(Malformed):
        list(open_batch(damaged(codec)))
    with pytest.raises(Malformed):
        list(record_digests(damaged(codec), 1 << 20))
