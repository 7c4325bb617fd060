"""Writes dead letters in the transaction of the chunk that skips their records, so each letter once, too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import NamedTuple

from ferry.copy.prepared_batch import PreparedBatch
from ferry.copy.produce_queue import ProduceQueue
from ferry.features.records.acts.rows import Row
from ferry.features.records.rules.dead_letters import PoisonRule, letter_headers, letter_partition
from ferry.kafka.admin.topic_settings import batch_limits
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.produce.writer import Writer
from ferry.model import Codec, Compression, Flow, Slice, TopicPartition
from ferry.protocol.drops import Dropped, drop
from ferry.wire.encoding import batch_room
from ferry.wire.renumber import OffsetSpan
from ferry.wire.written import NewRecord, batch_of


class DeadLetter(NamedTuple):
    """A record that becomes a dead letter, the rule that makes it one, and the reason."""

    row: Row
    rule: PoisonRule
    why: str


@dataclass(slots=True, kw_only=True)
class LetterPart:
    """What the letters of a slice or unit are on their partition; others may write between them."""

    piece: Slice
    start: int
    target_next: int | None = None
    target_epoch: int = -1
    expected: int = -1
    segments: list[list[int]] = field(default_factory=list)

    @property
    def wrote(self) -> bool:
        """Return whether anything was written."""
        return self.target_next is not None

    def written(self, runs: Iterable[OffsetSpan], target_base: int) -> bool:
        """Record the broker's answer; any target offset is right."""
        self.target_next = target_base + sum(count for _, count in runs)
        return True

    def is_elsewhere(self, _: int) -> bool:
        """Return False: no target offset is wrong."""
        return False


class DeadLetterWriter:
    """Writes the dead letters of one slot to the topics of its rules."""

    def __init__(self, target: Cluster, writer: Writer, flow: Flow) -> None:
        self._target = target
        self._writer = writer
        self._flow = flow
        self._batch_bytes: Mapping[str, int] = {}

    async def begin(self, topics: Iterable[str]) -> None:
        """Read the topics and their limits."""
        names = sorted(set(topics))
        if names:
            await self._target.refresh(names)
            self._batch_bytes = await batch_limits(self._target, names)

    async def post(self, queue: ProduceQueue, piece: Slice, letters: Iterable[DeadLetter], *, first: bool) -> int:
        """Send letters of one slice or unit, in order; return how many bytes.

        `first`: nothing of the chunk was sent before. Raises Dropped if the topic is gone or takes no letter of that
        size, Blocked if its partition has no leader.
        """
        sent = 0
        for place, group in groupby(letters, lambda letter: self._place(piece, letter)):
            limit = self._batch_bytes.get(place.topic)
            records = ((one.row, self._record(piece.source.topic, one)) for one in group)
            for batch in _batches(records, batch_room(limit)):
                sent += await self._send(queue, piece, place, batch, limit, first=first and not sent)
        return sent

    def _record(self, topic: str, letter: DeadLetter) -> NewRecord:
        row, record = letter.row, letter.row.record
        more = letter_headers(letter.rule, self._flow, topic, row.partition, row.offset, record.timestamp, letter.why)
        return record._replace(headers=[*record.headers, *more])

    def _place(self, piece: Slice, letter: DeadLetter) -> TopicPartition:
        topic = letter.rule.letters.topic
        info = self._target.topics.get(topic)
        if info is None or not info.partitions:
            at, read = letter.row.offset, f"{piece.source.topic}-{letter.row.partition}"
            cluster = self._target.alias
            if topic in self._target.denied:
                raise Dropped([drop("target.hidden", piece, at, target=topic, cluster=cluster)])
            raise Dropped([drop("letters.gone", piece, at, letters=topic, cluster=cluster, at=at, read=read)])
        return TopicPartition(topic, letter_partition(letter.row.partition, len(info.partitions)))

    async def _send(
        self,
        queue: ProduceQueue,
        piece: Slice,
        place: TopicPartition,
        rows: list[tuple[Row, NewRecord]],
        limit: int | None,
        *,
        first: bool,
    ) -> int:
        at = rows[0][0].offset
        batch = batch_of([record for _, record in rows], Compression(codec=Codec.NONE))
        if limit is not None and len(batch.data) > limit:
            found = drop(
                "letters.too-large",
                piece,
                at,
                at=at,
                read=f"{piece.source.topic}-{rows[0][0].partition}",
                bytes=len(batch.data),
                letters=place.topic,
                cluster=self._target.alias,
                limit=limit,
            )
            raise Dropped([found])
        part = LetterPart(piece=replace(piece, target=place), start=at)  # brokers' answers are about the record's slice
        out = PreparedBatch(batch, ((at, batch.record_count),), at + 1, -1, True, ())
        return await queue.send_batch(part, out, at, first=first, leaderless="letters.leaderless")


def _batches(rows: Iterable[tuple[Row, NewRecord]], most: int) -> Iterable[list[tuple[Row, NewRecord]]]:
    found: list[tuple[Row, NewRecord]] = []
    size = 0
    for row, record in rows:
        if found and size + record.size > most:
            yield found
            found, size = [], 0
        found.append((row, record))
        size += record.size
    if found:
        yield found
