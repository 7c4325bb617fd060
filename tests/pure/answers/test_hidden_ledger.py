"""A ledger that the login may not see is not one that is not there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ferry.protocol.names import ledger_topic
from tests.pure.answers.stories import HEARTBEATS, IDENTITY, begun
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


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[World]:
    """A flow that keeps names has copied offsets 0 to 9, and passed over 10 to 20. Its login sees no ledger there."""
    with world(tmp_path) as made:
        begun(made, IDENTITY, "ferry.guard.foreign.writer = skip", topics={"orders": 1})
        assert made.ask("run", "a->b", "--id", "r1").code == 0
        made.produce(made.a, "orders", 0, 11)
        assert made.ask("skip", "a->b", "orders", "0", "--to", "21", "--reason", "came from b").code == 0
        made.a.topic(ledger_topic("b"))
        made.a.hidden = {ledger_topic("b")}
        yield made


def test_groups_are_translated_where_the_flows_own_map_passes_over_nothing(alone: World) -> None:
    alone.produce(alone.a, "orders", 0, 5)
    alone.commit(alone.a, "billing-reads", orders_0=4)
    alone.commit(alone.a, "billing-between", orders_0=14)
    alone.commit(alone.a, "billing-ahead", orders_0=26)
    run = alone.ask("run", "a->b", "--id", "r2").body
    assert (run["groups"]["groups"], run["groups"]["offsets"]) == (2, 2)
    (left,) = run["groups"]["left"]
    assert (left["group"], left["why"], left["code"]) == ("billing-between", "failed", "group.troubled")
    assert {ledger_topic("b"), "DESCRIBE", "READ"} <= {*left["message"].replace(":", "").split()}
    end = alone.b.log("orders").end
    assert {group: list(at.values()) for group, at in alone.b.groups.items()} == {
        "billing-reads": [(4, "")],
        "billing-ahead": [(end, "")],
    }


def test_every_command_reads_the_same_of_a_group_beside_a_hidden_ledger(alone: World) -> None:
    alone.commit(alone.a, "billing", orders_0=4)
    assert [
        one["target_offset"] for one in alone.ask("translate", "a->b", "--group", "billing").body["partitions"]
    ] == [4]
    assert alone.ask("translate", "a->b", "orders", "0", "4").body["target_offset"] == 4
    assert alone.ask("groups", "sync", "a->b").body["left"] == []
    (table,) = alone.ask("groups", "a->b").body["groups"]
    assert [one["translated"]["offset"] for one in table["partitions"]] == [4]


def test_checkpoints_of_mirror_maker_are_written_beside_a_hidden_ledger(alone: World) -> None:
    alone.commit(alone.a, "billing", orders_0=4)
    alone.write(
        *("topics = orders", "groups = billing.*", *HEARTBEATS, IDENTITY, "ferry.guard.foreign.writer = skip"),
        "sync.group.offsets.enabled = false",
    )
    alone.now_ms += 3_600_000
    found = alone.ask("run", "a->b", "--id", "r3")
    assert (found.code, found.body["state"]) == (0, "success")
    assert alone.b.log("a.checkpoints.internal").end == 1
