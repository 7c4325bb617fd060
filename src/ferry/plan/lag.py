"""Measure a flow's lag: facts of both clusters, and one read of the oldest record that is not yet copied."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from functools import partial

from ferry.clock import wall_ms
from ferry.config.flow.flow import FlowConfig
from ferry.config.flow.guards import OnGuard
from ferry.errors import EmptyFilter, Retryable
from ferry.kafka.connect import codes
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.fetch.offsets import LATEST, listed_offsets
from ferry.kafka.fetch.requests import READ_UNCOMMITTED, fetch_request, fetched
from ferry.lane.connections import FlowConnections
from ferry.lane.log_ends import log_ends
from ferry.ledger.history import PastState, past_runs
from ferry.ledger.progress import committed, progress_of, unfinished
from ferry.messages.refusals import words_of
from ferry.model import TopicPartition, with_text
from ferry.plan.gather import Positions, gather_facts
from ferry.plan.rules.absence import hidden_refusals
from ferry.plan.rules.empty_filter import FilterFindings, empty_filter
from ferry.plan.rules.facts import Facts
from ferry.plan.rules.lag import LagLook, PartitionLag, lag_of, with_ages
from ferry.plan.rules.lag_start import LaneState, standing_of
from ferry.wire.age import first_timestamp

log = logging.getLogger(__name__)

_MOST_NAMED = 3
"""Most names without a matching topic that one error lists."""
_ROUNDS = ((500, 4 << 10), (200, 64 << 10), (16, 1 << 20), (1, 1 << 20))
"""Partitions per request and bytes per partition, round by round: small batches first, many at once.

If a batch does not fit, a broker returns nothing for it, unless it is of a request's first partition (KIP-74). So what
is left after the other rounds is asked for alone.
"""


def measure_lag(
    flow: FlowConfig, *, only: Collection[str] | None = None, patience_s: float = 60.0
) -> list[PartitionLag]:
    """Return the lag of every source partition of the flow (narrowed to the topics `only`); writes nothing.

    A flow that never ran has a lag of everything from its configured start. Names in the flow's `topics` that match
    nothing, or that the login may not see, are logged as a warning. Raises Unreachable; Refused; EmptyFilter for a flow
    that takes no topic; and BadInput for a topic of `only` that the source does not have.
    """
    with FlowConnections.of(flow, patience_s=patience_s) as connections:
        return connections.run(partial(lag_over, flow, connections, only))


def look_at_lag(flow: FlowConfig, *, patience_s: float, runs: int = 1) -> tuple[list[PartitionLag], LaneState]:
    """Return the flow's lag, and the state of its newest run and its pauses; writes nothing.

    A newest run that is open has its progress, without a rate. If the newest run did not succeed, the state has those
    before it, too: `runs` in all. Raises Unreachable; Refused; and EmptyFilter for a flow
    that takes no topic.
    """

    async def work() -> tuple[list[PartitionLag], LaneState]:
        lags = await lag_over(flow, connections)
        if not await connections.has_ledger():
            return lags, LaneState()
        found = await _standing(flow.lane, connections)
        if runs > 1 and found.newest is not None and found.newest.state is not PastState.SUCCESS:
            past = past_runs(await connections.cache.view_with_newest(flow.lane, runs), flow.lane, runs)
            earlier = tuple(one for one in past if one.opened.generation < found.generation)
            found = replace(found, earlier=earlier)
        return lags, found

    with FlowConnections.of(flow, patience_s=patience_s) as connections:
        return connections.run(work)


def look_at(
    flow: FlowConfig, *, only: Collection[str] | None, until_ms: int | None = None, patience_s: float
) -> LagLook:
    """Return the flow's lag (narrowed to the topics `only`), and what of it is not known; writes nothing.

    With `until_ms` it has where each partition must be copied to, and no ages. Raises what `measure_lag` raises.
    """

    async def work() -> LagLook:
        source = connections.source
        facts, lags, _ = await _lag_now(flow, connections, only)
        hidden = facts.source.hidden if only is None else frozenset()
        begun = not facts.lane.first_run
        if until_ms is None:
            return LagLook(lags=await with_oldest(source, facts, lags), hidden=hidden, begun=begun)
        return LagLook(lags=lags, hidden=hidden, begun=begun, ends=await _ends_at(source, lags, until_ms))

    with FlowConnections.of(flow, patience_s=patience_s) as connections:
        return connections.run(work)


async def _standing(lane: str, connections: FlowConnections) -> LaneState:
    async def look() -> LaneState:
        return standing_of(await connections.cache.view_with_newest(lane, 1), lane, wall_ms())

    found = await look()
    before = found.newest
    report = None if before is None else before.open_report
    if before is None or report is None:
        return found
    # What is sent is asked for before the receipts are read (`progress_of`).
    ends = await log_ends(connections.target, unfinished(report.plan, committed(report.receipts)))
    found = await look()
    newest = found.newest
    report = None if newest is None or newest.opened != before.opened else newest.open_report
    if newest is None or report is None:
        return found
    progress = progress_of(report.plan, committed(report.receipts), ends)
    return replace(found, newest=replace(newest, progress=progress))


async def _ends_at(source: Cluster, lags: Collection[PartitionLag], until_ms: int) -> dict[TopicPartition, int]:
    """Return the offset of the first record of a time or later; the high watermark if there is none.

    Partitions that no broker answers for are left out. The high watermark is read after the time: a record that came
    between is counted, and none is missed.
    """
    served = [lag.source for lag in lags if lag.source_end is not None]
    if not served:
        return {}
    found = (await listed_offsets(source, dict.fromkeys(served, until_ms), isolation=READ_UNCOMMITTED)).found
    ends = {place: offset for place, offset in found.items() if offset >= 0}
    if older := found.keys() - ends.keys():
        ends |= (await listed_offsets(source, dict.fromkeys(older, LATEST), isolation=READ_UNCOMMITTED)).found
    return ends


async def lag_over(
    flow: FlowConfig, connections: FlowConnections, only: Collection[str] | None = None
) -> list[PartitionLag]:
    """Return the lag of every source partition (narrowed to the topics `only`) over open connections; writes nothing.

    Names in the flow's `topics` that match nothing, or that the login may not see, are logged as a warning. Raises
    Unreachable; Refused; EmptyFilter for a flow that takes no topic; and BadInput for a topic of `only` that the source
    does not have.
    """
    facts, lags, vain = await _lag_now(flow, connections, only)
    hidden = (refusal.message for refusal in hidden_refusals(facts.source, flow.flow, only))
    for note in (*vain.notes, *hidden):
        log.warning("note: %s", note)
    return await with_oldest(connections.source, facts, lags)


async def _lag_now(
    flow: FlowConfig, connections: FlowConnections, only: Collection[str] | None
) -> tuple[Facts, list[PartitionLag], FilterFindings]:
    """Return the facts, the lags without ages, and which names in the flow's `topics` match nothing."""
    source, target = connections.source, connections.target
    view = await connections.view_if_any()
    facts = await gather_facts(flow, flow.lane, source, target, view, positions=Positions.NONE)
    gone = frozenset(name for name in facts.source.absent if flow.topics.guards.topic_gone.of(name) is not OnGuard.SKIP)
    facts = replace(facts, source=replace(facts.source, absent=gone))
    vain = empty_filter(flow.flow, flow.topics.guards, facts) if only is None else FilterFindings()
    if vain.refusals:  # reporting no lag at all would read as health
        said = "; ".join(refusal.message for refusal in vain.refusals[:_MOST_NAMED])
        raise EmptyFilter(with_text(words_of(vain.refusals[0]), said))
    return facts, lag_of(facts, flow.topics.policy, flow.flow.source, only), vain


