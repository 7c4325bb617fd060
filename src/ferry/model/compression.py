"""How the records of a batch are compressed."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class Codec(IntEnum):
    """A batch's compression; the numbers are those of its attributes (Kafka's `CompressionType`)."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Compression:
    """A codec to write with, and its level; None is the codec's own default (KIP-390)."""

    codec: Codec
    level: int | None = None
