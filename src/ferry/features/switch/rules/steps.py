"""The sentences for the steps of a switch, and the checks that refuse a step or a switch. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from ferry.errors import BadInput, Refused
from ferry.messages import catalogue
from ferry.model import Flow
from ferry.model.switch import (
    POINT_OF_NO_RETURN,
    STEPS,
    Move,
    Step,
    Switch,
    SwitchOptions,
    SwitchOutcome,
    SwitchState,
    Verb,
    move_of,
    next_step,
)
from ferry.words import to_the_second


def sentence(switch: Switch, step: Step) -> str:
    """Say what a step will do, for a dry run and for the person who approves."""
    old, new, via, back = switch.via.source, switch.via.target, switch.via, switch.back
    options = switch.options
    return {
        Step.READINESS: f"check that {via} is healthy, and that {new} can take over (ferry readiness)",
        Step.STRANDED: f"count the records on {new} that {switch.named} never copied, and write them to a file",
        Step.RETURN: f"let {via} begin at the cut-over of the previous switch, if it has not begun yet",
        Step.FREEZE: f"record in the ledger the ends of the partitions of {old} and {new}",
        Step.QUIET: (
            f"wait until no partition on {old} has grown for {options.quiet_seconds:g} s, and no group of the file "
            f"has members there, for {options.quiet_timeout_seconds:g} s at most"
        ),
        Step.DRAIN: f"run {via} until nothing is left to copy, then write the last checkpoint",
        Step.STOP: f"pause {via}, end its writers, and keep where both sides end",
        Step.LOSS: f"count what {old} had and {new} has not, by partition, in records and seconds",
        Step.TOPICS: f"create the missing topics on {new} that producers will write to",
        Step.GROUPS: f"commit the groups' offsets on {new}: all partitions of a group, or none",
        Step.PROMOTE: (
            f"delete ACLs that deny WRITE on single topics of {new}"
            if options.remove_write_block
            else f"declare {new} the cluster that clients use"
        ),
        Step.REDIRECT: "call the hook that sends clients to the new cluster",
        Step.SMOKE: (
            f"write and read a scratch topic on {new}, and read the groups' offsets there"
            if options.smoke
            else "omit the smoke test"
        ),
        Step.REVERSE: f"start {back}" if options.reverse else f"leave {back} unchanged",
    }[step]


def refuse_out_of_turn(state: SwitchState, step: Step) -> None:
    """Raise Refused for a step that is not the next one, BadInput for one that its verb does not have."""
    switch = state.switch
    if step not in STEPS[switch.verb]:
        raise BadInput(f"a {switch.verb} has no step {step}: its steps are {', '.join(STEPS[switch.verb])}")
    if state.end is not None:
        raise Refused(f"switch {switch.id} is {state.end.outcome}: start a new one")
    due = next_step(state)
    if due is not step:
        raise Refused(f"step {step} of switch {switch.id} is not due, {due} is: let that one end first")


def unfinished(states: Mapping[str, SwitchState]) -> SwitchState | None:
    """Return the switch that has not ended; of several, the one that was opened first, because it alone counts."""
    found = [state for state in states.values() if state.end is None]
    return min(found, key=lambda state: state.offset, default=None)


def newest_finished(states: Mapping[str, SwitchState]) -> SwitchState | None:
    """Return the switch of one ledger that was finished last, if any: one begins when those before it have ended."""
    found = [state for state in states.values() if state.end and state.end.outcome is SwitchOutcome.FINISHED]
    return max(found, key=lambda state: state.offset, default=None)


def clients_by(states: Iterable[SwitchState]) -> SwitchState | None:
    """Return the switch, along a flow or back, that moved clients last; None if no switch has promoted a cluster."""
    last: dict[Flow, tuple[SwitchState, Move]] = {}
    for state in sorted(states, key=lambda one: one.offset):
        move = move_of(state)
        if move is not None:
            last[state.switch.via] = (state, move)
    newest: tuple[SwitchState, Move] | None = None
    for one in last.values():
        if newest is None or one[1].is_after(newest[1]):
            newest = one
    return None if newest is None else newest[0]


def clients_sentence(state: SwitchState) -> str:
    """Say on which cluster clients are, from the switch that `clients_by` returns."""
    switch, end = state.switch, state.end
    since = to_the_second(state.done[POINT_OF_NO_RETURN].done_ms)
    if end is None:
        return f"clients are being moved to {switch.via.target} by {switch.verb} {switch.id}, since {since}"
    if end.outcome is SwitchOutcome.ABANDONED and Step.REDIRECT not in state.done:
        return (
            f"where clients are is not known: {switch.verb} {switch.id} promoted {switch.via.target}, {since}, and was "
            "abandoned before it sent clients there"
        )
    return f"clients are on {switch.via.target} since {switch.verb} {switch.id}, {since}"


def named_facts(switch: Switch) -> dict[str, str]:
    """Return the facts that name a switch in a sentence: its verb, its id, and the flow that its command names."""
    return {"verb": str(switch.verb), "switch": switch.id, "named": str(switch.named)}


def left_of(state: SwitchState) -> str:
    """Say what is left of a switch that has not ended, as half a sentence."""
    due = next_step(state)
    return "its steps are all done, its end is not written" if due is None else f"its next step is {due}"


def refuse_second(states: Mapping[str, SwitchState], switch: Switch) -> SwitchState | None:
    """Return the state of the switch if its id is known. Raises Refused while another switch is not finished.

    Raises BadInput if the id belongs to another verb or flow.
    """
    known = states.get(switch.id)
    if known is not None:
        if (known.switch.verb, known.switch.via) != (switch.verb, switch.via):
            raise BadInput(catalogue.sentence("switch.other-verb", **named_facts(known.switch)))
        return known
    other = unfinished(states)
    if other is not None:
        raise Refused(catalogue.sentence("switch.unfinished", left=left_of(other), **named_facts(other.switch)))
    return None


def refuse_ended(state: SwitchState) -> None:
    """Raise Refused for the id of a switch that has ended: the operator means another switch, or a new one."""
    switch, end = state.switch, state.end
    if end is not None:
        facts = {"outcome": str(end.outcome), "who": end.who, **named_facts(switch)}
        raise Refused(catalogue.sentence("switch.ended", **facts))


def refuse_without_hook(state: SwitchState, redirect: Collection[str], stop: Collection[str]) -> None:
    """Raise BadInput if the switch began with a hook that is still to be called, and that is not given again.

    `redirect` and `stop` say which hooks are given now: `command`, `url`.
    """
    switch, options = state.switch, state.switch.options
    missing = [f"--stop-{word}" for word in options.stop if word not in stop and Step.QUIET not in state.done]
    missing += [f"--redirect-{word}" for word in options.redirect if word not in redirect]
    if missing and Step.REDIRECT not in state.done and state.end is None:
        facts = {"options": " and ".join(missing), "command": continuing(switch), **named_facts(switch)}
        raise BadInput(catalogue.sentence("switch.needs-hook", **facts))


def refuse_unasked_removal(state: SwitchState, *, asked: bool) -> None:
    """Raise BadInput if the switch is still to delete ACLs that deny WRITE, and that is not `asked` for now.

    The ledger's record alone does not decide it, because all writers of the ledger could have written it.
    """
    switch = state.switch
    if switch.options.remove_write_block and not asked and Step.PROMOTE not in state.done and state.end is None:
        raise BadInput(
            f"{switch.verb} {switch.id} was begun with --remove-write-block, by the ledger: give it again (in Airflow "
            f"in the form) to delete ACLs that deny WRITE, with {continuing(switch)}; or abandon it with ferry "
            f"switches abandon '{switch.named}' {switch.id} --reason TEXT"
        )


def continuing(switch: Switch) -> str:
    """Return the command that continues a switch."""
    removing = " --remove-write-block" if switch.options.remove_write_block else ""
    return f"ferry {switch.verb} '{switch.named}' --id {switch.id}{removing}"


def remedied(state: SwitchState, sentence: str) -> str:
    """Add to the sentence of a failed step the command that continues. If it is possible, add the one that abandons."""
    go_on = continuing(state.switch)
    if go_on in sentence:
        return sentence
    giving_up = (
        ""
        if POINT_OF_NO_RETURN in state.done
        else f", or abandon it with ferry switches abandon '{state.switch.named}' {state.switch.id} --reason TEXT"
    )
    return f"{sentence}; continue with {go_on}{giving_up}"


def other_options(begun: SwitchOptions, asked: SwitchOptions, given: Mapping[str, str]) -> list[str]:
    """Return which of the options on the command line, `given` by the fields that they set, differ from the first."""
    return [flag for name, flag in given.items() if getattr(asked, name) != getattr(begun, name)]


def refuse_other_options(state: SwitchState, asked: SwitchOptions, given: Mapping[str, str]) -> None:
    """Raise BadInput for an option that is given again with another value than the switch began with.

    `given` has the options on the command line as they are written, by the fields of `asked` that they set.
    """
    switch = state.switch
    other = other_options(switch.options, asked, given)
    if other and state.end is None:
        raise BadInput(
            f"{switch.verb} {switch.id} did not begin with this {' and '.join(other)}, and keeps the options that it "
            f"began with: continue without, with {continuing(switch)}, or abandon it with ferry switches abandon "
            f"'{switch.named}' {switch.id} --reason TEXT and begin another one"
        )


def refuse_other_approval(state: SwitchState, approved_by: str | None) -> None:
    """Raise BadInput if another person is named as approver than the one of the switch's beginning.

    The ledger keeps the name, and after it in brackets how it was established, such as the host: that does not matter
    here.
    """
    switch, name = state.switch, (approved_by or "").strip()
    is_same = switch.approved_by == name or switch.approved_by.startswith(f"{name} (")
    if name and not is_same and state.end is None:
        raise BadInput(
            f"{switch.verb} {switch.id} was approved by {switch.approved_by}, and keeps that: continue without "
            f"--approve-by, with {continuing(switch)}"
        )


def refuse_abandoning(state: SwitchState, moved_on: SwitchState | None = None) -> None:
    """Raise Refused if a switch has ended, or if clients may have moved already.

    `moved_on` is an opposite switch that was begun since: then that one moves the clients. A failback is named only
    after a switch that starts the flow back.
    """
    switch = state.switch
    if state.end is not None:
        raise Refused(f"switch {switch.id} is {state.end.outcome} already, since {state.end.who} ended it")
    if POINT_OF_NO_RETURN in state.done and moved_on is None:
        verb = "ferry switchover" if switch.verb is Verb.FAILBACK else "ferry failback"
        returns = f", then go back with {verb} '{switch.named}'" if switch.options.reverse else ""
        raise Refused(
            f"switch {switch.id} has promoted {switch.via.target}, clients may be there already: finish it with "
            f"ferry {switch.verb} '{switch.named}' --id {switch.id}{returns}"
        )
