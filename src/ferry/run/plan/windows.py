"""A window looked up: what the source says of its times, and the facts that a plan of it is decided from."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from ferry.decide.lanes.codec import recorded_windows
from ferry.decide.lanes.windows import Listed, WindowPart, check_window, narrowed, new_records, window_parts
from ferry.decide.ledger.ledger import LedgerView
from ferry.decide.plan.facts import Facts
from ferry.model import OffsetWindow, TopicPartition, Window, WindowRecord
from ferry.net.cluster import Cluster
from ferry.net.fetch import READ_UNCOMMITTED
from ferry.net.offsets import listed_offsets
from ferry.run.plan.lag import first_timestamps


@dataclass(frozen=True, slots=True, kw_only=True)
class Windowed:
    """The facts of a plan that copies a window, the window in offsets, and what the ledger is to keep of it."""

    facts: Facts
    parts: tuple[WindowPart, ...]
    records: tuple[WindowRecord, ...]


async def windowed(
    lane: str, facts: Facts, window: Window, only: Collection[str] | None, source: Cluster, view: LedgerView, run: str
) -> Windowed:
    """Look a window up: of the topics in `only`, or of all. Raises as `check_window` and `window_parts`."""
    topics = frozenset(facts.sources if only is None else only)
    check_window(facts, window, topics)
    recorded = recorded_windows(view, lane)
    listed = await _listed(source, facts, window, topics)
    parts = window_parts(lane, facts, window, topics, listed, recorded)
    return Windowed(
        facts=narrowed(facts, topics, parts),
        parts=tuple(parts),
        records=tuple(new_records(lane, facts, window, parts, recorded, run)),
    )


async def _listed(
    source: Cluster, facts: Facts, window: Window, topics: Collection[str]
) -> dict[TopicPartition, Listed]:
    """The window's times as offsets (ListOffsets), and the time of the oldest record where a log was cut before it."""
    starts = {
        TopicPartition(topic=name, partition=number): part.log_start
        for name in topics & facts.sources.keys()
        for number, part in facts.sources[name].partitions.items()
    }
    if isinstance(window, OffsetWindow):
        before = {place: at for place, at in starts.items() if place in window.ranges and window.ranges[place][0] < at}
        return {
            place: Listed(start=at, end=at, oldest_ms=oldest)
            for place, oldest in (await first_timestamps(source, before)).items()
            for at in [before[place]]
        }
    first = await listed_offsets(source, dict.fromkeys(starts, window.from_ms), isolation=READ_UNCOMMITTED)
    end = await listed_offsets(source, dict.fromkeys(first.found, window.to_ms), isolation=READ_UNCOMMITTED)
    cut = {place: at for place, at in starts.items() if at > 0 and first.found.get(place) in (at, -1)}
    oldest = await first_timestamps(source, cut) if cut else {}
    return {
        place: Listed(start=first.found[place], end=offset, oldest_ms=oldest.get(place))
        for place, offset in end.found.items()
    }
