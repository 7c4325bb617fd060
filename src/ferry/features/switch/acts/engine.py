"""The loop of a switch: what is due is begun, done and written down, until nothing is due."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ferry.errors import BadInput, FerryError, Superseded
from ferry.features.switch.acts.journal import Journal
from ferry.features.switch.rules.steps import remedied
from ferry.model.switch import STEPS, Evidence, Step, StepDone, SwitchState, next_step

StillMine = Callable[[], None]
"""Raises Superseded when another process has begun the step again, or ended the switch, since."""

Act = Callable[[SwitchState, StillMine], Evidence]
"""Does a step of the switch whose earlier steps are done. Doing it again after a kill must end in the same state.

A process may sleep for long inside a step while another one finishes the switch: right before it changes what clients
meet it looks whether the step is still its own.
"""


def do_step(journal: Journal, switch: str, step: Step, act: Act) -> SwitchState:
    """Do one step, the one that is due; nothing where it is done already.

    Raises as `refuse_out_of_turn`, as the act does (the step stays due then, and the sentence has the command that
    continues), and Superseded.
    """
    state = journal.state(switch)
    if step not in STEPS[state.switch.verb]:
        raise BadInput(f"a {state.switch.verb} has no step {step}: name one of {', '.join(STEPS[state.switch.verb])}")
    if step in state.done:
        return state
    begun = journal.begin(switch, step)
    try:
        found = act(state, lambda: journal.refuse_lost(switch, begun))
    except Superseded:
        raise  # somebody else does it
    except FerryError as error:
        error.args = (remedied(state, str(error)),)
        raise
    return journal.done(switch, begun, found)


def advance(
    journal: Journal,
    switch: str,
    acts: Mapping[Step, Act],
    told: Callable[[Step, StepDone | None], None] = lambda _step, _done: None,
) -> SwitchState:
    """Do all that is left of a switch, and finish it. `told` hears of each step before (None) and after it."""
    state = journal.state(switch)
    while (step := next_step(state)) is not None:
        told(step, None)
        state = do_step(journal, switch, step, acts[step])
        told(step, state.done[step])
    return journal.finish(switch)
