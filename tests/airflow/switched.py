"""The switches of one flow by Airflow's DAGs: asked for, approved, killed in a step, cleared, and as they ended."""

from __future__ import annotations

import json
import os
import secrets
import signal
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import psutil

from ferry.config.settings import Settings, parse_settings
from ferry.features.groups.acts.of_run import checkpoint
from ferry.features.switch.acts.history import all_switches
from ferry.features.switch.acts.switcher import Switcher
from ferry.features.switch.rules.steps import left_of
from ferry.model.switch import Step, SwitchOutcome, SwitchState, Verb
from ferry.run.local import copy_all
from ferry.run.micro_run import MicroRuns, local_origin
from ferry_airflow.local import PIDS_FILE
from ferry_airflow.rest import ENDED, until
from tests.airflow.conftest import Flows
from tests.spark.jobs import all_gone
from tests.tiers import ANSWER_S, PATIENCE

WAIT_SECONDS = 400
"""A dozen tasks, each of which reads the DAG file; a wait for a condition, however busy the machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Switched:
    """The switches of a flow; no verb has two that are not finished."""

    flows: Flows
    alias: str

    @property
    def flow(self) -> str:
        """The flow that all verbs name."""
        return f"{self.alias}->t{self.alias}"

    @property
    def settings(self) -> Settings:
        """The flow's file, without the hook."""
        return parse_settings(self.flows.lab(self.alias).text, "lab.properties")

    def dag(self, verb: Verb) -> str:
        """The verb's DAG id."""
        return f"ferry_{verb}__{self.alias}__t{self.alias}"

    def copy(self) -> None:
        """A run of the flow, with its checkpoint."""
        with MicroRuns(self.settings.flow(self.flow), patience_s=ANSWER_S) as runs:
            plan = runs.open_new(f"run-{secrets.token_hex(4)}", local_origin())
            assert plan.refusals == ()
            attempt = runs.begin(plan, local_origin())
            runs.record_outcome(plan, attempt, copy_all(runs, plan, attempt))
            checkpoint(runs, plan.run)

    def known(self) -> list[SwitchState]:
        """The switches of both directions; both clusters answer."""
        settings = self.settings
        found, unread = all_switches(settings, settings.flow(self.flow), patience_s=ANSWER_S)
        assert not unread
        return found

    def asked(self, verb: Verb, conf: Mapping[str, object]) -> str:
        """Trigger a switch and wait until it asks; the run."""
        return self.flows.asked(self.dag(verb), conf)

    def body(self, verb: Verb, run: str) -> str:
        """What is shown to whoever approves."""
        return str(self.flows.rest.question(self.dag(verb), run, "approve")["body"]).replace("\\", "")

    def answer(self, verb: Verb, run: str, option: str) -> None:
        """A person's answer."""
        self.flows.rest.answer(self.dag(verb), run, "approve", option)

    def at_work(self, verb: Verb, run: str, step: Step, *, but: str = "") -> str:
        """Wait until a step is begun, by another process than that with the token `but`; the token of the one."""
        tokens: list[str] = []

        def begun() -> bool:
            state = _newest(ledger, verb)
            if state is not None:
                assert step not in state.done, f"{step} was done before anybody looked"
                if step in state.begun and state.begun[step].token != but:
                    tokens.append(state.begun[step].token)
                    return True
            assert self._state(verb, run) not in ENDED, self.flows.rest.states(self.dag(verb), run)
            return False

        with self._switcher(verb) as ledger:
            assert until(begun, WAIT_SECONDS * PATIENCE), f"{step} of {verb} is not begun after {WAIT_SECONDS} s"
        return tokens[0]

    def kill(
        self, verb: Verb, run: str, step: Step, amid: Callable[[psutil.Process], bool] = lambda _task: True
    ) -> str:
        """Kill the process of a step's task outright, once it is at work and `amid` holds; the token that it had.

        What it started is gone with it, the run has failed, and its report says what is next. Clearing is for
        whoever goes on.
        """
        rest, dag = self.flows.rest, self.dag(verb)
        token = self.at_work(verb, run, step)
        task = psutil.Process(int(rest.tasks(dag, run)[step]["pid"]))
        scheduler, _ = json.loads((self.flows.home.path / PIDS_FILE).read_text())["scheduler"]
        assert os.getsid(task.pid) == scheduler, "this is no task of the Airflow under test"
        assert until(lambda: amid(task), WAIT_SECONDS * PATIENCE), f"{step} came to nothing in {WAIT_SECONDS} s"
        tree = [task, *task.children(recursive=True)]
        os.kill(task.pid, signal.SIGKILL)
        all_gone(tree, WAIT_SECONDS)

        assert rest.wait_run(dag, run, seconds=WAIT_SECONDS) == "failed"
        assert rest.states(dag, run)[step] == "failed", f"{step} was killed too late"
        with self._switcher(verb) as ledger:
            state = _newest(ledger, verb)
        assert state is not None
        assert state.end is None
        said = rest.log(dag, run, "report")
        assert f"{left_of(state)}: clear the first task " in said
        return token

    def clear(self, verb: Verb, run: str, step: Step) -> None:
        """Clear the task of a step that was killed, and those behind it."""
        self.flows.rest.clear_from(self.dag(verb), run, step)
        self.flows.rest.wait_run(self.dag(verb), run, states=("queued", "running"))

    def finished(self, verb: Verb, run: str) -> SwitchState:
        """Wait until all is done; the switch, which a person has approved."""
        rest, dag = self.flows.rest, self.dag(verb)
        if rest.wait_run(dag, run, seconds=2 * WAIT_SECONDS) != "success":
            failed = [task for task, state in rest.states(dag, run).items() if state == "failed"]
            tries = {task: rest.tasks(dag, run)[task]["try_number"] for task in failed}
            raise AssertionError("\n".join(rest.log(dag, run, task, tries[task]) for task in failed))
        with self._switcher(verb) as ledger:
            state = _newest(ledger, verb)
        assert state is not None
        assert state.end is not None
        assert state.end.outcome is SwitchOutcome.FINISHED
        assert state.switch.approved_by == "admin (answered in Airflow)"
        return state

    def _state(self, verb: Verb, run: str) -> str:
        return str(self.flows.rest.run(self.dag(verb), run)["state"])

    def _switcher(self, verb: Verb) -> Switcher:
        """For its ledger, which lies on the cluster that is switched to: the other one may be gone."""
        settings = self.settings
        return Switcher(settings, settings.flow(self.flow), verb, who="somebody@desk", patience_s=ANSWER_S)


def _newest(ledger: Switcher, verb: Verb) -> SwitchState | None:
    """The verb's newest switch."""
    return next((state for state in reversed([*ledger.states().values()]) if state.switch.verb is verb), None)
