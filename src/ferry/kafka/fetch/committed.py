"""Read a range of one partition as a read_committed consumer does, record by record, with all fields of a record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ferry.errors import Corrupt
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.fetch.one_partition import read_batches
from ferry.kafka.fetch.requests import READ_COMMITTED
from ferry.model import TopicPartition
from ferry.wire.aborted import AbortedTransactions
from ferry.wire.batch import Batch, check
from ferry.wire.codecs import Malformed, TooLong
from ferry.wire.content import MOST_DECOMPRESSED, contents
from ferry.wire.headers import Header, parse_headers
from ferry.wire.order import disorder


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRecord:
    """One record. The timestamp is in ms, -1 where it has none. Header names are bytes, because not all are UTF-8."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnopenedBatch:
    """A batch that cannot be read to its end: its bytes as in the log, and the reason as a sentence.

    It covers the offsets `[offset, end)`, as far as its header and the next batch's show.
    """

    offset: int
    end: int
    data: bytes
    why: str


async def read_committed(
    cluster: Cluster,
    place: TopicPartition,
    start: int,
    end: int,
    take: Callable[[ReadRecord], None],
    unopened: Callable[[UnopenedBatch], None],
) -> None:
    """Pass the committed records of `[start, end)` to `take`, in order; `end` is at most the last stable offset.

    `unopened` receives the batches that are damaged, or larger when decompressed than the memory allows. No record of
    theirs goes to `take`. Raises Refused when the topic may not be read, Retryable when it stays unreadable, and
    Unreachable when its leader does not answer.
    """
    reading = _Reading(place=place, start=start, end=end, take=take, unopened=unopened)
    await read_batches(cluster, place, start, end, reading.judge, isolation=READ_COMMITTED)


class _Reading:
    """The reading of one range."""

    def __init__(
        self,
        *,
        place: TopicPartition,
        start: int,
        end: int,
        take: Callable[[ReadRecord], None],
        unopened: Callable[[UnopenedBatch], None],
    ) -> None:
        self._place, self._start, self._end = place, start, end
        self._take, self._unopened = take, unopened
        self._aborted = AbortedTransactions()
        self._due = start
        self._begun = False
        self._damaged: set[int] = set()
        """Base offsets of batches that were passed to `unopened`, and may come again."""

    def judge(self, found: Sequence[Batch], part: Any) -> int | None:
        """Take in the batches of an answer; return the offset to fetch next."""
        self._aborted.learn(part.aborted)
        for index, batch in enumerate(found):
            if batch.base_offset in self._damaged:
                continue
            try:
                self._check(found, index)
                left_out = self._aborted.leaves_out(batch)
            except Corrupt as error:
                return self._pass(found, index, error)
            self._begun, self._due = True, batch.next_offset
            if not left_out:
                self._open(batch)
        last = found[-1]
        if last.base_offset not in self._damaged:
            return None
        # It came again, and nothing after it: its header alone shows where it ends.
        return last.next_offset if self._due < last.next_offset <= self._end else self._end

    def _check(self, found: Sequence[Batch], index: int) -> None:
        """Raise Corrupt if not all of a batch's header can be believed."""
        check(found[index], self._place.topic, self._place.partition)
        wrong = disorder(found, index, self._due, self._place, begun=self._begun)
        if wrong is not None:
            raise Corrupt(wrong)

    def _pass(self, found: Sequence[Batch], index: int, error: Corrupt) -> int:
        """Report a damaged batch; return the offset to fetch next.

        It may have been an abort marker, without which all that its producer wrote later would count as aborted. So
        what is known of aborted transactions is dropped. The broker lists those that touch the next fetch by its own
        index (Kafka's `TransactionIndex`), which has the offset of the marker that ended each.
        """
        batch, is_last = found[index], index + 1 == len(found)
        offset = batch.base_offset if self._due <= batch.base_offset < self._end or not self._begun else self._due
        end = batch.next_offset if is_last else found[index + 1].base_offset
        if not offset < end <= self._end:
            end = offset + 1
        why = f"{error}; it is not known whether it is a marker, or holds records that were committed"
        self._report(batch, offset, end, why)
        self._damaged.add(batch.base_offset)
        self._aborted = AbortedTransactions()
        self._begun, self._due = True, offset + 1 if is_last else end
        return self._due

    def _open(self, batch: Batch) -> None:
        """Pass the records of a batch to `take`, once it is known that all can be read."""
        try:
            for one in contents(batch, MOST_DECOMPRESSED):
                parse_headers(one.headers)
        except (Malformed, TooLong) as error:
            self._report(batch, batch.base_offset, batch.next_offset, str(error))
            return
        for one in contents(batch, MOST_DECOMPRESSED):
            if self._start <= one.offset < self._end:
                self._take(
                    ReadRecord(
                        offset=one.offset,
                        timestamp_ms=one.timestamp,
                        key=one.key,
                        value=one.value,
                        headers=tuple(parse_headers(one.headers)),
                    )
                )

    def _report(self, batch: Batch, offset: int, end: int, error: str) -> None:
        why = f"the batch at offset {offset} of {self._place} cannot be read: {error}"
        self._unopened(UnopenedBatch(offset=offset, end=end, data=bytes(batch.data), why=why))
