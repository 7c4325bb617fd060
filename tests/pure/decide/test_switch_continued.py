"""A switch that has stopped at a step: the command that continues it, and what may be said when it is continued."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ferry.errors import BadInput
from ferry.features.switch.cli.switches import clients_line
from ferry.features.switch.rules.steps import (
    clients_by,
    clients_sentence,
    refuse_other_approval,
    refuse_other_options,
    refuse_unasked_removal,
    refuse_without_hook,
    remedied,
)
from ferry.model import Flow
from ferry.model.switch import (
    Evidence,
    Step,
    StepDone,
    Switch,
    SwitchEnd,
    SwitchOptions,
    SwitchOutcome,
    SwitchState,
    Verb,
)
from tests.golden import Golden
from tests.said import data_of

FLOW = Flow(source="primary", target="backup")
CONTINUES = "ferry switchover 'primary->backup' --id s-1"
GIVES_UP = "ferry switches abandon 'primary->backup' s-1"


def state(*done: Step, options: SwitchOptions | None = None, approved_by: str = "bob") -> SwitchState:
    """A switchover whose first steps are done."""
    switch = Switch(
        id="s-1",
        verb=Verb.SWITCHOVER,
        named=FLOW,
        via=FLOW,
        who="ann@desk-7",
        approved_by=approved_by,
        approved_ms=1,
        at_ms=2,
        options=options or SwitchOptions(),
    )
    found = Evidence(sentence="done")
    return SwitchState(
        switch=switch,
        offset=0,
        done={step: StepDone(step=step, who="ann", begun_ms=1, done_ms=2, evidence=found) for step in done},
    )


def test_what_a_step_refuses_ends_with_the_command_that_continues(golden: Golden) -> None:
    early = remedied(state(), "partitions grow: stop their producers")
    golden(early)
    assert CONTINUES in early
    assert GIVES_UP in early
    late = remedied(state(Step.PROMOTE), "the hook failed")
    assert CONTINUES in late
    assert GIVES_UP not in late, "clients may have moved"
    assert remedied(state(), f"give it again: {CONTINUES}").count(CONTINUES) == 1


def test_options_that_are_not_those_of_the_beginning_are_refused() -> None:
    begun = state(options=SwitchOptions(leave_groups=("lagger",)))
    same = {"leave_groups": "--leave-group"}
    refuse_other_options(begun, SwitchOptions(leave_groups=("lagger",)), same)
    refuse_other_options(begun, SwitchOptions(), {})
    asked = SwitchOptions(quiet_timeout_seconds=3, leave_groups=("lagger",))
    with pytest.raises(BadInput, match="--quiet-timeout"):
        refuse_other_options(begun, asked, {**same, "quiet_timeout_seconds": "--quiet-timeout"})
    with pytest.raises(BadInput, match="--leave-group"):
        refuse_other_options(begun, SwitchOptions(leave_groups=("fraud",)), same)


@pytest.mark.parametrize("kept", ["bob", "bob (named on the command line by ann@desk-7)", "bob (answered in Airflow)"])
def test_another_approval_is_refused(kept: str) -> None:
    begun = state(approved_by=kept)
    for name in (None, "", "bob", " bob "):
        refuse_other_approval(begun, name)
    for other in ("eve", "bo", "bobby"):
        with pytest.raises(BadInput, match="bob"):
            refuse_other_approval(begun, other)


def test_a_hook_that_was_given_is_given_again_until_it_is_called() -> None:
    begun = state(options=SwitchOptions(stop=("command",), redirect=("url",)))
    with pytest.raises(BadInput) as refused:
        refuse_without_hook(begun, (), ())
    code, facts = data_of(refused.value)
    assert (code, facts["options"]) == ("switch.needs-hook", "--stop-command and --redirect-url")
    refuse_without_hook(begun, ("url",), ("command",))
    quiet = replace(state(Step.READINESS, Step.FREEZE, Step.QUIET), switch=begun.switch)
    refuse_without_hook(quiet, ("url",), ())
    with pytest.raises(BadInput) as refused:
        refuse_without_hook(quiet, (), ())
    assert data_of(refused.value)[1]["options"] == "--redirect-url"


def test_a_write_block_is_removed_only_if_that_is_asked_for_again(golden: Golden) -> None:
    """The ledger's record alone does not do it: all who may write there could have forged it."""
    begun = state(options=SwitchOptions(remove_write_block=True))
    with pytest.raises(BadInput) as refused:
        refuse_unasked_removal(begun, asked=False)
    golden(str(refused.value))
    refuse_unasked_removal(begun, asked=True)
    refuse_unasked_removal(state(), asked=False)
    refuse_unasked_removal(replace(state(Step.PROMOTE), switch=begun.switch), asked=False)


def test_clients_are_where_the_switch_that_promoted_last_has_moved_them(golden: Golden) -> None:
    assert clients_by([]) is None
    assert clients_by([state(Step.READINESS, Step.FREEZE)]) is None
    there = state(Step.PROMOTE)
    way_back = Flow(source="backup", target="primary")
    back = replace(there, switch=replace(there.switch, id="b-1", verb=Verb.FAILBACK, via=way_back))
    later = replace(back.done[Step.PROMOTE], done_ms=9)
    back = replace(back, done={Step.PROMOTE: later})
    assert clients_by([back, there]) is back
    assert "being moved to primary" in clients_sentence(back)
    end = SwitchEnd(outcome=SwitchOutcome.FINISHED, who="ann", why="", at_ms=10)
    golden(clients_sentence(replace(back, end=end)))
    given_up = replace(back, end=replace(end, outcome=SwitchOutcome.ABANDONED))
    assert "not known" in clients_sentence(given_up)
    sent = replace(given_up, done={**given_up.done, Step.REDIRECT: replace(later, step=Step.REDIRECT)})
    assert "clients are on primary" in clients_sentence(sent)


@pytest.mark.parametrize("moved", [[], [state(Step.PROMOTE)]], ids=["no switch", "a switch"])
def test_where_clients_are_is_not_known_while_a_ledger_was_not_read(moved: list[SwitchState], golden: Golden) -> None:
    """A later switch to the cluster that does not answer has its records there."""
    assert "not known" not in clients_line(moved, ())
    golden(clients_line(moved, ("cluster primary does not answer",)))
