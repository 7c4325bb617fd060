"""Where groups continue in repartitioned topics, by the receipts of units that the ledger still has."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from ferry.config.flow.flow import FlowConfig
from ferry.features.groups.acts.translated import deals
from ferry.features.groups.rules.map_check import Cut, Present, dealt_cut, dealt_trouble
from ferry.features.groups.rules.repartition_map import DealtMap, DealtPlace, connected, goes_back_to, read_of
from ferry.kafka.fetch.offsets import EARLIEST, LATEST, listed_offsets
from ferry.kafka.fetch.requests import READ_COMMITTED, READ_UNCOMMITTED
from ferry.lane.connections import FlowConnections, TargetConnection
from ferry.lane.source_cuts import source_cuts
from ferry.lane.summaries import LedgerLog
from ferry.lane.target_cuts import target_cuts
from ferry.lane.unit_receipts import ByPlace, Lasts, receipts_from_ledger, receipts_in_view
from ferry.ledger.ledger import LedgerView
from ferry.ledger.source_reads import reads_of_units
from ferry.ledger.unit_codec import eras, last_units
from ferry.ledger.units import family
from ferry.model import CommittedOffset, Era, Offsets, TopicPartition


async def dealt_of(
    flow: FlowConfig, connection: TargetConnection, groups: Iterable[Mapping[TopicPartition, CommittedOffset]]
) -> dict[str, DealtMap]:
    """Return, by source topic, the maps of the repartitioned topics that the flow takes, for these groups' offsets."""
    some = [{place: at.offset for place, at in offsets.items()} for offsets in groups]
    is_dealt = deals(flow, await connection.view())
    topics = {place.topic for offsets in some for place in offsets if flow.topics.selection.takes(place.topic)}
    reads: dict[str, set[Offsets]] = {topic: set() for topic in topics if is_dealt(topic)}
    for offsets in some:
        for topic, read in read_of(offsets, reads).items():
            reads[topic].add(read)
    return await maps_of_dealt(connection, flow.lane, reads) if reads else {}


async def maps_of_dealt(
    connection: TargetConnection, lane: str, reads: Mapping[str, Collection[Offsets]]
) -> dict[str, DealtMap]:
    """Return, by source topic, where groups continue in its copy that have read so much of it (`reads`).

    A topic of which nothing was copied yet is not in it. What the clusters show now is compared with the last receipts:
    the source's side only over FlowConnections, and only when it answers. Raises Unreachable.
    """
    view = await connection.view()
    lasts = {place: last for place, last in last_units(view, lane).items() if last.source.topic in reads}
    if not lasts:
        return {}
    rules = {target: era for target, era in eras(view, lane).items() if era.source_topic in reads}
    places = {TopicPartition(target, number) for target, era in rules.items() for number in range(era.partitions)}
    known = await _receipts(connection.ledger, view, lane, lasts, reads)
    target = connection.target
    topics = await target.refresh({place.topic for place in lasts})
    there = [place for place in places | lasts.keys() if place.topic in topics]
    starts = (await listed_offsets(target, dict.fromkeys(there, EARLIEST), isolation=READ_UNCOMMITTED)).found
    stable = (await listed_offsets(target, dict.fromkeys(there, LATEST), isolation=READ_COMMITTED)).found
    written = {place: last.target_next or 0 for place, last in lasts.items()}
    short = [place for place, end in written.items() if stable.get(place, end) < end]
    ends = (
        (await listed_offsets(target, dict.fromkeys(short, LATEST), isolation=READ_UNCOMMITTED)).found if short else {}
    )
    cuts = await target_cuts(target, lasts.values())
    sources = await _Sources.of(connection, lasts)
    found: dict[str, DealtMap] = {}
    several = _several(rules.values())
    for name in dict.fromkeys(place.topic for place in sorted(lasts)):
        mine = {place: last for place, last in lasts.items() if place.topic == name}
        topic = next(iter(mine.values())).source.topic
        if name not in several.get(topic, (name,)):  # records do not choose it any more
            continue
        troubles = [
            dealt_trouble(
                last,
                Present(
                    source_cluster_id=sources.cluster_id,
                    source_topic_id=sources.ids.get(topic, ""),
                    target_topic_id=topics[name].id_text if name in topics else "",
                    target_end=ends.get(place),
                    target_cut=cuts.get(place),
                ),
            )
            for place, last in sorted(mine.items())
        ]
        every = sorted(place for place in places | mine.keys() if place.topic == name)
        answers = [place for place in every if place in starts and place in stable]
        led = DealtMap(
            target=name,
            places={
                place: DealtPlace(
                    receipts=connected(known.get(place, ())), log_start=starts[place], stands_at=stable[place]
                )
                for place in answers
            },
            silent=frozenset(every) - frozenset(answers),
            trouble=next((why for why in troubles if why is not None), None),
            cuts=sources.cuts(topic),
        )
        found[topic] = _with(found[topic], led) if topic in several and topic in found else led
    return found


