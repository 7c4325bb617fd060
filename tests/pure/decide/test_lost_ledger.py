"""A position of Ferry's that leads beyond the ledger: the ledger was lost. One that somebody moved proves nothing."""

from dataclasses import replace

import pytest

from ferry.config.flow.guards import GuardPolicy, Guards, OnGuard
from ferry.model import Plan, Position, Receipt, RefusalKind
from ferry.plan.rules.facts import Facts
from ferry.plan.rules.lost_ledger import accounted_positions, forgotten_places
from ferry.plan.rules.planning import decide_plan
from tests.golden import Golden
from tests.pure.decide.test_guards import SOUND
from tests.pure.decide.values import RECEIPT, RULES, facts_with, target

PLACE = RECEIPT.target
OWN = Position(target_next=40, source_next=40, generation=3)
LATER = Position(target_next=60, source_next=60, generation=5)
SOFT = Guards(foreign_writer=GuardPolicy(default=OnGuard.SKIP), target_changed=GuardPolicy(default=OnGuard.RESTART))


def facts(position: Position, last: Receipt | None = RECEIPT, *, end: int = 61) -> Facts:
    return facts_with(
        SOUND,
        target={"topics": {**SOUND.target.topics, "a.orders": target("a.orders", end)}},
        lane={"receipts": {} if last is None else {PLACE: last}, "positions": {PLACE: position}},
    )


def planned(found: Facts) -> Plan:
    return decide_plan(replace(RULES, guards=SOFT), found, "run-2", 9)


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(facts(OWN, None), id="no receipt"),
        pytest.param(facts(LATER), id="a later chunk"),
        pytest.param(facts(replace(LATER, generation=3)), id="a chunk of an older run"),  # the run's later chunks
        pytest.param(facts(LATER, replace(RECEIPT, target_next=None)), id="a receipt without its end"),
    ],
)
def test_what_the_lane_copied_and_the_ledger_forgot_is_refused_whatever_the_guards_say(
    found: Facts, golden: Golden
) -> None:
    plan = planned(found)
    (refusal,) = plan.refusals
    assert (refusal.topic, refusal.partition, refusal.kind) == ("orders", 0, RefusalKind.LEDGER_BEHIND)
    golden(refusal.message)
    assert [piece.source.topic for piece in plan.slices] == ["users"]


@pytest.mark.parametrize(
    "found",
    [
        facts(OWN),
        facts(
            Position(target_next=55, source_next=None, generation=None)
        ),  # somebody's offset, without Ferry's metadata
        facts(Position(target_next=55, source_next=None, generation=None), None),
        facts(replace(LATER, generation=2)),  # of before the lane went back
        facts(Position(target_next=20, source_next=20, generation=3)),
        facts(replace(OWN, target_next=0), None),  # nothing but markers was read
        facts(OWN, None, end=39),  # the copy was deleted and created again
        facts(LATER, replace(RECEIPT, end=60)),
    ],
)
def test_a_ledger_that_knows_the_truth_decides(found: Facts) -> None:
    assert planned(found).refusals == ()
    assert forgotten_places(found) == frozenset()


def test_what_a_run_wrote_since_the_facts_were_read_is_not_forgotten() -> None:
    found = facts(LATER)
    assert forgotten_places(found) == {PLACE}
    assert accounted_positions(found, [RECEIPT]) == found.lane.positions
    assert accounted_positions(found, [RECEIPT, replace(RECEIPT, end=60)]) == {}
    assert accounted_positions(facts(OWN), [RECEIPT]) == {PLACE: OWN}, "a sound one stays"
