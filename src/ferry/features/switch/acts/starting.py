"""Start a flow opposite to a switch.

Its pause is lifted. It begins at the cut-over if topic names do not separate the records of the two clusters.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from ferry.clock import wall_ms
from ferry.config.flow.flow import FlowConfig
from ferry.config.flow.start import StartLatest
from ferry.errors import Refused, Unreachable
from ferry.features.identical.acts.returning import Returning, look_returning
from ferry.features.switch.acts.connecting import old_patience_s
from ferry.features.switch.acts.engine import StillMine
from ferry.features.switch.acts.fencing import fence_lane, run_of
from ferry.features.switch.acts.handing import hand_over
from ferry.features.switch.acts.partition_state import keeps_offsets, source_ends
from ferry.features.switch.acts.sides import Sides
from ferry.features.switch.rules.beginning import Looked, beginnings, latest_beginnings, own_ends, passed_before
from ferry.features.switch.rules.partition_state import parse_standing, without_new_topics
from ferry.features.switch.rules.report import since_seen
from ferry.kafka.fetch.offsets import EARLIEST, LATEST, listed_offsets
from ferry.kafka.fetch.requests import READ_UNCOMMITTED
from ferry.lane.connections import FlowConnections
from ferry.ledger.codec import lifted_record
from ferry.ledger.ledger import LedgerView, pauses
from ferry.model import Gap, Record, TopicPartition
from ferry.model.switch import Evidence, Step, SwitchState, Verb
from ferry.plan.options import DEFAULT_LEDGER_REPLICATION
from ferry.protocol.driver import Driver
from ferry.words import count_of, several

NOT_LOOKED = Looked()


class OffsetsDiffer(Refused):
    """Partitions cannot continue with identical offsets: records of one side are not on the other one."""


def start_reverse(sides: Sides, state: SwitchState, still_mine: StillMine, *, patience_s: float) -> Evidence:
    """Start the flow back, if it is to be started, and read the ends of the old cluster for the last time.

    After a failover that cluster may be lost: then the flow is left to the failback, and the evidence says so.
    """
    switch = state.switch
    if not switch.options.reverse:
        left = Evidence(sentence=f"{switch.back} is left unchanged", facts={"started": False})
        return _with_stayed(left, sides, state, patience_s)
    if sides.back is None:
        raise Refused(
            f"the file has no flow {switch.back}: add {switch.back}.enabled = true and its topics, then continue"
        )
    if switch.verb is Verb.FAILOVER:  # it may be lost, and the switch must not wait for it
        patience_s = old_patience_s(sides, patience_s)
    try:
        started = start_flow(
            sides.back, state, switch.approved_by, still_mine, looked_to=_looked(state), patience_s=patience_s
        )
    except (Unreachable, Refused) as error:
        if switch.verb is Verb.FAILBACK or (switch.verb is Verb.SWITCHOVER and not isinstance(error, OffsetsDiffer)):
            raise
        why = f", because {sides.old} is not healthy" if isinstance(error, Unreachable) else f" ({error})"
        started = Evidence(
            sentence=f"{switch.back} is not started{why}: ferry failback starts it",
            facts={"started": False, "why": str(error)},
        )
    return _with_stayed(started, sides, state, patience_s)


def _known_ends(state: SwitchState) -> dict[TopicPartition, int]:
    """Return up to where the switch has seen the cluster that was left.

    These are the ends when it was drained, or else when its flow was stopped. The first run back finds what comes there
    later as records of other clients.
    """
    rows = state.rows(Step.DRAIN) or [row for row in state.rows(Step.STOP) if row["source_known"] == "source"]
    return {TopicPartition(topic=row["topic"], partition=row["partition"]): row["source_end"] for row in rows}


def _looked(state: SwitchState) -> Looked:
    """Return up to where the switch has seen the cluster that was left, with the ids that its topics had then."""
    ids = {row["topic"]: row["source_id"] for row in state.rows(Step.STOP) if row.get("source_id")}
    return Looked(ends=_known_ends(state), ids=ids)


def _with_stayed(started: Evidence, sides: Sides, state: SwitchState, patience_s: float) -> Evidence:
    """Add what came to the cluster that was left since the switch saw its ends: it is not on the new cluster.

    If that cluster did not answer when a failover stopped the flow, there is nothing to compare: its loss is not known.
    """
    known, since = _known_ends(state), since_seen(state)
    if not known and Step.DRAIN not in state.done:
        return started
    ends, unseen, why = _last_look(sides, state, patience_s)
    stayed = [(place, known.get(place, 0), end) for place, end in sorted(ends.items()) if end > known.get(place, 0)]
    facts = {**started.facts, "stayed": [[place.topic, place.partition, start, end] for place, start, end in stayed]}
    sentence = started.sentence
    if stayed:
        count = sum(end - start for _, start, end in stayed)
        where = several([str(place) for place, _, _ in stayed])
        sentence += (
            f"; {count_of(count, 'record')} at most came to {count_of(len(stayed), 'partition')} of {sides.old} "
            f"{since} ({where}), and are not on {sides.new}: stop who writes there, and write them again; ferry "
            "failback exports them"
        )
    if unseen:
        facts["unseen"] = [[place.topic, place.partition] for place in unseen]
        where = several([str(place) for place in unseen])
        sentence += (
            f"; whether records came to {count_of(len(unseen), 'partition')} of {sides.old} {since} is not known "
            f"({where}): {why}"
        )
    return replace(started, sentence=sentence, facts=facts)


def _last_look(
    sides: Sides, state: SwitchState, patience_s: float
) -> tuple[dict[TopicPartition, int], list[TopicPartition], str]:
    """Return the ends of the cluster that was left, the partitions whose end is not known, and why it is not.

    If the flow back of a planned switch was started, that cluster has just answered. Then an error is raised, so that
    the step is done again. Otherwise the cluster may be lost.
    """
    known = _known_ends(state)

    async def work() -> dict[TopicPartition, int]:
        ends, _ = await source_ends(sides.via, both.source)
        ids = {name: info.id_text for name, info in both.source.topics.items()}
        return without_new_topics(ends, state.rows(Step.STOP), ids)

    needed = state.switch.options.reverse and state.switch.verb is not Verb.FAILOVER
    if not needed:  # it is not waited for
        patience_s = old_patience_s(sides, patience_s)
    try:
        with FlowConnections.of(sides.via, patience_s=patience_s) as both:
            ends = both.run(work)
    except (Unreachable, Refused) as error:
        if needed:
            raise
        return {}, sorted(known), str(error)
    return ends, sorted(known.keys() - ends.keys()), "they do not report their ends, or were created again"


def start_flow(
    flow: FlowConfig,
    state: SwitchState,
    who: str,
    still_mine: StillMine,
    *,
    looked_to: Looked = NOT_LOOKED,
    patience_s: float,
) -> Evidence:
    """Lift the pause of `flow`, which is opposite to a switch, and let it continue after the switch's cut-over.

    With DefaultReplicationPolicy names separate the records, so there the flow continues at its lane's position.
    `looked_to` is up to where the flow's target was searched for records that were left there. Without it, all records
    of the target count as searched. Raises OffsetsDiffer if the flow has identical offsets, and a log of its target
    ends elsewhere than at the cut-over.
    """
    stood = list(map(parse_standing, state.rows(Step.STOP)))
    keeps = keeps_offsets(flow)
    cuts = {
        # Where offsets are the same, records of clients may be there already, after the lane's.
        one.target: one.copied_end if keeps(one.target.topic) else one.target_copied
        for one in stood
        if _keeps_name(flow, one.target.topic)
    }
    topics_there = {one.target.topic for one in stood}
    left_out = sorted(topic for topic in topics_there if flow.topics.selection.transformed_there(topic) is not None)

    async def work() -> Evidence:
        await both.ledger.open(flow.ledger.replication_factor or DEFAULT_LEDGER_REPLICATION)
        view = await both.view_if_any()
        now_ms = wall_ms()
        same = {place: cut for place, cut in cuts.items() if keeps(place.topic)}

        async def look(view: LedgerView, fenced: int = -1) -> Returning:
            """Return where a flow with identical offsets continues. Raises OffsetsDiffer."""
            found = await look_returning(both, flow.lane, view, same, run_of(state, "reverse"), fenced=fenced)
            if found.others:
                raise OffsetsDiffer(found.refusal(flow.flow.target))
            return found

        returning = await look(view)
        for place in [place for place in cuts if place.topic in returning.made_again | returning.gone]:
            del cuts[place]
        decided = await _gathered(flow, both, state, cuts, looked_to, who, now_ms)
        records, passed = decided(view)
        still_mine()
        groups = await hand_over(flow, both, state.rows(Step.GROUPS), state.switch.id)
        held = pauses(view, now_ms).get("")

        async def keep(driver: Driver) -> None:
            nonlocal passed, held
            # No other run can begin any more: this one has fenced the lane.
            now = await look(driver.view, driver.opened.generation)
            records, passed = decided(driver.view)
            records += now.records(driver.view, flow.lane, driver.opened.record.run)
            held = pauses(driver.view, now_ms).get("")
            driver.keep([*records, *([lifted_record(held, who, now_ms)] if held is not None else [])])
            still_mine()

        if records or held is not None or returning.is_new:
            await fence_lane(flow, state, "reverse", both, still_mine, keep)
        paused = "" if held is None else f"; the pause by {held.who} ({held.why}) is lifted"
        begins = f" after the cut-over in {count_of(len(cuts), 'partition')}" if cuts else ""
        led = f"; its runs write offsets of {count_of(groups, 'group')} on {flow.flow.target}" if groups else ""
        again = sorted(returning.made_again)
        whole = f"; all of {several(again)} is copied, from the beginning" if again else ""
        lacks = f"; {several(sorted(returning.gone))} is not on {flow.flow.target}" if returning.gone else ""
        stay = f"; {several(left_out)} does not go back, because a transform made it" if left_out else ""
        return Evidence(
            sentence=f"{flow.flow} is started{begins}{paused}{led}{stay}{whole}{lacks}",
            facts={
                "started": True,
                "groups": groups,
                "paused_by": None if held is None else held.who,
                "left_out": left_out,
            },
            rows=tuple(
                {"topic": gap.source.topic, "partition": gap.source.partition, "start": gap.start, "end": gap.end}
                for gap in passed
            ),
        )

    with FlowConnections.of(flow, patience_s=patience_s) as both:
        return both.run(work)


Decided = Callable[[LedgerView], tuple[list[Record], list[Gap]]]
"""Returns what a step writes for a lane, and the gaps among it, from the ledger as it is then."""


async def _gathered(
    flow: FlowConfig,
    both: FlowConnections,
    state: SwitchState,
    cuts: Mapping[TopicPartition, int],
    looked_to: Looked,
    who: str,
    now_ms: int,
) -> Decided:
    """Ask the clusters for all facts, and return the function that decides where the lane continues."""
    topics = await both.source.refresh({place.topic for place in cuts}) if cuts else {}
    ids = {name: info.id_text for name, info in topics.items()}
    ends = own_ends(flow.lane, *(await _target_ends(flow, both, cuts, looked_to))) if cuts else []
    stranded = {
        TopicPartition(topic=row["topic"], partition=row["partition"]): (int(row["start"]), int(row["end"]))
        for row in state.rows(Step.STRANDED)
        if row["records"] or row["unopened"]
    }
    latest = await _at_latest(flow, both, state) if isinstance(flow.copy.start, StartLatest) else None
    begins = await _begins(both, latest[0]) if latest is not None else {}
    every = {name: info.id_text for name, info in both.source.topics.items()}

    def decided(view: LedgerView) -> tuple[list[Record], list[Gap]]:
        records, passed = beginnings(
            view,
            flow.lane,
            cuts,
            switch=state.switch.id,
            who=who,
            reason=f"came from {flow.flow.target}, or was left there: switch {state.switch.id}",
            ids=ids,
            now_ms=now_ms,
            stranded=stranded,
        )
        records += ends
        if latest is not None:
            lives, others = latest
            left = passed_before(lives, begins, cuts, stranded)
            records += latest_beginnings(view, flow.lane, lives, others, every, now_ms, left)
        return records, passed

    return decided


async def _at_latest(
    flow: FlowConfig, both: FlowConnections, state: SwitchState
) -> tuple[dict[TopicPartition, int], list[TopicPartition]]:
    """Return where producers continued, with the ends before they came, and the partitions outside the switch.

    In a failover producers may have come before: then the topics that they continue in begin at their beginning.
    """
    rows = state.rows(Step.TOPICS)
    lives = {TopicPartition(topic=row["topic"], partition=row["partition"]): int(row["end"]) for row in rows}
    about = {place.topic for place in lives} | {row["target_topic"] for row in state.rows(Step.STOP)}
    others = [
        TopicPartition(topic=name, partition=number)
        for name, info in (await both.source.refresh(None)).items()
        if flow.topics.selection.takes(name) and name not in about
        for number in info.partitions
    ]
    return {} if state.switch.verb is Verb.FAILOVER else lives, others


async def _begins(both: FlowConnections, places: Collection[TopicPartition]) -> Mapping[TopicPartition, int]:
    """Return the log starts of those partitions that exist and answer."""
    there = await both.source.refresh({place.topic for place in places}) if places else {}
    asked = [place for place in places if place.topic in there and place.partition in there[place.topic].partitions]
    if not asked:
        return {}
    return (await listed_offsets(both.source, dict.fromkeys(asked, EARLIEST), isolation=READ_UNCOMMITTED)).found


def _keeps_name(flow: FlowConfig, topic: str) -> bool:
    return flow.topics.selection.takes(topic) and flow.copy_of(topic) == topic


async def _target_ends(
    flow: FlowConfig,
    both: FlowConnections,
    cuts: Mapping[TopicPartition, int],
    looked_to: Looked,
) -> tuple[dict[TopicPartition, int], dict[str, str]]:
    """Return the ends of the copies and the ids of their topics: up to there they hold records of their own cluster."""
    copies = {TopicPartition(topic=flow.copy_of(place.topic), partition=place.partition) for place in cuts}
    there = await both.target.refresh({place.topic for place in copies})
    asked = [place for place in copies if place.topic in there]
    listed = await listed_offsets(both.target, dict.fromkeys(asked, LATEST), isolation=READ_UNCOMMITTED)
    if listed.failed:
        place, why = next(iter(listed.failed.items()))
        raise Refused(f"the end of {place} on cluster {both.target.alias} is not known, {why.why}")
    ids = {name: info.id_text for name, info in there.items()}
    return {place: looked_to.end(place, end, ids[place.topic]) for place, end in listed.found.items()}, ids
