"""Whether a log still has what was written to it: its leader is asked where leader epochs end (KIP-101).

What all replicas in sync have is lost only when a leader takes over that lacks it, and that one writes on in an epoch
of its own. So a log that had reached `end` in leader epoch `epoch` says ever after that this epoch, or the last one
before it, ends there or behind; unless it was cut, whoever has filled it up again.
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
"""How often a leader is looked for that tells of its log; the chunk is repeated when none does."""


class Cut(NamedTuple):
    """A log that ends its leader epoch at offset `at`, where the mark says that it had come further."""

    mark: Mark
    at: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Cuts:
    """By partition how a log was cut, and the partitions that nobody answered for."""

    found: Mapping[TopicPartition, Cut]
    unanswered: frozenset[TopicPartition]


async def cut_since(cluster: Cluster, marks: Iterable[tuple[TopicPartition, Mark]]) -> Cuts:
    """Which logs have lost what these marks say of them, by the leaders that the metadata of `cluster` name.

    As long as that is the leader of then nothing was cut, and nobody is asked. Of a log with several marks the first
    one that does not hold counts.
    """
    asked = [(place, mark) for place, mark in marks if mark.epoch not in (UNKNOWN_EPOCH, told_epoch(cluster, place))]
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
    """By partition the leader epoch in which its log reaches an offset now (-1: the brokers tell of none).

    `short` logs end before theirs, at the offset here, in the epoch here; of the `silent` no leader tells.
    """

    epochs: Mapping[TopicPartition, int]
    short: Mapping[TopicPartition, Mark]
    silent: frozenset[TopicPartition]


async def leader_epochs(cluster: Cluster, ends: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
    """The leader epoch in which each log reaches its offset of `ends` now; -1 where the brokers tell of none.

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
        raise Retryable(f"no leader of {place} on cluster {cluster.alias} tells whether its log has what was written")
    return dict(found.epochs)


async def reached_epochs(cluster: Cluster, ends: Mapping[TopicPartition, int], *, looks: int = _LOOKS) -> Reached:
    """In which leader epochs these logs reach the offsets of `ends`; a leader is looked for `looks` times."""
    found: dict[TopicPartition, int] = {}
    short: dict[TopicPartition, Mark] = {}
    left = dict(ends)
    for look in range(looks):
        if look:
            await cluster.loop.sleep(0.1 * 2**look)
            await cluster.refresh({place.topic for place in left})
        told = {place: told_epoch(cluster, place) for place in left}
        found |= {place: epoch for place, epoch in told.items() if epoch == UNKNOWN_EPOCH and _is_there(cluster, place)}
        asked = {place: epoch for place, epoch in told.items() if epoch != UNKNOWN_EPOCH}
        # Only the leader of that very epoch answers: it has written, or has at least taken over, what is asked about.
        for place, end in (await epoch_ends(cluster, asked, asked) if asked else {}).items():
            if end != NOT_KNOWN and end < left[place]:
                short[place] = Mark(asked[place], end)
            else:
                found[place] = UNKNOWN_EPOCH if end == NOT_KNOWN else asked[place]
        left = {place: end for place, end in left.items() if place not in found and place not in short}
        if not left:
            break
    return Reached(epochs=found, short=short, silent=frozenset(left))


def told_epoch(cluster: Cluster, place: TopicPartition) -> int:
    """The leader epoch that the metadata of now say; UNKNOWN_EPOCH: none."""
    info = cluster.topics.get(place.topic)
    part = None if info is None else info.partitions.get(place.partition)
    return UNKNOWN_EPOCH if part is None else part.leader_epoch


def _is_there(cluster: Cluster, place: TopicPartition) -> bool:
    info = cluster.topics.get(place.topic)
    return info is not None and place.partition in info.partitions
