"""Which switch the other way stands against a switch: a table of cases."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import pytest

from ferry.features.switch.rules.opposite import moved_sentence, opposing, opposing_sentence
from ferry.features.switch.rules.steps import clients_by
from ferry.model import Flow
from ferry.model.switch import (
    OPPOSITE,
    STEPS,
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
from tests.said import codes, facts_in

THERE, BACK = Flow.parse("primary->backup"), Flow.parse("backup->primary")
OWN = Switch(
    id="own",
    verb=Verb.SWITCHOVER,
    named=THERE,
    via=THERE,
    who="ann@desk-7",
    approved_by="bob",
    approved_ms=1,
    at_ms=2,
    options=SwitchOptions(),
)


def other(upto: Step | None = None, outcome: SwitchOutcome | None = None) -> SwitchState:
    """A switchover the other way that has come so far, or to its end."""
    made = replace(OWN, id="other", named=BACK, via=BACK)
    steps = STEPS[Verb.SWITCHOVER]
    done = steps if outcome is SwitchOutcome.FINISHED else steps[: steps.index(upto) + 1] if upto else ()
    evidence = Evidence(sentence="seen")
    return SwitchState(
        switch=made,
        offset=7,
        done={step: StepDone(step=step, who="eve", begun_ms=1, done_ms=2, evidence=evidence) for step in done},
        end=None if outcome is None else SwitchEnd(outcome=outcome, who="eve", why="", at_ms=9),
    )


@pytest.mark.parametrize(
    ("verb", "there", "known", "stands"),
    [
        (Verb.SWITCHOVER, None, ["other"], True),
        (Verb.SWITCHOVER, None, [], True),
        (Verb.SWITCHOVER, None, None, True),
        (Verb.SWITCHOVER, Step.PROMOTE, ["other"], True),
        (Verb.FAILBACK, Step.PROMOTE, ["other"], True),
        (Verb.FAILOVER, Step.STOP, ["other"], True),
        (Verb.FAILOVER, Step.PROMOTE, ["other"], False),  # nobody may be able to finish it
        (Verb.FAILOVER, Step.PROMOTE, [], True),  # it came between
        (Verb.FAILOVER, Step.PROMOTE, None, True),
        (Verb.SWITCHOVER, SwitchOutcome.FINISHED, ["other"], False),
        (Verb.SWITCHOVER, SwitchOutcome.FINISHED, [], True),
        (Verb.SWITCHOVER, SwitchOutcome.FINISHED, None, False),  # nobody knows whether it is an old one
        (Verb.SWITCHOVER, SwitchOutcome.ABANDONED, [], False),
    ],
)
def test_which_switch_the_other_way_stands_against_this_one(
    verb: Verb, there: Step | SwitchOutcome | None, known: Collection[str] | None, stands: bool
) -> None:
    found = other(outcome=there) if isinstance(there, SwitchOutcome) else other(there)
    assert opposing(replace(OWN, verb=verb), {"other": found}, known) == (found if stands else None)


def test_the_remedy_is_named(golden: Golden) -> None:
    under_way, moved = (
        opposing_sentence(other(Step.FREEZE)),
        opposing_sentence(other(outcome=SwitchOutcome.FINISHED), OWN),
    )
    assert codes([under_way, moved]) == ["switch.opposite", "switch.opposite.moved"]
    assert facts_in(under_way)["switch"] == other(Step.FREEZE).switch.id
    golden(under_way, "under way")
    golden(opposing_sentence(other(Step.FREEZE), OWN), "beside one of its own")
    golden(moved, "finished")


@pytest.mark.parametrize(
    "others",
    [
        pytest.param([], id="nothing"),
        pytest.param([other(outcome=SwitchOutcome.ABANDONED)], id="abandoned"),
        pytest.param([other(Step.STOP)], id="under way"),
        pytest.param([other(outcome=SwitchOutcome.FINISHED)], id="finished"),
    ],
)
def test_who_would_move_clients_where_they_were_is_sent_to_the_newest_switch(
    others: list[SwitchState], golden: Golden
) -> None:
    moved = at(replace(other(outcome=SwitchOutcome.FINISHED), switch=OWN, offset=3), 1)
    sentence = moved_sentence(moved, {one.switch.id: one for one in others})
    golden(sentence)
    assert sentence.count("ferry ") == 1, "one verb alone"
    after = at(moved, 20)
    earlier = {"other": other(outcome=SwitchOutcome.FINISHED)}
    assert "ferry failback 'primary->backup'" in moved_sentence(after, earlier)
    assert "failback" not in moved_sentence(after, earlier, returns=False)


def at(state: SwitchState, ms: int, found: Sequence[str] | None = None) -> SwitchState:
    """The same, with its steps done at a time; `found` are the opposite switches that it has found."""
    done = {step: replace(one, done_ms=ms) for step, one in state.done.items()}
    seen = Evidence(sentence="seen", facts={OPPOSITE: found})
    return replace(state, done={**done, Step.READINESS: replace(done[Step.READINESS], evidence=seen)})


@pytest.mark.parametrize("offset", [3, 70])
def test_of_opposite_moves_the_one_that_found_the_other_is_later_whatever_the_clocks_say(offset: int) -> None:
    moved = replace(other(outcome=SwitchOutcome.FINISHED), switch=OWN, offset=offset)
    back = other(outcome=SwitchOutcome.FINISHED)
    cases = [
        (at(moved, 5), at(back, 9, ["own"]), back),
        (at(moved, 9), at(back, 5, ["own"]), back),
        (at(moved, 5, ["other"]), at(back, 9, []), moved),
        (at(moved, 9), at(back, 5), moved),
        (at(moved, 5), at(back, 9), back),
        (at(moved, 5, []), at(back, 9, None), back),
        (at(moved, 9, []), at(back, 5, None), back),
        (at(moved, 5, None), at(back, 9, []), moved),
    ]
    for one, way_back, last in cases:
        for both in ([one, way_back], [way_back, one]):
            found = clients_by(both)
            assert found is not None
            assert found.switch == last.switch
        assert ("since own" in moved_sentence(one, {"other": way_back})) is (last is back)
