"""The journal of switches: their records in the ledger on the cluster that is switched to.

A step is recorded before it is begun and after it is done. A process that begins a step again takes it over: the record
of the earlier process is not the last one any more. What that process still does is idempotent.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from ferry.clock import wall_ms
from ferry.errors import BadInput, Refused, Retryable, Superseded
from ferry.features.switch.rules.steps import refuse_abandoning, refuse_out_of_turn, refuse_second, unfinished
from ferry.ledger.ledger import LedgerView
from ferry.ledger.switch_codec import (
    begun_record,
    done_records,
    end_record,
    is_of_step,
    no_end_record,
    switch_record,
    switch_states,
)
from ferry.messages.catalogue import sentence
from ferry.model import LedgerRecord, Record
from ferry.model.switch import (
    POINT_OF_NO_RETURN,
    Evidence,
    Step,
    StepBegun,
    StepDone,
    Switch,
    SwitchEnd,
    SwitchOutcome,
    SwitchState,
    next_step,
)

READ_SECONDS = 30.0
"""How long the leader may take to show what it has acknowledged: it may be a new leader."""


class LedgerFile(Protocol):
    """What a journal needs of the ledger (`ferry.run.ledger.access.LedgerAccess`)."""

    def view_if_any(self) -> LedgerView:
        """Return its records as they are now; none where the ledger does not exist."""

    def view(self) -> LedgerView:
        """Return its records as they are now."""

    def written(self, start: int, end: int) -> Sequence[LedgerRecord]:
        """Return the records of `[start, end)` that were written outside transactions."""

    def append(self, records: Sequence[Record]) -> int:
        """Write records, and return the offset of the last one."""


def view_after(ledger: LedgerFile, records: Sequence[Record], sleep: Callable[[float], None]) -> LedgerView:
    """Append records, and return the ledger that shows them and all before. Raises Retryable after READ_SECONDS."""
    offset = ledger.append(records)
    until = time.monotonic() + READ_SECONDS
    while (view := ledger.view()).end <= offset:
        if time.monotonic() > until:
            raise Retryable(f"the ledger does not show offset {offset}, which it has acknowledged: try again")
        sleep(0.05)
    return view


class Journal:
    """The switches of one ledger."""

    def __init__(self, ledger: LedgerFile, who: str, *, sleep: Callable[[float], None] = time.sleep) -> None:
        """Make the journal. `who` writes, as `user@host`."""
        self._ledger = ledger
        self._who = who
        self._sleep = sleep

    def states(self) -> dict[str, SwitchState]:
        """Return all switches by id, oldest first; empty if the flow never ran."""
        return switch_states(self._ledger.view_if_any())

    def state(self, switch: str) -> SwitchState:
        """Return one switch by its id. Raises BadInput with the known ids if there is none."""
        return _named(self.states(), switch)

    def open(self, switch: Switch) -> SwitchState:
        """Open a switch, or return it if it was opened already. Raises Refused while another one is not finished.

        If two are opened at the same time, the first in the ledger counts, and the other one is abandoned. If both have
        one id, they are one switch, as the first opened it.
        """
        view = self._ledger.view_if_any()
        known = refuse_second(switch_states(view), switch)
        if known is not None:
            return known
        record = switch_record(switch)
        states = self._written([record])
        earlier = self._ledger.written(view.end, states[switch.id].offset)
        theirs = next((one for one in earlier if one.key == record.key), None)
        if theirs is not None:
            states = self._written([Record(key=theirs.key, value=theirs.value)])
            refuse_second(states, switch)
        first = unfinished(states)
        if first is not None and first.switch.id != switch.id:
            why = f"{first.switch.verb} {first.switch.id} was opened at the same time"
            self._end(switch.id, SwitchOutcome.ABANDONED, why)
            raise Refused(f"{why} by {first.switch.who}: let it end, or abandon it with ferry switches abandon")
        return _named(states, switch.id)

    def begin(self, switch: str, step: Step) -> StepBegun:
        """Begin the step that is due; a process that began it before has lost it.

        Raises BadInput for a step that the verb does not have, and Refused for one that is not due. Raises Superseded
        if another process has begun it at the same moment.
        """
        state = self.state(switch)
        refuse_out_of_turn(state, step)
        before = state.begun.get(step)
        first_ms = None if before is None else before.since_ms
        begun = StepBegun(step=step, who=self._who, begun_ms=wall_ms(), token=secrets.token_hex(8), first_ms=first_ms)
        self._refuse_lost(self._written([begun_record(switch, begun)]), switch, begun)
        return begun

    def done(self, switch: str, begun: StepBegun, evidence: Evidence) -> SwitchState:
        """Record what the step found. Raises Superseded if another process has begun it since.

        If that process has done it already, what it found is written again: it counts.
        """
        view = self._ledger.view_if_any()
        self._refuse_lost(switch_states(view), switch, begun)
        done = StepDone(
            step=begun.step,
            who=self._who,
            begun_ms=begun.begun_ms,
            done_ms=wall_ms(),
            evidence=evidence,
            first_ms=begun.first_ms,
        )
        records = done_records(switch, done)
        after = view_after(self._ledger, records, self._sleep)
        since = self._ledger.written(view.end, after.end)
        own = next(one.offset for one in since if (one.key, one.value) == (records[-1].key, records[-1].value))
        of_step = [one for one in since if one.offset < own and is_of_step(one.key, switch, begun.step)]
        others = [one for one in of_step if Record(key=one.key, value=one.value) not in records]
        if any(one.key == records[-1].key for one in others):
            again = [Record(key=one.key, value=one.value) for one in others]
            self._refuse_lost(self._written(again), switch, begun)
        return _named(switch_states(after), switch)

    def refuse_lost(self, switch: str, begun: StepBegun) -> None:
        """Raise Superseded if another process has begun the step since, or if the switch has ended."""
        self._refuse_lost(self.states(), switch, begun)

    def finish(self, switch: str) -> SwitchState:
        """Record that all steps are done; do nothing if the switch has ended already.

        Raises Refused if a step is left.
        """
        state = self.state(switch)
        if state.end is not None:
            return state
        due = next_step(state)
        if due is not None:
            raise Refused(f"switch {switch} is not finished: its next step is {due}")
        return self._end(switch, SwitchOutcome.FINISHED, "")

    def abandon(self, switch: str, why: str, moved_on: SwitchState | None = None) -> SwitchState:
        """Abandon a switch.

        Raises Refused if it has ended, or has promoted without an opposite switch (`moved_on`) since. If it promoted
        just before the record of its end, that record does not count for any reader, because it names no opposite
        switch. It is taken back as well, for an earlier Ferry.
        """
        refuse_abandoning(self.state(switch), moved_on)
        opposite = "" if moved_on is None else moved_on.switch.id
        ended = self._end(switch, SwitchOutcome.ABANDONED, why, opposite)
        if POINT_OF_NO_RETURN in ended.done and moved_on is None:
            self._written([no_end_record(switch)])
            refuse_abandoning(replace(ended, end=None))
        return ended

    def _end(self, switch: str, outcome: SwitchOutcome, why: str, opposite: str | None = None) -> SwitchState:
        end = SwitchEnd(outcome=outcome, who=self._who, why=why, at_ms=wall_ms(), opposite=opposite)
        return _named(self._written([end_record(switch, end)]), switch)

    def _refuse_lost(self, states: Mapping[str, SwitchState], switch: str, begun: StepBegun) -> None:
        state = _named(states, switch)
        now = state.begun.get(begun.step)
        if state.end is not None:
            outcome, who = str(state.end.outcome), state.end.who
            raise Superseded(sentence("switch.lost.ended", switch=switch, outcome=outcome, who=who))
        if now is None or now.token != begun.token:
            done = state.done.get(begun.step)
            other = now.who if now is not None else done.who if done is not None else "another process"
            raise Superseded(sentence("switch.lost.step", step=str(begun.step), switch=switch, who=other))

    def _written(self, records: Sequence[Record]) -> dict[str, SwitchState]:
        return switch_states(view_after(self._ledger, records, self._sleep))


def _named(states: Mapping[str, SwitchState], switch: str) -> SwitchState:
    state = states.get(switch)
    if state is None:
        known = ", ".join(states) or "none"
        raise BadInput(f"the ledger has no switch {switch}: name one of those that ferry switches list shows ({known})")
    return state
