"""Aliases that contain the separator: names show no origin, so ledgers decide what goes back."""

from __future__ import annotations

from pathlib import Path

from tests.pure.answers.world import world

ALIASES = "us.east", "eu.west"
THERE, BACK = "us.east->eu.west", "eu.west->us.east"


def test_what_a_flow_of_another_file_brought_does_not_go_back(tmp_path: Path) -> None:
    with world(tmp_path) as made:
        made.a.topic("orders", 1)
        made.produce(made.a, "orders", 0, 5)
        made.write("topics = .*", aliases=ALIASES)
        assert made.ask("run", THERE, "--id", "r1").code == 0
        made.write("topics = .*", f"{THERE}.enabled = false", f"{BACK}.enabled = true", aliases=ALIASES)
        plan = made.ask("plan", BACK).body
        assert [(one["kind"], one["topic"]) for one in plan["refusals"]] == [("loop", "us.east.orders")]
        assert [one["topic"] for one in plan["slices"]] == ["heartbeats"]
