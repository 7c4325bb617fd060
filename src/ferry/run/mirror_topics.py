"""Writes MirrorMaker 2's internal topics after a run has copied, so that Kafka's own clients read them like its own.

Everything here follows from receipts and checkpoints, so it is never ahead of copied data. What stands in the way of
one topic stops neither the others nor the run: it is a sentence. A repeat writes the same keys again, and the topics
are compacted.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from ferry.config.flow import FlowConfig
from ferry.decide.internal_topics import (
    InternalTopicName,
    checkpoints_topic,
    copied_heartbeats,
    heartbeats_topic,
    offset_syncs_topic,
    source_heartbeats_topic,
)
from ferry.decide.ledger import LedgerView, last_receipts, receipts, superseded_by
from ferry.decide.mirror_state import MirrorState, is_due, mirror_record, mirror_state
from ferry.decide.offset_syncs import offset_syncs
from ferry.errors import Refused
from ferry.model import Checkpoint, GroupCheckpoint, Heartbeat, Plan, Receipt, Record
from ferry.net.cluster import Cluster
from ferry.net.internal_topic import InternalTopic
from ferry.net.ledger import LedgerTopic
from ferry.wire.mirror_records import checkpoint_record, heartbeat_record, offset_sync_record

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Emitted:
    """How many records went to each topic, and what stood in the way of the others."""

    offset_syncs: int = 0
    checkpoints: int = 0
    heartbeats: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorTopics:
    """The internal topics of one flow over open connections. Lives on their event loop."""

    flow: FlowConfig
    lane: str
    source: Cluster
    target: Cluster
    ledger: LedgerTopic

    async def emit(self, view: LedgerView, plan: Plan, checkpoints: Sequence[Checkpoint]) -> Emitted:
        """Write what is due after the run of `plan`: offset syncs, then `checkpoints`, then heartbeats.

        `view` has the run's committed receipts. Nothing is written for a run that a newer one superseded, nor for a
        lane beside the flow's own, whose copies those topics are about. Raises what the ledger raises, and Unreachable.
        """
        if self.lane != self.flow.lane or superseded_by(view, self.lane, plan.generation) is not None:
            return Emitted()
        before = state = mirror_state(view, self.lane)
        notes: list[str] = []

        async def attempt(write: Callable[[], Awaitable[tuple[int, MirrorState]]]) -> int:
            nonlocal state
            try:
                count, state = await write()
            except Refused as error:
                notes.append(str(error))
                return 0
            return count

        emitted = Emitted(
            offset_syncs=await attempt(lambda: self._offset_syncs(view, plan, state)),
            checkpoints=await attempt(lambda: self._checkpoints(checkpoints, state)),
            heartbeats=await attempt(lambda: self._heartbeats(state))
            + await attempt(lambda: self._source_heartbeats(state)),
        )
        if state != before or notes:
            state = replace(state, run=plan.run, notes=tuple(notes))
            await self.ledger.append([mirror_record(self.lane, state)])
        for note in notes:
            log.warning("%s", note)
        return replace(emitted, notes=tuple(notes))

    async def _offset_syncs(self, view: LedgerView, plan: Plan, state: MirrorState) -> tuple[int, MirrorState]:
        topic = offset_syncs_topic(self.flow)
        if topic is None:
            return 0, state
        done = [item for item in receipts(view, lane=self.lane, run=plan.run) if item.generation == plan.generation]
        if (state.synced, state.synced_receipts) == (plan.generation, len(done)):
            return 0, state
        syncs = offset_syncs([*self._missed(view, plan, state), *done], state.synced)
        count = await self._write(topic, [offset_sync_record(sync) for sync in syncs])
        return count, replace(state, synced=plan.generation, synced_receipts=len(done))

    def _missed(self, view: LedgerView, plan: Plan, state: MirrorState) -> list[Receipt]:
        """The last receipts of partitions whose runs came to no offset syncs, since the last ones that were written."""
        lasts = last_receipts(view, self.lane).values()
        return [last for last in lasts if state.synced < last.generation < plan.generation]

    async def _checkpoints(self, checkpoints: Sequence[Checkpoint], state: MirrorState) -> tuple[int, MirrorState]:
        topic, now_ms = checkpoints_topic(self.flow), _now_ms()
        if topic is None or not is_due(self.flow.emit_checkpoints, state.checkpoints_at_ms, now_ms):
            return 0, state
        records = [
            checkpoint_record(
                GroupCheckpoint(
                    group=checkpoint.group,
                    target=checkpoint.target,
                    upstream=checkpoint.source_offset,
                    downstream=checkpoint.target_offset,
                    metadata=checkpoint.metadata,
                )
            )
            for checkpoint in checkpoints
        ]
        count = await self._write(topic, records)
        return count, replace(state, checkpoints_at_ms=now_ms)

    async def _heartbeats(self, state: MirrorState) -> tuple[int, MirrorState]:
        topic, now_ms = heartbeats_topic(self.flow), _now_ms()
        if topic is None or not is_due(self.flow.emit_heartbeats, state.heartbeats_at_ms, now_ms):
            return 0, state
        flow = self.flow.flow
        beat = Heartbeat(source_alias=flow.source, target_alias=flow.target, at_ms=now_ms)
        count = await self._write(topic, [heartbeat_record(beat)])
        await self._announce_source(topic)
        return count, replace(state, heartbeats_at_ms=now_ms)

    async def _announce_source(self, topic: InternalTopicName) -> None:
        """Create the copy of the source's heartbeats, empty, as long as the source has none.

        MirrorClient tells upstream clusters by the names of such topics, and MirrorMaker 2 sees to it by writing
        heartbeats to the source, which Ferry leaves alone unless the file asks.
        """
        name = copied_heartbeats(self.flow)
        there = await self.source.refresh([topic.name])
        if name is not None and not there and not await self.source.hidden([topic.name]):
            await InternalTopic(self.target, name).create(topic.replication_factor)

    async def _source_heartbeats(self, state: MirrorState) -> tuple[int, MirrorState]:
        topic, now_ms = source_heartbeats_topic(self.flow), _now_ms()
        if topic is None or not is_due(self.flow.heartbeats_at_source, state.source_heartbeats_at_ms, now_ms):
            return 0, state
        flow = self.flow.flow
        beat = Heartbeat(source_alias=flow.target, target_alias=flow.source, at_ms=now_ms)
        count = await self._write(topic, [heartbeat_record(beat)])
        return count, replace(state, source_heartbeats_at_ms=now_ms)

    async def _write(self, topic: InternalTopicName, records: Sequence[Record]) -> int:
        """Write records, and create the topic first where there is none; how many they were."""
        internal = InternalTopic(self.source if topic.side == "source" else self.target, topic.name)
        try:
            await internal.create(topic.replication_factor)
            await internal.append(records)
        except Refused as error:
            raise Refused(f"{error}, or set {topic.key} = false; nothing else waits for it") from error
        return len(records)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
