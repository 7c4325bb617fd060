"""Prepares the batches to send: nearly all are copied as bytes, and only those that need it are transcoded."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial

from ferry.copy.chunk import PartProgress
from ferry.copy.prepared_batch import PreparedBatch, as_it_is
from ferry.copy.transcode_pool import TranscodePool, at_once
from ferry.errors import Corrupt
from ferry.kafka.fetch.fetch_buffer import FetchBuffer, ReadFailure
from ferry.model import Compression, RefusalKind, Slice, TopicPartition
from ferry.wire.batch import MAGIC, Batch, obstacle
from ferry.wire.codecs import Room, TooLong
from ferry.wire.transcode import NewBatch, Unsplittable, transcoded

log = logging.getLogger(__name__)

GROUP_BYTES = 256 << 10
"""Messages of the old formats are written together up to this size: each alone would take a request of its own."""

HANDED_OVER_BYTES = 16 << 10
"""From this size on the TranscodePool's thread transcodes a batch; a smaller one takes less time than the transfer."""

_LEAST_MEMORY = 64 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchingRules:
    """How batches are written: in which compression (None: unchanged), and how large a batch each target topic takes.

    A topic that is missing in `batch_bytes` does not show its limit to this login. `memory_bytes` bounds one batch that
    is decompressed.
    """

    compression: Compression | None = None
    batch_bytes: Mapping[str, int] = field(default_factory=dict)
    memory_bytes: int = _LEAST_MEMORY


class Batching:
    """The next batch of each partition, from one fetch buffer.

    `next` shows the batch to send, and `take` removes it. `next` returns None in three cases. Nothing of the partition
    waits: `holds` is False. The TranscodePool's thread still transcodes the batch: `is_making` is True, and the fetch
    buffer lists the partition among the arrived ones when it is done. The batch cannot be written: the fetch buffer has
    the failure, and reads the partition no further.
    """

    def __init__(self, buffer: FetchBuffer, rules: BatchingRules, pool: TranscodePool | None = None) -> None:
        """Without a `pool` everything is made in the calling thread."""
        self._buffer = buffer
        self._rules = rules
        self._pool = pool
        self._making: dict[TopicPartition, Future[_Made]] = {}  # for the first waiting batches
        self._ready: dict[TopicPartition, deque[PreparedBatch]] = {}
        most = max(rules.memory_bytes, _LEAST_MEMORY)
        self._room, self._room_there = Room(most), Room(most)  # the second belongs to the TranscodePool's thread
        self._said: set[TopicPartition] = set()
        self._begun: set[TopicPartition] = set()  # a batch was taken: no later batch begins before its end

    def holds(self, place: TopicPartition) -> bool:
        """Return whether anything of the partition waits, as it was fetched or made ready."""
        return bool(self._ready.get(place) or self._buffer.queues[place])

    def is_making(self, place: TopicPartition) -> bool:
        """Return whether the TranscodePool's thread is making the next batch; the fetch buffer signals its end."""
        making = self._making.get(place)
        return making is not None and not making.done()

    def next(self, place: TopicPartition, part: PartProgress) -> PreparedBatch | None:
        """Return the batch to send next.

        None when nothing waits, when the TranscodePool's thread has it, or when it cannot be written: the fetch buffer
        then stops reading the partition. Batches whose records are not copied are skipped.
        """
        queue = self._buffer.queues[place]
        while not (ready := self._ready.get(place)) and queue:
            if queue[0].hidden:
                passed = self._buffer.take(place)
                part.pass_over(passed.batch)
                self._begun.add(place)
                self._buffer.release([passed.answer])
                continue
            if not self._begin_transcoding(place, part):
                taken = self._buffer.take(place)
                self._ready[place] = deque([as_it_is(taken.batch, taken.answer)])
                self._begun.add(place)
                continue
            if self.is_making(place):
                return None
            try:
                self._put_ready(place, part, self._making.pop(place).result())
            except _Unfit as unfit:
                kind, why = unfit.args
                self._buffer.give_up(place, ReadFailure(kind=kind, message=why, offset=part.end))
                return None
        return ready[0] if ready else None

    def take(self, place: TopicPartition) -> PreparedBatch:
        """Remove and return the batch that `next` has returned; the caller sends it."""
        return self._ready[place].popleft()

    def dropped(self, place: TopicPartition) -> list[PreparedBatch]:
        """Remove and return the batches of a partition that were made ready and not taken: they are not sent."""
        return list(self._ready.pop(place, ()))

    def look_ahead(self, place: TopicPartition, part: PartProgress) -> None:
        """Start to transcode what comes after all that `part` has sent, if it is there and needs it."""
        queue = self._buffer.queues[place]
        if place in self._said and queue and not queue[0].hidden and not self._ready.get(place):
            self._begin_transcoding(place, part)

    def _begin_transcoding(self, place: TopicPartition, part: PartProgress) -> bool:
        """Start to transcode the first waiting batch if it needs it; return whether it does."""
        if place in self._making:
            return True
        batch = self._buffer.queues[place][0].batch
        limit = self._rules.batch_bytes.get(part.piece.target.topic)
        why = self._why_transcode(batch, part, limit)
        if why is None:
            return False
        if place not in self._said:
            self._said.add(place)
            log.info(
                "batches of %s are rewritten record by record from offset %d on: %s", place, batch.base_offset, why
            )
        sources = self._sources(place)
        pool = self._pool if sum(len(source.data) for source in sources) >= HANDED_OVER_BYTES else None
        work = partial(
            _made,
            sources,
            part.piece,
            first=part.end,
            place=place,
            rules=self._rules,
            limit=limit,
            room=self._room if pool is None else self._room_there,
            begun=place in self._begun,
        )
        if pool is None:
            self._making[place] = at_once(work)
        else:
            self._making[place] = pool.begin(work, partial(self._came_back, place))
        return True

    def _came_back(self, place: TopicPartition) -> None:
        self._buffer.arrived.append(place)
        self._buffer.wake()

    def _put_ready(self, place: TopicPartition, part: PartProgress, made: _Made) -> None:
        """Replace the first waiting batch, or several of the old formats, by what was made of it."""
        epoch = self._buffer.queues[place][0].batch.leader_epoch
        answers = tuple(self._buffer.take(place).answer for _ in range(made.sources))
        if not made.batches:  # no record of it is left
            part.end = max(part.end, made.end)
            self._buffer.release(answers)
        self._begun.add(place)
        last = len(made.batches) - 1
        self._ready[place] = deque(
            PreparedBatch(
                new.batch, new.runs, new.end, epoch, True, answers if index == last else (), new.first_timestamp
            )
            for index, new in enumerate(made.batches)
        )

    def _why_transcode(self, batch: Batch, part: PartProgress, limit: int | None) -> str | None:
        found = obstacle(batch)
        if found is None and batch.base_offset < part.end:
            found = f"its records before offset {part.end} are not to be copied"
        if found is None and batch.next_offset > part.piece.end:
            found = f"its records from offset {part.piece.end} on are not to be copied"
        if found is None and limit is not None and len(batch.data) > limit:
            found = f"it has {len(batch.data)} bytes where {part.piece.target.topic} takes {limit}"
        wish = self._rules.compression
        if found is None and wish is not None and wish.codec != batch.codec:
            found = f"producer.compression.type asks for {wish.codec.name.lower()}"
        return found

    def _sources(self, place: TopicPartition) -> list[Batch]:
        """Return the batches that are transcoded together: one, or old-format messages in the same compression."""
        found: list[Batch] = []
        size = 0
        for fetched in self._buffer.queues[place]:
            batch = fetched.batch
            if found and (
                batch.magic == MAGIC or found[0].magic == MAGIC or batch.codec != found[0].codec or size > GROUP_BYTES
            ):
                break
            found.append(batch)
            size += len(batch.data)
        return found


