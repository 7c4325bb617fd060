"""What of a run is not copied after some record, and why.

Its rows end there: that later ones are missing means nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from ferry.errors import FerryError
from ferry.kafka.fetch.fetch_buffer import ReadFailure
from ferry.ledger.sentence_codec import read_sentence, sentence_fields
from ferry.messages.refusals import refused_as
from ferry.model import Refusal, RefusalKind, Slice, TopicPartition

Failure = ReadFailure
"""From which offset on a source partition cannot be copied, and why: it cannot be read, or changed."""

OnFailure = Callable[[TopicPartition, Failure], None]
"""Is called for a source partition that cannot be read on; the others are read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cutoff:
    """A source partition of which nothing is copied from this offset on."""

    offset: int
    refusal: Refusal


Cutoffs = Mapping[TopicPartition, Cutoff]
"""Where the copy of each source partition ends, and why."""


class Unread(FerryError):
    """Source partitions that a task could not read on.

    `parse_unread` reads its text, so it can come back from a Spark task.
    """

    def __init__(self, failures: Mapping[TopicPartition, Failure]) -> None:
        rows = [
            (*place, one.kind.value, one.offset, one.message, sentence_fields(one.message))
            for place, one in sorted(failures.items())
        ]
        super().__init__(json.dumps(rows))


def parse_unread(text: str) -> dict[TopicPartition, Failure]:
    """Read the text of Unread."""
    return {
        TopicPartition(topic, partition): Failure(
            kind=RefusalKind(kind), offset=offset, message=read_sentence(message, data)
        )
        for topic, partition, kind, offset, message, data in json.loads(text)
    }


def cutoffs_at(failures: Mapping[TopicPartition, Failure]) -> dict[TopicPartition, Cutoff]:
    """Return the same partitions, with the refusal of each."""
    return {
        place: Cutoff(
            offset=one.offset,
            refusal=refused_as(one.message, *place, kind=one.kind),
        )
        for place, one in failures.items()
    }


def without(pieces: Iterable[Slice], cutoffs: Cutoffs) -> tuple[Slice, ...]:
    """Return the pieces as far as they are copied."""
    found: list[Slice] = []
    for piece in pieces:
        if piece.dealt:
            rest = narrowed(piece, cutoffs)
            found += [rest] if rest.start < rest.end else []
            continue
        held = cutoffs.get(piece.source)
        if held is None:
            found.append(piece)
        elif piece.start < held.offset:
            found.append(replace(piece, end=min(piece.end, held.offset)))
    return tuple(found)


def narrowed(unit: Slice, cutoffs: Cutoffs) -> Slice:
    """Return the unit without source partitions from their cutoffs on. What it has, it keeps."""
    ends = [max(start, min(end, cutoffs[at].offset)) if at in cutoffs else end for at, start, end in unit.spans]
    return unit.reading(replace(unit.reads, ends=tuple(ends))) if unit.reads is not None else unit


def refusal_of_unit(unit: Slice, cutoffs: Cutoffs) -> Refusal | None:
    """Return why a unit does not come to its end; None: it does.

    For several partitions, the reason of the first one.
    """
    if narrowed(unit, cutoffs) == unit:
        return None
    held = next(one for place, one in sorted(cutoffs.items()) if narrowed(unit, {place: one}) != unit)
    return replace(held.refusal, topic=unit.source.topic, partition=unit.source.partition)
