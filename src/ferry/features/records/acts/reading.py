"""Reads pieces of partitions batch by batch, for a caller that takes them at its own pace.

The event loop runs in a thread: a slow caller lets no request time out. What is fetched and not taken stays within a
fixed amount of memory.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue

from ferry.config.client_options import ConnectionOptions, FetchOptions
from ferry.errors import Corrupt, FerryError, Refused, Unreachable
from ferry.features.records.acts.cluster import connected
from ferry.features.records.acts.cutoffs import OnFailure
from ferry.features.records.rules.ranges import ReadRange
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.fetch.epoch_check import Mark
from ferry.kafka.fetch.fetch_buffer import Answer, FetchBuffer, Fetched, ReadFailure
from ferry.kafka.fetch.requests import READ_COMMITTED
from ferry.kafka.fetch.source import SourceReader
from ferry.kafka.fetch.throttle import Throttle
from ferry.messages.catalogue import sentence
from ferry.model import RefusalKind, Slice, TopicPartition, code_of
from ferry.wire.batch import Batch

MEMORY_BYTES = 64 << 20

IN_ORDER_BYTES = 32 << 20
"""The memory if one piece is read after the other: that process changes and writes its records, too."""

_LOOK_SECONDS = 0.02
"""Seconds after which the reading thread checks for what was taken meanwhile."""

_WHY: Mapping[RefusalKind, str] = {
    RefusalKind.RETENTION_PASSED: "its records were deleted meanwhile; load the frame again, or raise retention",
    RefusalKind.SOURCE_TRUNCATED: "its log was cut meanwhile (unclean leader election?); load the frame again",
    RefusalKind.TOPIC_GONE: "the topic was deleted meanwhile",
    RefusalKind.TOPIC_RECREATED: "the topic was created again meanwhile; load the frame again",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadSpec:
    """All that a process needs to read some pieces; travels pickled, its secrets never in text."""

    alias: str
    connection: ConnectionOptions = field(repr=False)
    fetch: FetchOptions
    pieces: tuple[ReadRange, ...]
    topic_ids: Mapping[str, str]
    patience_s: float = 60.0
    isolation: int = READ_COMMITTED
    marks: Mapping[TopicPartition, Mark] = field(default_factory=dict)
    """What was read of these logs before; a log that has lost some of it is not read."""
    bytes_per_second: int | None = None
    """Most bytes that are fetched in a second; None: no limit."""
    in_order: bool = False
    """Whether one piece is read after the other, in their order; else all at once."""


@dataclass(slots=True)
class ReadWaits:
    """For how many seconds reading was held back so far; the reading thread writes, others may read."""

    throttle_s: float = 0.0
    """Fetches waited for Ferry's own throttle."""
    quota_s: float = 0.0
    """Brokers asked for a pause."""


Noted = Callable[[TopicPartition, Mark], None]
"""Is called with how far a log was read, and its leader epoch there."""


def read_batches(
    spec: ReadSpec,
    on_failure: OnFailure | None = None,
    noted: Noted | None = None,
    waits: ReadWaits | None = None,
) -> Iterator[tuple[ReadRange, Batch]]:
    """Return the data batches of committed records that are in the pieces, in offset order within each.

    Their checksums are right. The first and last batch of a piece may hold records outside of it. A batch is a view of
    memory that is used again once the next one is asked for. Raises Corrupt, Refused for what is gone or may not be
    read, Unreachable. With `on_failure`, that is called for a piece that cannot be read on, after its last batch, and
    the others are read. `waits` are kept up to date.
    """
    reading = _Reading(spec, waits or ReadWaits())
    try:
        for piece, found in reading.found():
            if isinstance(found, Batch):
                if noted is not None:
                    noted(piece.place, Mark(found.leader_epoch, found.next_offset))
                yield piece, found
            elif isinstance(found, Mark):
                if noted is not None:
                    noted(piece.place, found)
            elif on_failure is None:
                raise _error(spec.alias, piece.place, found)
            else:
                on_failure(piece.place, found)
    finally:
        reading.stop()


def marks_of(written: Iterable[Slice], pieces: Iterable[ReadRange]) -> dict[TopicPartition, Mark]:
    """Return what was read of the logs of some pieces before, by the slices that are written of them.

    If many slices read a log, it is what one of them has read furthest.
    """
    known: dict[TopicPartition, Mark] = {}
    for one in written:
        for place, epoch, end in one.marks:
            mark = Mark.of(epoch, end)
            if not one.dealt or (epoch is not None and (place not in known or known[place].end < mark.end)):
                known[place] = mark
    return {piece.place: known[piece.place] for piece in pieces if piece.place in known}


