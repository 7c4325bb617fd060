"""How much of a source partition went to which target partition, if records are repartitioned in units. Pure.

No receipt shows where one record is: its key does. A receipt of a target partition shows which source offsets its chunk
covered, and between which target offsets the records are.
"""

from __future__ import annotations

from dataclasses import dataclass

from ferry.features.groups.rules.repartition_map import connected
from ferry.ledger.repartitioned_at import Dealing, DealtAt, dealt_at
from ferry.ledger.units import family, of_partition, places_of, standings
from ferry.model import Receipt, TopicPartition
from ferry.wire.partitioner import partition_of_key


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkSpan:
    """What one chunk did with source offsets `[start, end)` of one partition, for one target partition.

    Its records are at `[target_start, target_next)` there. `records` counts those of all source partitions. The records
    of one source partition are adjacent and in their order.
    """

    target: TopicPartition
    start: int
    end: int
    target_start: int | None
    target_next: int | None
    records: int
    run: str
    at_ms: int

    @classmethod
    def of(cls, one: Receipt, partition: int) -> ChunkSpan:
        """Make the span of one source partition from a receipt."""
        return cls(
            target=one.target,
            start=of_partition(one.starts, partition),
            end=of_partition(one.ends, partition),
            target_start=one.target_start,
            target_next=one.target_next,
            records=one.records,
            run=one.run,
            at_ms=one.at_ms,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class DealtPart:
    """A target partition, and how much of a source partition was copied to it: all before offset `done`.

    The receipts that are left begin at `known_from`; None: there are none. `newest` is the last span, if any.
    """

    target: TopicPartition
    done: int
    known_from: int | None
    spans: int
    newest: ChunkSpan | None


def dealt_parts(dealing: Dealing, partition: int) -> list[DealtPart]:
    """Return how much of a source partition each target partition has.

    All partitions of the rule in force are in it.
    """
    found = []
    for era in family(dealing.eras, dealing.newest):
        for target, reached in zip(places_of(era), standings(era, dealing.lasts.values()), strict=True):
            mine = _of(dealing, target, partition)
            known = connected(dealing.receipts.get(target, ()))
            found.append(
                DealtPart(
                    target=target,
                    done=of_partition(reached, partition),
                    known_from=of_partition(known[0].starts, partition) if known else None,
                    spans=len(mine),
                    newest=mine[-1] if mine else None,
                )
            )
    return found


def spans_of(dealing: Dealing, partition: int) -> list[ChunkSpan]:
    """Return all spans of a source partition that the ledger still has, newest first."""
    found = [one for target in dealing.receipts for one in _of(dealing, target, partition)]
    return sorted(found, key=lambda one: (-one.at_ms, one.target, -one.start))


def whereabouts(dealing: Dealing, source: TopicPartition, offset: int, key: bytes | None = None) -> list[DealtAt]:
    """Return where a source offset may be on the target, by the receipts that cover it (`dealt_at`).

    With the key that the record has in the copy, only the partition that the key leads to remains. For chunks of an
    earlier rule the key does not help, because the number of partitions of that time is not kept.
    """
    found, era = dealt_at(dealing.eras, dealing.receipts, source, offset), dealing.newest
    if key is None or offset < of_partition(era.begins, source.partition):
        return found
    number = partition_of_key(key, era.partitions)
    return [one for one in found if one.target.partition == number]


def _of(dealing: Dealing, target: TopicPartition, partition: int) -> list[ChunkSpan]:
    """Return the spans of a source partition in a target partition, ascending."""
    all_of = (ChunkSpan.of(one, partition) for one in dealing.receipts.get(target, ()))
    return [one for one in all_of if one.start < one.end]
