"""When a window's micro-runs go on, and when they end."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from ferry.features.lanes.acts.backfill import Opened, copy_window
from ferry.model import Slice, TopicPartition
from tests.pure.decide.values import PLAN

PLACE = TopicPartition(topic="orders", partition=0)


@dataclass(slots=True, kw_only=True)
class Window:
    """Ten offsets, of which each run plans three and copies `copied`."""

    left: int = 10
    copied: int = 3
    done_before: int = 0
    """So many runs have nothing to copy any more, as when the task is repeated."""
    taken: frozenset[int] = frozenset()
    """Numbers of runs that another window's run has superseded."""
    cut_short: int | None = None
    runs: list[int] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    def open(self, number: int) -> Opened | None:
        if number in self.taken:
            return None
        end = 10 - self.left + min(3, self.left)
        piece = Slice(source=PLACE, target=PLACE, start=10 - self.left, end=end, slot=0, bytes_estimate=0, first=False)
        plan = replace(PLAN, run=f"run-{number}", slices=(piece,) if piece.offsets else ())
        return Opened(plan=plan, left=self.left, is_done=number <= self.done_before)

    def copy(self, run: Opened) -> bool:
        number = int(run.plan.run.removeprefix("run-"))
        self.runs.append(number)
        self.left -= min(self.copied, self.left)
        return number != self.cut_short

    def to_its_end(self) -> list[int]:
        copy_window(self.open, self.copy, lambda: self.left, self.said.append)
        return self.runs


@pytest.mark.parametrize(
    ("window", "runs", "left"),
    [
        pytest.param(Window(), [1, 2, 3, 4], 0, id="run by run to the end"),
        pytest.param(Window(left=0), [1], 0, id="one run shows what was refused where nothing is left to plan"),
        pytest.param(Window(copied=0), [1], 10, id="a run that got no further ends it"),
        pytest.param(Window(cut_short=2), [1, 2], 4, id="a run that was told to stop ends it"),
        pytest.param(Window(left=4, done_before=2), [3, 4], 0, id="repeated, it goes on behind the runs that are done"),
        pytest.param(Window(taken=frozenset({1, 2})), [3, 4, 5, 6], 0, id="a new run takes the lane back"),
    ],
)
def test_a_window_is_copied_run_by_run(window: Window, runs: list[int], left: int) -> None:
    assert (window.to_its_end(), window.left) == (runs, left)


def test_what_is_left_is_said_after_each_run_that_got_further() -> None:
    window = Window()
    window.to_its_end()
    assert [text.partition(",")[0] for text in window.said] == [
        f"window: {done} % copied" for done in (30, 60, 90, 100)
    ]
    stuck = Window(copied=0)
    stuck.to_its_end()
    assert stuck.said == []


def test_a_run_knows_what_is_copied_behind_it() -> None:
    run = Window().open(1)
    assert run is not None
    assert run.ahead == 7
