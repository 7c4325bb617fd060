"""A switch: clients move from one cluster of a flow to the other, step by step, each step kept in the ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from ferry.model.flow import Flow

Json = dict[str, Any]


class Verb(StrEnum):
    """The kind of a switch."""

    SWITCHOVER = "switchover"
    """Planned: producers stop, the copy is complete, nothing is lost."""
    FAILOVER = "failover"
    """Unplanned: the source may be gone; what was not copied is accepted as lost, and counted."""
    FAILBACK = "failback"
    """Planned, and back: along the flow back, to the cluster that an earlier switch left."""


class Step(StrEnum):
    """One step of a switch; its word is part of the ledger's keys."""

    READINESS = "readiness"
    STRANDED = "stranded"
    RETURN = "return"
    FREEZE = "freeze"
    QUIET = "quiet"
    DRAIN = "drain"
    STOP = "stop"
    LOSS = "loss"
    TOPICS = "topics"
    GROUPS = "groups"
    PROMOTE = "promote"
    REDIRECT = "redirect"
    SMOKE = "smoke"
    REVERSE = "reverse"


STEPS: Mapping[Verb, tuple[Step, ...]] = {
    Verb.SWITCHOVER: (
        Step.READINESS,
        Step.FREEZE,
        Step.QUIET,
        Step.DRAIN,
        Step.TOPICS,
        Step.GROUPS,
        Step.STOP,
        Step.PROMOTE,
        Step.REDIRECT,
        Step.SMOKE,
        Step.REVERSE,
    ),
    Verb.FAILOVER: (
        Step.READINESS,
        Step.FREEZE,
        Step.STOP,
        Step.LOSS,
        Step.TOPICS,
        Step.GROUPS,
        Step.PROMOTE,
        Step.REDIRECT,
        Step.SMOKE,
        Step.REVERSE,
    ),
    Verb.FAILBACK: (
        Step.READINESS,
        Step.STRANDED,
        Step.RETURN,
        Step.FREEZE,
        Step.QUIET,
        Step.DRAIN,
        Step.TOPICS,
        Step.GROUPS,
        Step.STOP,
        Step.PROMOTE,
        Step.REDIRECT,
        Step.SMOKE,
        Step.REVERSE,
    ),
}
"""The steps of each kind, in order. A failover stops the flow first: only then can the loss be counted."""

POINT_OF_NO_RETURN = Step.PROMOTE
"""Once this step is done, clients may have moved: such a switch is finished, not abandoned.

Begun is not done: its last check of the old cluster may refuse finally. No client is moved before the next step, which
is not begun in an abandoned switch.
"""


OPPOSITE = "opposite"
"""The fact of the step `readiness` with the ids of the opposite switches then; None: they could not be read."""


