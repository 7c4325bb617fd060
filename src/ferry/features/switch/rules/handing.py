"""The offsets that groups left on the old cluster, given to the flow back as the offsets that it wrote last. Pure.

The groups' own consumers committed these offsets on the cluster that is left. Without this step the flow back would
treat them as commits of other clients, and leave the groups there. A failover along it would then have no checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ferry.features.groups.rules.written_offsets import Held, HeldGroup, Wrote
from ferry.model import CommittedOffset, TopicPartition

Json = dict[str, Any]
Offsets = Mapping[TopicPartition, CommittedOffset]


def left_offsets(rows: Iterable[Json]) -> dict[str, dict[TopicPartition, int]]:
    """Return the offsets that the moved groups had on the cluster that they left, from the rows of the step `groups`.

    It has no entry for a group whose offsets that cluster did not return, or for one that was left there.
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
    """Return what the flow back must remember of each group, for the groups where that changes.

    `copy_of` returns the copy of a topic in the flow back, or None if that flow translates no groups for the topic.
    `now` are the groups' offsets on the cluster that was left. `held` is what the flow back remembers. An offset that
    changed since the switch is not taken, and an offset that the flow back wrote itself stays.
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
