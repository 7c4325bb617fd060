"""A micro-run from the outside: plan it, copy it, report it. Airflow's tasks, `ferry run` and Spark drivers call these.

properties + cluster facts -> plan -> slices -> copy (slots) -> receipts in the ledger -> report
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Self, TypeVar

from ferry.config.clients import flow_client_options
from ferry.config.flow import DEFAULT_REPLICATION_FACTOR, FlowConfig
from ferry.decide.facts import Facts
from ferry.decide.ledger import (
    LedgerView,
    claims,
    fold,
    lane_ends,
    newer_attempt,
    newest_run,
    opened_run,
    outcome,
    receipts,
    sealed_plan,
    superseded_by,
)
from ferry.decide.ledger_codec import claim_record, ended_record, outcome_record
from ferry.decide.planning import decide_plan, without_foreign
from ferry.decide.report import Report, report_of
from ferry.decide.rules import Rules
from ferry.decide.starts import start_records
from ferry.errors import BadInput, FerryError, Refused, Superseded
from ferry.model import Attempt, OpenedRun, Origin, Plan, Refusal, RefusalKind, RunRecord
from ferry.net.cluster import Cluster, event_loop
from ferry.net.ledger import LedgerTopic
from ferry.run.change_topics import change_topics
from ferry.run.gather import Positions, gather_facts, isolation_of
from ferry.run.kafka_port import CopyLimits, KafkaLane
from ferry.run.opening import begin_attempt, open_run
from ferry.run.slot import SlotRef, SlotResult
from ferry.run.task import TaskSpec, manager_options

T = TypeVar("T")

DEFAULT_LEDGER_REPLICATION = 3

SETTLE_SECONDS = 5.0
"""How long a report waits for commit markers: they follow an acknowledged commit within milliseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What one run is narrowed to: some source topics, smaller budgets (bytes, records)."""

    only: frozenset[str] | None = None
    max_bytes: int | None = None
    max_records: int | None = None


class MicroRuns:
    """Micro-runs of one flow in one lane; holds the connections to both clusters. Use as a context manager."""

    def __init__(self, flow: FlowConfig, *, lane: str | None = None, patience_s: float = 60.0) -> None:
        """`patience_s`: how long an unreachable cluster is tried."""
        self.flow = flow
        self.lane = lane or flow.lane
        self.patience_s = patience_s
        self._loop = event_loop()
        self._source_options = flow_client_options(flow, "source", "consumer")
        self._target_options = flow_client_options(flow, "target", "producer")
        self._source = Cluster(
            self._loop, flow.flow.source, manager_options(self._source_options), patience_s=patience_s
        )
        self._target = Cluster(
            self._loop, flow.flow.target, manager_options(self._target_options), patience_s=patience_s
        )
        self._ledger = LedgerTopic(self._target, flow.flow.source)

    def __enter__(self) -> Self:
        """Connect to both clusters; Unreachable names the one that does not answer."""
        try:
            self._run(self._open)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def _open(self) -> None:
        await self._source.open()
        await self._target.open()
        if self._source.cluster_id and self._source.cluster_id == self._target.cluster_id:
            raise Refused(
                f"source {self.flow.flow.source} and target {self.flow.flow.target} are the same cluster "
                f"({self._source.cluster_id}): correct one of the bootstrap servers"
            )

    def close(self) -> None:
        """Drop the connections."""
        self._source.close()
        self._target.close()
        self._loop.close()

    def preview(self, options: RunOptions = RunOptions()) -> Plan:
        """The plan that a run would have now; writes nothing, creates nothing."""

        async def work() -> Plan:
            view = await self._view() if await self._has_ledger() else fold((), 0)
            facts = await gather_facts(
                self.flow, self.lane, self._source, self._target, view, positions=Positions.AT_ONCE
            )
            return decide_plan(self._rules(options), facts, "(dry run)", -1)

        return self._run(work)

    def plan(self, run: str, origin: Origin, options: RunOptions = RunOptions()) -> Plan:
        """Open a run: fence earlier writers, decide, create and grow topics, seal the plan in the ledger."""

        async def work() -> Plan:
            await self._ledger.open(self.flow.ledger_replication_factor or DEFAULT_LEDGER_REPLICATION)
            lane = KafkaLane(self._ledger, self.flow.flow, self.lane, self.flow.transaction_timeout_ms)
            record = RunRecord(
                flow=self.flow.flow,
                lane=self.lane,
                run=run,
                slots=self.flow.tasks_max,
                config_digest=self.flow.digest(),
                started_ms=time.time_ns() // 1_000_000,
                origin=origin,
            )

            async def decide(view: LedgerView, opened: OpenedRun) -> Plan:
                return await self._decide(view, opened, options)

            return await open_run(lane, record, decide)

        return self._run(work)

    async def _decide(self, view: LedgerView, opened: OpenedRun, options: RunOptions) -> Plan:
        rules = self._rules(options)
        facts = await gather_facts(self.flow, self.lane, self._source, self._target, view)
        wish = decide_plan(rules, facts, opened.record.run, opened.generation)
        failed = await change_topics(self._target, wish.changes)
        if wish.changes:
            facts = await gather_facts(self.flow, self.lane, self._source, self._target, view)
            facts = replace(facts, sources={n: topic for n, topic in facts.sources.items() if n not in failed})
        plan = decide_plan(rules, facts, opened.record.run, opened.generation)
        plan = await self._claim_and_begin(facts, plan)
        changes = tuple(change for change in wish.changes if change.source_topic not in failed)
        return replace(plan, changes=changes, refusals=tuple(sorted((*plan.refusals, *failed.values()), key=_order)))

    async def _claim_and_begin(self, facts: Facts, plan: Plan) -> Plan:
        """Record the lane's beginning, claim target topics; the plan without those that another lane claimed first."""
        if facts.first_run:
            await self._ledger.append(start_records(self.lane, facts))
        names = sorted({piece.target.topic for piece in plan.slices} - set(facts.claims))
        if not names:
            return plan
        last = await self._ledger.append([claim_record(name, self.flow.flow, self.lane) for name in names])
        records, end = await self._ledger.read(None, last + 1)
        return without_foreign(plan, claims(fold(records, end)))

    def _rules(self, options: RunOptions) -> Rules:
        budget, flow = self.flow.budget, self.flow
        factor = flow.replication_factor if flow.replication_factor is not None else DEFAULT_REPLICATION_FACTOR
        return Rules(
            flow=flow.flow,
            lane=self.lane,
            policy=flow.policy,
            max_tasks=flow.tasks_max,
            max_bytes=_least(budget.max_bytes, options.max_bytes),
            max_records=_least(budget.max_records, options.max_records),
            max_seconds=budget.max_seconds,
            replication_factor=factor,
            config_excluded=flow.config_exclude.matches,
            sync_configs=flow.sync_topic_configs,
            only=options.only,
        )

    def opened(self, run: str) -> tuple[Plan, OpenedRun]:
        """The sealed plan of a run; BadInput when the ledger has none."""

        async def work() -> tuple[Plan, OpenedRun]:
            return _opened(await self._view(), self.lane, run)

        return self._run(work)

    def superseded(self, plan: Plan) -> str | None:
        """Whether a newer run owns the lane: its id, or None."""

        async def work() -> str | None:
            newest = newest_run(await self._view(), self.lane)
            return newest.record.run if newest is not None and newest.generation > plan.generation else None

        return self._run(work)

    def refuse_unless_done(self, plan: Plan) -> None:
        """For a run that is superseded: fine when all its slices are in the ledger, else Superseded."""
        newer = self.superseded(plan)
        if newer is None:
            return
        view = self._run(self._settled_view)
        ends = lane_ends(view, self.lane)
        open_slices = [piece for piece in plan.slices if ends.get(piece.source, -1) < piece.end]
        if open_slices:
            raise Superseded(
                f"run {plan.run} of {plan.flow} is superseded by {newer}, which has the {len(open_slices)} slices left"
            )

    def begin(self, plan: Plan, origin: Origin) -> Attempt:
        """Begin an attempt at the plan's copy step; whatever an earlier attempt still has under way ends."""
        return self._run(lambda: begin_attempt(self._ledger, plan, origin))

    def holds(self, plan: Plan, attempt: Attempt) -> bool:
        """Whether neither a newer run of the lane nor a newer attempt at this one has begun."""

        async def work() -> bool:
            records, end = await self._ledger.read(plan.generation)
            view = fold(records, end)
            return (
                superseded_by(view, plan.lane, plan.generation) is None
                and newer_attempt(view, plan.lane, plan.run, plan.generation, attempt.number) is None
            )

        return self._run(work)

    def end(self, plan: Plan, attempt: Attempt) -> bool:
        """Call an attempt off and end its open transactions; False, and nothing done, when somebody took over already.

        After a kill this makes its slots stop wherever they still live, and readers need not wait for a timeout.
        """
        if not self.holds(plan, attempt):
            return False
        self._run(lambda: self._ledger.append([ended_record(plan.lane, attempt)]))
        self.fence(plan)
        return True

    def task_spec(self, plan: Plan, slot: int, attempt: Attempt) -> TaskSpec:
        """What a process needs to copy one slot of the plan."""
        flow = self.flow
        return TaskSpec(
            ref=SlotRef(
                flow=plan.flow,
                lane=plan.lane,
                run=plan.run,
                generation=plan.generation,
                attempt=attempt.number,
                slot=slot,
            ),
            source=self._source_options,
            target=self._target_options,
            limits=CopyLimits(
                memory_bytes=flow.task_memory_bytes,
                chunk_bytes=flow.chunk_bytes,
                chunk_seconds=flow.chunk_seconds,
                transaction_timeout_ms=flow.transaction_timeout_ms,
                isolation=isolation_of(flow),
            ),
            origin=attempt.origin,
            patience_s=self.patience_s,
        )

    def fence(self, plan: Plan) -> None:
        """End every open transaction of the lane's slots, as after a kill: readers need not wait for a timeout."""
        lane = KafkaLane(self._ledger, self.flow.flow, self.lane, self.flow.transaction_timeout_ms)
        self._run(lambda: lane.fence(plan.slots))

    def record_outcome(self, plan: Plan, refusals: Collection[Refusal], time_over: Collection[int] = ()) -> None:
        """Keep in the ledger what the tasks refused and which slots ran out of time, for the report."""
        record = outcome_record(plan.lane, plan.run, sorted(refusals, key=_order), sorted(time_over))
        self._run(lambda: self._ledger.append([record]))

    def report(self, run: str) -> Report:
        """What became of a run, from the ledger alone."""

        async def work() -> Report:
            await self._ledger.find()
            view = await self._settled_view()
            plan, opened = _opened(view, self.lane, run)
            written = receipts(view, lane=self.lane, run=run)
            done = [receipt for receipt in written if receipt.generation == plan.generation]
            ended = outcome(view, self.lane, run)
            return report_of(plan, opened.record.started_ms, done, lane_ends(view, self.lane), ended)

        return self._run(work)

    def ledger(self) -> LedgerView:
        """The whole ledger, folded; BadInput when the flow never ran."""

        async def work() -> LedgerView:
            await self._ledger.find()
            return await self._view()

        return self._run(work)

    async def _has_ledger(self) -> bool:
        return self._ledger.place.topic in await self._target.refresh([self._ledger.place.topic])

    async def _settled_view(self) -> LedgerView:
        """The ledger once the markers of committed chunks have arrived, or SETTLE_SECONDS have passed."""
        until = time.monotonic() + SETTLE_SECONDS
        view = await self._view()
        while view.open and time.monotonic() < until:
            await self._loop.sleep(0.02)
            view = await self._view()
        return view

    async def _view(self) -> LedgerView:
        records, end = await self._ledger.read()
        return fold(records, end)

    def _run(self, work: Callable[[], Awaitable[T]]) -> T:
        result: T = self._loop.run(work)
        return result


