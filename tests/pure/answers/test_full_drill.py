"""A full drill that is continued by its id keeps the options that it began with, on both ways."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any
from unittest import mock

import pytest

from ferry.errors import Refused
from ferry.features.switch.acts import switcher
from tests.golden import Golden
from tests.pure.answers.stories import begun
from tests.pure.answers.world import Answer, World, world

pytestmark = pytest.mark.slow
CONTINUES = "ferry drills full 'a->b' --id d-1"
OUT, BACK = ("a->b", "d-1-out"), ("a->b", "d-1-back")
GIVEN = ("--leave-group", "keep", "--leave-active", "--quiet-seconds", "0", "--drain-timeout", "77")


@pytest.fixture
def made(tmp_path: Path) -> Iterator[World]:
    """Two clusters, and a flow that has copied all and takes two groups."""
    with world(tmp_path) as made:
        begun(made, "b->a.enabled = true", "groups = .*", topics={"users": 1})
        made.commit(made.a, "billing", users_0=4)
        made.commit(made.a, "keep", users_0=2)
        made.ask("run", "a->b", "--id", "r1")
        yield made


def drilled(made: World, *more: str, code: int = 0) -> Answer:
    """Ask for the drill, with a redirect command that ends with this code. The way back does not come to its end."""
    asked = "drills", "full", "a->b", "--id", "d-1", "--approve-by", "bob", "--redirect-command", "/bin/true"
    with (
        mock.patch("subprocess.run", return_value=CompletedProcess(["move"], code, b"", b"")),
        mock.patch.object(switcher, "export_stranded", side_effect=Refused("the disk is full")),
    ):
        return made.ask(*asked, "--report", str(made.folder / "reports"), *more)


def options(made: World, switch: tuple[str, str]) -> dict[str, Any]:
    """The options that a switch was opened with."""
    return dict(made.ask("switches", "show", *switch).body["switch"]["options"])


def test_a_drill_that_is_continued_goes_back_as_it_went_out(made: World) -> None:
    stopped = drilled(made, *GIVEN, code=1)
    on_the_way_back = drilled(made)
    out, back = options(made, OUT), options(made, BACK)
    assert back == out
    assert (out["leave_groups"], out["leave_active"]) == (["keep"], True)
    assert (out["quiet_seconds"], out["drain_timeout_seconds"]) == (0, 77)
    for answer in (stopped, on_the_way_back):
        assert answer.code == 4
        for text in (answer.body["summary"], answer.body["steps"][-1]["detail"]):
            assert (text.count("continue with"), text.count(CONTINUES)) == (1, 1)


def test_other_options_are_refused(made: World, golden: Golden) -> None:
    drilled(made, *GIVEN, code=1)
    for more, flags in (
        (("--leave-group", "billing"), ["--leave-group"]),
        (("--quiet-seconds", "3", "--drain-timeout", "77"), ["--quiet-seconds"]),
    ):
        refused = drilled(made, *more), drilled(made, *more, "--dry-run")
        for message in (refused[0].body["summary"], refused[1].body["error"]["message"]):
            assert [one for one in ("--leave-group", "--quiet-seconds", "--drain-timeout") if one in message] == flags
            assert CONTINUES in message
        assert [one.code for one in refused] == [2, 2]
        golden(refused[1].body["error"]["message"], flags[0])
    assert drilled(made, *GIVEN).code == 4, "the same options are none other"
    assert options(made, BACK) == options(made, OUT)
