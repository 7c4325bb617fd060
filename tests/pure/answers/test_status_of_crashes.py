"""`ferry status` of a flow whose runs all die while they plan."""

from __future__ import annotations

from typing import Any

import pytest

from ferry.errors import Unreachable
from ferry.plan import plan_run
from tests.pure.answers.stories import begun
from tests.pure.answers.world import MINUTE_MS, World


@pytest.mark.slow
@pytest.mark.parametrize("succeeded", [True, False])
def test_it_is_late_by_the_schedule_and_the_last_success(
    succeeded: bool, made: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun(made, "ferry.schedule = */5 * * * *")
    if succeeded:
        assert made.ask("run", "a->b", "--id", "r0").code == 0

    async def died(*_: Any) -> None:
        raise Unreachable("cluster a does not answer")

    monkeypatch.setattr(plan_run, "decide_and_change", died)
    seen = []
    for number in range(1, 6):
        made.now_ms += 3 * MINUTE_MS
        assert made.ask("run", "a->b", "--id", f"r{number}").code == 3
        answer = made.ask("status")
        (flow,) = answer.body["flows"]
        assert (flow["run"], flow["state"]) == (f"r{number}", "unplanned")
        seen.append((flow["late"], flow["words"], answer.code))
    assert seen[0] == (False, ["planning"], 0)
    assert seen[-1] == (True, ["late"], 1)


@pytest.mark.slow
def test_a_healthy_flow_asks_for_its_newest_run_only(made: World, monkeypatch: pytest.MonkeyPatch) -> None:
    begun(made, "ferry.schedule = */5 * * * *")
    for number in range(2):
        assert made.ask("run", "a->b", "--id", f"r{number}").code == 0

    def more(*_: Any) -> None:
        raise AssertionError("the runs before were read")

    monkeypatch.setattr("ferry.plan.lag.past_runs", more)
    (flow,) = made.ask("status").body["flows"]
    assert (flow["words"], flow["late"]) == (["healthy"], False)
