"""A ledger that the login may not see is not one that is not there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ferry.protocol.names import ledger_topic
from tests.pure.answers.stories import begun
from tests.pure.answers.world import World, world

pytestmark = pytest.mark.slow
FAILOVER = "failover", "a->b", "--id", "f-1", "--approve-by", "bob", "--dry-run"


@pytest.fixture
def made(tmp_path: Path) -> Iterator[World]:
    """Two clusters and a flow that has copied all."""
    with world(tmp_path) as made:
        begun(made, "b->a.enabled = true", topics={"users": 1})
        made.ask("run", "a->b", "--id", "r1")
        yield made


def test_nothing_is_said_of_a_flow_whose_ledger_is_hidden(made: World) -> None:
    made.b.hidden = {ledger_topic("a")}
    (flow,) = made.ask("status").body["flows"][:1]
    assert (bool(flow["why"]), flow["lag"]) == (True, None)
    for command in (FAILOVER, ("ledger", "a->b"), ("plan", "a->b"), ("verify", "a->b")):
        answer = made.ask(*command)
        assert answer.code, command
        assert ledger_topic("a") in answer.err, command


def test_switches_the_other_way_are_not_known_if_their_ledger_is_hidden(made: World) -> None:
    made.a.topic(ledger_topic("b"))
    made.a.hidden = {ledger_topic("b")}
    checks = made.ask(*FAILOVER).body["readiness"]["checks"]
    (opposite,) = [one for one in checks if one["name"] == "opposite"]
    assert (opposite["ok"], opposite["known"]) == (True, False)
