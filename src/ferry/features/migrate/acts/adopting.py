"""Adopt a flow from another replicator: read its positions, compare both logs, and record where the lane continues.

An adoption is a run that copies nothing. It is opened like every run, so it fences other runs of the lane, and the
facts for the decision are gathered after that. Its records are the evidence (`adopted`) and empty last receipts. The
next run continues after these, so guards compare with them as with any receipt (ADR 23).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace

from ferry.errors import BadInput, Corrupt, Refused
from ferry.features.identical.rules.written import refuse_written
from ferry.features.identical.settings import IdenticalSettings
from ferry.features.migrate.acts.at_rest import (
    Mm2Place,
    copies_of,
    refuse_members,
    refuse_moving_mm2,
    refuse_running_mm2,
    refuse_undecided,
)
from ferry.features.migrate.rules.adoption import Left, Pair, Takeover, Verdict, adoptions_of, judged, takeover
from ferry.features.migrate.rules.connect_offsets import connector_offsets
from ferry.features.migrate.rules.hand_back import pause_without
from ferry.features.migrate.rules.seam import NOT_LOOKED_AT, Ends, Seam, SeamState, seam
from ferry.features.migrate.rules.wanted import refuse_unknown_topics
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.fetch.offsets import EARLIEST, LATEST, group_offsets, listed_offsets
from ferry.kafka.fetch.requests import READ_COMMITTED, READ_UNCOMMITTED
from ferry.kafka.fetch.whole_topic import read_topic
from ferry.kafka.fetch.windows import read_windows
from ferry.lane.open_lane import OpenLane
from ferry.ledger.adoption_codec import adoption_records
from ferry.ledger.codec import pause_record, resume_record
from ferry.ledger.deployments import admitted
from ferry.ledger.ledger import LedgerView, overwritten
from ferry.messages.catalogue import sentence
from ferry.model import Fate, Origin, Plan, Predecessor, Range, TopicPartition
from ferry.plan.gather import Positions
from ferry.plan.gather_all import gather_all
from ferry.plan.options import DEFAULT_LEDGER_REPLICATION, RunOptions, rules_of
from ferry.plan.rules.facts import Facts
from ferry.plan.rules.skipping import idle_plan, refuse_while_at_work
from ferry.protocol.driver import Driver, fence_and_seal
from ferry.run.micro_run import MicroRuns
from ferry.wire.mirror_records import parse_offset_sync

_NEAR = 64
"""How many offsets around a position, and before the end of a copy, are read first."""
_FAR = 4_096
"""How many offsets on both sides of a position are read if the copy does not end at it."""

ReadLeft = Callable[[Facts, bool], Awaitable[tuple[Left, list[str]]]]
"""Reads what a predecessor left, and notes. It raises Refused while the predecessor runs.

With True, it also raises Refused while positions, heartbeats or copies of the predecessor still move.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptionOptions:
    """Who asks for an adoption, of which topics (None: all), and whether copies count more than positions (`align`)."""

    who: str
    only: frozenset[str] | None = None
    align: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Mm1Place:
    """The consumer group of a MirrorMaker 1, on the source."""

    group: str


PredecessorPlace = Mm1Place | Mm2Place
"""The place in which a predecessor keeps its positions."""


def read_left(lane: OpenLane, place: PredecessorPlace) -> ReadLeft:
    """Return the function that reads what the predecessor left."""
    return mm1_left(lane, place.group) if isinstance(place, Mm1Place) else mm2_left(lane, place)


def mm2_left(lane: OpenLane, place: Mm2Place) -> ReadLeft:
    """Return the function that reads what a MirrorMaker 2 left.

    That is its offsets topic on the target, and its offset syncs.
    """

    async def read(facts: Facts, watch: bool) -> tuple[Left, list[str]]:
        flow, target = lane.flow, lane.target
        notes = await refuse_running_mm2(target, place)
        if watch:
            await refuse_moving_mm2(flow, target, place, copies_of(flow, facts))
        records = await read_topic(target, place.offsets_topic)
        if records is None:
            raise BadInput(
                f"there is no topic {place.offsets_topic} on cluster {target.alias}: name the offset.storage.topic of "
                "MirrorMaker 2 with --offsets-topic"
            )
        found = connector_offsets(records, place.connector, flow.flow.source, place.offsets_topic)
        refuse_undecided(target, place, found)
        if not found.next_offsets:
            others = ", ".join(sorted(found.others)) or "none"
            aliases = f", and it has cluster {', '.join(sorted(found.clusters))}" if found.clusters else ""
            raise BadInput(
                f"topic {place.offsets_topic} on cluster {target.alias} has no position of connector {place.connector} "
                f"for source cluster {flow.flow.source}{aliases} (other connectors: {others}): name it with "
                "--connector, or give the source the alias that MirrorMaker 2 had for it"
            )
        pairs, more = await _offset_syncs(lane)
        left = Left(
            by=Predecessor.MM2,
            where=f"{place.offsets_topic} ({place.connector})",
            next_offsets=found.next_offsets,
            pairs=pairs,
        )
        return left, [*notes, *more]

    return read


