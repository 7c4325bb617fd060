"""What is sent next on a partition: a batch as it is in the source, or one that was transcoded."""

from __future__ import annotations

from typing import NamedTuple

from ferry.kafka.fetch.fetch_buffer import Answer
from ferry.wire.batch import Batch
from ferry.wire.renumber import OffsetSpan


class PreparedBatch(NamedTuple):
    """One batch to send.

    - `runs`: the source offsets of its records, as first offset and number; it covers those before `end`.
    - `source_epoch`: the leader epoch of the batch that they come from.
    - `answers`: when it is acknowledged, one batch of each of these answers is no longer needed.
    - `first_timestamp`: of its first record; None where the header has it.
    """

    batch: Batch
    runs: tuple[OffsetSpan, ...]
    end: int
    source_epoch: int
    transcoded: bool
    answers: tuple[Answer, ...]
    first_timestamp: int | None = None

    @property
    def start(self) -> int:
        """Source offset of its first record."""
        return self.runs[0][0]


def as_it_is(batch: Batch, *answers: Answer) -> PreparedBatch:
    """Return a batch that can be copied as bytes."""
    runs = ((batch.base_offset, batch.record_count),)
    return PreparedBatch(batch, runs, batch.next_offset, batch.leader_epoch, False, answers)
