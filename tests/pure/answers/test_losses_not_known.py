"""What a failover lost of topics of which nothing was copied: not known, whatever is known of the others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.pure.answers.stories import begun
from tests.pure.answers.world import World

pytestmark = pytest.mark.slow
WITHOUT_GROUPS = ("b->a.enabled = true", "sync.group.offsets.enabled = false")
FAIL = "failover", "a->b", "--id", "f-1", "--approve-by", "bob", "--no-reverse", "--no-smoke", "--leave-unknown"


def failed_over(made: World) -> Mapping[str, Any]:
    """The steps by name; the source does not answer."""
    made.lost = made.a
    answer = made.ask(*FAIL)
    assert answer.code == 0, answer.out + answer.err
    return {step["step"]: step for step in answer.body["steps"]}


def rpo_of(made: World) -> Mapping[str, Any]:
    """The RPO of the switch's report."""
    rpo: Mapping[str, Any] = made.ask("reports", "switch", "a->b", "f-1").body["rpo"]
    return rpo


def certain(steps: Mapping[str, Any]) -> dict[tuple[str, int], bool]:
    return {(row["topic"], row["partition"]): row["certain"] for row in steps["loss"]["rows"]}


def test_a_topic_that_was_always_paused_has_a_row_and_no_window(made: World) -> None:
    begun(made, *WITHOUT_GROUPS, topics={"quiet": 2, "users": 1})
    made.ask("pause", "a->b", "--topic", "quiet", "--reason", "night")
    made.ask("run", "a->b", "--id", "r1")
    steps = failed_over(made)
    assert certain(steps) == {("quiet", 0): False, ("quiet", 1): False, ("users", 0): False}
    assert steps["loss"]["facts"]["seconds"] is None, "what quiet lost may be of any age"
    assert "quiet-0, quiet-1" in steps["loss"]["sentence"]
    rpo = rpo_of(made)
    assert (rpo["records"], rpo["seconds"]) == (None, None)
    assert {(row["topic"], row["records"]) for row in rpo["partitions"]} == {("quiet", None), ("users", None)}


def test_a_topic_that_was_always_refused_has_a_row_and_no_window(made: World) -> None:
    """Its copy has more partitions than it has."""
    begun(made, *WITHOUT_GROUPS, topics={"quiet": 2, "users": 1})
    made.b.topic("a.quiet", 3)
    refused = made.ask("run", "a->b", "--id", "r1").body["refusals"]
    assert {one["topic"] for one in refused} == {"quiet"}
    steps = failed_over(made)
    assert certain(steps) == {("quiet", 0): False, ("quiet", 1): False, ("users", 0): False}
    assert steps["loss"]["facts"]["seconds"] is None


def test_an_empty_topic_that_the_last_run_read_leaves_the_window_known(made: World) -> None:
    begun(made, *WITHOUT_GROUPS, topics={"users": 1})
    made.write("topics = empty, users", *WITHOUT_GROUPS)
    made.a.topic("empty", 3)
    made.ask("run", "a->b", "--id", "r1")
    made.ask("run", "a->b", "--id", "r2")
    steps = failed_over(made)
    assert len(certain(steps)) == 4
    assert steps["loss"]["facts"]["seconds"] > 0
    assert "empty" not in steps["loss"]["sentence"]


def test_a_flow_that_never_copied_has_lost_what_is_not_known(made: World) -> None:
    begun(made, *WITHOUT_GROUPS, topics={"quiet": 1})
    made.write("topics = empty, quiet", *WITHOUT_GROUPS)
    made.a.topic("empty", 1)
    made.ask("pause", "a->b", "--topic", "quiet", "--reason", "night")
    made.ask("run", "a->b", "--id", "r1")
    steps = failed_over(made)
    assert certain(steps) == {("empty", 0): False, ("quiet", 0): False}
    assert steps["loss"]["facts"]["seconds"] is None
    assert (rpo_of(made)["records"], rpo_of(made)["seconds"]) == (None, None)


def test_what_was_never_copied_and_begins_late_does_not_keep_a_failover_from_its_target(made: World) -> None:
    """Its copy does not exist, so that copy need not answer."""
    begun(made, *WITHOUT_GROUPS, topics={"quiet": 1, "users": 1})
    made.lose(made.a, "quiet", 0, 16)
    made.ask("pause", "a->b", "--topic", "quiet", "--reason", "night")
    made.ask("run", "a->b", "--id", "r1")
    answer = made.ask(*FAIL)
    assert answer.code == 0, answer.out + answer.err
    (loss,) = [step for step in answer.body["steps"] if step["step"] == "loss"]
    rows = {row["topic"]: (row["start"], row["end"], row["certain"]) for row in loss["rows"]}
    assert rows["quiet"] == (16, 17, True)
