"""A scheduled run overtakes the run that drains a flow: what that run had copied by then is counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ferry.errors import FerryError, Superseded
from ferry.features.groups.acts.of_run import checkpoint
from ferry.features.switch.acts import drain
from tests.pure.answers.stories import HEARTBEATS
from tests.pure.answers.world import world

pytestmark = pytest.mark.slow  # a whole switchover


def test_records_of_an_overtaken_run_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    due: list[FerryError] = [Superseded("a newer run began")]

    def overtaken_once(*words: Any) -> Any:
        if due:
            raise due.pop()
        return checkpoint(*words)

    with world(tmp_path) as made:
        made.write("topics = users", "b->a.enabled = true", "groups = billing.*", *HEARTBEATS)
        made.a.topic("users", 1)
        made.produce(made.a, "users", 0, 10)
        made.commit(made.a, "billing", users_0=10)
        assert made.ask("run", "a->b").code == 0
        made.produce(made.a, "users", 0, 3)
        monkeypatch.setattr(drain, "checkpoint", overtaken_once)
        quiet = ("--quiet-seconds", "0.1", "--quiet-timeout", "30")
        done = made.ask("switchover", "a->b", "--id", "over", "--approve-by", "bob", "--no-smoke", *quiet)
        assert done.code == 0
        (found,) = [one for one in done.body["steps"] if one["step"] == "drain"]
        assert (found["facts"]["records"], found["facts"]["runs"]) == (3, 1)