@dataclass(frozen=True, slots=True)
class _Made:
    """New batches made of the first `sources` waiting ones; their records end before source offset `end`."""

    sources: int
    end: int
    batches: list[NewBatch]


def _made(
    sources: list[Batch],
    piece: Slice,
    *,
    first: int,
    place: TopicPartition,
    rules: BatchingRules,
    limit: int | None,
    room: Room,
    begun: bool,
) -> _Made:
    """Return what is written of the sources' records from offset `first` on. Raises _Unfit.

    No other thread may use `room` at the same time.
    """
    offset = sources[0].base_offset
    try:
        new = transcoded(
            sources,
            first,
            piece.end,
            place=str(place),
            compression=rules.compression,
            limit=limit,
            room=room,
            begun=begun,
        )
    except Corrupt as error:
        raise _Unfit(RefusalKind.CORRUPT, str(error)) from error
    except TooLong as error:
        why = f"batch at offset {offset} of {place} is too large: {error}; raise ferry.task.memory.bytes"
        raise _Unfit(RefusalKind.TOO_LARGE, why) from error
    except Unsplittable as error:
        why = f"{place}: {error}, where {piece.target} takes {limit}: raise max.message.bytes there"
        raise _Unfit(RefusalKind.TOO_LARGE, why) from error
    return _Made(len(sources), min(sources[-1].next_offset, piece.end), new)


class _Unfit(Exception):
    """Kind and sentence of why the next batch of a partition cannot be written."""