async def _offset_syncs(lane: OpenLane) -> tuple[dict[TopicPartition, tuple[Pair, ...]], list[str]]:
    """Return pairs of MirrorMaker 2's offset syncs, in the order of writing, and notes, such as that there are none.

    MirrorMaker 2 keeps them on the source unless its file says otherwise, and Ferry writes its own on the target. If
    both topics have pairs of a partition, those that go further count.
    """
    flow = lane.flow
    found: dict[TopicPartition, tuple[Pair, ...]] = {}
    notes: list[str] = []
    looked = [(lane.source, flow.flow.target), (lane.target, flow.flow.source)]
    for cluster, other in looked:
        topic = flow.topics.policy.offset_syncs_topic(other)
        try:
            pairs = await _pairs_of(cluster, topic)
        except (BadInput, Corrupt, Refused) as error:
            notes.append(f"offset syncs of {topic} on cluster {cluster.alias} are left aside: {error}")
            continue
        for place, ones in pairs.items():
            if place not in found or found[place][-1][0] < ones[-1][0]:
                found[place] = tuple(ones)
    if not found:
        names = " and ".join(
            f"{flow.topics.policy.offset_syncs_topic(other)} on {cluster.alias}" for cluster, other in looked
        )
        notes.append(
            f"there are no offset syncs ({names}): offsets before the adoption translate to the beginning of the copy"
        )
    return found, notes


async def _pairs_of(cluster: Cluster, topic: str) -> dict[TopicPartition, list[Pair]]:
    pairs: dict[TopicPartition, list[Pair]] = {}
    for number, record in await read_topic(cluster, topic) or ():
        if number == 0 and record.fate is Fate.COMMITTED:
            sync = parse_offset_sync(record.key, record.value)
            pairs.setdefault(sync.source, []).append((sync.upstream, sync.downstream))
    return pairs


def mm1_left(lane: OpenLane, group: str) -> ReadLeft:
    """Return the function that reads what a MirrorMaker 1 left: the positions of its consumer group on the source."""

    async def read(facts: Facts, watch: bool) -> tuple[Left, list[str]]:
        del watch  # the members of the consumer group are enough
        source = lane.source
        await refuse_members(
            source,
            group,
            "MirrorMaker 1",
            "stop it with SIGTERM, which commits its positions; one that was killed leaves its group when its session "
            "times out",
        )
        places = [
            TopicPartition(topic=topic.name, partition=number)
            for topic in facts.source.topics.values()
            for number in topic.partitions
        ]
        read = await group_offsets(source, group, places)
        read.refuse_denied(source.alias)
        offsets = {place: word[0] for place, word in read.found.items() if word is not None}
        if not offsets:
            raise BadInput(
                f"group {group} on cluster {source.alias} has no position on a topic of flow {lane.flow.flow}: "
                "correct --group (group.id of its consumer file), or use its positions before they expire"
            )
        where = f"group {group} on {source.alias}"
        notes = ["MirrorMaker 1 keeps no offset syncs: offsets before the adoption translate to the copy's beginning"]
        return Left(by=Predecessor.MM1, where=where, next_offsets=offsets), notes

    return read


def preview_adoption(runs: MicroRuns, place: PredecessorPlace, options: AdoptionOptions) -> Takeover:
    """Return what would be adopted now; writes nothing. Raises Refused if the flow has identical offsets."""
    _refuse_identical(runs)

    async def work(lane: OpenLane, view: LedgerView) -> Takeover:
        refuse_written(view, lane.flow, "ferry migrate")
        return (await _decide(lane, view, read_left(lane, place), options, watch=True))[0]

    return runs.act(work)


def adopt(runs: MicroRuns, place: PredecessorPlace, options: AdoptionOptions, run: str, origin: Origin) -> Takeover:
    """Adopt what can be adopted, in a run of its own.

    An error that concerns all partitions is raised before anything is written. Raises Refused while the predecessor
    runs, a run of the lane is active, or the flow has identical offsets; and the errors of `fence_and_seal`.
    """
    _refuse_identical(runs)
    return runs.act(lambda lane, view: _adopt(lane, view, read_left(lane, place), options, run, origin))


def _refuse_identical(runs: MicroRuns) -> None:
    """Raise Refused if records keep their offsets: what a predecessor copied has others."""
    runs.flow.of(IdenticalSettings).refuse(runs.flow, "ferry migrate")


