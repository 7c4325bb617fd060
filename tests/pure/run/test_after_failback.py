"""A failover and a failback of a flow that keeps names: the first run after them leaves a group that has read all."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ferry.model import Refusal, TopicPartition
from ferry.plan.rules import candidates, origins
from ferry.plan.rules.planning_rules import Rules
from tests.pure.answers.stories import HEARTBEATS, IDENTITY
from tests.pure.answers.world import World, world

pytestmark = pytest.mark.slow  # each has two whole switches

FILE = ("topics = users", "b->a.enabled = true", "groups = billing.*", IDENTITY, *HEARTBEATS)
USERS = TopicPartition("users", 0)
SWITCH = ("--approve-by", "bob", "--no-smoke", "--patience", "1")


def failed_over_and_back(made: World, folder: Path) -> None:
    """Ten records are copied, three are lost with a, and seven are written on b; the group reads all of them."""
    made.write(*FILE)
    made.a.topic("users", 1)
    made.produce(made.a, "users", 0, 10)
    made.commit(made.a, "billing", users_0=10)
    for words in (("pause", "b->a", "--reason", "standby"), ("run", "a->b")):
        assert made.ask(*words).code == 0
    made.produce(made.a, "users", 0, 3)
    made.write(*FILE, "a.bootstrap.servers = 127.0.0.1:1")
    assert made.ask("failover", "a->b", "--id", "over", *SWITCH).code == 0
    made.produce(made.b, "users", 0, 7)
    made.commit(made.b, "billing", users_0=made.b.log("users", 0).end)
    made.write(*FILE)
    quiet = ("--quiet-seconds", "0.1", "--quiet-timeout", "30", "--export", str(folder / "stranded.jsonl"))
    assert made.ask("failback", "a->b", "--id", "back", *SWITCH, *quiet).code == 0


def at(made: World) -> tuple[int, int]:
    """Where the group is on a and on b."""
    return made.a.groups["billing"][USERS][0], made.b.groups["billing"][USERS][0]


def test_the_first_run_after_a_failback_leaves_a_group_that_has_read_all(tmp_path: Path) -> None:
    with world(tmp_path) as made:
        failed_over_and_back(made, tmp_path)
        ends = made.a.log("users", 0).end, made.b.log("users", 0).end
        assert at(made) == ends
        for _ in range(2):
            assert made.ask("run", "a->b").code == 0
            assert at(made) == ends
        (found,) = made.ask("translate", "a->b", "--group", "billing").body["partitions"]
        assert (found["outcome"], found["target_offset"]) == ("exact", ends[1])
        assert made.ask("translate", "a->b", "users", "0", str(ends[0])).body["target_offset"] == ends[1]


def test_what_is_written_after_the_failback_moves_the_group_on_both_sides(tmp_path: Path) -> None:
    with world(tmp_path) as made:
        failed_over_and_back(made, tmp_path)
        made.produce(made.a, "users", 0, 4)
        assert made.ask("run", "a->b").code == 0
        before = at(made)[1]
        made.commit(made.a, "billing", users_0=made.a.log("users", 0).end - 1)
        assert made.ask("run", "a->b").code == 0
        assert at(made)[1] == before + 3


def test_a_drill_after_a_failback_copies_also_what_came_back(tmp_path: Path) -> None:
    """Scratch topics are copied by no flow, so nothing goes round."""
    with world(tmp_path) as made:
        failed_over_and_back(made, tmp_path)
        assert made.ask("run", "a->b").code == 0
        found = made.ask("drills", "shadow", "a->b")
        assert (found.code, found.body["outcome"], found.body["refusals"]) == (0, "success", [])
        assert not [name for name in made.b.target.logs if "drill" in name]


def test_a_drill_removes_topics_that_it_created_and_copied_nothing_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With names that are kept, a scratch topic's name does not show whose it is: the plan that created it does."""
    refusal = origins.returning_refusal

    def refused(rules: Rules, *more: Any) -> Refusal | None:
        return refusal(replace(rules, scratch=False), *more)

    monkeypatch.setattr(candidates, "returning_refusal", refused)
    with world(tmp_path) as made:
        failed_over_and_back(made, tmp_path)
        assert made.ask("run", "a->b").code == 0
        found = made.ask("drills", "shadow", "a->b")
        assert len(found.body["refusals"]) == 1
        assert not [name for name in made.b.target.logs if "drill" in name]
