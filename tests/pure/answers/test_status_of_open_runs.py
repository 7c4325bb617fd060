"""`ferry status` while a run copies: what is committed, and what is sent."""

from __future__ import annotations

from typing import Any

import pytest

from ferry.commands import copying
from ferry.config.settings import load
from ferry.ledger.progress import Progress
from ferry.plan.lag import look_at_lag
from ferry.plan.rules.lag_start import LaneState
from ferry.run import local
from tests.pure.answers.stories import begun
from tests.pure.answers.world import FILE, World


def progress(standing: LaneState) -> Progress:
    newest = standing.newest
    assert newest is not None
    assert newest.progress is not None
    return newest.progress.whole


def test_a_run_that_copies_has_its_progress_and_one_that_ended_has_none(
    made: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun(made)
    flow = load(made.folder / FILE).flow("a->b")
    real, seen = local.copy_all, list[LaneState]()

    def copied(*given: Any, **more: Any) -> Any:
        seen.append(look_at_lag(flow, patience_s=9)[1])
        made.hold(made.b, "a.orders", 0)
        seen.append(look_at_lag(flow, patience_s=9)[1])
        monkeypatch.setattr(copying, "copy_all", real)
        return real(*given, **more)

    monkeypatch.setattr(copying, "copy_all", copied)
    made.ask("run", "a->b", "--id", "r1")
    before, sent = map(progress, seen)
    assert (before.slices, before.done, before.records, before.sent, before.unseen) == (3, 0, 0, 0, 0)
    assert (sent.sent, sent.passed, sent.records) == (1, 1, 0)
    assert made.ask("status").body["flows"][0]["progress"] is None
    monkeypatch.setattr("ferry.plan.lag.look_at_lag", lambda *_, **__: ([], seen[1]))
    (shown,) = made.ask("status").body["flows"]
    assert (shown["progress"]["sent"], shown["progress"]["passed"], shown["records"]) == (1, 1, 0)
    assert "1 record" in made.ask("status", output="table").out