async def _adopt(
    lane: OpenLane, view: LedgerView, read: ReadLeft, options: AdoptionOptions, run: str, origin: Origin
) -> Takeover:
    refuse_written(view, lane.flow, "ferry migrate")
    refuse_while_at_work(await lane.with_newest(view), lane.name)
    before, _ = await _decide(lane, view, read, options, watch=True)
    if not before.of(Verdict.ADOPT):
        return before
    await lane.ledger.open(lane.flow.ledger.replication_factor or DEFAULT_LEDGER_REPLICATION)
    view = await lane.cache.view()
    record = admitted(view, lane.record(run, origin), take_over=False)
    done: list[Takeover] = []
    read_to: list[int] = []

    async def decide(driver: Driver) -> Plan:
        lane.cache.learn(driver.view, driver.read_ms)
        found, facts = await _decide(lane, driver.view, read, options, watch=False)
        _refuse_moved(before, found)
        done.append(found)
        adopted = adoptions_of(found, facts, driver.opened, options.who)
        records = [part for one in adopted for part in adoption_records(one)]
        pause = facts.lane.pauses.get("")
        left = None if pause is None else pause_without(pause)
        if left != pause:
            records.append(resume_record("") if left is None else pause_record(left))
            read_to.append(driver.view.end)
        driver.keep(records)
        return replace(
            idle_plan(driver.opened),
            notes=(adoption_sentence(found),),
            source_cluster_id=facts.source.cluster_id,
            target_cluster_id=facts.target.cluster_id,
        )

    sealed = await fence_and_seal(lane.driver_port(), record, decide, view)
    if read_to:  # a pause that an operator has set meanwhile is not undone
        since = await lane.ledger.read_untransacted(read_to[-1], sealed.driver.view.end)
        if others := overwritten(since, [resume_record("")]):
            await lane.ledger.append(others)
    return done[-1]


def _refuse_moved(before: Takeover, now: Takeover) -> None:
    """Raise Refused if anything has changed between the check before the fencing and the one after it."""
    ends = {row.target: row.target_end for row in before.rows}
    for row in now.rows:
        if row.target_end != ends.get(row.target, row.target_end):
            raise Refused(
                f"{now.left.what} still runs, or another client writes: {row.target} grew from offset "
                f"{ends[row.target]} to {row.target_end} meanwhile; stop it, then adopt again"
            )
    if now.left.next_offsets != before.left.next_offsets:
        raise Refused(
            f"{now.left.what} still runs: positions in {now.left.where} have changed; stop it, then adopt again"
        )


def adoption_sentence(found: Takeover) -> str:
    """Say how many partitions were adopted: `3 partitions adopted from MirrorMaker 2 by ...`."""
    count = len(found.of(Verdict.ADOPT))
    return sentence("run.adopted", partitions=count, predecessor=found.left.what, where=found.left.where)


async def _decide(
    lane: OpenLane, view: LedgerView, read: ReadLeft, options: AdoptionOptions, *, watch: bool
) -> tuple[Takeover, Facts]:
    facts = await gather_all(lane, view, Positions.NONE)
    left, notes = await read(facts, watch)
    if watch:  # it was seen to be at rest meanwhile, so what both sides show from now on does not change
        facts = await gather_all(lane, view, Positions.NONE)
    rules = rules_of(lane.flow, lane.name, RunOptions(only=options.only))
    refuse_unknown_topics(rules, facts.source)
    places = {
        TopicPartition(topic=name, partition=number): end
        for name, topic in facts.target.topics.items()
        for number, end in topic.ends.items()
    }
    begins = await listed_offsets(lane.target, dict.fromkeys(places, EARLIEST), isolation=READ_UNCOMMITTED)
    stable = await listed_offsets(lane.target, dict.fromkeys(places, LATEST), isolation=READ_COMMITTED)
    held = {place: end for place, end in stable.found.items() if end < places[place]}
    found = takeover(rules, facts, left, begins.found, held)
    seams = await _seams(lane.source, lane.target, found)
    found = judged(found, seams, align=options.align)
    return replace(found, notes=(*notes, *found.notes)), facts


async def _seams(source: Cluster, target: Cluster, found: Takeover) -> Mapping[TopicPartition, Seam]:
    """Compare each copy's end with the position: a few records of both sides, and more only if they do not meet.

    MirrorMaker 1 chose partitions by the keys of records, so its copies cannot be compared with the source like this.
    """
    if found.left.by is Predecessor.MM1:
        return {}
    rows = {row.source: row for row in found.of(Verdict.ADOPT)}
    tails = await read_windows(
        target, {row.target: (max(row.target_start, row.target_end - _NEAR), row.target_end) for row in rows.values()}
    )
    seams: dict[TopicPartition, Seam] = {}
    for around in (_NEAR, _FAR):
        left = {
            place: row
            for place, row in rows.items()
            if row.target in tails and not _settled(seams.get(place, NOT_LOOKED_AT))
        }
        windows: dict[TopicPartition, Range] = {
            place: (max(row.log_start, row.position - around), min(row.source_end, row.position + around))
            for place, row in left.items()
        }
        for place, contents in (await read_windows(source, windows)).items():
            row = rows[place]
            ends = Ends(
                source=contents,
                target=tails[row.target],
                source_whole=windows[place][0] == row.log_start,
                target_empty=row.target_end == 0,
            )
            seams[place] = seam(ends, row.position)
    return seams


def _settled(found: Seam) -> bool:
    return found.state is SeamState.CLEAN and not found.records
