"""Logs made up for tests: batches built by kafka-python, histories of producers, and what they mean."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

from crc32c import crc32c
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatchBuilder

from ferry.wire.batch import BEFORE_LENGTH, HEADER_BYTES, Batch, batches

TIME_MS = 1_700_000_000_000
PLAIN = -1
"""A producer without id: its batches belong to no transaction."""

CONTROL_AND_TRANSACTIONAL = 0x30


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What a producer appends: `records` of its transaction, or (0) a marker; `commits` says which."""

    producer: int
    records: int
    commits: bool = True

    @property
    def is_marker(self) -> bool:
        """Whether the step ends a transaction."""
        return self.records == 0


steps = st.one_of(
    st.builds(Step, producer=st.sampled_from([PLAIN, 1, 2, 3]), records=st.integers(1, 3)),
    st.builds(Step, producer=st.sampled_from([1, 2, 3]), records=st.just(0), commits=st.booleans()),
)
histories = st.lists(steps, max_size=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """A history as a log: its batches, and the steps that they came from."""

    batches: tuple[Batch, ...]
    steps: tuple[Step, ...]

    @property
    def next_offset(self) -> int:
        """The first offset behind the log."""
        return self.batches[-1].next_offset if self.batches else 0

    def ending(self, index: int) -> Batch | None:
        """The marker that decides a batch: its producer's next one (KIP-98)."""
        producer = self.steps[index].producer
        for batch, step in list(zip(self.batches, self.steps, strict=True))[index + 1 :]:
            if step.is_marker and step.producer == producer:
                return batch
        return None

    def is_committed(self, index: int) -> bool | None:
        """What became of a data batch; None while its transaction is open."""
        if self.steps[index].producer == PLAIN:
            return True
        marker = self.ending(index)
        return None if marker is None else self.steps[self.batches.index(marker)].commits

    @property
    def aborted(self) -> list[tuple[int, int, int]]:
        """The broker's index of aborted transactions: producer id, first offset, offset of the marker."""
        first: dict[int, int] = {}
        found = []
        for batch, step in zip(self.batches, self.steps, strict=True):
            if step.is_marker:
                begun = first.pop(step.producer, None)
                if begun is not None and not step.commits:
                    found.append((step.producer, begun, batch.base_offset))
            elif step.producer != PLAIN:
                first.setdefault(step.producer, batch.base_offset)
        return found

    @property
    def last_stable(self) -> int:
        """Index of the first batch of a transaction that is still open: read_committed fetches end before it."""
        return next(
            (
                index
                for index, step in enumerate(self.steps)
                if not step.is_marker and step.producer != PLAIN and self.ending(index) is None
            ),
            len(self.steps),
        )


def log_of(history: Sequence[Step]) -> Log:
    """The log that a broker would hold after these appends."""
    made: list[Batch] = []
    offset = 0
    for step in history:
        if step.is_marker:
            made.append(marker(offset, step.producer, commits=step.commits))
        else:
            rows = [(b"%d" % (offset + index), b"of %d" % step.producer) for index in range(step.records)]
            made.append(data(rows, offset=offset, producer=step.producer, transactional=step.producer != PLAIN))
        offset = made[-1].next_offset
    return Log(batches=tuple(made), steps=tuple(history))


def data(
    rows: Sequence[tuple[bytes | None, bytes | None]],
    *,
    offset: int = 0,
    producer: int = PLAIN,
    transactional: bool = False,
    codec: int = 0,
    leader_epoch: int = 0,
) -> Batch:
    """A data batch at `offset`; its timestamps are a millisecond apart."""
    builder = DefaultRecordBatchBuilder(
        magic=2,
        compression_type=codec,
        is_transactional=transactional,
        producer_id=producer,
        producer_epoch=0 if producer >= 0 else -1,
        base_sequence=0 if producer >= 0 else -1,
        batch_size=1 << 30,
    )
    for index, (key, value) in enumerate(rows):
        builder.append(index, TIME_MS + index, key, value, [])
    return _placed(bytearray(builder.build()), offset, leader_epoch)


def marker(offset: int, producer: int, *, commits: bool) -> Batch:
    """A commit or abort marker as the transaction coordinator writes it (`EndTransactionMarker`)."""
    key = struct.pack(">hh", 0, int(commits))
    body = bytearray(data([(key, struct.pack(">hi", 0, 0))], producer=producer).data)
    struct.pack_into(">h", body, 21, CONTROL_AND_TRANSACTIONAL)
    struct.pack_into(">i", body, 53, -1)  # markers have no sequence
    struct.pack_into(">I", body, 17, crc32c(memoryview(body)[21:]))
    return _placed(body, offset, 0)


def cleaned_marker(offset: int, producer: int) -> Batch:
    """What the log cleaner leaves of a marker that is a producer's last batch: a header without a record."""
    body = bytearray(marker(offset, producer, commits=True).data[:HEADER_BYTES])
    struct.pack_into(">i", body, 8, HEADER_BYTES - BEFORE_LENGTH)
    struct.pack_into(">i", body, 57, 0)
    return _placed(body, offset, 0)


def _placed(body: bytearray, offset: int, leader_epoch: int) -> Batch:
    struct.pack_into(">q", body, 0, offset)
    struct.pack_into(">i", body, 12, leader_epoch)
    return next(batches(bytes(body)))