def local_origin() -> Origin:
    """This process as the origin of a run."""
    return Origin(host=f"{socket.gethostname()}:{os.getpid()}")


def gather_refusals(results: Collection[SlotResult]) -> list[Refusal]:
    """What all slots refused."""
    return [refusal for result in results for refusal in result.refusals.values()]


def slot_failure(plan: Plan, slot: int, error: FerryError) -> list[Refusal]:
    """A slot that gave up, as refusals of its partitions, so that the report names them."""
    return [
        Refusal(
            topic=piece.source.topic,
            partition=piece.source.partition,
            kind=RefusalKind.SLOT_FAILED,
            message=f"{piece.source} was not (wholly) copied: {error}",
        )
        for piece in plan.of_slot(slot)
    ]


def _opened(view: LedgerView, lane: str, run: str) -> tuple[Plan, OpenedRun]:
    opened = opened_run(view, lane, run)
    found = sealed_plan(view, lane, run, opened.generation) if opened else None
    if opened is None or found is None:
        raise BadInput(f"the ledger has no plan of run {run} (lane {lane}): run its plan step first")
    return found[0], opened


def _least(one: int | None, other: int | None) -> int | None:
    given = [value for value in (one, other) if value is not None]
    return min(given) if given else None


def _order(refusal: Refusal) -> tuple[str, int]:
    return refusal.topic, -1 if refusal.partition is None else refusal.partition
