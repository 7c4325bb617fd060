"""The snapshot of a switch has the switch's id: one of that name that the switch did not take stops it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess
from unittest import mock

import pytest

from tests.pure.answers.stories import begun
from tests.pure.answers.world import Answer, World, world

pytestmark = pytest.mark.slow
JUNE = "switchover", "a->b", "--id", "june", "--quiet-seconds", "0"
NAMED = "switch.snapshot-named"


@pytest.fixture
def made(tmp_path: Path) -> Iterator[World]:
    """A flow whose group is at 5 on b."""
    with world(tmp_path) as made:
        begun(made, "b->a.enabled = true", topics={"users": 1})
        made.commit(made.a, "billing", users_0=5)
        made.ask("run", "a->b", "--id", "r1")
        yield made


def taken(made: World, name: str) -> str:
    """Who took the snapshot."""
    listed = made.ask("groups", "snapshots", "list", "a->b").body["snapshots"]
    return str({one["name"]: one["who"] for one in listed}[name])


def refused(answer: Answer, name: str) -> None:
    facts = answer.body["error"]["facts"]
    assert (answer.body["error"]["code"], facts["name"]) == (NAMED, name)


def test_a_switch_is_refused_the_name_of_a_snapshot(made: World) -> None:
    assert made.ask("groups", "snapshot", "a->b", "--snapshot", "june").code == 0
    for more in (("--dry-run",), ("--approve-by", "bob")):
        refused(made.ask(*JUNE, *more), "june")
    run = made.ask("switchover", "a->b", "--id", "r1", "--dry-run")
    refused(run, "r1")
    assert made.ask("switches", "list", "a->b").body["switches"] == []
    assert taken(made, "june") != "switch"


def test_a_snapshot_that_is_taken_during_a_switch_is_not_overwritten(made: World) -> None:
    with mock.patch("subprocess.run", return_value=CompletedProcess(["halt"], 1, b"", b"")):
        assert made.ask(*JUNE, "--approve-by", "bob", "--no-smoke", "--stop-command", "/bin/true").code == 4
    assert made.ask("groups", "snapshot", "a->b", "--snapshot", "june").code == 0
    made.commit(made.a, "billing", users_0=8)

    def go_on() -> Answer:
        with mock.patch("subprocess.run", return_value=CompletedProcess(["halt"], 0, b"", b"")):
            return made.ask(*JUNE, "--stop-command", "/bin/true")

    stopped = go_on()
    assert stopped.code == 4
    refused(stopped, "june")
    assert taken(made, "june") != "switch"
    assert made.ask("groups", "snapshots", "drop", "a->b", "june", "--yes").code == 0
    assert go_on().code == 0
    assert taken(made, "june") == "switch"
