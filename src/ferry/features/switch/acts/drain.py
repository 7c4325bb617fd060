"""Run a flow until nothing is left to copy. Each run is an ordinary micro-run, so a kill loses nothing."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable

from ferry.config.flow.flow import FlowConfig
from ferry.errors import FerryError, Refused, Superseded
from ferry.features.groups.acts.of_run import checkpoint
from ferry.features.switch.acts.partition_state import takes
from ferry.features.switch.acts.quiet import moved_since
from ferry.features.switch.acts.sides import Sides
from ferry.features.switch.rules.draining import lasting, left_sentence, undrained
from ferry.lane.connections import FlowConnections
from ferry.ledger.draining import drain_run
from ferry.messages.catalogue import sentence
from ferry.model import Plan, Refusal
from ferry.model.switch import Evidence, Step, Switch, SwitchState
from ferry.plan.lag import measure_lag
from ferry.plan.rules.lag import total_of
from ferry.run.local import copy_plan
from ferry.run.micro_run import MicroRuns, local_origin
from ferry.words import agreeing, count_of, several

Copy = Callable[[MicroRuns, Plan], FerryError | None]
"""Copies what is left of a plan, on this machine or as a Spark job, and records how that ended.

It returns or raises the reason if not all was copied.
"""


def drain(sides: Sides, state: SwitchState, *, patience_s: float, copy: Copy = copy_plan) -> Evidence:
    """Copy what is left, and return the ends of both sides as evidence.

    Raises Refused, with the names of what cannot be copied, after all else was copied. Raises Refused, too, if the time
    is over, or if producers have written to the source since it was quiet. A micro-run's errors are raised unchanged.
    """
    options, flow = state.switch.options, sides.via
    until = time.monotonic() + options.drain_timeout_seconds
    runs = records = 0
    while True:
        runs += 1
        copied, refused = _run_once(flow, state.switch, patience_s, copy)
        records += copied
        lags = [lag for lag in measure_lag(flow, patience_s=patience_s) if takes(flow, lag.source.topic)]
        left = total_of(lags)
        if not left.behind and not left.unknown:
            break
        if time.monotonic() > until:
            behind = several([str(lag.source) for lag in lags if lag.records != 0])
            why = undrained(refused, state.switch.verb) if refused else "see what holds them up with ferry plan"
            raise Refused(
                f"after {options.drain_timeout_seconds:g} s not all is copied ({behind}): {left_sentence(left)}; "
                f"{why}; then continue"
            )
    _refuse_moved(flow, state, patience_s)
    copied_now = agreeing(records, "record was", "records were")
    return Evidence(
        sentence=f"{copied_now} copied in {count_of(runs, 'run')}, nothing is left",
        facts={"runs": runs, "records": records},
        rows=tuple(
            {
                "topic": lag.source.topic,
                "partition": lag.source.partition,
                "source_end": lag.source_end,
                "copied_end": lag.position,
            }
            for lag in lags
        ),
    )


def _run_once(flow: FlowConfig, switch: Switch, patience_s: float, copy: Copy) -> tuple[int, list[Refusal]]:
    """Do one micro-run. Return how many records it copied, and its refusals that may end without an operator.

    Raises Refused for other refusals, and for paused topics.
    """
    try:
        with MicroRuns(flow, patience_s=patience_s) as runs:
            plan = runs.open_new(drain_run(switch.id, secrets.token_hex(4)), local_origin())
            if plan.paused:
                raise Refused(
                    f"paused, so not drained: {several(plan.held_back)}; end that with ferry resume, then continue"
                )
            overtaken = _is_overtaken(runs, plan, copy)
            report = runs.report(plan.run)
    except Superseded:
        return 0, []  # before it had a plan
    if overtaken:
        return report.records, []  # the next round decides
    if plan.refusals or lasting(report.refusals):
        raise Refused(f"{undrained(report.refusals, switch.verb)}; all else is copied: fix that, then continue")
    return report.records, list(report.refusals)


def _is_overtaken(runs: MicroRuns, plan: Plan, copy: Copy) -> bool:
    """Copy what a plan has left, then the groups. Return whether a run that was scheduled meanwhile stopped that."""
    try:
        if runs.unfinished_slices(plan):
            failure = copy(runs, plan)
            if failure is not None:
                raise failure
        checkpoint(runs, plan.run)
    except Superseded:
        return True
    return False


def _refuse_moved(flow: FlowConfig, state: SwitchState, patience_s: float) -> None:
    """Raise Refused if the source has grown since it was quiet: a producer still writes there."""
    rows = state.rows(Step.QUIET)

    async def work() -> list[str]:
        return await moved_since(flow, connections.source, rows)

    with FlowConnections.of(flow, patience_s=patience_s) as connections:
        moved = connections.run(work)
    if moved:
        switch = state.switch
        raise Refused(
            sentence(
                "switch.grew.after-quiet",
                partitions=len(moved),
                names=several(moved),
                cluster=flow.flow.source,
                named=str(switch.named),
                switch=switch.id,
            )
        )
