"""`ferry switches`: list the switches in a flow's ledgers, show one of them in full, and abandon one."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Annotated, Any

import typer

from ferry.cli.command import Context, command
from ferry.cli.identity import person
from ferry.cli.output import echo, print_table, print_warning
from ferry.features.evidence.cli.report_place import written_json
from ferry.features.switch.cli.forms import CLIENTS, LINE
from ferry.features.switch.cli.options import IdArgument
from ferry.features.switch.rules.steps import clients_by, clients_sentence
from ferry.ledger.switch_codec import step_json, switch_json
from ferry.model.switch import SwitchState, next_step
from ferry.words import to_the_second


@command(table=True)
def switch_list_command(
    context: Context,
) -> int:
    """List the switches of a flow and of its flow back, oldest first, as far as both ledgers can be read."""
    from ferry.features.switch.acts.history import all_switches  # noqa: PLC0415 - brings the Kafka clients

    both, chosen = context.both_ways()
    found, unread = all_switches(both, chosen, patience_s=context.patience_s)
    switches = [_line(state) for state in found]
    clients = None if unread else clients_json(found)
    context.answer(
        lambda: {"flow": str(chosen.flow), "switches": switches, "clients": clients, "unread": list(unread)},
        lambda: _show_list(found, unread),
    )
    return 0


def _show_list(found: Sequence[SwitchState], unread: Collection[str]) -> None:
    print_table(
        ("id", "verb", "to", "opened", "state", "next step", "approved by"),
        (
            (
                one["id"],
                one["verb"],
                state.switch.via.target,
                to_the_second(state.switch.at_ms),
                one["state"],
                one["next_step"],
                one["approved_by"],
            )
            for state in found
            for one in [_line(state)]
        ),
    )
    for why in unread:
        echo(f"not read: {why}")
    echo(clients_line(found, unread))


@command(table=True)
def switch_show_command(
    context: Context,
    switch_id: IdArgument,
) -> int:
    """Show each step of a switch: who did it, when, and what was found."""
    from ferry.features.switch.acts.history import one_switch  # noqa: PLC0415 - brings the Kafka clients

    both, chosen = context.both_ways()
    state = one_switch(both, chosen, switch_id, patience_s=context.patience_s)
    context.answer(lambda: switch_state_json(state), lambda: _show(state))
    return 0


def _show(state: SwitchState) -> None:
    made = state.switch
    echo(f"{made.verb} {made.id} of {made.named} to {made.via.target}, by {made.who}, approved by {made.approved_by}")
    print_table(
        ("step", "by", "seconds", "what was found"),
        (
            (done.step, done.who, round((done.done_ms - done.begun_ms) / 1000, 1), done.evidence.sentence)
            for done in state.done.values()
        ),
        right=("seconds",),
    )
    echo(_line(state)["state"] if state.end is not None else f"next step: {_line(state)['next_step']}")


@command()
def switch_abandon_command(
    context: Context,
    switch_id: IdArgument,
    why: Annotated[str, typer.Option("--reason", metavar="TEXT", help="The reason, for the ledger.")],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show whether it may be abandoned. Writes nothing.")
    ] = False,
) -> int:
    """Abandon a switch that has not promoted the new cluster yet, and end the pause that it set."""
    from ferry.features.switch.acts.history import abandon_switch, check_abandoning  # noqa: PLC0415 - brings the Kafka clients
    from ferry.features.switch.acts.report import kept_report  # noqa: PLC0415 - as above

    both, chosen = context.both_ways()
    if dry_run:
        state = check_abandoning(both, chosen, switch_id, patience_s=context.patience_s)
    else:
        state = abandon_switch(both, chosen, switch_id, why, person(), patience_s=context.patience_s)
    written, unwritten = (None, None) if dry_run else kept_report(both, chosen, state, patience_s=context.patience_s)
    sentence = f"{state.switch.verb} {switch_id} {'would be' if dry_run else 'is'} abandoned"
    report = () if written is None else (written.sentence,)
    context.answer(
        lambda: {**switch_state_json(state), "report": written_json(written)},
        lambda: echo(sentence, *report, sep="\n"),
    )
    if unwritten is not None:
        print_warning(unwritten)
    return 0


def clients_line(found: Sequence[SwitchState], unread: Collection[str]) -> str:
    """On which cluster clients are, in a line for people; not known where a ledger of `unread` was not read."""
    moved = clients_by(found)
    known = "no switch has moved clients" if moved is None else clients_sentence(moved)
    if not unread:
        return known
    return f"on which cluster clients are is not known, because a ledger was not read; the other one shows: {known}"


def clients_json(found: Sequence[SwitchState]) -> dict[str, Any] | None:
    """Return on which cluster clients are, as the documented JSON object; None if no switch has moved them."""

    moved = clients_by(found)
    return None if moved is None else CLIENTS.dump(moved)


def _line(state: SwitchState) -> dict[str, Any]:

    return LINE.dump(state)


def switch_state_json(state: SwitchState) -> dict[str, Any]:
    """Return a switch with all that its steps found, as the documented JSON object."""
    due = next_step(state)
    end = state.end
    return {
        "switch": switch_json(state.switch),
        "next_step": None if due is None else due.value,
        "steps": [step_json(done) for done in state.in_order()],
        "end": None
        if end is None
        else {
            "outcome": end.outcome.value,
            "who": end.who,
            "why": end.why,
            "at_ms": end.at_ms,
            **({} if end.opposite is None else {"opposite": end.opposite}),
        },
    }
