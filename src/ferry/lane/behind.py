"""What other producers wrote, or are writing, to target partitions after the offsets that a lane knows."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.fetch.foreign_records import first_foreign_records
from ferry.kafka.fetch.offsets import LATEST, listed_offsets
from ferry.kafka.fetch.requests import READ_COMMITTED, READ_UNCOMMITTED
from ferry.kafka.produce.open_transactions import named_transactions
from ferry.model import RefusalKind, TopicPartition
from ferry.model.observed import OpenTransaction, Unavailable


@dataclass(frozen=True, slots=True, kw_only=True)
class Behind:
    """What follows the given offsets of target partitions: their ends, and what other producers wrote or are writing.

    Partitions that could not be checked are in `unseen` alone.
    """

    ends: Mapping[TopicPartition, int]
    foreign: Mapping[TopicPartition, int]
    undecided: Mapping[TopicPartition, OpenTransaction]
    unseen: Mapping[TopicPartition, Unavailable]


async def look_behind(target: Cluster, begins: Mapping[TopicPartition, int]) -> Behind:
    """Check target partitions, from `begins` on, whose own transactions have all ended.

    An open transaction is therefore another producer's.
    """
    stable = await listed_offsets(target, dict.fromkeys(begins, LATEST), isolation=READ_COMMITTED)
    ends = await listed_offsets(target, dict.fromkeys(stable.found, LATEST), isolation=READ_UNCOMMITTED)
    known = {place: offset for place, offset in stable.found.items() if place in ends.found}
    undecided = await others_transactions(target, known, ends.found, ())
    looked = await first_foreign_records(
        target, {place: [(begins[place], end)] for place, end in known.items() if end > begins[place]}
    )
    failed = stable.failed | ends.failed | looked.failed
    nobody = Unavailable(kind=RefusalKind.NO_LEADER, why="it has no leader: bring its brokers back")
    unseen = {place: failed.get(place, nobody) for place in begins.keys() - known.keys() | looked.failed.keys()}
    return Behind(
        ends={place: end for place, end in ends.found.items() if place not in unseen},
        foreign=looked.found,
        undecided={place: one for place, one in undecided.items() if place not in unseen},
        unseen=unseen,
    )


async def others_transactions(
    target: Cluster,
    stable: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
    writers: Collection[str],
) -> dict[TopicPartition, OpenTransaction]:
    """Return by partition that is not stable up to its end the oldest transaction that none of our `writers` has open.

    A transaction that its leader does not report, or that has ended since, begins at the last stable offset.
    """
    held = [place for place, offset in stable.items() if offset < ends[place]]
    transactions = await named_transactions(target, held)
    found: dict[TopicPartition, OpenTransaction] = {}
    for place in held:
        unknown = OpenTransaction.unreported(stable[place])
        for one in transactions.get(place) or (unknown,):
            if one.transactional_id not in writers:
                found[place] = one
                break
    return found
