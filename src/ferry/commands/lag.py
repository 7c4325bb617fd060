"""`ferry lag`: the lag of a flow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from ferry.cli.command import Context, command, only_topics
from ferry.cli.measures import lasting
from ferry.cli.options import TopicsOption
from ferry.cli.output import in_bytes, print_table
from ferry.units import LONG_MAX
from ferry.words import count_of

if TYPE_CHECKING:
    from ferry.plan.rules.lag import PartitionLag

COLUMNS = ["topic", "partition", "position", "source end", "records", "bytes (about)", "seconds"]


def rows(lags: list[PartitionLag]) -> Iterator[list[object]]:
    """Yield the rows of `ferry lag`."""
    for lag in lags:
        yield [
            lag.source.topic,
            lag.source.partition,
            lag.position,
            lag.source_end,
            lag.records,
            None if lag.bytes is None else in_bytes(lag.bytes),
            _seconds(lag.seconds),
        ]


def total_row(lags: list[PartitionLag]) -> list[object]:
    """Return the last row: all partitions together."""
    from ferry.plan.rules.lag import total_of  # noqa: PLC0415 - the help needs none of it

    total = total_of(lags)
    unknown = f", {total.unknown} not known" if total.unknown else ""
    name = f"total: {total.behind} of {count_of(total.partitions, 'partition')} with lag{unknown}"
    return [name, "", "", "", total.records, in_bytes(total.bytes), _seconds(total.seconds)]


def _seconds(age: float | None) -> float | None:
    return None if age is None else round(age, 1)


@command(table=True)
def lag_command(
    context: Context,
    topic: TopicsOption = None,
    max_seconds: Annotated[
        float | None,
        lasting("--rpo-seconds", "Exit 1 if the oldest uncopied record of any partition is older.", most=LONG_MAX),
    ] = None,
    max_records: Annotated[
        int | None,
        typer.Option(
            "--rpo-records", min=0, metavar="N", help="Exit 1 if any partition has more than N uncopied records."
        ),
    ] = None,
) -> int:
    """Show how many records, bytes and seconds are not copied yet, per source partition and in total."""
    from ferry.commands.forms import lag_json  # noqa: PLC0415 - brings the Kafka clients
    from ferry.plan.lag import measure_lag  # noqa: PLC0415 - as above
    from ferry.plan.rules.lag import is_behind  # noqa: PLC0415 - as above

    chosen = context.flow()
    lags = measure_lag(chosen, only=only_topics(chosen, topic), patience_s=context.patience_s)
    context.answer(
        lambda: lag_json(lags), lambda: print_table(COLUMNS, rows(lags), right=COLUMNS[1:], total=total_row(lags))
    )
    return 1 if any(is_behind(lag, max_records=max_records, max_seconds=max_seconds) for lag in lags) else 0
