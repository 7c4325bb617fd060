"""A switch from the outside: preview it, open it, do its steps one by one or all, abandon it.

The command line and Airflow's tasks call this. Each step makes connections of its own, so each may be a process of its
own. What it needs of the steps before is in the ledger.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from types import TracebackType
from typing import Any, Self

from ferry.clock import wall_ms
from ferry.config.flow.flow import FlowConfig
from ferry.config.settings import Settings
from ferry.errors import BadInput, Refused
from ferry.features.identical.rules.written import refuse_written
from ferry.features.identical.settings import IdenticalSettings
from ferry.features.switch.acts.drain import Copy, drain
from ferry.features.switch.acts.earlier import earlier_switch
from ferry.features.switch.acts.engine import Act, StillMine, advance, do_step
from ferry.features.switch.acts.freeze import frozen
from ferry.features.switch.acts.groups import move_groups, refuse_named
from ferry.features.switch.acts.history import abandon
from ferry.features.switch.acts.journal import Journal
from ferry.features.switch.acts.opposite import look_opposite, moved_on_along, refuse_opposed
from ferry.features.switch.acts.preflight import look_before
from ferry.features.switch.acts.promote import promote
from ferry.features.switch.acts.quiet import wait_for_quiet
from ferry.features.switch.acts.redirect import redirect, refuse_unusable, with_given, words_of
from ferry.features.switch.acts.sides import refuse_identical, refuse_reverse, sides_of
from ferry.features.switch.acts.smoke import smoke_test
from ferry.features.switch.acts.starting import start_flow, start_reverse
from ferry.features.switch.acts.stop import count_loss, stop_flow
from ferry.features.switch.acts.stranded import export_stranded, looked_to, refuse_unwritable
from ferry.features.switch.acts.topics import live_topics
from ferry.features.switch.acts.write_block import check_block
from ferry.features.switch.rules.opposite import moved_along, moved_sentence, opposing
from ferry.features.switch.rules.readiness import Readiness
from ferry.features.switch.rules.steps import (
    named_facts,
    newest_finished,
    refuse_ended,
    refuse_second,
    refuse_unasked_removal,
    refuse_without_hook,
    sentence,
)
from ferry.features.switch.settings import SwitchHook, SwitchSettings
from ferry.ledger.ledger import UNREAD, LedgerView, pauses
from ferry.ledger.runs import has_run
from ferry.ledger.switch_codec import ID, paused_by, switch_states
from ferry.messages import catalogue
from ferry.model.check import Check
from ferry.model.switch import (
    OPPOSITE,
    STEPS,
    Evidence,
    Step,
    StepDone,
    Switch,
    SwitchOptions,
    SwitchOutcome,
    SwitchState,
    Verb,
)
from ferry.plan.rules.skipping import refuse_while_at_work
from ferry.run.ledger.access import LedgerAccess
from ferry.run.local import copy_plan

OnStep = Callable[[Step, StepDone | None], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What a switch would do, and whether it could begin now."""

    switch: Switch
    steps: tuple[tuple[Step, str], ...]
    readiness: Readiness


