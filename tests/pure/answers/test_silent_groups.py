"""A broker that does not list its groups: the groups of the others are done, and its own are named as not known."""

from __future__ import annotations

import pytest

from ferry.kafka.connect import codes
from tests.pure.answers.stories import begun
from tests.pure.answers.world import World
from tests.pure.scripted.faults import At, Fault
from tests.pure.scripted.whole import WholeBrokers


def silent(brokers: WholeBrokers) -> None:
    """Let broker 2 list nothing, however often it is asked."""
    code = codes.COORDINATOR_NOT_AVAILABLE
    brokers.faults.append(
        Fault(api="ListGroups", code=code, at=At.OUTER, times=10**6, only=lambda asked: asked.node == 2)
    )


@pytest.mark.slow
@pytest.mark.parametrize("side", ["a", "b"])
def test_the_other_brokers_groups_are_translated(made: World, side: str) -> None:
    brokers: WholeBrokers = getattr(made, side)
    brokers.nodes = (1, 2)
    begun(made, topics={"users": 1})
    made.commit(made.a, "billing", users_0=4)
    for one in (made.a, made.b):
        one.coordinators["billing"] = 1
    silent(brokers)
    run = made.ask("run", "a->b", "--id", "r1")
    assert (run.code, run.body["groups"]["groups"], run.body["groups"]["offsets"]) == (1, 1, 1)
    (left,) = run.body["groups"]["left"]
    assert (left["why"], left["code"], left["facts"]["cluster"]) == ("failed", "groups.silent-broker", side)
    shown = made.ask("groups", "a->b")
    assert (shown.code, [one["group"] for one in shown.body["groups"]]) == (1, ["billing"])
    assert [one["cluster"] for one in shown.body["not_shown"]] == [side]


@pytest.mark.slow
def test_a_lane_is_not_dropped_while_its_groups_are_not_known(made: World) -> None:
    made.b.nodes = (1, 2)
    begun(made, topics={"users": 1})
    window = "--lane", "backfill-june", "--from-offset", "users:0:2", "--to-offset", "users:0:7"
    assert made.ask("backfill", "a->b", *window).code == 0
    silent(made.b)
    dropped = made.ask("lanes", "drop", "a->b", "backfill-june", "--yes")
    assert (dropped.code, dropped.body["error"]["kind"]) == (2, "refused")
    assert "broker 2 of cluster b" in dropped.err
