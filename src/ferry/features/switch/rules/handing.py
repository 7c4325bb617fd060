"""What a switch hands to the flow back: the offsets that groups left behind, as what that flow wrote last. Pure.

A group's own consumers committed them on the cluster that is left. Without this the flow back would take them for
somebody's, and leave the group there; a failover along it would then have no checkpoint to go by.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ferry.features.groups.rules.written_offsets import Held, HeldGroup, Wrote
from ferry.model import CommittedOffset, TopicPartition

Json = dict[str, Any]
Offsets = Mapping[TopicPartition, CommittedOffset]


def left_offsets(rows: Iterable[Json]) -> dict[str, dict[TopicPartition, int]]:
    """Where the groups that a switch has moved stood on the cluster that they left, by the rows of its step `groups`.

    Nothing of a group whose offsets that cluster did not tell, nor of one that was left there.
    """
    found = {}
    for row in rows:
        if row["outcome"] == "moved" and row.get("from"):
            found[row["group"]] = _places(row["from"])
    return found


def handed(
    rows: Iterable[Json],
    copy_of: Callable[[str], str | None],
    now: Mapping[str, Offsets],
    held: Mapping[str, HeldGroup],
    now_ms: int,
) -> dict[str, HeldGroup]:
    """What the flow back is to remember of each group, where that changes.

    `copy_of` is the copy of a topic of the flow back, None of one that it does not lead groups in. `now` is where
    groups stand on the cluster that was left, `held` what the flow back remembers. An offset that somebody has moved
    since is left to whoever did that, and what the flow back wrote itself stays as it is.
    """
    found = {}
    rows = list(rows)
    left = left_offsets(rows)
    for row in rows:
        group = row["group"]
        known = held.get(group)
        offsets = dict(known.offsets) if known is not None else {}
        sources = dict(known.sources) if known is not None else {}
        changed = False
        for place, stands in _places(row["offsets"]).items():
            topic = copy_of(place.topic)
            if topic is None or group not in left:
                continue
            copy = TopicPartition(topic=topic, partition=place.partition)
            there = now.get(group, {}).get(copy)
            if there is None or there.offset != left[group].get(copy):
                continue
            if copy in offsets and offsets[copy].found_as(there.offset) is not None:
                continue
            offsets[copy] = Held(Wrote(stands, there.offset))
            sources[topic] = place.topic
            changed = True
        if changed:
            renewed_ms = now_ms if known is None else known.renewed_ms
            read = {} if known is None else known.read
            found[group] = HeldGroup(offsets=offsets, sources=sources, renewed_ms=renewed_ms, read=read)
    return found


def _places(rows: Iterable[tuple[str, int, int]]) -> dict[TopicPartition, int]:
    return {TopicPartition(topic=topic, partition=number): offset for topic, number, offset in rows}