class Switcher:
    """The switches of one flow by one verb. Use it as a context manager."""

    def __init__(
        self,
        settings: Settings,
        flow: FlowConfig,
        verb: Verb,
        *,
        who: str,
        hook: SwitchHook | None = None,
        stop: SwitchHook | None = None,
        remove_write_block: bool = False,
        copy: Copy = copy_plan,
        patience_s: float = 60.0,
    ) -> None:
        """Choose a flow and a verb.

        `flow` is one of `settings`, as the operator named it; `who` does it, as `user@host`. `hook` redirects clients,
        and `stop` stops them: a command or URL in them replaces the file's. `remove_write_block`: ACLs that deny WRITE
        may be deleted, if the switch began so. `copy` copies a plan when the flow is drained. Raises BadInput if a
        failback has no flow to go along. Raises Refused if the flow back keeps offsets of other topics than the flow.
        For a failback it is raised also if only the flow keeps them.
        """
        self.sides = sides_of(settings, flow, verb)
        refuse_identical(settings, flow, f"ferry {verb}", verb)
        self.verb = verb
        self._began_ms = wall_ms()
        self._who = who
        self._given = words_of(hook)
        self._given_stop = words_of(stop)
        hooks = self.sides.via.of(SwitchSettings)
        self._hook = with_given(hooks.redirect, hook)
        self._stop = with_given(hooks.stop, stop)
        self._removes_block = remove_write_block
        self._copy = copy
        self._patience_s = patience_s
        self._access = LedgerAccess(self.sides.via, patience_s=patience_s)
        self._journal = Journal(self._access, who)

    def __enter__(self) -> Self:
        """Connect to the cluster that is switched to. Raises Unreachable if it does not answer."""
        self._access.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._access.__exit__(kind, error, trace)

    def states(self) -> dict[str, SwitchState]:
        """Return all switches to this cluster along this flow, by id, oldest first."""
        return self._journal.states()

    def state(self, switch: str) -> SwitchState:
        """Return one switch by its id. Raises BadInput if there is none."""
        return self._journal.state(switch)

    def known(self, switch: str) -> SwitchState | None:
        """Return the switch of that id, to be continued or finished; None if there is none.

        Raises BadInput if it belongs to another verb, or began with a hook, or a removal of ACLs, that is not given
        now; Refused if it was abandoned.
        """
        states = self.states()
        if switch not in states:
            return None
        state = refuse_second(states, self._wanted(switch, SwitchOptions(), ""))
        if state is not None:
            if state.end is None or state.end.outcome is not SwitchOutcome.FINISHED:
                refuse_ended(state)
            self._refuse_ungiven(state)
            self._refuse_unusable()
        return state

    def preview(self, switch: str, options: SwitchOptions) -> Preview:
        """Return what the switch would do, and the checks of its first step; writes nothing.

        If the switch has done its checks, these are returned, because it has changed what they check. Raises BadInput
        or Refused for what no check covers.
        """
        wanted = self._wanted(switch, options, "")
        known = refuse_second(self.states(), wanted)
        if known is not None:
            self._refuse_going_on(known)
            wanted = known.switch
        state = known or SwitchState(switch=wanted, offset=-1)
        if Step.READINESS in state.done:
            self._refuse_unusable()
            readiness = _checked_before(state)
        else:
            self._refuse_before(wanted, state)
            readiness, _ = self._look_before(state)
        steps = tuple((step, sentence(wanted, step)) for step in STEPS[self.verb] if step not in state.done)
        return Preview(switch=wanted, steps=steps, readiness=readiness)

    @property
    def ledger(self) -> LedgerAccess:
        """The ledger that the switch is written to."""
        return self._access

    def open(
        self, switch: str, options: SwitchOptions, approved_by: str, *, approved_ms: int | None = None
    ) -> SwitchState:
        """Open a switch, or return the one of that id, which keeps its first options.

        `approved_ms` is when it was approved; None: now. Raises Refused, before anything is written, if a check fails,
        if another switch is not finished, or if this one has ended.
        """
        if not approved_by.strip():
            raise BadInput(catalogue.sentence("switch.needs-approval"))
        wanted = self._wanted(switch, options, approved_by.strip())
        if approved_ms is not None:
            wanted = replace(wanted, approved_ms=approved_ms)
        known = refuse_second(self.states(), wanted)
        if known is not None:
            self._refuse_going_on(known)
            return known
        draft = SwitchState(switch=wanted, offset=-1)
        self._refuse_before(wanted, draft)
        readiness, facts = self._look_before(draft)
        refuse_unready(readiness, wanted)
        state = self._journal.open(wanted)
        if facts[OPPOSITE] is not None:
            self._give_way(state)
        return state

    def _give_way(self, state: SwitchState) -> None:
        """Abandon the switch if an opposite one was opened at the same time, and raise Refused.

        Each of the two is written to its own ledger before it reads the other one.
        """
        found = look_opposite(self.sides, patience_s=self._patience_s, needed=False)
        other = opposing(state.switch, found.states, found.states)
        if other is not None:
            why = f"{other.switch.verb} {other.switch.id} of {other.switch.named} was opened at the same time"
            self._journal.abandon(state.switch.id, why)
            raise Refused(
                catalogue.sentence("switch.opposite.same-time", who=other.switch.who, **named_facts(other.switch))
            )

    def step(self, switch: str, step: Step) -> SwitchState:
        """Do one step, the one that is due; do nothing if it is done.

        Raises BadInput for a step that the verb does not have, Refused for one that is not due, and the errors of the
        step. Raises Superseded if another process has begun it.
        """
        if step in (Step.QUIET, Step.PROMOTE, Step.REDIRECT):  # before: after `promote` a switch cannot be abandoned
            self._refuse_ungiven(self.state(switch))
        return do_step(self._journal, switch, step, self._acts()[step])

    def run(self, switch: str, on_step: OnStep = lambda _step, _done: None) -> SwitchState:
        """Do all steps that are left, and finish. The error of a failed step is raised, and the step stays due."""
        self._refuse_ungiven(self.state(switch))
        return advance(self._journal, switch, self._acts(), on_step)

    def finish(self, switch: str) -> SwitchState:
        """Record that all steps are done. Raises Refused if one is not."""
        return self._journal.finish(switch)

    def abandon(self, switch: str, why: str) -> SwitchState:
        """Abandon a switch, and lift the pause that it set. Raises Refused once it has promoted the new cluster."""
        back = self.sides.back

        def moved_on(state: SwitchState) -> SwitchState | None:
            return None if back is None else moved_on_along(back, state, patience_s=self._patience_s)

        return abandon(self._access, self._journal, switch, why, moved_on)

    def _wanted(self, switch: str, options: SwitchOptions, approved_by: str) -> Switch:
        if not ID.fullmatch(switch):
            raise BadInput(
                f"switch id {switch!r} is not a name: use up to 100 letters, digits, dots, underscores, hyphens"
            )
        return Switch(
            id=switch,
            verb=self.verb,
            named=self.sides.named,
            via=self.sides.via.flow,
            who=self._who,
            approved_by=approved_by,
            approved_ms=wall_ms(),
            at_ms=self._began_ms,
            options=replace(options, redirect=self._given, stop=self._given_stop),
        )

    def _refuse_unusable(self) -> None:
        refuse_unusable(self._hook, "redirect")
        refuse_unusable(self._stop, "stop")

    def _refuse_going_on(self, known: SwitchState) -> None:
        refuse_ended(known)
        self._refuse_ungiven(known)

    def _refuse_ungiven(self, state: SwitchState) -> None:
        refuse_without_hook(state, self._given, self._given_stop)
        refuse_unasked_removal(state, asked=self._removes_block)

    def _refuse_before(self, switch: Switch, state: SwitchState) -> None:
        """Raise BadInput or Refused for what needs no cluster, or the ledger alone."""
        self._refuse_unusable()
        if self.sides.back is None and switch.options.reverse:
            raise Refused(catalogue.sentence("switch.no-reverse", back=str(switch.back)))
        if self.verb is Verb.FAILBACK:
            refuse_unwritable(state)
        view = self._access.view_with_newest(self.sides.via.lane, 1) if self._access.exists() else UNREAD
        keeps = self.sides.via.of(IdenticalSettings).keeps
        if not keeps:
            refuse_written(view, self.sides.via, f"ferry {self.verb}", moves=True)
        refuse_reverse(self.sides, switch.options)
        if self.verb is not Verb.FAILBACK and not has_run(view, self.sides.via.lane):
            raise BadInput(
                f"flow {switch.via} has copied nothing: there is nothing on {switch.via.target} to switch to"
            )
        if self.verb is not Verb.FAILBACK:
            self._refuse_moved(view, returns=self.sides.back is not None or not keeps)
        refuse_named(view, self.sides.via, switch.id)
        if not switch.options.interrupt and view.runs:
            refuse_while_at_work(view, self.sides.via.lane, is_lost=self.verb is Verb.FAILOVER)

    def _look_before(self, state: SwitchState) -> tuple[Readiness, dict[str, Any]]:
        """Make the checks of the verb, and those of what the switch deletes."""
        readiness, facts = look_before(self.sides, state, patience_s=self._patience_s)
        block = check_block(self.sides, state, patience_s=self._patience_s)
        return replace(readiness, checks=(*readiness.checks, *block)), facts

    def _refuse_moved(self, view: LedgerView, *, returns: bool) -> None:
        """Raise Refused if clients are on the new cluster already. A flow that is not paused was started since."""
        now_ms = wall_ms()
        last = newest_finished(switch_states(view))
        if last is None or "" not in pauses(view, now_ms):
            return
        found = look_opposite(self.sides, patience_s=self._patience_s, needed=False)
        unread = f" ({found.unread})" if found.unread is not None else ""
        by = paused_by(view, now_ms)
        if by is None and (unread or moved_along({last.switch.id: last}, found.states) is None):
            return  # whose pause it is does not show it, and neither do the switches
        if by is None or by.switch.id == last.switch.id:
            raise Refused(f"{moved_sentence(last, found.states, returns=returns)}{unread}")

    def _acts(self) -> Mapping[Step, Act]:
        sides, patience_s = self.sides, self._patience_s
        return {
            Step.READINESS: _looks(self._ready),
            Step.STRANDED: _looks(partial(export_stranded, sides, patience_s=patience_s)),
            Step.RETURN: self._return,
            Step.FREEZE: _looks(partial(frozen, sides, patience_s=patience_s)),
            Step.QUIET: partial(wait_for_quiet, sides, hook=self._stop, patience_s=patience_s),
            # If another process drains the same switch, the runs of both fence each other: no more is needed.
            Step.DRAIN: _looks(partial(drain, sides, patience_s=patience_s, copy=self._copy)),
            Step.STOP: partial(stop_flow, sides, who=self._who, patience_s=patience_s),
            Step.LOSS: _looks(partial(count_loss, sides, patience_s=patience_s)),
            Step.TOPICS: partial(live_topics, sides, patience_s=patience_s),
            Step.GROUPS: partial(move_groups, sides, patience_s=patience_s),
            Step.PROMOTE: self._promote,
            Step.REDIRECT: self._redirect,
            Step.SMOKE: _looks(partial(smoke_test, sides, patience_s=patience_s)),
            Step.REVERSE: partial(start_reverse, sides, patience_s=patience_s),
        }

    def _ready(self, state: SwitchState) -> Evidence:
        readiness, facts = self._look_before(state)
        refuse_unready(readiness, state.switch)
        return Evidence(
            sentence=readiness.passed_sentence(),
            facts=facts,
            rows=tuple(
                {
                    "name": check.name,
                    "ok": check.ok,
                    "message": check.message,
                    "known": check.known,
                    "warns": check.warns,
                }
                for check in readiness.checks
            ),
        )

    def _promote(self, state: SwitchState, still_mine: StillMine) -> Evidence:
        refuse_opposed(self.sides, state, patience_s=self._patience_s)
        return promote(self.sides, state, still_mine, patience_s=self._patience_s)

    def _redirect(self, state: SwitchState, still_mine: StillMine) -> Evidence:
        refuse_opposed(self.sides, state, patience_s=self._patience_s)
        return redirect(self.sides, state, self._hook, still_mine)

    def _return(self, state: SwitchState, still_mine: StillMine) -> Evidence:
        before = earlier_switch(self.sides, self._patience_s)
        if before.fact(Step.REVERSE, "started"):
            return Evidence(
                sentence=f"{self.sides.via.flow} was started by {before.switch.id}", facts={"started": False}
            )
        return start_flow(
            self.sides.via,
            before,
            state.switch.approved_by,
            still_mine,
            looked_to=looked_to(state),
            patience_s=self._patience_s,
        )


def _looks(act: Callable[[SwitchState], Evidence]) -> Act:
    """Make a step of an act that changes nothing for clients, or that does no harm when it is done twice."""
    return lambda state, _: act(state)


def _checked_before(state: SwitchState) -> Readiness:
    """Return the checks that a switch began with."""
    return Readiness(
        checks=tuple(
            Check(
                name=row["name"],
                ok=row["ok"],
                message=f"when it began: {row['message']}",
                # A kept record may lack these.
                known=row.get("known", True),
                warns=row.get("warns", False),
            )
            for row in state.rows(Step.READINESS)
        ),
        records=state.fact(Step.READINESS, "records") or 0,
        seconds=state.fact(Step.READINESS, "seconds"),
    )


def refuse_unready(readiness: Readiness, switch: Switch) -> None:
    """Raise Refused for the first check that failed."""
    failed = readiness.failed
    if failed:
        where = "ferry readiness" if switch.verb is Verb.SWITCHOVER else f"ferry {switch.verb} --dry-run"
        more = f" ({len(failed) - 1} more: {where} shows them)" if len(failed) > 1 else ""
        first, cluster = failed[0], switch.via.target
        raise Refused(catalogue.caused("switch.not-ready", first.message, cluster=cluster, check=first.name, more=more))
