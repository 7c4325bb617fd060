"""What comes to the old cluster during a switch, or is not known of it, is no "0 lost" in the report."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any
from unittest import mock
from uuid import UUID

import pytest

from tests.pure.answers.stories import begun
from tests.pure.answers.world import Answer, World, world

pytestmark = pytest.mark.slow
PLANNED = "switchover", "a->b", "--id", "s-1", "--quiet-seconds", "0"
FORCED = "failover", "a->b", "--id", "s-1"


@pytest.fixture
def made(tmp_path: Path) -> Iterator[World]:
    """Two clusters and a flow that has copied all."""
    with world(tmp_path) as made:
        begun(made, "b->a.enabled = true", topics={"users": 1})
        made.ask("run", "a->b", "--id", "r1")
        yield made


def hooked(made: World, *command: str, code: int) -> Answer:
    """Ask with a redirect command that ends with this code."""
    with mock.patch("subprocess.run", return_value=CompletedProcess(["move"], code, b"", b"")):
        return made.ask(*command, "--approve-by", "bob", "--redirect-command", "/bin/true")


def halfway(made: World, *command: str) -> None:
    """A switch that has promoted, and has not sent clients away."""
    stopped = hooked(made, *command, code=1)
    assert stopped.code == 4, stopped


def finished(made: World, *command: str) -> dict[str, Any]:
    """The report of the switch, when it was continued to its end."""
    done = hooked(made, *command, code=0)
    assert done.code == 0, done
    return dict(made.ask("reports", "switch", "a->b", "s-1").body)


@pytest.mark.parametrize("more", [(), ("--no-reverse",)], ids=["flow back", "no flow back"])
def test_records_that_came_during_a_failover_are_lost(made: World, more: tuple[str, ...]) -> None:
    halfway(made, *FORCED, *more)
    made.produce(made.a, "users", 0, 5)
    report = finished(made, *FORCED, *more)
    assert (report["outcome"], report["rpo"]["records"]) == ("deviations", 5)
    assert any("users-0" in one for one in report["deviations"])


def test_nothing_came_during_a_failover(made: World) -> None:
    halfway(made, *FORCED)
    report = finished(made, *FORCED)
    assert (report["outcome"], report["rpo"]["records"], report["deviations"]) == ("success", 0, [])


def test_a_cluster_that_is_lost_during_a_failover_may_have_got_records(made: World) -> None:
    halfway(made, *FORCED)
    made.lost = made.a
    report = finished(made, *FORCED)
    assert report["rpo"]["records"] is None
    assert any("users-0" in one for one in report["notes"])


@pytest.mark.parametrize("command", [PLANNED, FORCED], ids=lambda one: one[0])
def test_of_a_topic_that_was_created_again_it_is_not_known(made: World, command: tuple[str, ...]) -> None:
    halfway(made, *command)
    made.a.delete("users")
    made.a.topic("users", 1)
    made.a.ids["users"] = UUID(int=7)
    made.produce(made.a, "users", 0, 4)
    report = finished(made, *command)
    assert report["rpo"]["records"] is None
    assert any("users-0" in one for one in report["notes"])


@pytest.mark.parametrize("command", [PLANNED, FORCED], ids=lambda one: one[0])
def test_of_a_topic_that_was_deleted_it_is_not_known(made: World, command: tuple[str, ...]) -> None:
    halfway(made, *command)
    made.a.delete("users")
    assert finished(made, *command)["rpo"]["records"] is None


def test_a_failback_whose_old_cluster_is_the_new_one_is_refused_with_the_code(made: World) -> None:
    finished(made, *FORCED, "--no-reverse")
    made.a.alias = made.b.alias  # the id that it answers
    back = made.ask("failback", "a->b", "--id", "s-2", "--approve-by", "bob", "--no-smoke")
    error = back.body["error"]
    assert (back.code, error["kind"], error["code"]) == (2, "bad-input", "clusters.same")
    assert (error["facts"]["source"], error["facts"]["target"], error["facts"]["cluster"]) == ("b", "a", "b")


def test_a_report_of_a_switch_that_is_not_there_makes_no_folder(made: World, tmp_path: Path) -> None:
    folder = tmp_path / "nope"
    assert made.ask("reports", "switch", "a->b", "s-9", "--report", str(folder)).code == 2
    assert not folder.exists()
