"""Records of Ferry's own topics: what is built can be opened again, by Ferry and by others."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch

from ferry.model import Record
from ferry.wire.batch import HEADER, batches, check, obstacle
from ferry.wire.records import ProducerIdentity, build_batch, open_batch
from tests.pure.wire.captured import captured

records = st.builds(Record, key=st.binary(max_size=40), value=st.none() | st.binary(max_size=2000))
identities = st.builds(
    ProducerIdentity,
    producer_id=st.integers(0, 2**63 - 1),
    producer_epoch=st.integers(0, 2**15 - 1),
    sequence=st.integers(0, 2**31 - 1),
    transactional=st.booleans(),
) | st.just(ProducerIdentity())


@given(st.lists(records, min_size=1, max_size=20), st.integers(0, 2**42), identities)
def test_what_was_built_is_one_sound_batch_with_the_same_records(
    written: list[Record], now_ms: int, identity: ProducerIdentity
) -> None:
    raw = build_batch(written, now_ms, identity)
    (batch,) = batches(raw)
    check(batch, "ledger", 0)
    assert obstacle(batch) is None
    assert list(open_batch(batch)) == [(index, record.key, record.value) for index, record in enumerate(written)]
    assert (batch.producer_id, batch.is_transactional) == (identity.producer_id, identity.transactional)
    assert HEADER.unpack(raw[:61])[10:12] == (identity.producer_epoch, identity.sequence)
    assert {record.timestamp for record in DefaultRecordBatch(raw)} == {now_ms}


@pytest.mark.parametrize(("size", "codec"), [(10, 0), (5000, 1)])
def test_long_records_are_compressed_with_what_every_consumer_has(size: int, codec: int) -> None:
    raw = build_batch([Record(key=b"k", value=b"v" * size)], 0, ProducerIdentity())
    (batch,) = batches(raw)
    assert batch.attributes & 0x07 == codec


def test_a_golden_batch_opens_to_what_librdkafka_reads() -> None:
    golden = captured("codec-gzip")
    assert list(open_batch(golden.batches[0])) == [
        (offset, key or b"", value) for offset, _, key, value, _ in golden.uncommitted
    ]
