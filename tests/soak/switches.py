"""Switches by the program, as operators give them, and clients that count what they read."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import psutil

from ferry.ledger.switch_codec import switch_states
from ferry.model.switch import Step, SwitchOutcome, SwitchState, Verb
from ferry.run.ledger.access import LedgerAccess
from tests.harness import wait_until
from tests.kafka.run.switching import Pair
from tests.program import PROGRAM, start

HELD = Path(__file__).with_name("held.py")
MOMENTS = ("begun", "done")
"""Of a step, as `tests.soak.held` knows them."""

QUICK = ("--quiet-seconds", "0.6", "--quiet-timeout", "20", "--drain-timeout", "120")


def written(pair: Pair, folder: Path) -> Path:
    """The file of the pair."""
    path = folder / f"{'-'.join(pair.aliases)}.properties"
    path.write_text(pair.text)
    return path


def operator(
    pair: Pair,
    verb: Verb,
    switch: str,
    config: Path,
    *options: str,
    program: Sequence[str | Path] = (PROGRAM,),
) -> subprocess.Popen[str]:
    """The command. `pair` leads where clients go; of a failback the flow that is named is the one back."""
    flow = pair.flow if verb is not Verb.FAILBACK else pair.back
    return start(verb.value, flow, "--id", switch, "--approve-by", "bob", *options, config=config, program=program)


def held_operator(
    pair: Pair, verb: Verb, switch: str, config: Path, *options: str, step: Step, moments: Sequence[str]
) -> subprocess.Popen[str]:
    """The command, stopped at the first of the moments of a step (`tests.soak.held`). It has to come there."""
    program = (sys.executable, "-P", HELD, step.value, ",".join(moments))
    process = operator(pair, verb, switch, config, *options, program=program)

    def is_stopped() -> bool:
        return psutil.Process(process.pid).status() == psutil.STATUS_STOPPED

    wait_until(lambda: process.poll() is not None or is_stopped(), 300, f"{moments} of {step} of {verb}")
    assert process.poll() is None, (step, moments, process.communicate())
    state = states_of(pair)[switch]
    assert step in state.begun, state
    assert step not in state.done, state
    return process


def states_of(pair: Pair) -> dict[str, SwitchState]:
    """The switches to the cluster there."""
    with LedgerAccess(pair.settings.flow(pair.flow), patience_s=30) as ledger:
        return switch_states(ledger.view()) if ledger.exists() else {}


def finished(pair: Pair, switch: str) -> SwitchState:
    """A switch that has to be finished by now."""
    state = states_of(pair)[switch]
    assert state.end is not None, state
    assert state.end.outcome is SwitchOutcome.FINISHED
    return state