async def with_oldest(source: Cluster, facts: Facts, lags: list[PartitionLag]) -> list[PartitionLag]:
    """Return the lags with the age of the oldest record that is not yet copied, which is read from the source."""
    log_starts = {
        TopicPartition(topic=topic.name, partition=number): part.log_start
        for topic in facts.source.topics.values()
        for number, part in topic.partitions.items()
    }
    wanted = {lag.source: max(lag.read_at, log_starts[lag.source]) for lag in lags if lag.read_at is not None}
    return with_ages(lags, await first_timestamps(source, wanted), facts.now_ms)


async def first_timestamps(
    cluster: Cluster, offsets: Mapping[TopicPartition, int], *, appended: bool = False
) -> dict[TopicPartition, int]:
    """Return the first timestamp (ms) of the batch that holds each offset.

    Partitions without one are left out: an old record format, an offset out of range, no leader. `appended`: so are
    those whose timestamp is not the broker's (LogAppendTime).
    """
    found: dict[TopicPartition, int] = {}
    waiting = dict(offsets)

    async def action(width: int, partition_bytes: int) -> None:
        moved = False
        for node, part in _requests(cluster, waiting, width):
            request = fetch_request(
                cluster,
                part,
                isolation=READ_UNCOMMITTED,
                max_bytes=width * partition_bytes,
                partition_bytes=partition_bytes,
                max_wait_ms=0,
            )
            for answer in fetched(request, await cluster.ask(request, node)):
                moved = moved or answer.error_code in codes.LEADER_MOVED
                if answer.error_code or not answer.records:
                    continue
                timestamp = first_timestamp(answer.records, appended=appended)
                if timestamp is not None:
                    found[answer.place] = timestamp
                del waiting[answer.place]
        if moved:
            await cluster.refresh({place.topic for place in waiting})
            raise Retryable(f"oldest records of cluster {cluster.alias}: a leader moved")

    for width, partition_bytes in _ROUNDS:
        await cluster.retrying(partial(action, width, partition_bytes))
    return found


def _requests(
    cluster: Cluster, offsets: Mapping[TopicPartition, int], width: int
) -> Iterator[tuple[int, dict[TopicPartition, int]]]:
    """Yield partitions by leader, at most `width` in a request; those without a leader are left out."""
    by_leader: dict[int, list[TopicPartition]] = {}
    for place in offsets:
        info = cluster.topics.get(place.topic)
        partition = info.partitions.get(place.partition) if info else None
        if partition is not None and partition.leader >= 0:
            by_leader.setdefault(partition.leader, []).append(place)
    for node, places in by_leader.items():
        for at in range(0, len(places), width):
            yield node, {place: offsets[place] for place in places[at : at + width]}
