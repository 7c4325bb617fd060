"""The page of a repartitioned source partition: which target partitions its records went to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ferry.features.groups.rules.repartitioned import ChunkSpan, DealtPart, dealt_parts, spans_of, whereabouts
from ferry.ledger.repartitioned_at import Dealing, DealtAt
from ferry.model import TopicPartition
from ferry.reader.watch import FlowWatch


@dataclass(frozen=True, slots=True, kw_only=True)
class DealtStory:
    """Each target partition with what it has of the source partition; some of the chunks, newest first, of `total`."""

    parts: Sequence[DealtPart]
    spans: Sequence[ChunkSpan]
    total: int
    where: Sequence[tuple[DealtAt, ChunkSpan | None]] = ()
    """Where the record of the requested offset is, if one was requested."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sought:
    """What is searched for: an offset of the source partition, and the record's key in the copy; empty: not known."""

    offset: int | None
    key: str = ""


def story_of_dealt(
    watch: FlowWatch, place: TopicPartition, sought: Sought, skip: int, most: int, lane: str
) -> DealtStory | None:
    """Return the story, read from the ledger; None if it has no repartitioned records of the topic."""
    dealing = watch.dealt(place.topic, lane=lane)
    return None if dealing is None else story_of(dealing, place, sought, skip, most)


def story_of(dealing: Dealing, place: TopicPartition, sought: Sought, skip: int, most: int) -> DealtStory:
    """Return the story of a source partition, with `most` of its chunks after the first `skip`; pure."""
    chunks = spans_of(dealing, place.partition)
    key = sought.key.encode() if sought.key else None
    found = [] if sought.offset is None else whereabouts(dealing, place, sought.offset, key)
    return DealtStory(
        parts=dealt_parts(dealing, place.partition),
        spans=chunks[skip : skip + most],
        total=len(chunks),
        where=[(one, ChunkSpan.of(one.chunk, place.partition) if one.chunk else None) for one in found],
    )
