"""Switches by the program, as operators give them, and clients that count what they read."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from ferry.ledger.switch_codec import switch_states
from ferry.model.switch import Step, SwitchOutcome, SwitchState, Verb
from ferry.run.ledger.access import LedgerAccess
from tests.kafka.run.switching import Pair
from tests.program import PROGRAM, start
from tests.soak import asleep
from tests.tiers import ANSWER_S

REQUESTS = (0, 1, 2, 4, 8, 16, 32)
"""After how many requests of a step its process may fall asleep."""

AT_ITS_END = 1 << 30
"""More requests than a step makes: its process falls asleep when all is done and the ledger does not have that yet."""

QUICK = ("--quiet-seconds", "0.6", "--quiet-timeout", "20", "--drain-timeout", "120")


def written(pair: Pair, folder: Path) -> Path:
    """The file of the pair."""
    path = folder / f"{'-'.join(pair.aliases)}.properties"
    path.write_text(pair.text)
    return path


def operator(
    pair: Pair, verb: Verb, switch: str, config: Path, *options: str, program: Sequence[str | Path] = (PROGRAM,)
) -> subprocess.Popen[str]:
    """The command. `pair` leads where clients go; of a failback the flow that is named is the one back."""
    flow = pair.flow if verb is not Verb.FAILBACK else pair.back
    return start(verb.value, flow, "--id", switch, "--approve-by", "bob", *options, config=config, program=program)


def sleeper(
    pair: Pair, verb: Verb, switch: str, config: Path, steps: Iterable[Step], requests: int, *options: str
) -> subprocess.Popen[str]:
    """The command, which stops in each of the steps once it has made so many requests there (tests/soak/asleep.py)."""
    words = (asleep.__file__, ",".join(steps), str(requests))
    return operator(pair, verb, switch, config, *options, program=(sys.executable, "-P", *words))


def is_asleep(process: subprocess.Popen[str]) -> bool:
    """Wait until a command stops in a step; False when it ended."""
    found = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WSTOPPED | os.WNOWAIT)
    return found is not None and found.si_code == os.CLD_STOPPED


def states_of(pair: Pair) -> dict[str, SwitchState]:
    """The switches to the cluster there."""
    with LedgerAccess(pair.settings.flow(pair.flow), patience_s=ANSWER_S) as ledger:
        return switch_states(ledger.view()) if ledger.exists() else {}


def finished(pair: Pair, switch: str) -> SwitchState:
    """A switch that has to be finished by now."""
    state = states_of(pair)[switch]
    assert state.end is not None, state
    assert state.end.outcome is SwitchOutcome.FINISHED
    return state
