"""How much of a source partition went to which target partition, where records are dealt to others (units). Pure.

No receipt says of a record where it lies: its key does. What they say of each target partition is which source offsets
a chunk was for, and between which target offsets its records lie.
"""

from __future__ import annotations

from dataclasses import dataclass

from ferry.features.groups.rules.repartition_map import connected
from ferry.ledger.repartitioned_at import Dealing, DealtAt, dealt_at
from ferry.ledger.units import family, of_partition, places_of, standings
from ferry.model import Receipt, TopicPartition
from ferry.wire.partitioner import partition_of_key


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """What one chunk did of source offsets `[start, end)` of one partition for a target partition.

    What it wrote lies there at `[target_start, target_next)`: `records` of all source partitions, those of one side by
    side and in their order.
    """

    target: TopicPartition
    start: int
    end: int
    target_start: int
    target_next: int
    records: int
    run: str
    at_ms: int

    @classmethod
    def of(cls, one: Receipt, partition: int) -> Stretch:
        """Of a receipt."""
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
    """A target partition, and how much of a source partition was dealt to it: all before offset `done`.

    The receipts that are left begin at `known_from`; None: there are none. `newest` is the last that went further.
    """

    target: TopicPartition
    done: int
    known_from: int | None
    stretches: int
    newest: Stretch | None


def dealt_parts(dealing: Dealing, partition: int) -> list[DealtPart]:
    """How much of a source partition each target partition has, of those that the rule in force deals to."""
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
                    stretches=len(mine),
                    newest=mine[-1] if mine else None,
                )
            )
    return found


def stretches_of(dealing: Dealing, partition: int) -> list[Stretch]:
    """All that the ledger still says of a source partition, newest first."""
    found = [one for target in dealing.receipts for one in _of(dealing, target, partition)]
    return sorted(found, key=lambda one: (-one.at_ms, one.target, -one.start))


def whereabouts(dealing: Dealing, source: TopicPartition, offset: int, key: bytes | None = None) -> list[DealtAt]:
    """As `dealt_at`; with the key that the record has in the copy only where that leads.

    Of chunks that an earlier rule dealt the key tells nothing, for nobody keeps how many partitions that had.
    """
    found, era = dealt_at(dealing.eras, dealing.receipts, source, offset), dealing.newest
    if key is None or offset < of_partition(era.begins, source.partition):
        return found
    number = partition_of_key(key, era.partitions)
    return [one for one in found if one.target.partition == number]


def _of(dealing: Dealing, target: TopicPartition, partition: int) -> list[Stretch]:
    """The stretches of a source partition in a target partition, ascending."""
    all_of = (Stretch.of(one, partition) for one in dealing.receipts.get(target, ()))
    return [one for one in all_of if one.start < one.end]
