"""The loop of a switch: it begins, does and records the next step until no step is left."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ferry.errors import BadInput, FerryError, Superseded
from ferry.features.switch.acts.journal import Journal
from ferry.features.switch.rules.steps import remedied
from ferry.model import sentence_of, with_text
from ferry.model.switch import STEPS, Evidence, Step, StepDone, SwitchState, next_step

StillMine = Callable[[], None]
"""Raises Superseded if another process has begun the step again since, or has ended the switch."""

Act = Callable[[SwitchState, StillMine], Evidence]
"""Does a step of the switch whose earlier steps are done. Doing it again after a kill must end in the same state.

A process may stop for long inside a step while another one finishes the switch. So right before the act changes what
clients see, it checks that the step is still its own.
"""


def do_step(journal: Journal, switch: str, step: Step, act: Act) -> SwitchState:
    """Do one step, the one that is due. If it is done already, do nothing.

    Raises BadInput for a step that the verb does not have, and Refused for one that is not due. The errors of the act
    are raised with the command that continues in their sentence; the step is still due then. Raises Superseded if
    another process has begun the step.
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
        raise  # another process does it
    except FerryError as error:
        error.args = (with_text(sentence_of(error), remedied(state, str(error))),)
        raise
    return journal.done(switch, begun, found)


def advance(
    journal: Journal,
    switch: str,
    acts: Mapping[Step, Act],
    on_step: Callable[[Step, StepDone | None], None] = lambda _step, _done: None,
) -> SwitchState:
    """Do all steps that are left of a switch, and finish it.

    `on_step` is called before each step (None) and after it.
    """
    state = journal.state(switch)
    while (step := next_step(state)) is not None:
        on_step(step, None)
        state = do_step(journal, switch, step, acts[step])
        on_step(step, state.done[step])
    return journal.finish(switch)
