"""A partial drill that a signal stops while it copies opens no further run, and its report names the signal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import pytest

from tests.pure.answers.stories import begun
from tests.pure.answers.world import world

pytestmark = pytest.mark.slow
STEPS = 2
"""`look` and `copy` begin before the signal."""


@contextmanager
def while_it_copies() -> Iterator[Callable[[], bool]]:
    asked = count(1)
    yield lambda: next(asked) > STEPS


def test_after_a_signal_a_partial_drill_opens_no_further_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with world(tmp_path) as made:
        begun(made, "b->a.enabled = true", topics={"users": 1})
        made.ask("run", "a->b", "--id", "r1")
        made.produce(made.a, "users", 0, 5)
        monkeypatch.setattr("ferry.features.drill.cli.app.stop_signals", while_it_copies)
        answer = made.ask("drills", "partial", "a->b", "--topic", "users", "--approve-by", "bob")
        assert (answer.code, answer.body["outcome"], answer.body["notes"]) == (2, "refused", [])
        assert [(one["name"], one["outcome"]) for one in answer.body["steps"]] == [
            ("look", "done"),
            ("copy", "refused"),
        ]
        runs = made.ask("ledger", "a->b", "--runs").body["runs"]
        assert len(runs) == len(["r1", "the drill's"])
