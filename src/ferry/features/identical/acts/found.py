"""Records at the target that no receipt covers: a run wrote them and died. They are compared with the source's.

Both sides are read a fetch at a time, and compared batch by batch. So memory holds one answer of each side, and one
batch of each side that must be opened.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from ferry.copy.chunk import PartProgress
from ferry.copy.prepared_batch import PreparedBatch
from ferry.features.identical.rules.marked import is_seen
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.fetch.one_partition import read_batches
from ferry.kafka.fetch.requests import READ_COMMITTED, READ_UNCOMMITTED
from ferry.model import RecordContent, Slice, TopicPartition
from ferry.protocol.drops import Drop, Dropped, drop
from ferry.wire.aborted import AbortedTransactions
from ferry.wire.batch import Batch, producer_of
from ferry.wire.codecs import Malformed, TooLong
from ferry.wire.content import contents, same_bytes

_MOST_HIDDEN = 64
"""Offsets without a record for readers that are passed in the search for the last record."""

COMPARED_AT_ONCE = 50
"""Partitions whose last records are read at a time: a batch of each side is in memory for each."""


class _Side:
    """The batches of one side that hold offsets of `[start, end)`, in order.

    Readers get no record of those that are hidden: markers, and batches of aborted transactions.
    """

    def __init__(
        self,
        cluster: Cluster,
        place: TopicPartition,
        start: int,
        end: int,
        most: int,
        *,
        aborts: bool = False,
        fetch_bytes: int | None = None,
    ) -> None:
        """`most`: bytes of one batch that are kept decompressed. `aborts`: transactions may have been aborted there."""
        self._fetch_bytes = fetch_bytes
        self._cluster, self._place, self._most = cluster, place, most
        self._at, self._end = start, end
        self._isolation = READ_COMMITTED if aborts else READ_UNCOMMITTED
        self._aborted = AbortedTransactions()
        self._waiting: deque[tuple[Batch, bool]] = deque()
        self._opened: Iterator[RecordContent] = iter(())
        self._record: RecordContent | None = None
        self.epoch = -1
        """The leader epoch of the batch that was taken last."""

    async def _first(self) -> tuple[Batch, bool] | None:
        while not self._waiting and self._at < self._end:
            start, self._at = self._at, self._end
            await read_batches(
                self._cluster,
                self._place,
                start,
                self._end,
                self._take_in,
                isolation=self._isolation,
                fetch_bytes=self._fetch_bytes,
            )
        return self._waiting[0] if self._waiting else None

    async def _first_from(self, offset: int) -> tuple[Batch, bool] | None:
        """Return the next batch, without the hidden ones that end at an offset or before it; None: there is none.

        Later ones stay: they may show the next hole.
        """
        while (first := await self._first()) is not None and first[1] and first[0].next_offset <= offset:
            self._waiting.popleft()
        return first

    def _take_in(self, found: Sequence[Batch], part: Any) -> int:
        self._at = found[-1].next_offset
        self._aborted.learn(part.aborted)
        self._waiting += [
            (one._replace(data=memoryview(bytes(one.data))), self._aborted.leaves_out(one)) for one in found
        ]
        return self._end  # one answer at a time

    async def _take(self) -> Batch | None:
        """Return the next batch that is not hidden; None: there is none."""
        while await self._first() is not None:
            batch, hidden = self._waiting.popleft()
            if not hidden:
                self.epoch = batch.leader_epoch
                return batch
        return None

    async def takes_same(self, wanted: Batch) -> bool:
        """Take the batch that has the same bytes at the same offset, if it is the next one; return whether it is."""
        first = await self._first_from(wanted.base_offset)
        if first is None or first[1] or first[0].base_offset != wanted.base_offset or not same_bytes(first[0], wanted):
            return False
        await self._take()
        return True

    async def take_any(self) -> Batch | None:
        """Return the next batch, a marker too; None: there is none."""
        if await self._first() is None:
            return None
        return self._waiting.popleft()[0]

    async def hole_at(self, offset: int) -> Batch | None:
        """Return the hidden batch that shows that there is no record at an offset, and never will be; None: none does.

        Hidden batches before it are passed.
        """
        first = await self._first_from(offset)
        return first[0] if first is not None and first[1] and is_seen(first[0], offset) else None

    async def record_at(self, offset: int) -> RecordContent | None:
        """Return the record at an offset, those before it are passed; None: there is none.

        Raises _Unopened when its batch cannot be read.
        """
        while self._record is None or self._record.offset < offset:
            self._record = next(self._opened, None)
            if self._record is None:
                batch = await self._take()
                if batch is None:
                    return None
                self._opened = opened(batch, self._place, self._most)
        return self._record if self._record.offset == offset else None


class _Unopened(Exception):
    """A batch cannot be read: its place, its offset, why, and the code of the refusal."""

    def __init__(self, place: TopicPartition, at: int, error: Malformed | TooLong) -> None:
        super().__init__(f"{place} at offset {at}: {error}")
        self.place, self.at, self.why = place, at, str(error)
        self.code = "identical.too-large" if isinstance(error, TooLong) else "identical.malformed"


def opened(batch: Batch, place: TopicPartition, most: int) -> Iterator[RecordContent]:
    """Yield the records of a batch. Raises _Unopened."""
    try:
        yield from contents(batch, most)
    except (Malformed, TooLong) as error:
        raise _Unopened(place, batch.base_offset, error) from error


_Refusing = Callable[..., Dropped]
"""Makes what is raised from the code of a refusal and its facts."""


async def rebuilt(source: Cluster, target: Cluster, part: PartProgress, begin: int, end: int, most: int) -> None:
    """Fill a part of a chunk with what is at the target from `part.start` up to `end`, and no receipt covers yet.

    It counts only if each record is the source's at the same offset, and each batch is of the lane's producer. A marker
    counts where the source shows that it has no record. `begin`: where the target's log begins. `most`: bytes of one
    batch that are kept decompressed. Raises Dropped otherwise.
    """
    piece = part.piece
    counted = piece.marked_ms is not None
    ours = _Side(target, piece.target, part.start, end, most)
    theirs = _Side(source, piece.source, part.start, end, most, aborts=counted)
    place, at = str(piece.target), part.start

    def dropped(code: str, **facts: Any) -> Dropped:
        return Dropped([drop(code, piece, part.start, **{"place": place, **facts})])

    if begin > at:
        raise dropped("identical.unread", at=at, begin=begin, end=end)
    while at < end:
        batch = await ours.take_any()
        if batch is None or batch.base_offset > at:  # retention is faster than this
            raise dropped("identical.unread", at=at, begin=end if batch is None else batch.base_offset, end=end)
        if not _is_own(batch, piece) or batch.base_offset != at:
            raise dropped("identical.foreign", end=end)
        if batch.is_control:
            hole = await theirs.hole_at(at)
            if hole is None:
                raise dropped("identical.differs", at=at)
            at = batch.next_offset
            part.mark(hole, at)
            continue
        verbatim = await theirs.takes_same(batch)
        if not verbatim:
            try:
                await _compare(batch, theirs, piece.target, most, dropped)
            except _Unopened as error:
                raise dropped(error.code, where=str(error.place), at=error.at, why=error.why) from error
        runs = ((at, batch.record_count),)
        part.sent(PreparedBatch(batch, runs, batch.next_offset, theirs.epoch, not verbatim, ()))
        part.written(runs, at)
        at = batch.next_offset


async def differing_before(
    source: Cluster, target: Cluster, pieces: Sequence[Slice], begins: Mapping[TopicPartition, int], most: int
) -> list[Drop]:
    """Compare the last record before the lane's first one, which clients wrote: both sides are to have the same.

    Returns the partitions that differ, or that cannot be compared. `pieces` have partitions that end there: the first
    batch follows. `begins` is where the target's logs begin. `most`: bytes of one batch that are kept decompressed.
    COMPARED_AT_ONCE partitions are read at a time.
    """
    found: list[Drop] = []
    for first in range(0, len(pieces), COMPARED_AT_ONCE):
        answers = [
            target.loop.call_soon_with_future(
                partial(_differing_before, source, target, piece, begins[piece.target], most)
            )
            for piece in pieces[first : first + COMPARED_AT_ONCE]
        ]
        found += [one for answer in answers if (one := await answer) is not None]
    return found


async def _differing_before(source: Cluster, target: Cluster, piece: Slice, begin: int, most: int) -> Drop | None:
    place, end = str(piece.target), piece.continued_at or 0
    for at in range(end - 1, max(begin, piece.log_start, end - _MOST_HIDDEN) - 1, -1):
        sides = [
            _Side(cluster, of, at, at + 1, most, aborts=True, fetch_bytes=1)  # one batch
            for cluster, of in ((target, piece.target), (source, piece.source))
        ]
        try:
            ours, theirs = [await side.record_at(at) for side in sides]
        except _Unopened as error:
            return drop(error.code, piece, end, place=place, where=str(error.place), at=error.at, why=error.why)
        if ours != theirs:
            return drop("identical.differs", piece, end, place=place, at=at)
        if ours is not None:
            return None
    return None  # retention took them, or both sides have markers and aborted records alone


def _is_own(batch: Batch, piece: Slice) -> bool:
    """Return whether a batch of the target, or a marker, is of the lane's producer."""
    producer, epoch, sequence = producer_of(batch)
    counted = piece.marked_ms is not None
    if (producer, epoch) != (piece.producer, 0) or (batch.is_control and not counted):
        return False
    return batch.is_control or (not batch.is_transactional and (counted or sequence == batch.base_offset))


async def _compare(batch: Batch, theirs: _Side, place: TopicPartition, most: int, dropped: _Refusing) -> None:
    """Raise what `dropped` makes unless the source has each record of a batch of the target."""
    records = opened(batch, place, most)
    for offset in range(batch.base_offset, batch.next_offset):
        ours = next(records, None)
        if ours is None or ours.offset != offset:
            raise dropped("identical.differs", at=offset)
        record = await theirs.record_at(offset)
        if record is None:
            raise dropped("identical.uncompared", at=offset)
        if ours != record:
            raise dropped("identical.differs", at=offset)
