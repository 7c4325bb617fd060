"""The command `ferry`, which stops its own process at moments of a switch: `python -P held.py STEP MOMENTS WORDS...`.

Moments, joined by commas: `begun`, when the ledger has the begin of the step and nothing of it is done; `done`, when
all of it is done and the ledger does not have that yet. The process that started it kills it there, or continues it.
"""

from __future__ import annotations

import os
import signal
import sys

from ferry import program
from ferry.features.switch.acts.journal import Journal
from ferry.model.switch import Evidence, Step, StepBegun, SwitchState


def held_at(step: Step, moments: set[str]) -> None:
    """Have this process stop whenever the step comes to one of the moments."""
    begin, done = Journal.begin, Journal.done

    def begun_and_held(self: Journal, switch: str, of: Step) -> StepBegun:
        begun = begin(self, switch, of)
        if of is step and "begun" in moments:
            os.kill(os.getpid(), signal.SIGSTOP)
        return begun

    def held_and_done(self: Journal, switch: str, begun: StepBegun, evidence: Evidence) -> SwitchState:
        if begun.step is step and "done" in moments:
            os.kill(os.getpid(), signal.SIGSTOP)
        return done(self, switch, begun, evidence)

    for name, method in (("begin", begun_and_held), ("done", held_and_done)):
        setattr(Journal, name, method)


if __name__ == "__main__":
    _, at, when, *words = sys.argv
    held_at(Step(at), {*when.split(",")})
    sys.argv = ["ferry", *words]
    program.main()
