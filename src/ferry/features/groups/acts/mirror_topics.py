"""Writes MirrorMaker 2's internal topics after a run has copied, so that Kafka's own clients can read them.

All of it follows from receipts and checkpoints, so it is never ahead of copied data. A topic that cannot be written
stops neither the others nor the run: it becomes a note. A repeat writes the same keys again, and the topics are
compacted.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from ferry.clock import wall_ms
from ferry.config.flow.flow import FlowConfig
from ferry.errors import BadInput, Refused
from ferry.features.groups.acts.checkpoint import StoodBack, last_check
from ferry.features.groups.rules.offset_syncs import offset_syncs
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.groups.offsets import LastCheck
from ferry.kafka.produce.internal_topic import InternalTopic
from ferry.kafka.produce.ledger_topic import LedgerTopic
from ferry.ledger.ledger import LedgerView
from ferry.ledger.mirror_state import MirrorState, is_due, mirror_record, mirror_state
from ferry.ledger.receipts import last_receipts, receipts
from ferry.ledger.runs import superseded_by
from ferry.messages.catalogue import said, sentence
from ferry.model import Checkpoint, GroupCheckpoint, Heartbeat, Plan, Receipt, Record
from ferry.plan.rules.internal_topics import (
    InternalTopicName,
    checkpoints_topic,
    copied_heartbeats,
    heartbeats_topic,
    offset_syncs_topic,
    source_heartbeats_topic,
)
from ferry.wire.mirror_records import checkpoint_record, heartbeat_record, offset_sync_record

log = logging.getLogger(__name__)

MOST_MISSED = 20
"""So many groups without checkpoints are named in a run's notes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorTopics:
    """The internal topics of one flow over open connections, on the event loop of these."""

    flow: FlowConfig
    lane: str
    source: Cluster
    target: Cluster
    ledger: LedgerTopic

    async def emit(
        self, view: LedgerView, plan: Plan, checkpoints: Sequence[Checkpoint], missed: Sequence[str] = ()
    ) -> None:
        """Write what is due after the run of `plan`: offset syncs, then `checkpoints`, then heartbeats.

        `view` has the run's committed receipts. Nothing is written for a run that a newer one superseded. Nothing more
        is written after a newer one began or the flow was paused, because no fence covers these topics. Nothing is
        written for a lane that is not the flow's own, because those topics are about the own lane's copies.
        `missed` are sentences about groups that `checkpoints` lack; the first of them become notes of the run. Raises
        what the ledger raises, and Unreachable.
        """
        if self.lane != self.flow.lane or superseded_by(view, self.lane, plan.generation) is not None:
            return
        before = state = mirror_state(view, self.lane)
        notes = [sentence("mirror.no-checkpoint", why=why) for why in missed[:MOST_MISSED]]
        if len(missed) > MOST_MISSED:
            notes.append(sentence("mirror.more-missed", more=len(missed) - MOST_MISSED))

        async def attempt(write: Callable[[MirrorState], Awaitable[MirrorState]]) -> None:
            nonlocal state
            try:
                state = await write(state)
            except StoodBack:
                raise
            except (Refused, BadInput) as error:  # of one topic, or of a text that its format cannot hold
                log.warning("%s", error)
                notes.append(said(error))

        look = last_check(self.ledger, view.end, self.lane, is_run=True, what="MirrorMaker 2's topics")
        try:
            await attempt(partial(self._offset_syncs, look, view, plan))
            await attempt(partial(self._checkpoints, look, checkpoints))
            await attempt(partial(self._heartbeats, look))
            await attempt(partial(self._source_heartbeats, look))
        except StoodBack as why:
            log.info("%s", why)
            return
        if state != before or notes:
            state = replace(state, run=plan.run, notes=tuple(notes))
            await self.ledger.append([mirror_record(self.lane, state)])

    async def _offset_syncs(self, look: LastCheck, view: LedgerView, plan: Plan, state: MirrorState) -> MirrorState:
        topic = offset_syncs_topic(self.flow)
        if topic is None:
            return state
        done = [item for item in receipts(view, lane=self.lane, run=plan.run) if item.generation == plan.generation]
        if (state.synced, state.synced_receipts) == (plan.generation, len(done)):
            return state
        syncs = offset_syncs([*self._missed(view, plan, state), *done], state.synced)
        await self._write(look, topic, [offset_sync_record(sync) for sync in syncs])
        return replace(state, synced=plan.generation, synced_receipts=len(done))

    def _missed(self, view: LedgerView, plan: Plan, state: MirrorState) -> list[Receipt]:
        """Return the last receipts of partitions whose runs wrote no offset syncs, of runs after `state.synced`."""
        lasts = last_receipts(view, self.lane).values()
        return [last for last in lasts if state.synced < last.generation < plan.generation]

    async def _checkpoints(self, look: LastCheck, checkpoints: Sequence[Checkpoint], state: MirrorState) -> MirrorState:
        topic, now_ms = checkpoints_topic(self.flow), wall_ms()
        if topic is None or not is_due(self.flow.mirror.emit_checkpoints, state.checkpoints_at_ms, now_ms):
            return state
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
        await self._write(look, topic, records)
        return replace(state, checkpoints_at_ms=now_ms)

    async def _heartbeats(self, look: LastCheck, state: MirrorState) -> MirrorState:
        topic, now_ms = heartbeats_topic(self.flow), wall_ms()
        if topic is None or not is_due(self.flow.mirror.emit_heartbeats, state.heartbeats_at_ms, now_ms):
            return state
        flow = self.flow.flow
        beat = Heartbeat(source_alias=flow.source, target_alias=flow.target, at_ms=now_ms)
        await self._write(look, topic, [heartbeat_record(beat)])
        await self._announce_source(look, topic)
        return replace(state, heartbeats_at_ms=now_ms)

    async def _announce_source(self, look: LastCheck, topic: InternalTopicName) -> None:
        """Create the copy of the source's heartbeats, empty, as long as the source has none.

        MirrorClient finds upstream clusters by the names of such topics. MirrorMaker 2 creates them by writing
        heartbeats to the source, which Ferry does not write to unless the file asks for it.
        """
        name = copied_heartbeats(self.flow)
        there = await self.source.refresh([topic.name])
        if name is not None and not there and not await self.source.hidden([topic.name]):
            await look()
            await InternalTopic(self.target, name).create(topic.replication_factor)

    async def _source_heartbeats(self, look: LastCheck, state: MirrorState) -> MirrorState:
        topic, now_ms = source_heartbeats_topic(self.flow), wall_ms()
        if topic is None or not is_due(self.flow.mirror.heartbeats_at_source, state.source_heartbeats_at_ms, now_ms):
            return state
        flow = self.flow.flow
        beat = Heartbeat(source_alias=flow.target, target_alias=flow.source, at_ms=now_ms)
        await self._write(look, topic, [heartbeat_record(beat)])
        return replace(state, source_heartbeats_at_ms=now_ms)

    async def _write(self, look: LastCheck, topic: InternalTopicName, records: Sequence[Record]) -> None:
        """Write records, and create the topic first if there is none. Raises what `look` raises."""
        internal = InternalTopic(self.source if topic.side == "source" else self.target, topic.name)
        try:
            await look()
            await internal.create(topic.replication_factor)
            await look()
            await internal.append(records)
        except StoodBack:
            raise
        except Refused as error:
            raise Refused(f"{error}, or set {topic.key} = false; nothing else waits for it") from error
        if records:
            count = f"{len(records)} record{'s' if len(records) != 1 else ''}"
            log.info("%s written to topic %s on cluster %s", count, topic.name, internal.cluster.alias)
