"""Where source logs depart from what was copied of them, by their leader epochs (KIP-320)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.fetch.epochs import NOT_KNOWN, ends_of_epochs
from ferry.ledger.source_reads import Read, diverged
from ferry.model import Receipt, TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceCuts:
    """Source logs that were cut: by partition (`at`) the offset from which each lacks copied records, or has others.

    `unreported` partitions have no leader epochs to compare, or no topic ids, so that the epochs may be those of
    another topic of the name. Only their ends can show a cut. The `silent` ones have another leader, which does not
    answer.
    """

    at: dict[TopicPartition, int] = field(default_factory=dict)
    unreported: frozenset[TopicPartition] = frozenset()
    silent: frozenset[TopicPartition] = frozenset()


async def source_cuts(source: Cluster, lasts: Iterable[Receipt | Read]) -> SourceCuts:
    """Check the logs of last receipts, without those that the metadata of `source` lack.

    While the leader is the one that was read from, nothing was cut: most often no broker is asked. If several receipts
    show a cut of a log, the smallest offset counts.
    """
    changed: list[tuple[Receipt | Read, int]] = []
    unreported: set[TopicPartition] = set()
    for last in lasts:
        topic = source.topics.get(last.source.topic)
        part = None if topic is None else topic.partitions.get(last.source.partition)
        if topic is None or part is None:
            continue
        epoch = last.source_epoch
        if epoch is None or not topic.id_text:
            unreported.add(last.source)
        if epoch is not None and epoch != part.leader_epoch:
            changed.append((last, epoch))
    ends = await ends_of_epochs(source, ((last.source, epoch) for last, epoch in changed))
    at: dict[TopicPartition, int] = {}
    silent: set[TopicPartition] = set()
    for last, epoch in changed:
        end = ends.get((last.source, epoch))
        if end is None:
            silent.add(last.source)
            continue
        if end == NOT_KNOWN:
            unreported.add(last.source)
        cut = diverged(last, end)
        if cut is not None:
            at[last.source] = min(cut, at.get(last.source, cut))
    return SourceCuts(at=at, unreported=frozenset(unreported), silent=frozenset(silent))
