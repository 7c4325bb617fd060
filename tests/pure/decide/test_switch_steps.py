"""The order of a switch's steps, which one is next, and when a switch can be given up."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ferry.errors import BadInput, Refused
from ferry.features.switch.rules.steps import (
    clients_by,
    newest_finished,
    refuse_abandoning,
    refuse_out_of_turn,
    unfinished,
)
from ferry.model.switch import STEPS, Step, SwitchOptions, SwitchOutcome, SwitchState, Verb, next_step
from tests.pure.decide.test_opposite import other


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        (Step.READINESS, Step.FREEZE),
        (Step.STRANDED, Step.RETURN),  # what is passed over is kept first
        (Step.RETURN, Step.DRAIN),
        (Step.FREEZE, Step.QUIET),
        (Step.QUIET, Step.DRAIN),
        (Step.DRAIN, Step.STOP),
        (Step.DRAIN, Step.GROUPS),
        (Step.TOPICS, Step.GROUPS),
        (Step.GROUPS, Step.PROMOTE),
        (Step.STOP, Step.LOSS),
        (Step.STOP, Step.PROMOTE),
        (Step.LOSS, Step.GROUPS),
        (Step.PROMOTE, Step.REDIRECT),
        (Step.REDIRECT, Step.REVERSE),
    ],
)
def test_no_step_comes_before_what_it_relies_on(earlier: Step, later: Step) -> None:
    met = [steps for steps in STEPS.values() if {earlier, later} <= {*steps}]
    assert met
    assert all(steps.index(earlier) < steps.index(later) for steps in met)


def test_each_step_comes_in_its_turn() -> None:
    steps = STEPS[Verb.SWITCHOVER]
    for at, step in enumerate(steps):
        state = other(steps[at - 1] if at else None)
        assert next_step(state) is step
        refuse_out_of_turn(state, step)
        for wrong in {*steps} - {step}:
            with pytest.raises(Refused):
                refuse_out_of_turn(state, wrong)
        with pytest.raises(BadInput):
            refuse_out_of_turn(state, Step.LOSS)
    over = other(outcome=SwitchOutcome.ABANDONED)
    assert next_step(over) is None
    with pytest.raises(Refused):
        refuse_out_of_turn(over, steps[0])


def test_a_switch_is_given_up_before_clients_may_have_moved_and_not_after() -> None:
    refuse_abandoning(other(Step.STOP))
    promoted = other(Step.PROMOTE)
    with pytest.raises(Refused):
        refuse_abandoning(promoted)
    refuse_abandoning(promoted, moved_on=other(Step.PROMOTE))
    for outcome in SwitchOutcome:
        with pytest.raises(Refused):
            refuse_abandoning(other(outcome=outcome))


@pytest.mark.parametrize("reverse", [True, False])
def test_a_failback_is_named_only_after_a_switch_that_starts_the_flow_back(reverse: bool) -> None:
    promoted = other(Step.PROMOTE)
    state = replace(promoted, switch=replace(promoted.switch, options=SwitchOptions(reverse=reverse)))
    with pytest.raises(Refused) as caught:
        refuse_abandoning(state)
    assert ("ferry failback" in str(caught.value)) is reverse


def test_of_two_switches_that_are_open_the_first_counts_and_of_those_that_moved_clients_the_last() -> None:
    def at(offset: int, done_ms: int, state: SwitchState) -> SwitchState:
        done = {step: replace(one, done_ms=done_ms) for step, one in state.done.items()}
        end = None if state.end is None else replace(state.end, at_ms=done_ms)
        return replace(state, offset=offset, done=done, end=end)

    states = {
        "first": at(3, 10, other(Step.PROMOTE)),
        "second": at(5, 20, other(Step.STOP)),
        "third": at(7, 30, other(outcome=SwitchOutcome.FINISHED)),
        "fourth": at(9, 5, other(outcome=SwitchOutcome.FINISHED)),
        "fifth": at(11, 40, other(outcome=SwitchOutcome.ABANDONED)),
    }
    assert unfinished(states) == states["first"]
    assert newest_finished(states) == states["fourth"], "in the ledger's order, whatever the clocks said"
    assert clients_by(states.values()) == states["fourth"]
    assert unfinished({}) is newest_finished({}) is clients_by(()) is None
