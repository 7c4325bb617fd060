"""A full drill: a switchover to the target and a failback, which move the real clients.

Both switches are recorded step by step in the ledgers. A drill that stopped continues when it is begun again by its id.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ferry import __version__
from ferry.clock import wall_ms
from ferry.config.flow.flow import FlowConfig
from ferry.config.settings import Settings
from ferry.errors import BadInput, FerryError, Refused
from ferry.features.drill.acts.crossed import compare_crossed
from ferry.features.drill.acts.report import Found, Heading, clusters_of, goals_met, report_of
from ferry.features.evidence.rules.figures import deviations_of
from ferry.features.evidence.rules.ways import goals_of_ways, joined, longest, on_the_way
from ferry.features.switch.acts.drain import Copy
from ferry.features.switch.acts.preflight import unreturned
from ferry.features.switch.acts.redirect import refuse_unusable, words_of
from ferry.features.switch.acts.report import samples_of_drain
from ferry.features.switch.acts.sides import refuse_identical
from ferry.features.switch.acts.switcher import Switcher, refuse_unready
from ferry.features.switch.rules.report import FIRST_RECORD_MEANS, lost_sentence, switch_report
from ferry.features.switch.rules.steps import continuing, other_options
from ferry.features.switch.settings import SwitchHook
from ferry.lane.connections import FlowConnections
from ferry.model import Flow, sentence_of, with_text
from ferry.model.evidence import EvidenceKind, EvidenceReport, Sample, StepOutcome, TimelineStep
from ferry.model.switch import Step, StepDone, SwitchOptions, SwitchOutcome, SwitchState, Verb, next_step
from ferry.run.local import copy_plan

LONGER = "the longer of both ways"
RTO_MEANS = f"{LONGER}: from when clients were to stop until the other cluster was tried out"

WAYS = ((Verb.SWITCHOVER, "out"), (Verb.FAILBACK, "back"))


@dataclass(frozen=True, slots=True, kw_only=True)
class FullOptions:
    """What is done. `drill` is its id, from which the ids of both switches are made; `approved_by` approves both.

    `switch` holds for both ways. A drill that is continued keeps those that it began with.
    """

    drill: str
    who: str
    approved_by: str
    switch: SwitchOptions
    approved_ms: int | None = None
    """When it was approved (ms); None: when each of the switches is opened."""
    hook: SwitchHook | None = None
    given: Mapping[str, str] = field(default_factory=dict)
    """The options of `switch` that an operator gave, as they are written, by their fields."""


def switches_of(drill: str) -> tuple[tuple[Verb, str], ...]:
    """Return both switches of a full drill, by verb and id."""
    return tuple((verb, _id_of(drill, way)) for verb, way in WAYS)


def _id_of(drill: str, way: str) -> str:
    return f"{drill}-{way}"


@dataclass(slots=True, kw_only=True)
class _Found(Found):
    states: list[SwitchState] = field(default_factory=list)
    """Both switches, as far as they were done."""
    stopped: TimelineStep | None = None
    not_compared: str | None = None
    """Why the content could not be compared."""


class FullDrill:
    """One full drill. `preview` returns what it would do; `run` does it, or what is left of it."""

    def __init__(
        self,
        settings: Settings,
        flow: FlowConfig,
        options: FullOptions,
        *,
        copy: Copy = copy_plan,
        patience_s: float = 60.0,
    ) -> None:
        """Choose the flow. `settings` has the flow and its reverse; `copy` copies a plan when a flow is drained.

        Raises Refused if the flow and its reverse do not keep offsets of the same topics, BadInput for a hook that
        cannot be called.
        """
        refuse_identical(settings, flow, "ferry drills full", Verb.FAILBACK)
        if options.hook is not None:
            refuse_unusable(options.hook, "redirect")
        self._settings = settings
        self._flow = flow
        self._options = options
        self._copy = copy
        self._patience_s = patience_s

    def _switcher(self, verb: Verb) -> Switcher:
        options = self._options
        return Switcher(
            self._settings,
            self._flow,
            verb,
            who=options.who,
            hook=options.hook,
            copy=self._copy,
            patience_s=self._patience_s,
        )

    def preview(self) -> tuple[str, ...]:
        """Return the steps that are left.

        Before the way out is done, the whole way back counts as one step. After it, the steps of the way back are
        returned. Raises Refused if a check fails now.
        """
        self._refuse_given()
        self._refuse_unreturned()
        for verb, way in WAYS:
            options = self._switch_options()
            with self._switcher(verb) as switcher:
                if _is_finished(switcher.known(self._id(way))):
                    continue
                found = switcher.preview(self._id(way), options)
            refuse_unready(found.readiness, found.switch)
            steps = tuple(sentence for _, sentence in found.steps)
            if verb is Verb.FAILBACK:
                return steps
            return (*steps, f"then failback: move clients back to {self._flow.flow.source} by the same steps")
        return ("write the report: clients were moved there and back already",)

    def _switch_options(self) -> SwitchOptions:
        """Return the options of both ways: those of the way out, if it is begun, because the ledger has them."""
        out = self._state(*WAYS[0])
        return self._options.switch if out is None else out.switch.options

    @property
    def _command(self) -> str:
        return f"ferry drills full '{self._flow.flow}' --id {self._options.drill}"

    def _refuse_given(self) -> None:
        """Raise BadInput for options other than those that the drill began with.

        It is raised, too, if clients were moved out with a hook that is not given for the way back.
        """
        out = self._state(*WAYS[0])
        asked = self._options
        other = [] if out is None else other_options(out.switch.options, asked.switch, asked.given)
        if other:
            raise BadInput(
                f"drill {asked.drill} did not begin with this {' and '.join(other)}, and keeps the options that it "
                f"began with: continue without, with {self._command}"
            )
        given = words_of(self._options.hook)
        left = [word for word in out.switch.options.redirect if word not in given] if out is not None else []
        if left:
            back = self._state(*WAYS[1])
            if back is None or Step.REDIRECT not in back.done:
                given_then = " and ".join(f"--redirect-{word}" for word in left)
                raise BadInput(
                    f"drill {self._options.drill} was begun with {given_then}, "
                    "which the ledger does not keep: give the same again"
                )

    def _refuse_unreturned(self) -> None:
        """Raise Refused, before clients are moved out, for topics that could not go back later."""
        flow = self._flow.flow
        reverse = Flow(source=flow.target, target=flow.source)
        back = next((one for one in self._settings.flows if one.flow == reverse), None)
        if back is None or self._state(*WAYS[0]) is not None:
            return
        leave = self._options.switch.leave_topics
        failed = [one for one in unreturned(self._flow, back, leave, patience_s=self._patience_s) if not one.ok]
        if failed:
            more = f" ({len(failed) - 1} more like it)" if len(failed) > 1 else ""
            why = failed[0].message
            said = f"clients are not moved to {flow.target}, because on the way back {why}{more}"
            raise Refused(with_text(why, said))

    def _id(self, way: str) -> str:
        return _id_of(self._options.drill, way)

    def run(
        self, on_step: Callable[[Step, StepDone | None], None], between: Callable[[], None] = lambda: None
    ) -> tuple[EvidenceReport, FerryError | None]:
        """Switch over, call `between`, and switch back. Return the report, and why the drill ended early, if it did."""
        found, failure, began = _Found(), None, wall_ms()
        try:
            with FlowConnections.of(self._flow, patience_s=self._patience_s) as connections:
                found.clusters = clusters_of(connections)
            self._refuse_given()
            self._refuse_unreturned()
            for verb, way in WAYS:
                if verb is Verb.FAILBACK and self._state(verb, way) is None:
                    between()
                self._switch(verb, way, found, on_step)
            self._compare(found)
        except FerryError as error:
            failure = error
        return self._report(found, failure, began), failure

    def _state(self, verb: Verb, way: str) -> SwitchState | None:
        with self._switcher(verb) as switcher:
            return switcher.states().get(self._id(way))

    def _switch(self, verb: Verb, way: str, found: _Found, on_step: Callable[[Step, StepDone | None], None]) -> None:
        switch, began, asked = self._id(way), wall_ms(), self._switch_options()
        with self._switcher(verb) as switcher:
            try:
                if switcher.known(switch) is None:
                    options = self._options
                    switcher.open(switch, asked, options.approved_by, approved_ms=options.approved_ms)
                switcher.run(switch, on_step)
            except FerryError as error:
                due = switcher.states().get(switch)
                if due is not None:  # the drill is continued, not the switch alone
                    text = str(error).replace(continuing(due.switch), self._command)
                    error.args = (with_text(sentence_of(error), text),)
                step = None if due is None else next_step(due)
                found.stopped = TimelineStep(
                    name=f"{verb}-{step or 'open'}",
                    title=f"{verb.capitalize()}: {step or 'open'}",
                    began_ms=due.begun[step].begun_ms
                    if due is not None and step is not None and step in due.begun
                    else began,
                    ended_ms=wall_ms(),
                    outcome=StepOutcome.REFUSED if isinstance(error, Refused) else StepOutcome.FAILED,
                    detail=str(error),
                )
                raise
            finally:
                state = switcher.states().get(switch)
                if state is not None:
                    found.states.append(state)

    def _compare(self, found: _Found) -> None:
        """Compare what was copied around both cut-overs. Clients are back by now, so an error is only noted."""
        began_ms = min(state.switch.at_ms for state in found.states)
        back = Flow(source=self._flow.flow.target, target=self._flow.flow.source)
        flows = [self._flow, *(one for one in self._settings.flows if one.flow == back)]
        try:
            compare_crossed(flows, began_ms, found, patience_s=self._patience_s)
        except FerryError as error:
            found.not_compared = f"the content could not be compared: {error}"

    def _way(self, state: SwitchState, found: _Found) -> EvidenceReport:
        """Return the report of one way: its goals are those of its flow.

        Clients have moved by now, so an error in reading lag and rates is only noted.
        """
        via = next(one for one in self._settings.flows if one.flow == state.switch.via)
        samples: tuple[Sample, ...] = ()
        try:
            samples = samples_of_drain(via, state, patience_s=self._patience_s)
        except FerryError as error:
            found.notes.append(f"lag and throughput of the {state.switch.verb} could not be read: {error}")
        return switch_report(
            state,
            lane=via.lane,
            policy=via.topics.policy_name,
            clusters=found.clusters,
            version=__version__,
            rpo_seconds=via.rpo.seconds,
            rto_seconds=via.report.rto_seconds,
            samples=samples,
        )

    def _report(self, found: _Found, failure: FerryError | None, began_ms: int) -> EvidenceReport:
        flow, options = self._flow, self._options
        ways = [self._way(state, found) for state in found.states]
        steps = [step for way in ways for step in way.steps]
        steps += [found.stopped] if found.stopped is not None else []
        found.notes[:0] = [note for way in ways for note in on_the_way(way, way.notes)]
        if not failure:
            found.rto_s = longest([way.rto_s for way in ways])
            found.from_start_s = longest([way.from_start_s for way in ways])
            found.first_record_s = longest([way.first_record_s for way in ways])
            found.first_record_means = f"{FIRST_RECORD_MEANS}, {LONGER}"
            if found.first_record_s is None:
                found.first_record_means = next(
                    (way.first_record_means for way in ways if way.first_record_s is None), ""
                )
        goals = goals_of_ways(ways) or goals_met(flow, found)
        deviations = [sentence for way in ways for sentence in on_the_way(way, way.deviations)]
        deviations += deviations_of(() if ways else goals, (), found.verification, found.checks)
        deviations += [] if found.not_compared is None else [found.not_compared]
        there_and_back = f"clients were moved to {flow.flow.target} and back to {flow.flow.source}"
        lost = [one for way in ways for one in on_the_way(way, [lost_sentence(way.losses, way.passed_over)])]
        done = "; ".join((there_and_back, *lost))
        go_on = str(failure)
        if self._command not in go_on:
            go_on += f"; continue with {self._command}"
        report = report_of(
            Heading(
                id=options.drill,
                kind=EvidenceKind.FULL,
                flow=flow,
                lane=flow.lane,
                who=options.who,
                rto_means=RTO_MEANS,
            ),
            found,
            steps,
            began_ms=min([began_ms, *(state.switch.at_ms for state in found.states)]),
            goals=goals,
            deviations=tuple(deviations),
            summary=go_on if failure and found.states else str(failure) if failure else done,
            failure=failure,
        )
        return joined(report, ways)


def _is_finished(state: SwitchState | None) -> bool:
    return state is not None and state.end is not None and state.end.outcome is SwitchOutcome.FINISHED