class SwitchOutcome(StrEnum):
    """How a switch ended."""

    FINISHED = "finished"
    ABANDONED = "abandoned"


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchOptions:
    """What a switch was asked for; kept with it, so that any process that continues it does the same.

    Times are seconds.
    """

    quiet_seconds: float = 10.0
    """How long no partition of the source may grow before its producers count as stopped."""
    quiet_timeout_seconds: float = 600.0
    drain_timeout_seconds: float = 3600.0
    leave_groups: tuple[str, ...] = ()
    """Groups that are not moved."""
    leave_topics: tuple[str, ...] = ()
    """Topics that a transform made, and that a failback may leave, with all that producers have written to them."""
    leave_active: bool = False
    """Whether groups that have members are left where they are, instead of preventing the switch."""
    leave_unknown: bool = False
    """Whether a failover continues although not all groups of the source are known."""
    remove_write_block: bool = False
    """Whether ACLs that deny WRITE on single topics of the new side are deleted."""
    smoke: bool = True
    reverse: bool = True
    """Whether the flow back is started at the end."""
    interrupt: bool = False
    """Whether a run that is under way is ended."""
    export: str = ""
    """The file to which records that are stranded on the old primary are written."""
    rpo_records: int | None = None
    rpo_seconds: float | None = None
    lost_at_ms: int | None = None
    """When the source was lost, for a failover; None: it was not given."""
    stop: tuple[str, ...] = ()
    """The kinds of hooks for stopping clients that were given in place of the file's: `command`, `url`."""
    redirect: tuple[str, ...] = ()
    """The kinds of hooks that were given in place of the file's: `command`, `url`. The hook itself may be a secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """One switch, as it was opened. `via` is the flow along which clients move, from its source to its target.

    `named` is the flow that the operator named; for a failback, `via` is its reverse. Times are ms; `at_ms` is when the
    command began that opened the switch.
    """

    id: str
    verb: Verb
    named: Flow
    via: Flow
    who: str
    approved_by: str
    approved_ms: int
    at_ms: int
    options: SwitchOptions = field(default_factory=SwitchOptions)

    @property
    def back(self) -> Flow:
        """The reverse of `via`."""
        return Flow(source=self.via.target, target=self.via.source)


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """What a person approved in Airflow: a run of a DAG (`dag/run`) with the parameters of a digest. Times are ms."""

    run: str
    who: str
    at_ms: int
    asked_by: str
    """Who triggered the run; empty where Airflow does not report it."""
    params: str
    used_by: str = ""
    """The switch, or the try of a drill, that used the approval; empty: none yet."""
    used_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What a step found and did: a sentence, some facts, and one row for each partition, group or topic."""

    sentence: str
    facts: Mapping[str, Any] = field(default_factory=dict)
    rows: tuple[Json, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class _StepTry:
    """The last try of a step, by whom, and when (ms) it began."""

    step: Step
    who: str
    begun_ms: int
    first_ms: int | None = None
    """When the first try began (ms); None: at `begun_ms`, or an earlier Ferry made it."""

    @property
    def since_ms(self) -> int:
        """When the first try began, as far as that is known."""
        return self.begun_ms if self.first_ms is None else self.first_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class StepDone(_StepTry):
    """A step that is done, when (ms), and what it found."""

    done_ms: int
    evidence: Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class StepBegun(_StepTry):
    """A step that was begun; `token` distinguishes two processes that begin it at the same time."""

    token: str


PASSED = "passed"
"""The field of a row about offsets that were skipped: why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchEnd:
    """How, when (ms) and by whom a switch ended, and why it was abandoned."""

    outcome: SwitchOutcome
    who: str
    why: str
    at_ms: int
    opposite: str | None = None
    """The opposite switch because of which this one was abandoned after it promoted; empty: none.

    None: that is not known, because an earlier Ferry did not keep it.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchState:
    """A switch with its progress; `offset` is the ledger offset of the record that opened it."""

    switch: Switch
    offset: int
    done: Mapping[Step, StepDone] = field(default_factory=dict)
    begun: Mapping[Step, StepBegun] = field(default_factory=dict)
    end: SwitchEnd | None = None

    def rows(self, step: Step) -> tuple[Json, ...]:
        """Return the rows of a step but those of `passed_rows`; none when it is not done, or no part of this switch."""
        done = self.done.get(step)
        return () if done is None else tuple(row for row in done.evidence.rows if PASSED not in row)

    def passed_rows(self, step: Step) -> tuple[Json, ...]:
        """Return the rows of a step that are about offsets skipped; none when it is not done."""
        done = self.done.get(step)
        return () if done is None else tuple(row for row in done.evidence.rows if PASSED in row)

    def in_order(self) -> list[StepDone]:
        """Return the steps that are done, in the order of its verb: times may be of machines whose clocks differ."""
        return [self.done[step] for step in STEPS[self.switch.verb] if step in self.done]

    def fact(self, step: Step, name: str) -> Any:
        """Return one fact of a step; None when there is none."""
        done = self.done.get(step)
        return None if done is None else done.evidence.facts.get(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """That a switch moved clients: its id, when (ms), and the opposite switches that it found when it began."""

    switch: str
    found: Sequence[str] | None
    """Their ids; None: they could not be read."""
    at_ms: int

    def is_after(self, other: Move) -> bool:
        """Return whether this move came after one in the opposite direction.

        The ledgers of both directions have no common order, and clocks of machines may differ. So the later one is the
        one that found the other. If only one could read the other's ledger, and the other one was not there, that other
        one came later. Only if neither could read, or an earlier Ferry made both, do the times decide.
        """
        if other.switch in (self.found or ()):
            return True
        if self.switch in (other.found or ()):
            return False
        if (self.found is None) != (other.found is None):
            return self.found is None
        return self.at_ms > other.at_ms


def move_of(state: SwitchState) -> Move | None:
    """Return the move of clients by a switch; None if it has not promoted a cluster."""
    done = state.done.get(POINT_OF_NO_RETURN)
    if done is None:
        return None
    found = state.fact(Step.READINESS, OPPOSITE)
    return Move(switch=state.switch.id, found=found if isinstance(found, list) else None, at_ms=done.done_ms)


def next_step(state: SwitchState) -> Step | None:
    """Return the first step that is not done; None when all are, or the switch has ended."""
    if state.end is not None:
        return None
    return next((step for step in STEPS[state.switch.verb] if step not in state.done), None)
