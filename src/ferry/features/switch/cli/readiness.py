"""`ferry readiness`: whether a flow's target could take over now."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ferry.cli.command import Context, command
from ferry.cli.output import echo, print_table
from ferry.features.switch.acts.sides import refuse_identical, sides_of
from ferry.features.switch.cli.forms import READINESS
from ferry.features.switch.cli.options import MaxRecordsOption, MaxSecondsOption
from ferry.features.switch.cli.switches import clients_json, clients_line
from ferry.features.switch.rules.readiness import Readiness, Rpo
from ferry.features.switch.rules.steps import clients_by
from ferry.model.switch import Verb

NOT_READY = 1


@command(table=True)
def readiness_command(
    context: Context,
    max_records: MaxRecordsOption = None,
    max_seconds: MaxSecondsOption = None,
) -> int:
    """Check whether the target could take over now, and print one line per check. Writes nothing.

    Exit code 1 when a check fails.
    """
    from ferry.features.switch.acts.history import all_switches  # noqa: PLC0415 - brings the Kafka clients
    from ferry.features.switch.acts.readiness import check_readiness, look_since  # noqa: PLC0415 - as above

    both, chosen = context.both_ways()
    refuse_identical(both, chosen, "ferry readiness", Verb.SWITCHOVER)
    sides = sides_of(both, chosen, Verb.SWITCHOVER)
    rpo = Rpo(
        records=chosen.rpo.records if max_records is None else max_records,
        seconds=chosen.rpo.seconds if max_seconds is None else max_seconds,
    )
    found = check_readiness(
        chosen,
        rpo,
        back=sides.back is not None,
        patience_s=context.patience_s,
    )
    states, unread = all_switches(both, chosen, patience_s=context.patience_s)
    after = None if unread else clients_by(states)
    if after is not None and after.switch.back == chosen.flow:
        found = replace(found, checks=(*found.checks, *look_since(chosen, after, patience_s=context.patience_s)))
    clients = None if unread else clients_json(states)
    context.answer(
        lambda: {"flow": str(chosen.flow), **readiness_json(found), "clients": clients},
        lambda: show_readiness(found, clients_line(states, unread)),
    )
    return 0 if found.ready else NOT_READY


def readiness_json(found: Readiness) -> dict[str, Any]:
    """Return the checks as the documented JSON object."""

    return READINESS.dump(found)


def show_readiness(found: Readiness, *more: str) -> None:
    """Print one line for each check, one for all of them, and the lines in `more`."""
    print_table(
        ("check", "", "what was found"),
        ((check.name, check.outcome, check.message) for check in found.checks),
    )
    verdict = "ready" if found.ready else f"not ready: {len(found.failed)} of {len(found.checks)} checks failed"
    echo(verdict, *more, sep="\n")
