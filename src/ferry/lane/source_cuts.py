"""Where source logs part from what was copied of them, by their leader epochs (KIP-320)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.fetch.epochs import NOT_KNOWN, ends_of_epochs
from ferry.ledger.source_reads import Read, diverged
from ferry.model import Receipt, TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceCuts:
    """`at`: partitions whose logs were cut, and from which offset on they have other records than were copied, or none.

    `untold` are those that have no leader epochs to tell it by, or no topic ids, so that the epochs may be another
    topic's of the name; that leaves their ends. Of `silent` ones the leader has changed, and does not answer.
    """

    at: dict[TopicPartition, int] = field(default_factory=dict)
    untold: frozenset[TopicPartition] = frozenset()
    silent: frozenset[TopicPartition] = frozenset()


async def source_cuts(source: Cluster, lasts: Iterable[Receipt | Read]) -> SourceCuts:
    """Look at the logs of last receipts, without those that the metadata of `source` lack.

    As long as the leader is the one that was read from, nothing was cut: mostly nobody is asked. Of a log with several
    the least counts.
    """
    changed: list[Receipt | Read] = []
    untold: set[TopicPartition] = set()
    for last in lasts:
        topic = source.topics.get(last.source.topic)
        part = None if topic is None else topic.partitions.get(last.source.partition)
        if topic is None or part is None:
            continue
        if last.source_epoch < 0 or not topic.id_text:
            untold.add(last.source)
        if 0 <= last.source_epoch != part.leader_epoch:
            changed.append(last)
    ends = await ends_of_epochs(source, ((last.source, last.source_epoch) for last in changed))
    at: dict[TopicPartition, int] = {}
    silent: set[TopicPartition] = set()
    for last in changed:
        end = ends.get((last.source, last.source_epoch))
        if end is None:
            silent.add(last.source)
            continue
        if end == NOT_KNOWN:
            untold.add(last.source)
        cut = diverged(last, end)
        if cut is not None:
            at[last.source] = min(cut, at.get(last.source, cut))
    return SourceCuts(at=at, untold=frozenset(untold), silent=frozenset(silent))
