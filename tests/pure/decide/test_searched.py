"""A foreign record that no plan accepted is found again by the next search."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ferry.config.flow.guards import GuardPolicy, Guards, OnGuard
from ferry.model import Pause, RefusalKind, TopicPartition
from ferry.plan.rules.facts import Facts
from ferry.plan.rules.planning import decide_plan
from ferry.plan.rules.searched import searched
from tests.pure.decide.test_guards import SOUND
from tests.pure.decide.values import RULES, facts_with, place, refusal

ORDERS, USERS = place("a.orders"), place("a.users")
FOUND = facts_with(SOUND, others={"foreign": {ORDERS: 41}, "accounted": {ORDERS: 50, USERS: 60}})
SKIPS = replace(RULES, guards=Guards(foreign_writer=GuardPolicy(default=OnGuard.SKIP)))


def recorded(facts: Facts, *left_out: str, before: dict[TopicPartition, int] | None = None) -> dict[str, int]:
    """By topic, what is recorded with the plan that these facts lead to."""
    plan = decide_plan(SKIPS, facts, "run-2", 9).without({name: refusal(name, None) for name in left_out})
    assert bool(plan.gaps) is (searched(SKIPS, facts, plan, {}).get(ORDERS) == 50)
    return {one.topic: offset for one, offset in searched(SKIPS, facts, plan, before or {}).items()}


def test_a_foreign_record_that_a_gap_accepts_is_not_searched_for_again() -> None:
    (gap,) = decide_plan(SKIPS, FOUND, "run-2", 9).gaps
    assert (gap.source, gap.why) == (place("orders"), RefusalKind.FOREIGN_WRITER)
    assert recorded(FOUND) == {"a.orders": 50, "a.users": 60}


def test_where_nothing_was_found_the_search_goes_on_from_its_end_whatever_the_plan_leaves_out() -> None:
    assert recorded(FOUND, "users") == {"a.orders": 50, "a.users": 60}


@pytest.mark.parametrize("before", [{}, {ORDERS: 41}])
@pytest.mark.parametrize(
    ("facts", "left_out"),
    [
        (FOUND, ("orders",)),
        (facts_with(FOUND, lane={"pauses": {"orders": Pause(topic="orders", who="x", why="", since_ms=1)}}), ()),
        (facts_with(FOUND, others={"returned": {place("orders"): ((40, 50),)}}), ()),
    ],
    ids=["left out by a part", "paused", "refused for another reason"],
)
def test_a_foreign_record_of_which_the_plan_has_no_gap_is_searched_for_again(
    facts: Facts, left_out: tuple[str, ...], before: dict[TopicPartition, int]
) -> None:
    wanted = {"a.users": 60} | {one.topic: offset for one, offset in before.items()}
    assert recorded(facts, *left_out, before=before) == wanted