def _several(eras: Iterable[Era]) -> dict[str, tuple[str, ...]]:
    """Return the target topics of each source topic whose records choose among several, by the newest rule."""
    known = list(eras)
    newest = {era.source_topic: era for era in sorted(known, key=lambda era: era.since)}
    names = {topic: tuple(one.target_topic for one in family(known, era)) for topic, era in newest.items()}
    return {topic: some for topic, some in names.items() if len(some) > 1}


def _with(one: DealtMap, other: DealtMap) -> DealtMap:
    """Combine the maps of two copies of a topic."""
    return replace(
        one,
        places={**one.places, **other.places},
        silent=one.silent | other.silent,
        trouble=one.trouble or other.trouble,
    )


class _Sources:
    """The source cluster, the ids of its repartitioned topics, and where logs were cut.

    All is empty if it is silent.
    """

    def __init__(self) -> None:
        self.cluster_id = ""
        self.ids: dict[str, str] = {}
        self._cuts: dict[TopicPartition, Cut] = {}

    @classmethod
    async def of(cls, connection: TargetConnection, lasts: Lasts) -> _Sources:
        found = cls()
        if not isinstance(connection, FlowConnections) or not connection.has_source:
            return found
        cluster = connection.source
        topics = await cluster.refresh({last.source.topic for last in lasts.values()})
        found.cluster_id = cluster.cluster_id or ""
        found.ids = {name: info.id_text for name, info in topics.items()}
        every = [one for one in reads_of_units(lasts.values()) if one.source.topic in topics]
        read = {one.source: one for one in every}  # the one that was read furthest
        there = [one for one in every if one.source.partition in topics[one.source.topic].partitions]
        cuts = await source_cuts(cluster, there)
        ends = await listed_offsets(cluster, dict.fromkeys(cuts.unreported, LATEST), isolation=READ_UNCOMMITTED)
        at = {place: end for place, end in ends.found.items() if end < read[place].end} | cuts.at
        found._cuts = {place: dealt_cut(place, read[place].end, end) for place, end in at.items()}
        return found

    def cuts(self, topic: str) -> dict[int, Cut]:
        """Return, by number, the partitions of a topic that have lost some of what was copied of them."""
        return {place.partition: cut for place, cut in self._cuts.items() if place.topic == topic}


async def _receipts(
    log: LedgerLog, view: LedgerView, lane: str, lasts: Lasts, reads: Mapping[str, Collection[Offsets]]
) -> ByPlace:
    """Return what the ledger has of these topics, in its order: back to where groups are, or as far as it goes."""
    known = receipts_in_view(view, lane, lasts)
    behind = {
        place.topic
        for place, last in lasts.items()
        if not all(goes_back_to(read, connected(known[place])) for read in reads[last.source.topic])
    }
    return await receipts_from_ledger(log, view, lane, lasts, behind) if behind else known
