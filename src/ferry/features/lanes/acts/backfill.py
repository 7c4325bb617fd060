"""A window of history, copied by one micro-run after another, in processes of a terminal or in Spark."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from ferry.model import Plan
from ferry.run.pace import outlook


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A micro-run of the window that has a plan; offsets are the source's."""

    plan: Plan
    left: int
    """How many offsets of the window were not copied before this run."""
    is_done: bool = False
    """Whether the run has nothing to copy, such as one that is repeated after its end."""

    @property
    def ahead(self) -> int:
        """How many offsets are left to copy after this run."""
        return max(0, self.left - sum(piece.offsets for piece in self.plan.kept))


def copy_window(
    open_run: Callable[[int], Opened | None],
    copy: Callable[[Opened], bool],
    left: Callable[[], int],
    say: Callable[[str], None],
) -> None:
    """Open and copy run after run until the window is copied, or until a run makes no progress.

    `open_run` opens the window's run of a number, from 1. It returns None if another run has the lane now; the run of
    the next number takes it back. `copy` returns whether the run was completed, and `left` how many offsets of the
    window are not copied. `say` is called with the progress and an estimate of the time left.
    """
    begun, number = time.monotonic(), 0
    whole: int | None = None
    while True:
        number += 1
        run = open_run(number)
        if run is None:
            continue
        whole = run.left if whole is None else whole
        came_to_its_end = run.is_done or copy(run)
        rest = left()
        if rest < run.left:
            say(f"window: {outlook(whole, rest, time.monotonic() - begun)}")
        stuck = not run.plan.kept or (rest == run.left and not run.is_done)
        if not rest or stuck or not came_to_its_end:
            return
