"""`ferry status`: the newest run and the lag of every flow of the file."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Annotated

from ferry.cli.command import Context, command
from ferry.cli.measures import lasting
from ferry.cli.output import Figure, echo, print_table
from ferry.clock import wall_ms
from ferry.commands.flow_status import BEHIND, LATE, NEVER_RAN, NOT_KNOWN, FlowStatus
from ferry.commands.forms import status_json
from ferry.config.flow.flow import FlowConfig
from ferry.errors import BadInput, FerryError, Unreachable
from ferry.ledger.progress import Paced
from ferry.model import Flow
from ferry.plan.rules.lag import is_behind, total_of
from ferry.run.pace import progress_line
from ferry.words import count_of, to_the_second


@command(flow=False, table=True)
def status_command(
    context: Context,
    watch: Annotated[
        float | None,
        lasting("--watch", "Show it again after each DURATION, until interrupted. Without one: 10 seconds.", least=1),
    ] = None,
) -> int:
    """Show the newest run, the lag and the next time of every flow. Writes nothing.

    A run that is open has a line with its progress: what is committed and what is sent; with --watch also the rate.
    The column `word` is about the newest run and the lag; ferry explain WORD explains each. A flow whose clusters do
    not answer is `unreachable`, and its newest run and lag are not known. Exit code 1 when there is one, or when the
    newest run of a flow failed or was partial. Also 1 for a newest run that has not ended and wrote nothing for 15
    minutes. Also 1 where a partition is beyond ferry.rpo.*, and where the last success is too long ago for the
    schedule.
    """
    if watch is not None and context.for_programs:
        raise BadInput("--watch shows a table again and again: omit it, and call ferry status by a timer")
    flows = context.settings().flows
    paced: dict[tuple[Flow, str | None], Paced] = {}
    while True:
        found = [_with_rate(_status(flow, context.patience_s), paced) for flow in flows]
        _answer(context, found)
        if watch is None:
            return 0 if all(one.is_good for one in found) else 1
        echo(f"as of {to_the_second(wall_ms())}; again after {watch:g} s", flush=True)
        time.sleep(watch)


def _answer(context: Context, found: list[FlowStatus]) -> None:

    context.answer(lambda: {"flows": [status_json(one) for one in found]}, lambda: _show(found))


def _status(flow: FlowConfig, patience_s: float) -> FlowStatus:
    from ferry.features.observe.rules.alerts import RUNS_LOOKED_AT, is_late_by  # noqa: PLC0415 - brings croniter
    from ferry.features.observe.rules.due import due_ms  # noqa: PLC0415 - as above
    from ferry.plan.lag import look_at_lag  # noqa: PLC0415 - brings the Kafka clients

    try:
        lags, seen = look_at_lag(flow, patience_s=patience_s, runs=RUNS_LOOKED_AT)
    except FerryError as error:
        return FlowStatus(
            flow=flow.flow,
            lane=flow.lane,
            next_ms=due_ms(flow.airflow.schedule, wall_ms(), 1),
            why=str(error),
            unreachable=isinstance(error, Unreachable),
        )
    newest, limit = seen.newest, flow.rpo
    is_paused = "" in seen.paused
    may_be_late = flow.airflow.has_schedule_line and not is_paused
    past = [] if newest is None else [*seen.earlier, newest]
    beyond = [lag for lag in lags if is_behind(lag, max_records=limit.records, max_seconds=limit.seconds)]
    return FlowStatus(
        flow=flow.flow,
        lane=flow.lane,
        state=None if newest is None else newest.state,
        run=None if newest is None else newest.opened.record.run,
        started_ms=None if newest is None else newest.opened.record.started_ms,
        silent_since_ms=newest.heard_ms if newest is not None and newest.is_silent(wall_ms()) else None,
        records=None if newest is None or newest.report is None else newest.report.records,
        open_run=None if newest is None or newest.progress is None else newest,
        paused=tuple(sorted(seen.paused)),
        lag=total_of(lags),
        over_rpo=None if limit.records is None and limit.seconds is None else len(beyond),
        late=is_late_by(flow, past, wall_ms()) if may_be_late else None,
        next_ms=None if is_paused else due_ms(flow.airflow.schedule, wall_ms(), 1),
    )


def _with_rate(found: FlowStatus, paced: dict[tuple[Flow, str | None], Paced]) -> FlowStatus:
    """Return the status with the rate of its open run, from the second time on; `paced` has what was measured."""
    known = found.open_run
    if known is None or known.progress is None:
        return found
    measured = paced.setdefault((found.flow, found.run), Paced())
    return replace(found, open_run=replace(known, progress=measured.add(time.monotonic(), known.progress)))


def _show(found: list[FlowStatus]) -> None:
    columns = ("flow", "newest run", "began", "records", "lag: records", "seconds", "state", "next")
    print_table(columns, [_row(one) for one in found], right=columns[3:6], only_csv="partitions not known")
    for one in found:
        if one.why:
            echo(f"{one.flow}: {NOT_KNOWN}: {one.why}")
        known = one.open_run
        if known is not None and known.report is not None and known.progress is not None:
            echo(f"{one.flow}: run {one.run}: {progress_line(known.report.plan, known.progress)}")
        if one.over_rpo and one.lag is not None:
            many = f"{one.over_rpo} of {count_of(one.lag.partitions, 'partition')}"
            echo(f"{one.flow}: {BEHIND}: {many} beyond ferry.rpo.*, or of a lag that is not known (ferry lag)")
        if one.late:
            echo(
                f"{one.flow}: {LATE}: no run has succeeded for ferry.alert.late.intervals times of ferry.schedule: see "
                "how runs end (ferry ledger --runs), start what begins them, or correct ferry.schedule"
            )
        if one.silent_since_ms is not None:
            echo(
                f"{one.flow}: run {one.run} has not ended, and wrote nothing to the ledger since "
                f"{to_the_second(one.silent_since_ms)}: whether it still runs is not known; the next run continues "
                "where it is"
            )
        if one.paused:
            topics = ", ".join(topic for topic in one.paused if topic)
            echo(f"{one.flow}: {'the flow' if '' in one.paused else topics} is paused (ferry ledger --pauses)")


def _row(one: FlowStatus) -> tuple[object, ...]:
    state = NOT_KNOWN if one.why else NEVER_RAN if one.state is None else one.state.value
    lag = one.lag
    unknown = f", {count_of(lag.unknown, 'partition')} not known" if lag is not None and lag.unknown else ""
    return (
        one.flow,
        state,
        None if one.started_ms is None else to_the_second(one.started_ms),
        one.records,
        None if lag is None else Figure(lag.records, f"{lag.records}{unknown}"),
        None if lag is None or lag.seconds is None else round(lag.seconds, 1),
        ", ".join(one.words),
        None if one.next_ms is None else to_the_second(one.next_ms),
        None if lag is None else lag.unknown,
    )
