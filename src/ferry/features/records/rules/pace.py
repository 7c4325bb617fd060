"""Transforms that are slow: what is told of them, and which are given up. Nothing of them is written by then.

Spark writes, or compares, what a transform made once it has made all of a portion, so a slow one holds no transaction
open.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

SLOW_SECONDS = 60.0
"""After this time of one task a transform is told to be slow; again each time that it has doubled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """The tasks of one Spark stage, by number, that carry a transform out."""

    transform: str
    tasks: range
    timeout_s: float
    """How long one of them may take; 0: as long as it does."""
    done: str = "written"
    """What becomes of all that is changed, once it is: written, or compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tasks:
    """Of one stage: which tasks run, for how many seconds, and which are done."""

    running: Mapping[int, float]
    done: frozenset[int] = frozenset()


def edge_tasks(others: int, behind: int) -> int:
    """How many tasks of the stage ahead of a shuffle make the edge rows, beside so many others.

    Spark names no stages: this one is told from the one behind it, with `behind` tasks, by its number of tasks.
    """
    return 2 if others + 1 == behind else 1


@dataclass(slots=True)
class Pace:
    """What is known of the transforms of one stage; told at most every doubling."""

    shares: Sequence[Share]
    _told: dict[str, float] = field(default_factory=dict)

    def slow(self, tasks: Tasks) -> list[str]:
        """A sentence for each transform that is slow by now, and was not told so."""
        found = []
        for share, longest in self._longest(tasks):
            if longest < self._told.get(share.transform, SLOW_SECONDS):
                continue
            self._told[share.transform] = max(2 * longest, SLOW_SECONDS)
            done = sum(number in tasks.done for number in share.tasks)
            key = f"ferry.transform.{share.transform}.timeout.ms"
            ends = f"it is ended after {share.timeout_s:.0f} s" if share.timeout_s else f"{key} would end it"
            found.append(
                f"ferry.transform.{share.transform} is slow: {done} of {len(share.tasks)} tasks are done, and one is "
                f"at work for {longest:.0f} s; nothing of it is {share.done} before all are done, and {ends}"
            )
        return found

    def given_up(self, tasks: Tasks) -> dict[str, str]:
        """By transform the sentence why it is not gone on with: a task takes longer than it may."""
        return {
            share.transform: f"ferry.transform.{share.transform} takes too long: a task was at work for "
            f"{longest:.0f} s and was ended, and nothing of it is {share.done}; {_remedy(share)}"
            for share, longest in self._longest(tasks)
            if share.timeout_s and longest >= share.timeout_s
        }

    def _longest(self, tasks: Tasks) -> Iterable[tuple[Share, float]]:
        for share in self.shares:
            times = [seconds for number, seconds in tasks.running.items() if number in share.tasks]
            if times:
                yield share, max(times)


def _remedy(share: Share) -> str:
    less = ", copy less at a time (ferry.run.max.records)" if share.done == "written" else ""
    return f"make it faster{less}, or raise ferry.transform.{share.transform}.timeout.ms"
