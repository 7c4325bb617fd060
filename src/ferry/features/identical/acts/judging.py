"""The part of identical offsets in a run's plan: which slices keep the source's offsets, and which are refused."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kafka.protocol.producer import InitProducerIdRequest

from ferry.clock import wall_ms
from ferry.errors import Refused, Retryable, Unreachable
from ferry.features.identical.acts.short import look_short
from ferry.features.identical.rules.empty import left_of, may_have_left, of_markers
from ferry.features.identical.rules.planned import (
    BROKER_SETTINGS,
    TOPIC_SETTINGS,
    Found,
    TargetTopicFound,
    is_kept,
    stays_identical,
    with_identical,
    without_skips,
    without_unfit,
)
from ferry.features.identical.rules.short import known_ends, named
from ferry.features.identical.rules.written import written_places
from ferry.features.identical.settings import TRANSLATED, IdenticalSettings
from ferry.kafka.admin.acls import may_alter_cluster
from ferry.kafka.admin.broker_settings import broker_settings
from ferry.kafka.admin.topic_settings import ListedSettings, batch_limits, topic_settings
from ferry.kafka.admin.topics import NotPermitted
from ferry.kafka.connect import codes
from ferry.kafka.connect.cluster import Cluster
from ferry.kafka.fetch.offsets import EARLIEST, listed_offsets
from ferry.kafka.fetch.requests import READ_UNCOMMITTED
from ferry.lane.open_lane import OpenLane
from ferry.ledger.ledger import LedgerView
from ferry.ledger.producer_codec import continued, first_offsets, lane_producer, markings, producer_record
from ferry.ledger.receipts import last_receipts
from ferry.messages.catalogue import sentence
from ferry.model import ChangeKind, Plan, lane_kind
from ferry.policy import is_heartbeats_topic
from ferry.protocol.driver import Driver


@dataclass(frozen=True, slots=True, kw_only=True)
class IdenticalPlanner:
    """Judges the slices of a plan in one lane, over open connections. It is used on their event loop."""

    lane: OpenLane

    async def preview(self, view: LedgerView, plan: Plan) -> Plan:
        """Return the plan without the slices that its run would refuse; writes nothing."""
        if self._settings.offsets == TRANSLATED:
            return self._still_translated(view, plan)
        plan = await self._judged(view, plan)
        if not plan.slices:
            return plan
        return without_unfit(plan, await self._found(view, plan))

    async def act(self, driver: Driver, plan: Plan) -> Plan:
        """Return the plan whose slices keep the source's offsets, without those that cannot.

        The lane's producer id is written to the ledger with the plan, so before its first use.
        """
        view = driver.view
        if self._settings.offsets == TRANSLATED:
            return self._still_translated(view, plan)
        plan = await self._judged(view, plan)
        if not plan.slices:
            return plan
        found = await self._found(view, plan)
        fit = without_unfit(plan, found)
        if not any(is_kept(piece, found) for piece in fit.slices):
            return fit
        producer = lane_producer(view, self.lane.name)
        if producer is None:
            producer = await new_producer(self.lane.target)
        driver.keep([producer_record(self.lane.name, producer_id=producer, run=plan.run, at_ms=wall_ms())])
        return with_identical(plan, found, producer)

    @property
    def _settings(self) -> IdenticalSettings:
        return self.lane.flow.of(IdenticalSettings)

    def _keeps(self, topic: str) -> bool:
        return self._settings.keeps_topic(self.lane.flow.topics.policy, topic)

    async def _judged(self, view: LedgerView, plan: Plan) -> Plan:
        """Return the plan with what is known before its slices are judged."""
        plan = without_skips(plan, self.lane.flow.copy_of, self._keeps)
        if lane_kind(self.lane.name) is not None:
            return plan  # no client is moved to its topics
        found = await look_short(self.lane, view, plan)
        short = {place: found[place] for place in known_ends(found)}
        if not short:
            return plan
        return replace(plan, notes=(*plan.notes, sentence("identical.short.note", places=named(short))))

    def _still_translated(self, view: LedgerView, plan: Plan) -> Plan:
        return stays_identical(plan, written_places(view))  # a lane may copy into the live lane's topics

    async def _found(self, view: LedgerView, plan: Plan) -> Found:
        target = self.lane.target
        sources = {piece.source.topic for piece in plan.slices}
        names = sorted({piece.target.topic for piece in plan.slices})
        created = frozenset(one.topic for one in plan.changes if one.kind is ChangeKind.CREATE)
        await target.refresh(names)
        new = frozenset(names).intersection(created) - target.topics.keys()
        sent = first_offsets(view, self.lane.name)
        passed = [one.target for one in plan.slices if one.target_next is not None and any(sent.get(one.target, ()))]
        begins = await listed_offsets(
            target, dict.fromkeys(passed, EARLIEST), isolation=READ_UNCOMMITTED, leaders_known=True
        )
        left = {place for place in passed if may_have_left(sent[place], begins.found.get(place))}
        rows = (
            await self.lane.cache.rows(view, lambda of: of.lane == self.lane.name and of.target in left) if left else {}
        )
        listed = await self._listed(sorted(set(names) - new))
        try:
            brokers = await broker_settings(target, BROKER_SETTINGS)
        except NotPermitted:
            brokers = {}
        return Found(
            lane=lane_kind(self.lane.name),
            may_lose=self._settings.may_lose,
            may_pass=self._settings.may_pass,
            sent=sent,
            begins=begins.found,
            received=of_markers(rows),
            limits=await batch_limits(target, {one.target.topic for one in plan.slices if left_of(one)} - new),
            may_mark=await self._may_mark(),
            marked=markings(view, self.lane.name),
            continued=continued(view, self.lane.name),
            brokers=brokers,
            topics={
                name: TargetTopicFound(
                    settings={one: value for one in TOPIC_SETTINGS if (value := found.in_force(one)) is not None},
                    in_sync=dict(_in_sync(target, name)),
                )
                for name, found in listed.found.items()
            },
            receipts=last_receipts(view, self.lane.name),
            new=new,
            denied=listed.denied,
            translated=frozenset(one for one in sources if not self._keeps(one)),
            heartbeats=frozenset(one for one in sources if is_heartbeats_topic(self.lane.flow.topics.policy, one)),
            written=written_places(view),
        )

    async def _may_mark(self) -> bool:
        """Return whether the target's brokers let this login write markers. If they do not say so, it is tried."""
        try:
            return await may_alter_cluster(self.lane.target)
        except Refused:
            return False

    async def _listed(self, names: Sequence[str]) -> ListedSettings:
        """Return the settings of topics; those that stay missing for the cluster's patience are not in it.

        A broker may answer that a topic is not there when it was created a moment ago.
        """
        target, listed = self.lane.target, ListedSettings(found={}, denied=frozenset())

        async def ask() -> None:
            nonlocal listed
            listed = await topic_settings(target, names, names=TOPIC_SETTINGS)
            missing = sorted(set(names) - listed.found.keys() - listed.denied)
            if missing:
                raise _NotShown(f"cluster {target.alias} does not show the settings of topic {missing[0]}")

        try:
            await target.retrying(ask)
        except Unreachable as error:
            if not isinstance(error.__cause__, _NotShown):
                raise
        return listed


