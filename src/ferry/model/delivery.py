"""A delivery: one numbered batch of an application's records, written exactly once by the public sink (ADR 41)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ferry.model.flow import TopicPartition


class Due(NamedTuple):
    """What a delivery has for one target partition, or for the beginning of it.

    `digest` is the sum of the records' own 64-bit digests, modulo 2^64. It detects a frame that gives other records; it
    is not proof against a deliberate forgery.
    """

    records: int
    digest: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetShape:
    """A target topic as it was when a delivery was settled. `topic_id` is empty where brokers have none."""

    partitions: int
    topic_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """The content of a delivery, frozen before any of it is written: later attempts must have the same."""

    topics: Mapping[str, TargetShape]
    due: Mapping[TopicPartition, Due] = field(default_factory=dict)
    """Partitions without records are not among them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryReceipt:
    """How much of a delivery one target partition has, from its beginning; in the transaction of its last part.

    `first` and `last` are the target offsets of the first and the last record. Records of other producers, and markers
    of transactions, may be between them.
    """

    place: TopicPartition
    done: Due
    first: int
    last: int
    slot: int
    generation: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownBatches:
    """What an attempt knew of all batches from the records before offset `upto`: a later one continues from there."""

    upto: int
    written: frozenset[int] = frozenset()
    """The batches that are written whole."""
    begun: frozenset[int] = frozenset()
    """The batches that are settled, and not written whole."""
    forgotten: int = -1


class WrittenPart(NamedTuple):
    """A row of the answer: the offsets of a delivery's records in one target partition."""

    topic: str
    partition: int
    first: int
    last: int
    records: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A delivery that is written whole. `already`: an earlier call wrote it, and this one wrote nothing."""

    application: str
    batch: int
    already: bool
    parts: tuple[WrittenPart, ...]

    @property
    def records(self) -> int:
        """Number of records in all partitions."""
        return sum(part.records for part in self.parts)
