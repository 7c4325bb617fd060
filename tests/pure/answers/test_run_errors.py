"""`ferry run`, where all is copied and what follows fails."""

from __future__ import annotations

from typing import Any

import pytest

from ferry.errors import FerryError, Superseded, Unreachable
from ferry.run.micro_run import MicroRuns
from tests.pure.answers.stories import begun
from tests.pure.answers.world import World


@pytest.mark.parametrize("error", [Unreachable("cluster b does not answer"), Superseded("a newer run has begun")])
def test_a_run_whose_end_cannot_be_written_reports_what_it_copied_and_what_is_missing(
    error: FerryError, made: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun(made, "ferry.verify = content")

    def failed(*_: Any) -> None:
        raise error

    monkeypatch.setattr(MicroRuns, "record_outcome", failed)
    answer = made.ask("run", "a->b", "--id", "r1")
    assert answer.code == 1
    assert answer.body["records"] > 0
    assert answer.body["state"] == "partial"
    assert [one["why"] for one in answer.body["groups"]["left"]] == ["failed"]
    assert answer.body["verified"]["equal"] is False
