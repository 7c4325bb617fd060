"""A window resolved: the source's offsets for its times, and the facts that a plan of it is decided from."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.fetch.offsets import listed_offsets
from ferry.kafka.fetch.requests import READ_UNCOMMITTED
from ferry.ledger.ledger import LedgerView
from ferry.ledger.window_codec import recorded_windows
from ferry.model import OffsetWindow, TopicPartition, Window, WindowRecord
from ferry.model.observed import Unavailable
from ferry.plan.lag import first_timestamps
from ferry.plan.rules.facts import Facts, SourceFacts
from ferry.plan.rules.truncation import with_high_watermark
from ferry.plan.rules.windows import (
    Listed,
    WindowLook,
    check_window,
    narrowed,
    new_records,
    unserved,
    window_parts,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Windowed:
    """The facts of a plan that copies a window, the window in offsets, and the records to keep of it in the ledger."""

    facts: Facts
    look: WindowLook
    records: tuple[WindowRecord, ...]


async def windowed(
    lane: str, facts: Facts, window: Window, only: Collection[str] | None, source: Cluster, view: LedgerView, run: str
) -> Windowed:
    """Resolve a window, of the topics in `only` or of all.

    Raises BadInput for a window that ends in the future, or names what the source does not have. Raises Refused if it
    would break the order of a partition, or if records of it are deleted.
    """
    topics = frozenset(facts.source.topics.keys() | facts.source.absent | facts.source.hidden if only is None else only)
    check_window(facts, window, topics)
    recorded = recorded_windows(view, lane)
    listed, failed = await _listed(source, facts.source, window, topics)
    facts = replace(facts, source=_without(facts.source, failed))
    parts = window_parts(lane, facts, window, topics, listed, recorded)
    return Windowed(
        facts=narrowed(facts, topics, parts),
        look=WindowLook(parts=tuple(parts), unserved=unserved(facts, window, topics, recorded)),
        records=tuple(new_records(lane, facts, window, parts, recorded, run)),
    )


async def _listed(
    source: Cluster, facts: SourceFacts, window: Window, topics: Collection[str]
) -> tuple[dict[TopicPartition, Listed], dict[TopicPartition, Unavailable | None]]:
    """Return the window's times as offsets (ListOffsets), and the time of the oldest record of a shortened log.

    A log is shortened if its start is above 0, and the window begins there or has no record. For a window of offsets
    only partitions whose range begins before the log start are listed. The second value holds the partitions that no
    broker answered for, with the reason if one is known.
    """
    starts = {
        TopicPartition(topic=name, partition=number): part.log_start
        for name in facts.topics.keys() & topics
        for number, part in facts.topics[name].partitions.items()
    }
    if isinstance(window, OffsetWindow):
        before = {place: at for place, at in starts.items() if place in window.ranges and window.ranges[place][0] < at}
        times = await first_timestamps(source, before)
        return {place: Listed(start=at, end=at, oldest_ms=times.get(place)) for place, at in before.items()}, {}
    own = {place: window.of(place.topic) for place in starts}
    begins = {place: times.from_ms for place, times in own.items()}
    first = await listed_offsets(source, begins, isolation=READ_UNCOMMITTED)
    end = await listed_offsets(source, {place: own[place].to_ms for place in first.found}, isolation=READ_UNCOMMITTED)
    cut = {place: at for place, at in starts.items() if at > 0 and first.found.get(place) in (at, -1)}
    oldest = await first_timestamps(source, cut) if cut else {}
    listed = {
        place: Listed(start=first.found[place], end=offset, oldest_ms=oldest.get(place))
        for place, offset in end.found.items()
    }
    failed = first.failed | end.failed
    return listed, {place: failed.get(place) for place in starts.keys() - listed.keys()}


def _without(source: SourceFacts, failed: Mapping[TopicPartition, Unavailable | None]) -> SourceFacts:
    """Return the facts with these partitions as ones without a leader: the plan refuses them."""
    topics = dict(source.topics)
    for place, why in failed.items():
        topics[place.topic] = with_high_watermark(topics[place.topic], place.partition, None, why)
    return replace(source, topics=topics)
