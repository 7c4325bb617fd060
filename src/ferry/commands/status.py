"""`ferry status`: the newest run and the lag of every flow of the file."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

import typer

from ferry.cli.command import Context, command
from ferry.cli.output import echo, print_table
from ferry.clock import wall_ms
from ferry.codec.form import F, Form
from ferry.codec.kinds import FLOW, enum, fields, many, optional
from ferry.config.flow.flow import FlowConfig
from ferry.errors import BadInput, FerryError
from ferry.ledger.history import PastState
from ferry.model import Flow
from ferry.plan.rules.lag import TotalLag
from ferry.words import to_the_second

GOOD = frozenset({PastState.SUCCESS, PastState.OPEN})
"""States of a newest run that need no operator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowStatus:
    """The newest run of a flow and its lag. Times are epoch milliseconds.

    `state` is None for a flow that never ran, and for one that could not be read: then `why` has the reason. `next_ms`
    is the next time of the schedule; None without one, and while the flow is paused.
    """

    flow: Flow
    lane: str
    state: PastState | None = None
    run: str | None = None
    started_ms: int | None = None
    records: int | None = None
    paused: tuple[str, ...] = ()
    lag: TotalLag | None = None
    next_ms: int | None = None
    why: str = ""

    @property
    def is_good(self) -> bool:
        """Whether the flow was read, and its newest run, if any, needs no operator."""
        return not self.why and (self.state is None or self.state in GOOD)


@command(flow=None)
def status_command(
    context: Context,
    watch: Annotated[
        float | None,
        typer.Option("--watch", min=1, metavar="N", help="Show it again every N seconds, until interrupted."),
    ] = None,
) -> int:
    """Show the newest run, the lag and the next time of every flow. Writes nothing.

    A flow whose clusters do not answer is shown as not known. Exit code 1 when there is one, or when the newest run of
    a flow failed, was partial, or never got a plan.
    """
    if watch is not None and context.as_json:
        raise BadInput("--watch shows a table again and again: omit --json, or call ferry status --json by a timer")
    flows = context.settings().flows
    while True:
        found = [_status(flow, context.patience_s) for flow in flows]
        context.answer(
            lambda found=found: {"flows": [status_json(one) for one in found]},  # type: ignore[misc]
            lambda found=found: _show(found),  # type: ignore[misc]
        )
        if watch is None:
            return 0 if all(one.is_good for one in found) else 1
        echo(f"as of {to_the_second(wall_ms())}; again after {watch:g} s")
        time.sleep(watch)


def _status(flow: FlowConfig, patience_s: float) -> FlowStatus:
    from ferry.features.observe.rules.due import due_ms  # noqa: PLC0415 - brings croniter
    from ferry.plan.lag import look_at_lag  # noqa: PLC0415 - brings the Kafka clients
    from ferry.plan.rules.lag import total_of  # noqa: PLC0415 - as above

    try:
        lags, seen = look_at_lag(flow, patience_s=patience_s)
    except FerryError as error:
        return FlowStatus(flow=flow.flow, lane=flow.lane, why=str(error))
    newest = seen.newest
    return FlowStatus(
        flow=flow.flow,
        lane=flow.lane,
        state=None if newest is None else newest.state,
        run=None if newest is None else newest.opened.record.run,
        started_ms=None if newest is None else newest.opened.record.started_ms,
        records=None if newest is None or newest.report is None else newest.report.records,
        paused=tuple(sorted(seen.paused)),
        lag=total_of(lags),
        next_ms=None if "" in seen.paused else due_ms(flow.schedule, wall_ms(), 1),
    )


def _show(found: list[FlowStatus]) -> None:
    columns = ("flow", "newest run", "began", "records", "lag: records", "seconds", "next")
    print_table(columns, [_row(one) for one in found], right=columns[3:6])
    for one in found:
        if one.why:
            echo(f"{one.flow}: not known: {one.why}")
        if one.paused:
            topics = ", ".join(topic for topic in one.paused if topic)
            echo(f"{one.flow}: {'the flow' if '' in one.paused else topics} is paused (ferry ledger --pauses)")


def _row(one: FlowStatus) -> tuple[object, ...]:
    state = "not known" if one.why else "never ran" if one.state is None else one.state.value
    lag = one.lag
    return (
        one.flow,
        state,
        None if one.started_ms is None else to_the_second(one.started_ms),
        one.records,
        None if lag is None else f"{lag.records}{f', {lag.unknown} partitions not known' if lag.unknown else ''}",
        None if lag is None or lag.seconds is None else f"{lag.seconds:.1f}",
        None if one.next_ms is None else datetime.fromtimestamp(one.next_ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    )


STATUS = Form(
    FlowStatus,
    F("flow", kind=FLOW),
    F("lane"),
    F("state", kind=optional(enum(PastState)), says="of the newest run; null: the flow never ran, or is not known"),
    F("run", says="its id"),
    F("started_ms"),
    F("records", says="what it copied; null: it has no plan"),
    F("paused", kind=many(), says="topics that are paused; an empty name is the whole flow"),
    F(
        "lag",
        kind=optional(fields(TotalLag, unknown="partitions whose lag or age is not known")),
        says="null: not known",
    ),
    F("next_ms", says="the next time of the schedule; null: there is none, or the flow is paused"),
    F("why", says="why the flow is not known; else empty"),
)

status_json = STATUS.dump
"""A flow as `ferry status --json` prints it."""
