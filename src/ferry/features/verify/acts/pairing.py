"""Compares one range of a partition while both sides of it are read: batches that are the same are not opened.

Two batches hold equal records if they are where the map says, and their bytes are equal, except for the header fields
that Ferry rewrites. All others are decompressed, and compared record by record. The source is read unchecked: bytes
that equal the target's are as sound as those, whose checksum is right. All others are checked here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from ferry.errors import Corrupt
from ferry.features.verify.rules.by_records import (
    FAILURES,
    comparison_of,
    given_up,
    is_compared,
    left_of,
    loss_of,
    places_of,
)
from ferry.features.verify.rules.compare_ranges import CompareRange
from ferry.features.verify.rules.differences import SOURCE, TARGET, OneSided, See
from ferry.kafka.fetch.fetch_buffer import FetchBuffer, ReadFailure
from ferry.model import NotCompared, Range, RecordContent, RefusalKind, TopicPartition
from ferry.wire.batch import MAGIC, Batch, check
from ferry.wire.codecs import Malformed, TooLong
from ferry.wire.content import MOST_DECOMPRESSED, contents, same_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One side of a range, and what is read of it. `buffer` None: there is nothing to read.

    Not `checked`: its batches' checksums were not checked before. Hidden batches that were `copied` count, too: the
    flow read uncommitted records then, and reads committed ones now. Identical offsets never permitted that.
    """

    alias: str
    place: TopicPartition
    range: Range
    buffer: FetchBuffer | None
    checked: bool = True
    copied: Callable[[Batch], bool] = lambda _: False

    @property
    def head(self) -> Batch | None:
        """Return the next batch of which something counts; those before it are released. Raises Corrupt."""
        if self.buffer is None:
            return None
        queue = self.buffer.queues[self.place]
        while queue:
            found = queue[0]
            if not found.hidden or self.copied(found.batch):
                return found.batch
            self.check(found.batch)
            self.take()
        return None

    def check(self, batch: Batch) -> None:
        """Raise Corrupt for a batch whose checksum is wrong, if it was not checked yet."""
        if not self.checked:
            check(batch, self.place.topic, self.place.partition)

    def take(self) -> None:
        """Release the next batch."""
        if self.buffer is not None:
            self.buffer.release([self.buffer.take(self.place).answer])

    @property
    def failure(self) -> ReadFailure | None:
        """Return why no more comes; None as long as there is no failure, or batches are left."""
        if self.buffer is None or self.buffer.queues[self.place]:
            return None
        return self.buffer.failures.get(self.place)

    @property
    def is_over(self) -> bool:
        """Report whether all of it was taken."""
        return self.buffer is None or (self.place in self.buffer.finished and not self.buffer.queues[self.place])

    def stop(self) -> None:
        """Stop reading it."""
        if self.buffer is not None:
            why = ReadFailure(kind=RefusalKind.NO_LEADER, message="", offset=self.range[1])
            self.buffer.give_up(self.place, why)


class Pair:
    """Both sides of a range, and what was found so far. `bytes` counts both sides, as stored."""

    def __init__(
        self,
        span: CompareRange,
        source: Side,
        target: Side,
        see: See,
        one_sided: OneSided | None = None,
    ) -> None:
        """Take both sides; `one_sided` is called for records that only one side has, in place of a difference."""
        self.span = span
        self.bytes = 0
        self.is_done = False
        self.not_compared: NotCompared | None = None
        """Why not all of it was compared, and from where on."""
        self._places = places = places_of(span)
        if not span.identical:  # otherwise the map has markers and aborted records, too
            source = replace(source, copied=lambda batch: places.names(batch.base_offset, batch.next_offset))
        self._sides = (source, target)
        self.comparison = comparison_of(span, places, see, one_sided)

    @property
    def left(self) -> list[NotCompared]:
        """Return what was not compared, and why: without a map also what is before and after what both have."""
        return left_of(self.span, self.comparison, self.not_compared)

    def lacks(self, side: int) -> bool:
        """Report whether the comparison needs more of a side to continue."""
        one = self._sides[side]
        return not self.is_done and one.head is None and not one.is_over and one.failure is None

    def advance(self) -> None:
        """Compare what has come."""
        try:
            while not self.is_done and self._step():
                pass
        except (Malformed, TooLong) as error:
            self._give_up(f"a batch cannot be opened: {error}")
        except Corrupt as error:
            self._give_up(str(error), RefusalKind.CORRUPT)
        if not self.is_done:
            for one in self._sides:
                failure = one.failure
                if failure is not None:
                    where = f"{one.place} of cluster {one.alias} at offset {failure.offset}"
                    self._give_up(f"{where}: {FAILURES.get(failure.kind, failure.message)}", failure.kind)
                    return

    def _step(self) -> bool:
        """Settle the next batch or two; False when something must come first."""
        if self.comparison.is_complete:
            self.is_done = True
            for one in self._sides:
                if not one.is_over:
                    one.stop()
            return False
        source, target = self._sides[SOURCE].head, self._sides[TARGET].head
        if self.comparison.is_idle and source is not None and target is not None:
            if self._are_same(source, target):
                self._count(SOURCE, source)
                self._count(TARGET, target)
                self.comparison.agreed(source.record_count, source.next_offset, target.next_offset)
            else:
                self._open(SOURCE, source)
                self._open(TARGET, target)
            return True
        moved = False
        for side, head in ((SOURCE, source), (TARGET, target)):
            if not self.comparison.wants(side):
                continue
            if head is not None and not (self.comparison.is_idle and self.lacks(1 - side)):
                self._open(side, head)
                moved = True
            elif self._sides[side].is_over:
                self.comparison.feed(side, (), done=True)
                moved = True
        return moved or self.comparison.is_complete

    def _are_same(self, source: Batch, target: Batch) -> bool:
        place = self._places.of(source.base_offset)
        last = self._places.of(source.next_offset - 1)
        begin, end = self.span.source_range
        return (
            source.magic == MAGIC
            and place == target.base_offset
            and last == target.next_offset - 1
            and begin <= source.base_offset
            and source.next_offset <= end
            and same_bytes(source, target)
        )

    def _open(self, side: int, batch: Batch) -> None:
        self._sides[side].check(batch)
        found: Iterable[RecordContent] = opened(batch, self._sides[side].range)
        if side == TARGET:
            found = (content for content in found if is_compared(self.span, self._places, content.offset))
        held = list(found)
        self._count(side, batch)
        self.comparison.feed(side, held)

    def _count(self, side: int, batch: Batch) -> None:
        self.bytes += len(batch.data)
        self._sides[side].take()

    def _give_up(self, message: str, kind: RefusalKind | None = None) -> None:
        why = loss_of(kind, SOURCE if self._sides[SOURCE].failure else TARGET)
        self.is_done = True
        for one in self._sides:
            one.stop()
        self.not_compared = given_up(self.span, self.comparison, message, why)


def opened(batch: Batch, part: Range) -> Iterator[RecordContent]:
    """Return the records of a batch that are in a range; raises Malformed or TooLong."""
    start, end = part
    return (content for content in contents(batch, MOST_DECOMPRESSED) if start <= content.offset < end)
