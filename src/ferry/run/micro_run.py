"""A micro-run from the outside: plan, begin and end attempts, report.

Airflow's tasks, `ferry run` and Spark drivers call it. The copy itself is `ferry.run.local`, or a Spark job.

properties + cluster facts -> plan -> slices -> copy (slots) -> receipts in the ledger -> report
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import replace
from typing import TypeVar

from ferry.clock import wall_ms
from ferry.config.flow.clients import flow_fetch_options, flow_produce_options
from ferry.config.flow.flow import FlowConfig
from ferry.config.flow.lane import lane_flow
from ferry.copy.kafka_slot import CopyLimits
from ferry.copy.rate_limiter import RateLimit
from ferry.copy.slot_end import SlotEnd, outcome_of
from ferry.copy.task import SlotTask
from ferry.errors import Superseded
from ferry.lane.open_lane import OpenLane
from ferry.lane.session import LaneSession
from ferry.ledger.ledger import LedgerView, fold, pauses
from ferry.ledger.receipts import last_receipts, receipts
from ferry.ledger.report import Report
from ferry.ledger.resume import kept_plan, plan_of, planned_run, refuse_planned, resumed_plan, slices_left
from ferry.ledger.run_codec import ended_record, outcome_record
from ferry.ledger.run_report import run_report
from ferry.ledger.runs import last_openings, newer_attempt, opened_run, superseded_by
from ferry.ledger.verified_codec import due
from ferry.model import NOTHING_FILTERED, Attempt, FilterCounts, Gap, Origin, Pause, Plan, Slice, TopicPartition
from ferry.plan.gather import isolation_of
from ferry.plan.options import DEFAULT_RUN, RunOptions
from ferry.plan.plan_run import open_planned
from ferry.plan.preview import preview, window
from ferry.plan.rules.skipping import SkipRequest
from ferry.plan.rules.windows import WindowLook
from ferry.plan.skipping import preview_skip, skip
from ferry.protocol.driver import begin_attempt
from ferry.protocol.slot import SlotRef
from ferry.registry import FEATURES

T = TypeVar("T")

log = logging.getLogger(__name__)


class MicroRuns(LaneSession):
    """Micro-runs of one flow in one lane; holds the connections to both clusters. Use as a context manager."""

    def __init__(self, flow: FlowConfig, *, lane: str | None = None, patience_s: float = 60.0) -> None:
        """`lane`: the flow's own unless named; a backfill or a drill has scratch topics (`ferry.config.flow.lane`).

        `patience_s`: how long an unreachable cluster is tried.
        """
        flow = lane_flow(flow, lane)
        # Read before anything is opened: a value that cannot be read must not stop a run midway.
        self._fetch = flow_fetch_options(flow)
        self._produce = flow_produce_options(flow)
        super().__init__(flow, lane=lane, patience_s=patience_s)

    def preview(self, options: RunOptions = DEFAULT_RUN, *, here: bool = True) -> Plan:
        """Return the plan that a run would have now; writes nothing, creates nothing.

        `here`: whether this machine plans the flow's runs, so that what it cannot do is refused.
        """

        async def work() -> Plan:
            return await preview(self.open_lane, await self.view_if_any(), options, here=here)

        return self.wait_for(work)

    def window(self, options: RunOptions) -> WindowLook:
        """Return the window of `options` in offsets, and how far the lane has come in it; writes nothing.

        Raises BadInput and Refused for a window that cannot be copied (`ferry.plan.rules.windows`).
        """

        async def work() -> WindowLook:
            return await window(self.open_lane, await self.view_if_any(), options)

        return self.wait_for(work)

    def act(self, work: Callable[[OpenLane, LedgerView], Awaitable[T]], *, ran: bool = False) -> T:
        """Call `work`, a feature's, with the open lane and the present ledger, which is empty before any run.

        With `ran` it raises BadInput when the flow never ran.
        """

        async def with_view() -> T:
            return await work(self.open_lane, await (self.view() if ran else self.view_if_any()))

        return self.wait_for(with_view)

    def open_run(self, run: str, origin: Origin, options: RunOptions = DEFAULT_RUN) -> Plan:
        """Open a run: fence earlier writers, decide, create and grow topics, seal the plan in the ledger."""
        return self.wait_for(lambda: open_planned(self.open_lane, run, origin, options))

    def open_or_keep(self, run: str, origin: Origin, options: RunOptions = DEFAULT_RUN) -> Plan:
        """Return the ledger's plan of this run, or open it: a run keeps its plan, so it copies nothing twice.

        Raises Superseded when a newer run owns the lane, and this one left something or was never planned.
        """
        kept = self.kept(run)
        return self.open_run(run, origin, options) if kept is None else kept

    def kept(self, run: str) -> Plan | None:
        """Return the ledger's plan of this run, which every further try keeps; None: the run must be opened.

        Raises Superseded when a newer run owns the lane, and this one left something or was never planned.
        """
        plan = kept_plan(self.wait_for(lambda: self.view_if_any(run)), self.lane, run)
        if plan is not None:
            self.unfinished_slices(plan)  # raises where a newer run owns what is left
        return plan

    def open_new(self, run: str, origin: Origin, options: RunOptions = DEFAULT_RUN) -> Plan:
        """Open a run with an id that the operator chose: fence, decide, change topics, seal the plan in the ledger.

        Raises BadInput when the ledger has a plan of this id already: the new one would hide it.
        """
        refuse_planned(self.wait_for(lambda: self.view_if_any(run)), self.lane, run)
        return self.open_run(run, origin, options)

    def skip(self, wish: SkipRequest, run: str, origin: Origin, *, interrupt: bool = False) -> Plan:
        """Skip offsets by hand, as a run of its own.

        With `interrupt` it also works while a run is active, which then ends; without it that raises Refused. Raises
        BadInput when the flow never ran, or for a place that cannot be passed; Refused when the source's log is another
        one than the lane has copied from; Superseded when a newer run opened the lane meanwhile.
        """

        return self.wait_for(lambda: skip(self.open_lane, wish, run, origin, interrupt=interrupt))

    def preview_skip(self, wish: SkipRequest) -> Gap:
        """Return what a skip would skip now; writes nothing. Raises BadInput when the flow never ran."""

        async def work() -> Gap:
            return await preview_skip(self.open_lane, await self.view(), wish)

        return self.wait_for(work)

    def plan_to_resume(self, run: str) -> Plan:
        """Return the sealed plan of a run, to copy what it left.

        Raises BadInput when the ledger has no plan of it. Raises Superseded when only a newer run may copy what is
        left, or when the run will never have a plan.
        """
        plan = self.sealed_plan(run)
        newer = self.superseded(plan)
        if not self.unfinished_slices(plan) and newer is not None:
            log.info("run %s is superseded by %s, and all of its slices are in the ledger", run, newer)
        return plan

    def sealed_plan(self, run: str) -> Plan:
        """Return the sealed plan of a run.

        Raises BadInput when the ledger has none, Superseded when it will never have one.
        """

        async def work() -> Plan:
            return resumed_plan(await self.view(run), self.lane, run)

        return self.wait_for(work)

    def planned(self, wanted: Callable[[str], bool]) -> list[str]:
        """Return the runs of the lane that the ledger has a plan of, by their ids that are wanted, oldest first."""

        async def work() -> list[str]:
            found = last_openings(await self.view_if_any(), self.lane)
            named = [one.record.run for one in found if wanted(one.record.run)]
            return [run for run in named if _is_planned(await self.view_if_any(run), self.lane, run)]

        return self.wait_for(work)

    def superseded(self, plan: Plan) -> str | None:
        """Return the id of the newer run that owns the lane; None when none does."""

        async def work() -> str | None:
            newer = superseded_by(await self.view(), self.lane, plan.generation)
            return newer.record.run if newer is not None else None

        return self.wait_for(work)

    def pause(self) -> Pause | None:
        """Return the pause of the whole flow that is in force; None when there is none."""

        async def work() -> Pause | None:
            return pauses(await self.view(), wall_ms()).get("")

        return self.wait_for(work)

    def unfinished_slices(self, plan: Plan) -> list[Slice]:
        """Return the slices of a plan that the ledger does not have up to their ends.

        Raises Superseded when there are such and a newer run owns the lane: only that run and later ones may copy them.
        """

        async def work() -> list[Slice]:
            view = await self.view()
            if superseded_by(view, self.lane, plan.generation) is not None:
                view = await self.settled_view()
            return slices_left(view, plan)

        return self.wait_for(work)

    def reached(self, plan: Plan) -> dict[TopicPartition, int]:
        """Return by source partition how far the ledger has the plan's slices, of those that were begun."""

        async def work() -> dict[TopicPartition, int]:
            lasts = last_receipts(await self.settled_view(), self.lane).values()
            return {last.source: last.end for last in lasts if last.generation == plan.generation}

        return self.wait_for(work)

    def begin(self, plan: Plan, origin: Origin) -> Attempt:
        """Begin an attempt at the plan's copy step; an earlier attempt that is still active ends."""
        return self.wait_for(lambda: begin_attempt(self.ledger_topic, plan, origin, wall_ms()))

    def still_owns_lane(self, plan: Plan, attempt: Attempt) -> bool:
        """Return whether neither a newer run of the lane nor a newer attempt at this one has begun."""

        async def work() -> bool:
            # Only from the run's own record on: a driver that was ordered to end has seconds.
            view = fold(*await self.ledger_topic.read(plan.generation))
            return (
                superseded_by(view, plan.lane, plan.generation) is None
                and newer_attempt(view, plan.lane, plan.run, plan.generation, attempt.number) is None
            )

        return self.wait_for(work)

    def end_attempt(self, plan: Plan, attempt: Attempt) -> bool:
        """End an attempt and its open transactions; do nothing and return False if a newer run or attempt took over.

        After a kill this makes its slots stop wherever they still run, and readers need not wait for a timeout.
        """
        if not self.still_owns_lane(plan, attempt):
            return False
        self.wait_for(lambda: self.ledger_topic.append([ended_record(plan.lane, attempt)]))
        self.fence(plan)
        return True

    def slot_task(self, plan: Plan, slot: int, attempt: Attempt, at_once: int | None = None) -> SlotTask:
        """Return what a process needs to copy one slot of the plan.

        `at_once` is the most tasks that run at the same time and share the flow's rate; None: as many as there are
        slots.
        """
        flow, copy = self.flow, self.flow.copy
        limit = copy.throttle_bytes_per_second
        return SlotTask(
            ref=SlotRef(
                flow=plan.flow,
                lane=plan.lane,
                run=plan.run,
                generation=plan.generation,
                attempt=attempt.number,
                slot=slot,
            ),
            source=self.connections.source_options,
            target=self.connections.target_options,
            limits=CopyLimits(
                memory_bytes=copy.task_memory_bytes,
                chunk_bytes=copy.chunk_bytes,
                chunk_seconds=copy.chunk_seconds,
                transaction_timeout_ms=copy.transaction_timeout_ms,
                isolation=isolation_of(flow),
                fetch=self._fetch,
                request_bytes=self._produce.max_request_bytes,
                compression=self._produce.compression,
                rate=None
                if limit is None
                else RateLimit(bytes_per_second=limit, at_once=at_once or len(plan.used_slots)),
            ),
            origin=attempt.origin,
            began_ms=attempt.started_ms,
            patience_s=self.patience_s,
            port=slot_port(plan, slot),
        )

    def fence(self, plan: Plan) -> None:
        """End every open transaction of the lane's slots, so that after a kill readers need not wait for a timeout."""
        self.wait_for(lambda: self.open_lane.driver_port().fence(plan.slots))

    def record_outcome(
        self,
        plan: Plan,
        attempt: Attempt,
        ends: Collection[SlotEnd],
        sifted: Mapping[str, FilterCounts] = NOTHING_FILTERED,
    ) -> None:
        """Keep in the ledger for the report what the attempt's slots refused, and which of them ran out of time.

        It also keeps what its transforms read and left out, by topic. Nothing is written if a slot was superseded, or a
        newer run or attempt has begun. Then only the successor's outcome counts.
        """
        if any(isinstance(end.failure, Superseded) for end in ends) or not self.still_owns_lane(plan, attempt):
            return
        record = outcome_record(plan.lane, plan.run, replace(outcome_of(plan, ends), sifted=sifted))
        self.wait_for(lambda: self.ledger_topic.append([record]))

    def report(self, run: str) -> Report:
        """Return the report of a run, from the ledger alone."""

        async def work() -> Report:
            await self.settled_view()
            view = await self.view(run)
            plan, opened = planned_run(view, self.lane, run)
            written = receipts(view, lane=self.lane, run=run)
            done = [receipt for receipt in written if receipt.generation == plan.generation]
            report = run_report(view, plan, opened, done)
            return replace(report, verify_due=due(view, self.lane, run, self.flow.verification))

        return self.wait_for(work)


def slot_port(plan: Plan, slot: int) -> str:
    """Return the place of the port that copies a slot, in the registry; empty: that of the kernel."""
    features = sorted({piece.feature for piece in plan.of_slot(slot) if piece.feature})
    return FEATURES[features[0]].port if features else ""  # a port refuses slices of another one


def _is_planned(view: LedgerView, lane: str, run: str) -> bool:
    opened = opened_run(view, lane, run)
    return opened is not None and plan_of(view, opened) is not None


def local_origin() -> Origin:
    """Return this process as the origin of a run."""
    return Origin(host=f"{socket.gethostname()}:{os.getpid()}")
