"""A position of Ferry's that leads beyond the ledger: the ledger was lost. One that somebody moved proves nothing."""

from dataclasses import replace

import pytest

from ferry.config.flow.guards import GuardPolicy, Guards, OnGuard
from ferry.decide.plan.facts import Facts
from ferry.decide.plan.lost_ledger import accounted_positions, forgotten_places
from ferry.decide.plan.planning import decide_plan
from ferry.model import Plan, Position, Receipt, RefusalKind
from tests.decide.test_guards import SOUND
from tests.decide.values import RECEIPT, RULES, target

PLACE = RECEIPT.target
OWN = Position(target_next=40, source_next=40, generation=3)
LATER = Position(target_next=60, source_next=60, generation=5)
SOFT = Guards(foreign_writer=GuardPolicy(default=OnGuard.SKIP), target_changed=GuardPolicy(default=OnGuard.RESTART))


def facts(position: Position, last: Receipt | None = RECEIPT, *, end: int = 61) -> Facts:
    return replace(
        SOUND,
        receipts={} if last is None else {PLACE: last},
        positions={PLACE: position},
        targets={**SOUND.targets, "a.orders": target("a.orders", end)},
    )


def planned(found: Facts) -> Plan:
    return decide_plan(replace(RULES, guards=SOFT), found, "run-2", 9)


@pytest.mark.parametrize(
    ("found", "known"),
    [
        (
            facts(OWN, None),
            "copied up to source offset 40, as the lane's own position says, but the ledger has no receipt",
        ),
        (
            facts(LATER),
            "copied up to source offset 60, as the lane's own position says, but the ledger has it up to 40",
        ),
        (facts(replace(LATER, generation=3)), "but the ledger has it up to 40: "),  # the run's later chunks
        (facts(LATER, replace(RECEIPT, target_next=-1)), "but the ledger has it up to 40: "),
    ],
)
def test_what_the_lane_copied_and_the_ledger_forgot_is_refused_whatever_the_guards_say(
    found: Facts, known: str
) -> None:
    plan = planned(found)
    (refusal,) = plan.refusals
    assert (refusal.topic, refusal.partition, refusal.kind) == ("orders", 0, RefusalKind.LEDGER_BEHIND)
    assert known in refusal.message
    assert "write it again from the newest export (ferry ledger rebuild)" in refusal.message
    assert [piece.source.topic for piece in plan.slices] == ["users"]


@pytest.mark.parametrize(
    "found",
    [
        facts(OWN),
        facts(Position(target_next=55, source_next=-1, generation=-1)),  # somebody's offset, without Ferry's metadata
        facts(Position(target_next=55, source_next=-1, generation=-1), None),
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
    assert accounted_positions(found, [RECEIPT]) == found.positions
    assert accounted_positions(found, [RECEIPT, replace(RECEIPT, end=60)]) == {}
    assert accounted_positions(facts(OWN), [RECEIPT]) == {PLACE: OWN}, "a sound one stays"
