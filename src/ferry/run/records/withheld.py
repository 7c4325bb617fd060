"""What of a run is not copied past some record, and why: its rows end there, and that more are lacking says nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from ferry.errors import FerryError
from ferry.model import Piece, Refusal, RefusalKind, Slice, TopicPartition
from ferry.net.fetch.intake import ReadFailure

Failure = ReadFailure
"""Past which offset a source partition cannot be copied, and why: it cannot be read, or changed."""

Told = Callable[[TopicPartition, Failure], None]
"""Hears of a source partition that cannot be read on; the others are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Withheld:
    """A piece that is not copied from this source offset on. A unit is not copied at all."""

    offset: int
    refusal: Refusal


Withholding = Mapping[TopicPartition, Withheld]
"""By `Piece.source`."""


class Unread(FerryError):
    """Source partitions that a task could not read on. Its text is what `parse_unread` understands: so it comes back
    from a Spark task."""

    def __init__(self, failures: Mapping[TopicPartition, Failure]) -> None:
        told = [(*place, one.kind.value, one.offset, one.message) for place, one in sorted(failures.items())]
        super().__init__(json.dumps(told))


def parse_unread(text: str) -> dict[TopicPartition, Failure]:
    """Inverse of the text of Unread."""
    return {
        TopicPartition(topic, partition): Failure(kind=RefusalKind(kind), offset=offset, message=message)
        for topic, partition, kind, offset, message in json.loads(text)
    }


def without(pieces: Sequence[Piece], withheld: Withholding) -> tuple[Piece, ...]:
    """The pieces as far as they are copied."""
    found: list[Piece] = []
    for piece in pieces:
        held = withheld.get(piece.source)
        if held is None:
            found.append(piece)
        elif isinstance(piece, Slice) and piece.start < held.offset:
            found.append(replace(piece, end=min(piece.end, held.offset)))
    return tuple(found)


def withheld_at(pieces: Sequence[Piece], failures: Mapping[TopicPartition, Failure]) -> dict[TopicPartition, Withheld]:
    """What is withheld where source partitions cannot be read on: slices from there on, all units of the topic."""
    topics = {place.topic: one for place, one in sorted(failures.items(), reverse=True)}
    found: dict[TopicPartition, Withheld] = {}
    for piece in pieces:
        place = piece.source
        one = failures.get(place) if isinstance(piece, Slice) else topics.get(place.topic)
        if one is not None:
            found[place] = held_back(piece, one)
    return found


def held_back(piece: Piece, failure: Failure) -> Withheld:
    """A piece of which no more than what lies before the failure is copied."""
    place = piece.source
    refusal = Refusal(topic=place.topic, partition=place.partition, kind=failure.kind, message=failure.message)
    return Withheld(
        offset=max(failure.offset, piece.start) if isinstance(piece, Slice) else piece.start, refusal=refusal
    )
