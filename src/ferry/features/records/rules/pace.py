"""Slow transforms: the messages about them, and when they are ended.

Spark writes, or compares, what a transform made only after it has made all of a portion. So a slow transform holds no
transaction open, and when it is ended, nothing of the portion is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

SLOW_SECONDS = 60.0
"""After so many seconds of one task, for each of its reads, a transform is reported as slow.

It is reported again each time that the time has doubled.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformTasks:
    """The tasks of one Spark stage, by number, that carry out a transform."""

    transform: str
    tasks: range
    timeout_s: float
    """Most seconds that one of them may take for each of its reads; 0: no limit."""
    reads: int = 1
    """Most reads that one of them has, one after the other."""
    stream: int = 0
    """Its number among the streams of the job: a transform has two if units are finished by its old rule."""
    done: str = "written"
    """What happens to the changed records when all are changed: they are written, or compared."""

    @property
    def limit_s(self) -> float:
        """Return the most seconds that one of them may take, with all of its reads; 0: no limit."""
        return self.timeout_s * self.reads

    @property
    def slow_s(self) -> float:
        """Return after how many seconds of one of them the transform is slow."""
        return SLOW_SECONDS * self.reads


@dataclass(frozen=True, slots=True, kw_only=True)
class Tasks:
    """The tasks of one stage: which run, for how many seconds, and which are done."""

    running: Mapping[int, float]
    done: frozenset[int] = frozenset()


def edge_tasks(others: int, behind: int) -> int:
    """Return how many tasks of the stage before a shuffle make the edge rows, in addition to `others` tasks.

    Spark does not name stages. This stage is told apart from the one after it, with `behind` tasks, by its number of
    tasks.
    """
    return 2 if others + 1 == behind else 1


@dataclass(slots=True)
class Pace:
    """The state of the transforms of one stage. A transform is reported each time that its time has doubled."""

    shares: Sequence[TransformTasks]
    _warned: dict[int, float] = field(default_factory=dict)

    def slow(self, tasks: Tasks) -> list[str]:
        """Make a sentence for each transform that is slow by now, and was not reported yet."""
        found = []
        for share, longest in self._longest(tasks):
            if longest < self._warned.get(share.stream, share.slow_s):
                continue
            self._warned[share.stream] = 2 * longest
            done = sum(number in tasks.done for number in share.tasks)
            found.append(
                f"ferry.transform.{share.transform} is slow: {done} of {len(share.tasks)} tasks are done, and one has "
                f"run for {longest:.0f} s; nothing of it is {share.done} before all are done, and {_end(share)}"
            )
        return found

    def given_up(self, tasks: Tasks) -> dict[int, str]:
        """Return, by stream, the sentence that says why its transform is ended: a task takes longer than it may."""
        return {
            share.stream: f"ferry.transform.{share.transform} takes too long: a task ran for {longest:.0f} s and "
            f"was ended, and nothing of it is {share.done}; {_remedy(share)}"
            for share, longest in self._longest(tasks)
            if share.limit_s and longest >= share.limit_s
        }

    def _longest(self, tasks: Tasks) -> Iterable[tuple[TransformTasks, float]]:
        for share in self.shares:
            times = [seconds for number, seconds in tasks.running.items() if number in share.tasks]
            if times:
                yield share, max(times)


def _end(share: TransformTasks) -> str:
    if not share.timeout_s:
        return f"ferry.transform.{share.transform}.timeout.ms would end it"
    each = f" ({share.timeout_s:.0f} s for each of its {share.reads} reads)" if share.reads > 1 else ""
    return f"it is ended after {share.limit_s:.0f} s{each}"


def _remedy(share: TransformTasks) -> str:
    less = ", copy less at a time (ferry.run.max.records)" if share.done == "written" else ""
    return f"make it faster{less}, or raise ferry.transform.{share.transform}.timeout.ms"
