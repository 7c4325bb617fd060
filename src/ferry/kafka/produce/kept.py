"""Whether a log still has what was written to it: its leader is asked where leader epochs end (KIP-101).

Records that all in-sync replicas have are lost only when a leader takes over that lacks them. That leader writes in a
new epoch. A log may have reached `end` in leader epoch `epoch`. From then on it reports that this epoch, or the last
one before it, ends at `end` or later. It reports less only if it was cut, even if it was filled again since.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ferry.errors import Retryable
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.fetch.epoch_check import UNKNOWN_EPOCH, Mark
from ferry.kafka.fetch.epochs import NOT_KNOWN, ends_of_epochs, epoch_ends
from ferry.model import TopicPartition

_LOOKS = 4
"""How often the leaders are asked for; the chunk is repeated when none of them reports about its log."""


class Cut(NamedTuple):
    """A log that ends its leader epoch at offset `at`, although the mark shows that it had come further."""

    mark: Mark
    at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cuts:
    """Logs that were cut: how, by partition, and the partitions for which no leader answered."""

    found: Mapping[TopicPartition, Cut]
    unanswered: frozenset[TopicPartition]


async def cut_since(cluster: Cluster, marks: Iterable[tuple[TopicPartition, Mark]]) -> Cuts:
    """Return the logs that have lost what these marks show, by the leaders that the metadata of `cluster` name.

    While the leader of the mark's epoch is still the leader, nothing was cut, and no broker is asked. If a log has
    several marks, the first one that does not hold counts.
    """
    asked = [
        (place, mark) for place, mark in marks if mark.epoch not in (UNKNOWN_EPOCH, reported_epoch(cluster, place))
    ]
    ends = await ends_of_epochs(cluster, ((place, mark.epoch) for place, mark in asked))
    found: dict[TopicPartition, Cut] = {}
    unanswered: set[TopicPartition] = set()
    for place, mark in asked:
        at = ends.get((place, mark.epoch))
        if at is None:
            unanswered.add(place)
        elif 0 <= at < mark.end:
            found.setdefault(place, Cut(mark, at))
    return Cuts(found=found, unanswered=frozenset(unanswered))


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """Leader epochs, by partition, in which its log reaches an offset now (-1: the brokers report none).

    `short` logs end before their offset: the mark has the offset and the epoch in which they end. No leader reports
    about the `silent` ones.
    """

    epochs: Mapping[TopicPartition, int]
    short: Mapping[TopicPartition, Mark]
    silent: frozenset[TopicPartition]


async def leader_epochs(cluster: Cluster, ends: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """Return the leader epoch in which each log reaches its offset of `ends` now; -1 where the brokers report none.

    Raises Retryable for a log that ends before it, or whose leader cannot be found.
    """
    found = await reached_epochs(cluster, ends)
    for place, (_, end) in sorted(found.short.items()):
        raise Retryable(
            f"{place} on cluster {cluster.alias} was written up to offset {ends[place]}, but its leader's log ends at "
            f"{end}: it was cut meanwhile (unclean leader election?)"
        )
    if found.silent:
        place = min(found.silent)
        raise Retryable(f"no leader of {place} on cluster {cluster.alias} reports whether its log has what was written")
    return dict(found.epochs)


async def reached_epochs(cluster: Cluster, ends: Mapping[TopicPartition, int], *, looks: int = _LOOKS) -> Reached:
    """Return the leader epochs in which these logs reach the offsets of `ends`; look for a leader `looks` times."""
    found: dict[TopicPartition, int] = {}
    short: dict[TopicPartition, Mark] = {}
    left = dict(ends)
    for look in range(looks):
        if look:
            await cluster.loop.sleep(0.1 * 2**look)
            await cluster.refresh({place.topic for place in left})
        epochs = {place: reported_epoch(cluster, place) for place in left}
        found |= {
            place: epoch for place, epoch in epochs.items() if epoch == UNKNOWN_EPOCH and _is_there(cluster, place)
        }
        asked = {place: epoch for place, epoch in epochs.items() if epoch != UNKNOWN_EPOCH}
        # Only the leader of exactly that epoch answers: it has written the offsets, or has at least taken over their
        # log.
        for place, end in (await epoch_ends(cluster, asked, asked) if asked else {}).items():
            if end != NOT_KNOWN and end < left[place]:
                short[place] = Mark(asked[place], end)
            else:
                found[place] = UNKNOWN_EPOCH if end == NOT_KNOWN else asked[place]
        left = {place: end for place, end in left.items() if place not in found and place not in short}
        if not left:
            break
    return Reached(epochs=found, short=short, silent=frozenset(left))


def reported_epoch(cluster: Cluster, place: TopicPartition) -> int:
    """Return the leader epoch that the metadata of now show; UNKNOWN_EPOCH: none."""
    info = cluster.topics.get(place.topic)
    part = None if info is None else info.partitions.get(place.partition)
    return UNKNOWN_EPOCH if part is None else part.leader_epoch


def _is_there(cluster: Cluster, place: TopicPartition) -> bool:
    info = cluster.topics.get(place.topic)
    return info is not None and place.partition in info.partitions