class _Reading:
    """The thread that reads, and what it passes on."""

    def __init__(self, spec: ReadSpec, waits: ReadWaits) -> None:
        self._spec = spec
        self._waits = waits
        self._pieces = {piece.place: piece for piece in spec.pieces}
        self._found: SimpleQueue[tuple[ReadRange, Fetched | ReadFailure | Mark] | Exception | None] = SimpleQueue()
        """None ends it."""
        self._taken: SimpleQueue[Answer] = SimpleQueue()
        self._held = 0
        """Batches that were passed on and are not back yet."""
        self._settled: set[TopicPartition] = set()
        """Partitions that have failed, or ended, and were reported."""
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ferry-records", daemon=True)
        self._thread.start()

    def found(self) -> Iterator[tuple[ReadRange, Batch | ReadFailure | Mark]]:
        """Return what the thread has read, until the end; raises what ended it.

        After the batches of a piece comes its failure, or how far its log was read.
        """
        while (found := self._found.get()) is not None:
            if isinstance(found, Exception):
                raise found
            piece, fetched = found
            if isinstance(fetched, ReadFailure | Mark):
                yield piece, fetched
                continue
            if not fetched.hidden:
                yield piece, fetched.batch
            self._taken.put(fetched.answer)

    def stop(self) -> None:
        """Stop reading from the cluster."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            with connected(self._spec.alias, self._spec.connection, patience_s=self._spec.patience_s) as cluster:
                cluster.loop.run(self._read, cluster)
            self._found.put(None)
        except Exception as error:  # the caller raises it
            self._found.put(error)

    async def _read(self, cluster: Cluster) -> None:
        rate, pieces = self._spec.bytes_per_second, self._spec.pieces
        throttle = None if rate is None else Throttle(cluster.loop, rate)
        for group in [(piece,) for piece in pieces] if self._spec.in_order else [pieces]:
            if not self._stopped.is_set():
                await self._read_pieces(cluster, group, throttle)

    async def _read_pieces(self, cluster: Cluster, pieces: tuple[ReadRange, ...], throttle: Throttle | None) -> None:
        rate = self._spec.bytes_per_second
        memory = IN_ORDER_BYTES if self._spec.in_order else MEMORY_BYTES
        reader = SourceReader(
            cluster,
            {piece.place: (piece.start, piece.end) for piece in pieces},
            self._spec.topic_ids,
            isolation=self._spec.isolation,
            memory_bytes=memory if rate is None else min(memory, max(1 << 20, 2 * rate)),
            marks=self._spec.marks,
            options=self._spec.fetch,
            throttle=throttle,
        )
        buffer = reader.buffer
        try:
            await reader.start()
            while not self._stopped.is_set():
                arrived, buffer.arrived = buffer.arrived, []
                for place in dict.fromkeys(arrived):
                    self._hand_over(buffer, place)
                self._release(buffer)
                self._waits.throttle_s = throttle.waited_s if throttle is not None else 0.0
                self._waits.quota_s = cluster.throttled_s
                if not buffer.exhausted():
                    await buffer.news(_LOOK_SECONDS)
                elif self._spec.in_order and self._held:
                    await cluster.loop.sleep(_LOOK_SECONDS / 10)  # the next reader has all of the memory again
                else:
                    return
        finally:
            reader.close()

    def _hand_over(self, buffer: FetchBuffer, place: TopicPartition) -> None:
        while buffer.queues[place]:
            self._held += 1
            self._found.put((self._pieces[place], buffer.take(place)))
        end = buffer.failures.get(place) or (buffer.marks[place] if place in buffer.finished else None)
        if end is not None and place not in self._settled:
            self._settled.add(place)
            self._found.put((self._pieces[place], end))

    def _release(self, buffer: FetchBuffer) -> None:
        while True:
            try:
                buffer.release([self._taken.get_nowait()])
                self._held -= 1
            except Empty:
                return


def _error(alias: str, place: TopicPartition, failure: ReadFailure) -> FerryError:
    """Make the error for a reader: the failure's own message is for a copy by a plan."""
    match failure.kind:
        case RefusalKind.CORRUPT:
            return Corrupt(failure.message)
        case RefusalKind.NO_LEADER:
            return Unreachable(failure.message)
    why = _WHY.get(failure.kind)
    if why is None:
        return Refused(failure.message)
    facts = {"source": str(place), "cluster": alias, "of": code_of(failure.message)}
    return Refused(sentence("source.unreadable", at=failure.offset, why=why, **facts))
