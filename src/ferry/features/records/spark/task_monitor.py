"""Watches the tasks that carry out transforms while Spark works: slow ones are reported, and ended if a limit is set.

Spark's own record of its tasks says which of them run, and since when; a function that hangs reports nothing itself.
"""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # it has no types
from pyspark.sql import SparkSession

from ferry.clock import wall_ms
from ferry.features.records.rules.pace import Pace, Tasks, TransformTasks

T = TypeVar("T")

LOOK_SECONDS = 2.0

log = logging.getLogger(__name__)


class TooSlow(Exception):
    """Transforms were ended, with a sentence for each stream, by number; nothing of what it read was written."""

    def __init__(self, given_up: dict[int, str]) -> None:
        super().__init__("; ".join(given_up.values()))
        self.given_up = given_up


def watched(spark: SparkSession, shares: Sequence[TransformTasks], tasks: int, work: Callable[[], T]) -> T:
    """Return what `work` returns. Its jobs have a stage of `tasks` tasks, of which `shares` belong to transforms.

    Raises TooSlow when a transform was ended, and what `work` raises.
    """
    if not shares:
        return work()
    context, tag, over = spark.sparkContext, f"ferry-pace-{secrets.token_hex(8)}", threading.Event()
    pace, given_up = Pace(shares), dict[int, str]()

    def look() -> None:
        while not over.wait(LOOK_SECONDS):
            try:
                found = _tasks(context, tag, tasks)
                if found is None:
                    continue
                for sentence in pace.slow(found):
                    log.warning("%s", sentence)
                given_up.update(pace.given_up(found))
                if given_up:
                    context.cancelJobsWithTag(tag)
                    return
            except Py4JError as error:  # the copy continues without
                log.info("tasks of transforms are not seen: %s", type(error).__name__)
                return

    looking = threading.Thread(target=look, name="ferry-pace", daemon=True)
    context.addJobTag(tag)
    looking.start()
    try:
        return work()
    except Exception as error:
        if given_up:
            raise TooSlow(given_up) from error
        raise
    finally:
        over.set()
        with suppress(Py4JError):
            context.removeJobTag(tag)


def _tasks(context: Any, tag: str, count: int) -> Tasks | None:
    """Return the tasks of the first running stage with `count` tasks; None: no such stage runs."""
    jvm = context._jsc.sc()  # noqa: SLF001 - PySpark shows no tasks
    tracker, store, now = jvm.statusTracker(), jvm.statusStore(), wall_ms()
    for job in tracker.getJobIdsForTag(tag):
        info = tracker.getJobInfo(job)
        for stage in sorted(info.get().stageIds()) if info.isDefined() else ():
            shown = tracker.getStageInfo(stage)
            if not shown.isDefined() or shown.get().numTasks() != count or not shown.get().numActiveTasks():
                continue
            running, done = dict[int, float](), set[int]()
            listed = store.taskList(stage, shown.get().currentAttemptId(), count * 2)
            for task in (listed.apply(number) for number in range(listed.size())):
                if task.status() == "RUNNING":
                    running[task.index()] = max(0, now - task.launchTime().getTime()) / 1000
                elif task.status() == "SUCCESS":
                    done.add(task.index())
            return Tasks(running=running, done=frozenset(done))
    return None
