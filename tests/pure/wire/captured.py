"""Golden bytes of a real broker, and what Kafka's own tools say about them; made by `tests.pure.wire.capture`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ferry.wire.batch import Batch, batches

FOLDER = Path(__file__).parent / "golden"
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
TOPICS = (*(f"codec-{name}" for name in CODECS), "transactions", "log-append-time", "compacted")

Row = tuple[int, int, bytes | None, bytes | None, list[tuple[str, bytes | None]]]
"""Offset, timestamp (ms), key, value, headers."""

_FIELD = re.compile(r"(\w+): (\S+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One fetch answer for a partition; `aborted` are `(producer id, first offset)` pairs."""

    buffer: bytes
    aborted: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured:
    """A topic of one partition: fetch answers, DumpLogSegments' batches and markers, librdkafka's records."""

    answers: tuple[Answer, ...]
    dumped: tuple[dict[str, str], ...]
    markers: dict[int, str]
    committed: tuple[Row, ...]
    uncommitted: tuple[Row, ...]

    @property
    def batches(self) -> list[Batch]:
        """All batches of all answers."""
        return [batch for answer in self.answers for batch in batches(answer.buffer)]


@cache
def captured(topic: str) -> Captured:
    """The golden file of a topic."""
    body = json.loads((FOLDER / f"{topic}.json").read_text())
    lines = [(line, dict(_FIELD.findall(line))) for line in body["dumped"]]
    return Captured(
        answers=tuple(
            Answer(
                buffer=bytes.fromhex("".join(answer["bytes"])),
                aborted=tuple((producer, first) for producer, first in answer["aborted"]),
            )
            for answer in body["answers"]
        ),
        dumped=tuple(fields for line, fields in lines if not line.startswith("|")),
        markers={int(fields["offset"]): fields["endTxnMarker"] for line, fields in lines if line.startswith("|")},
        committed=tuple(_rows(body["committed"])),
        uncommitted=tuple(_rows(body["uncommitted"])),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OldSet:
    """A message set of format v0 or v1 as Kafka's classes wrote it, and what they read in it: no headers."""

    name: str
    data: bytes
    rows: tuple[tuple[int, int, bytes | None, bytes | None], ...]


@cache
def old_sets() -> tuple[OldSet, ...]:
    """The golden message sets."""
    body = json.loads((FOLDER / "old-formats.json").read_text())
    return tuple(
        OldSet(
            name=found["name"],
            data=bytes.fromhex("".join(found["bytes"])),
            rows=tuple((offset, time, _bytes(key), _bytes(value)) for offset, time, key, value in found["rows"]),
        )
        for found in body["sets"]
    )


def _rows(rows: list[Any]) -> Iterator[Row]:
    for offset, timestamp, key, value, headers in rows:
        yield offset, timestamp, _bytes(key), _bytes(value), [(name, _bytes(part)) for name, part in headers]


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)
