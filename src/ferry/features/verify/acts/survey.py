"""What two clusters have of what a lane has copied: facts of both, and from them the ranges to compare."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ferry.config.flow.flow import FlowConfig
from ferry.errors import BadInput
from ferry.features.verify.acts.logs import compacted_topics, hidden_topic, offset_bytes, settled
from ferry.features.verify.acts.repartitioned import SurveyOfDealt, survey_dealt
from ferry.features.verify.acts.wanted import Wanted
from ferry.features.verify.rules.beginnings import begins
from ferry.features.verify.rules.clients import with_clients
from ferry.features.verify.rules.compare_ranges import (
    Asked,
    CompareRange,
    Ends,
    after_clients,
    at_source_offsets,
    no_receipt_yet,
    spans,
    unreceived,
    without_records,
)
from ferry.features.verify.rules.portions import OffsetBytes
from ferry.features.verify.rules.repartitioned import DealtCopy, source_ranges
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.fetch.offsets import EARLIEST, LATEST, listed_offsets
from ferry.kafka.fetch.requests import READ_UNCOMMITTED
from ferry.lane.connections import FlowConnections
from ferry.ledger.adoption_codec import adoptions
from ferry.ledger.copied import Copied, copied, of_run
from ferry.ledger.ledger import LedgerView, gaps
from ferry.ledger.producer_codec import continued, continued_since, first_offsets
from ferry.ledger.receipts import last_receipts
from ferry.ledger.switch_codec import switch_states
from ferry.ledger.unit_codec import eras
from ferry.model import Begin, NotCompared, NotComparedKind, TopicPartition
from ferry.plan.gather import isolation_of
from ferry.plan.rules.starts import recorded_starts


@dataclass(slots=True, kw_only=True)
class Survey:
    """What is to be compared, and what cannot be."""

    partitions: int = 0
    spans: list[CompareRange] = field(default_factory=list)
    transformed: list[CompareRange] = field(default_factory=list)
    """Ranges whose target records a transform made; a comparison has to apply it again."""
    dealt: list[DealtCopy] = field(default_factory=list)
    """Repartitioned copies; a comparison has to apply the transform again."""
    not_compared: list[NotCompared] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    begins: tuple[Begin, ...] = ()
    """Where the lane began with each source partition, of those that are asked for."""
    sizes: OffsetBytes = field(default_factory=dict)
    """About how many bytes an offset has, for the source partitions that transforms are applied to again."""

    @property
    def records(self) -> int:
        """Count the records that the map has in all of it."""
        mapped = sum(one.records for one in [*self.spans, *self.transformed])
        return mapped + sum(one.records for one in self.dealt)


async def survey(flow: FlowConfig, connections: FlowConnections, wanted: Wanted) -> Survey:
    """Read the ledger and both logs. Raises BadInput when nothing of what is wanted was ever copied."""
    view = await connections.view()
    if wanted.run is not None:
        view = await connections.cache.view_with(flow.lane, wanted.run)
    rows = await connections.cache.rows(view, lambda of: of.lane == flow.lane and wanted.takes(of.source))
    lasts = last_receipts(view, flow.lane)
    bare = [one for one in await _without_receipts(flow, connections, view, lasts) if wanted.takes(one.source)]
    after = continued(view, flow.lane)
    kept = {one.target for one in lasts.values() if one.identical}
    kept |= {one.target for one in bare}
    every, theirs = with_clients(
        [*copied(view, flow.lane, rows), *bare],
        switch_states(view).values(),
        flow.flow,
        kept,
        continued_since(view, flow.lane),
    )
    every = [at_source_offsets(one) if one.target in kept else one for one in every]
    every = [after_clients(one, after[one.target]) if one.target in after else one for one in every]
    runs = None if wanted.run is None else of_run(view, flow.lane, wanted.run)
    repartitioned = await survey_dealt(flow, connections, view, wanted)
    if not repartitioned.topics or any(runs is None or one.source in runs for one in every):
        _refuse_nothing(flow, wanted, every, runs, repartitioned.topics)
    if runs is not None:
        every = [one for one in every if one.source in runs]
    begun = await _begins(flow, connections, view, wanted, every, repartitioned)
    found = Survey(
        begins=begun,
        partitions=len(every) + len(repartitioned.copies),
        dealt=repartitioned.copies,
        not_compared=repartitioned.not_compared,
        notes=[*repartitioned.notes, *theirs],
    )
    source, target = connections.source, connections.target
    await source.refresh({one.source.topic for one in every})
    await target.refresh({one.target.topic for one in every})
    there = list(_with_both_sides(every, source, target, found))
    bounds = await _bounds(source, there, wanted)
    ends = await _ends(connections, [one for one in there if one.source in bounds], found)
    ahead = [one for one in there if one.source in ends and one.target in kept]
    await _offset_by_offset(flow, connections, ahead, ends, found)
    compacted = await compacted_topics(source, {one.source.topic for one in there}, found.notes)
    compacted_copies = await compacted_topics(target, {one.target.topic for one in there}, found.notes)
    for one in there:
        if one.source in ends:
            start, end = bounds[one.source]
            asked = Asked(
                start=start,
                end=end,
                run=None if runs is None else runs[one.source],
                sample=wanted.sample,
                seed=wanted.seed,
            )
            cleaned = wanted.compacted or one.source.topic in compacted or one.target.topic in compacted_copies
            some, left = spans(one, asked, ends[one.source], compacted=cleaned)
            if not one.ranges and one.target in kept and not (some or left):
                left = [without_records(one, ends[one.source])]
            some = [replace(part, identical=one.target in kept) for part in some]
            found.spans += [one for one in some if not one.transform]
            found.transformed += [one for one in some if one.transform]
            found.not_compared += left
    if wanted.run is None:
        found.notes += no_receipt_yet([(one, ends[one.source]) for one in there if one.source in ends])
    found.sizes = await offset_bytes(source, {*(one.source for one in found.transformed), *source_ranges(found.dealt)})
    return found


async def _without_receipts(
    flow: FlowConfig, connections: FlowConnections, view: LedgerView, received: Collection[TopicPartition]
) -> list[Copied]:
    """Return the copies to which the lane may have sent records with identical offsets, and that have no receipt yet.

    A run writes records before their receipts. The ledger has the first offset of each copy. Copies that were
    deleted or dropped since are left out.
    """
    sent = {place: max(some) for place, some in first_offsets(view, flow.lane, current=True).items()}
    sent |= {place: one.at for place, one in continued(view, flow.lane).items()}
    firsts = {place: first for place, first in sent.items() if place not in received}
    if not firsts:
        return []
    sources = {flow.copy_of(name): name for name in await connections.source.refresh(None)}
    names = {
        topic: sources.get(topic) or flow.topics.policy.upstream_topic(topic) or topic
        for topic in {place.topic for place in firsts}
    }
    return [
        unreceived(TopicPartition(names[place.topic], place.partition), place, first)
        for place, first in sorted(firsts.items())
    ]


async def _begins(
    flow: FlowConfig,
    connections: FlowConnections,
    view: LedgerView,
    wanted: Wanted,
    every: Sequence[Copied],
    repartitioned: SurveyOfDealt,
) -> tuple[Begin, ...]:
    """Return where the lane began with what is wanted; for one run, only with what has receipts of it."""
    source, lane = connections.source, flow.lane
    topics = {key[2] for key, _ in view.of_kind("start") if key[1] == lane}
    there = await source.refresh(topics | {one.source.topic for one in every} | repartitioned.topics)
    ids = {name: info.id_text for name, info in there.items()}
    starts = recorded_starts(view, lane, ids)
    rules = [era for era in eras(view, lane).values() if era.source_topic in repartitioned.topics]
    copies = {one.source: one for one in every}

    def looked(log_starts: Mapping[TopicPartition, int]) -> list[Begin]:
        return [
            one
            for one in begins(
                every, rules, starts, gaps(view, lane), adoptions(view, lane), log_starts, repartitioned.began
            )
            if wanted.takes(one.source)
            and (wanted.run is None or one.source in copies or one.source.topic in repartitioned.topics)
        ]

    planned = {era.source_topic: era.source_topic_id for era in rules}

    def is_same(place: TopicPartition) -> bool:
        of = copies[place].source_topic_id if place in copies else planned.get(place.topic, "")
        return place.topic in there and of in ("", ids[place.topic])

    same = [one.source for one in looked({}) if is_same(one.source)]
    edges = await listed_offsets(source, dict.fromkeys(same, EARLIEST), isolation=READ_UNCOMMITTED)
    return tuple(looked(edges.found))


def _refuse_nothing(
    flow: FlowConfig,
    wanted: Wanted,
    every: Sequence[Copied],
    runs: Mapping[TopicPartition, object] | None,
    repartitioned: Collection[str],
) -> None:
    lane = f"lane {flow.lane} of flow {flow.flow}"
    for topic in wanted.topics or ():
        if topic not in repartitioned and not any(one.source.topic == topic for one in every):
            what = topic if wanted.partition is None else TopicPartition(topic, wanted.partition)
            raise BadInput(
                f"{lane} has copied nothing of source {what}: name one that `ferry ledger` lists, or run the flow first"
            )
    if runs is not None and not any(one.source in runs for one in every):
        raise BadInput(f"{lane} has no receipts of run {wanted.run}: `ferry ledger --runs` lists its runs")
    if not every:
        raise BadInput(f"{lane} has copied nothing yet: run the flow first")


def _with_both_sides(every: Sequence[Copied], source: Cluster, target: Cluster, found: Survey) -> Iterator[Copied]:
    """Return the copies whose topics are on both sides; the others cannot be compared."""
    again: set[str] = set()
    for one in every:
        here, there = source.topics.get(one.source.topic), target.topics.get(one.target.topic)
        hidden = hidden_topic(source, one.source.topic) or hidden_topic(target, one.target.topic)
        if hidden is not None:
            _leave_out(found, one, NotComparedKind.UNREADABLE, f"{one.source} is not compared: {hidden}")
        elif here is None or one.source.partition not in here.partitions:
            gone = f"{one.source} is gone from the source"
            _leave_out(found, one, NotComparedKind.SOURCE_REPLACED, f"{gone}: its copy {one.target} is all there is")
        elif one.source_topic_id and here.id_text and one.source_topic_id != here.id_text:
            again_there = f"source topic {one.source.topic} was created again since it was copied"
            _leave_out(found, one, NotComparedKind.SOURCE_REPLACED, f"{again_there}: there is nothing to compare with")
        elif there is None or one.target.partition not in there.partitions:
            gone = f"{one.target}, the copy of {one.source}, is gone from the target"
            _leave_out(found, one, NotComparedKind.TARGET_GONE, f"{gone}: `ferry plan` shows what to do")
        else:
            if one.target_topic_id and there.id_text and one.target_topic_id != there.id_text:
                again.add(one.target.topic)
            yield one
    found.notes += [f"target topic {topic} was created again since it was copied to" for topic in sorted(again)]


def _leave_out(found: Survey, one: Copied, why: NotComparedKind, message: str) -> None:
    found.not_compared += [
        NotCompared(source=one.source, start=start, end=end, why=why, message=message, asked=True)
        for start, end in one.ranges or ((one.target_next, one.target_next),)
    ]


async def _bounds(
    source: Cluster, every: Sequence[Copied], wanted: Wanted
) -> dict[TopicPartition, tuple[int | None, int | None]]:
    """Return the source offsets between which each partition is compared, without partitions that have no such record.

    A time means the first record at that time or later, as Kafka returns it. A time does not ask for what is before the
    first copied record.
    """
    bounds = {one.source: (wanted.start, wanted.end) for one in every}
    times = {}
    for name, ms in (("since", wanted.since_ms), ("until", wanted.until_ms)):
        if ms is not None:
            asked = dict.fromkeys(bounds, ms)
            times[name] = (await listed_offsets(source, asked, isolation=READ_UNCOMMITTED)).found
    for one in every:
        start, end = bounds[one.source]
        if "since" in times:
            late, first = times["since"].get(one.source), one.ranges[0][0] if one.ranges else one.target_next
            start = None if late is None else late if late < 0 else max(late, first)
        if "until" in times and (late := times["until"].get(one.source, -1)) >= 0:
            end = late
        bounds[one.source] = start, end
    return {
        place: (start, end)
        for place, (start, end) in bounds.items()
        if (start is None or start >= 0) and (end is None or start is None or start < end)
    }


async def _ends(connections: FlowConnections, every: Sequence[Copied], found: Survey) -> dict[TopicPartition, Ends]:
    """Return where the logs begin and end, once what is in the ledger can be read, or `SETTLE_SECONDS` have passed."""
    source, target = connections.source, connections.target
    sources, targets = [one.source for one in every], [one.target for one in every]
    stable = await settled(connections, {one.target: one.target_next if one.ranges else 0 for one in every})
    listed = {
        "source_start": await listed_offsets(source, dict.fromkeys(sources, EARLIEST), isolation=READ_UNCOMMITTED),
        "source_end": await listed_offsets(source, dict.fromkeys(sources, LATEST), isolation=READ_UNCOMMITTED),
        "target_start": await listed_offsets(target, dict.fromkeys(targets, EARLIEST), isolation=READ_UNCOMMITTED),
        "target_end": await listed_offsets(target, dict.fromkeys(targets, LATEST), isolation=READ_UNCOMMITTED),
        "stable": stable,
    }
    ends = {}
    for one in every:
        sides = {name: one.source if name.startswith("source") else one.target for name in listed}
        failed = [listed[name].failed[place] for name, place in sides.items() if place in listed[name].failed]
        if all(place in listed[name].found for name, place in sides.items()):
            ends[one.source] = Ends(**{name: listed[name].found[place] for name, place in sides.items()})
        else:
            why = failed[0].why if failed else "it has no leader at the moment: bring its brokers back"
            _leave_out(found, one, NotComparedKind.UNREADABLE, f"{one.source} or its copy {one.target}: {why}")
    return ends


async def _offset_by_offset(
    flow: FlowConfig,
    connections: FlowConnections,
    every: Sequence[Copied],
    ends: dict[TopicPartition, Ends],
    found: Survey,
) -> None:
    """Add to `ends` where the source ends for the flow, of copies with identical offsets that have more than receipts.

    Their records are in no transaction, so readers see them before their receipts.
    """
    ahead = [one for one in every if ends[one.source].stable > one.target_next]
    places = dict.fromkeys((one.source for one in ahead), LATEST)
    listed = await listed_offsets(connections.source, places, isolation=isolation_of(flow))
    for one in ahead:
        if one.source in listed.found:
            ends[one.source] = replace(ends[one.source], same_until=listed.found[one.source])
        else:
            del ends[one.source]
            why = listed.failed[one.source].why if one.source in listed.failed else "it has no leader at the moment"
            _leave_out(found, one, NotComparedKind.UNREADABLE, f"{one.source}: {why}")