async def new_producer(target: Cluster) -> int:
    """Return a producer id of a cluster that no other writer has. Raises NotPermitted, and Unreachable."""

    async def ask() -> int:
        answer: Any = await target.ask(
            InitProducerIdRequest(
                transactional_id=None, transaction_timeout_ms=60_000, producer_id=-1, producer_epoch=-1
            )
        )
        if answer.error_code in codes.UNAUTHORIZED:
            raise NotPermitted(
                f"cluster {target.alias} gives this principal no producer id ({codes.describe(answer.error_code)}): "
                "grant WRITE on the topics, or IDEMPOTENT_WRITE on the cluster"
            )
        if answer.error_code:
            raise Retryable(f"producer id from cluster {target.alias}: {codes.describe(answer.error_code)}")
        if answer.producer_epoch != 0:  # a batch of a higher epoch would be compared with nothing
            raise Retryable(f"cluster {target.alias} gave a producer id with epoch {answer.producer_epoch}, not 0")
        return int(answer.producer_id)

    return await target.retrying(ask)


class _NotShown(Retryable):
    """A broker answers that a topic is not there."""


def _in_sync(target: Cluster, topic: str) -> Iterable[tuple[int, int]]:
    info = target.topics.get(topic)
    for number, part in () if info is None else info.partitions.items():
        yield number, len(part.in_sync)


def identical_of_plan(lane: OpenLane) -> IdenticalPlanner:
    """Return the part of a run's planning that gives records identical offsets (`ferry.plan.parts`)."""
    return IdenticalPlanner(lane=lane)
