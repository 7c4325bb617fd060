"""Copy a plan on this machine: one slot in this process, several in processes of their own.

Each worker has a pipe to the parent and nothing else in common with it. The end of the pipe shows each side that the
other died. The slot of a dead worker is refused and the others continue; a worker whose parent died ends its open
chunk.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import sys
import threading
import time
import types
from collections import deque
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait

from ferry.config.flow.flow import FlowConfig
from ferry.copy.slot_end import AGAIN, SlotEnd, failure_of, joined
from ferry.copy.task import SlotTask
from ferry.errors import FerryError, Refused
from ferry.model import Attempt, Plan, Receipt
from ferry.run.following import logged_progress
from ferry.run.micro_run import MicroRuns, local_origin
from ferry.run.worker import SIGNALS, STOP, STOP_SECONDS, Committed, Ended, serve, serve_apart

log = logging.getLogger(__name__)

NEEDS_SPARK = "ferry run --spark copies in a Spark of this machine, the flow's DAG in the one that it names"
"""What to do where a transform cannot be carried out, because it needs Spark."""

_LOOK_SECONDS = 0.2
_ENDING_SECONDS = 5.0


@dataclass(slots=True, kw_only=True)
class _Worker:
    """A worker seen from the parent, and the slot it has; `process` is None when it is a thread of this process."""

    pipe: Connection
    process: multiprocessing.process.BaseProcess | None
    slot: int
    receipts: list[Receipt] = field(default_factory=list)


def copy_all(
    runs: MicroRuns,
    plan: Plan,
    attempt: Attempt,
    *,
    stop: Callable[[], bool] = lambda: False,
    progress: Callable[[list[Receipt]], None] = lambda _: None,
) -> list[SlotEnd]:
    """Copy all used slots of a plan, ascending; `progress` is called with the receipts of every committed chunk.

    It uses at most as many processes as there are CPUs. When `stop()` becomes true, open chunks are ended and committed
    and no further one is begun; ends then have `stopped`. A failed slot is tried once more when that may help.
    """
    if plan.row_slots:
        raise Refused(f"run {plan.run} of {plan.flow} has transformed topics, which take Spark: {NEEDS_SPARK}")
    if stop():
        return [SlotEnd(slot=slot, stopped=True) for slot in plan.used_slots]
    pool = _WorkerPool(runs, plan, attempt, progress)
    try:
        return pool.work(stop)
    finally:
        pool.close_all()


def copy_logged(
    runs: MicroRuns,
    plan: Plan,
    attempt: Attempt,
    *,
    stop: Callable[[], bool] = lambda: False,
    progress: Callable[[list[Receipt]], None] = lambda _: None,
) -> list[SlotEnd]:
    """Copy all used slots of a plan as `copy_all` does, and log meanwhile how far it has come."""
    if not plan.used_slots or plan.row_slots:
        return copy_all(runs, plan, attempt, stop=stop, progress=progress)
    with logged_progress(plan, runs.slot_task(plan, plan.used_slots[0], attempt)) as hear:

        def heard(receipts: list[Receipt]) -> None:
            hear(receipts)
            progress(receipts)

        return copy_all(runs, plan, attempt, stop=stop, progress=heard)


def refuse_transforms(flow: FlowConfig, only: Collection[str] | None) -> None:
    """Raise Refused, before a run is opened, for topics (None: all) if a transform may apply to one of them."""
    names = {one.name for one in flow.records.transforms}
    if only is not None:
        names = {one.name for topic in only if (one := flow.transform_of(topic)) is not None}
    if names:
        named = ", ".join(sorted(names))
        raise Refused(f"flow {flow.flow} has transforms ({named}), which take Spark: {NEEDS_SPARK}")


CopyAll = Callable[[MicroRuns, Plan, Attempt], list[SlotEnd]]
"""Copies all slots of a plan: on this machine, or as a Spark job."""


def copy_plan(runs: MicroRuns, plan: Plan, copy: CopyAll = copy_all) -> FerryError | None:
    """Copy a plan as an attempt of this process, and keep in the ledger what its slots refused.

    Return what failed slots mean for the attempt (`failure_of`); None when none failed.
    """
    attempt = runs.begin(plan, local_origin())
    ends = copy(runs, plan, attempt)
    runs.record_outcome(plan, attempt, ends)
    return failure_of(plan, ends)


class _WorkerPool:
    def __init__(
        self, runs: MicroRuns, plan: Plan, attempt: Attempt, progress: Callable[[list[Receipt]], None]
    ) -> None:
        self._runs = runs
        self._plan = plan
        self._attempt = attempt
        self._progress = progress
        self._pending = deque(plan.used_slots)
        self._ends: dict[int, SlotEnd] = {}
        self._workers: dict[Connection, _Worker] = {}
        self._apart = len(self._pending) > 1
        self._at_once = min(os.cpu_count() or 1, len(self._pending))
        self._stopping = False

    def work(self, stop: Callable[[], bool]) -> list[SlotEnd]:
        for _ in range(self._at_once):
            self._start()
        deadline: float | None = None
        while self._workers:
            if deadline is None and stop():
                deadline = time.monotonic() + STOP_SECONDS
                self._ask_to_stop()
            if deadline is not None and time.monotonic() > deadline:
                self._give_up()
                break
            for pipe in wait(list(self._workers), timeout=_LOOK_SECONDS):
                if isinstance(pipe, Connection):
                    self._receive(self._workers[pipe])
        return [self._ends.get(slot, SlotEnd(slot=slot, stopped=True)) for slot in self._plan.used_slots]

    def close_all(self) -> None:
        """Close all pipes and end the processes: none is left running."""
        for worker in self._workers.values():
            worker.pipe.close()
            if worker.process is not None:
                worker.process.kill()
                worker.process.join()
        self._workers.clear()

    def _start(self) -> None:
        slot = self._pending.popleft()
        ours, theirs = multiprocessing.Pipe()
        process: multiprocessing.process.BaseProcess | None = None
        if self._apart:
            levels = {name: logging.getLogger(name).level for name in ("", "kafka")}
            context = multiprocessing.get_context("spawn")
            process = context.Process(target=serve_apart, args=(theirs, levels), name=f"ferry slot {slot}")
            # Its start lifts the block on signals, so it must have started before they are blocked.
            resource_tracker.ensure_running()
            with _blocked_signals(), _without_main():
                process.start()
            theirs.close()
        else:
            threading.Thread(target=serve, args=(theirs, threading.Event()), name="ferry slot", daemon=True).start()
        worker = self._workers[ours] = _Worker(pipe=ours, process=process, slot=slot)
        self._send(worker, self._spec(slot))

    def _spec(self, slot: int) -> SlotTask:
        return self._runs.slot_task(self._plan, slot, self._attempt, self._at_once)

    def _send(self, worker: _Worker, message: SlotTask | None) -> None:
        try:
            worker.pipe.send(message)
        except OSError:
            log.debug("the worker of slot %d is gone; its pipe says so next", worker.slot)

    def _receive(self, worker: _Worker) -> None:
        try:
            message = worker.pipe.recv()
        except (EOFError, OSError):
            self._reap(worker)
            return
        match message:
            case Committed(receipts=receipts):
                worker.receipts += receipts
                self._progress(receipts)
                return
            case Ended(end=end):
                self._settle(end)
        if self._pending:
            worker.slot, worker.receipts = self._pending.popleft(), []
            self._send(worker, self._spec(worker.slot))
        else:
            self._release(worker)

    def _settle(self, end: SlotEnd) -> None:
        """Keep how a slot ended; a failed one waits for another try, once, unless all is to end."""
        before = self._ends.get(end.slot)
        self._ends[end.slot] = joined(before, end)
        if before is None and isinstance(end.failure, AGAIN) and not self._stopping:
            log.warning("slot %d is tried once more: %s", end.slot, end.failure)
            self._pending.append(end.slot)

    def _release(self, worker: _Worker) -> None:
        """End a worker; it ends when its pipe is closed."""
        del self._workers[worker.pipe]
        worker.pipe.close()
        if worker.process is not None:
            worker.process.join(_ENDING_SECONDS)
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()

    def _reap(self, worker: _Worker) -> None:
        """Handle a worker that died without an answer: its slot failed, another worker takes what is waiting."""
        self._release(worker)
        code = worker.process.exitcode if worker.process is not None else None
        if code is not None and code < 0:
            how = f"was killed by {signal.Signals(-code).name}"
        else:
            how = f"ended without a result (exit code {code})"
        error = FerryError(f"the process of slot {worker.slot} {how}: see what killed it (memory?), then run again")
        self._settle(SlotEnd(slot=worker.slot, receipts=tuple(worker.receipts), failure=error))
        if self._pending:
            self._start()

    def _ask_to_stop(self) -> None:
        self._stopping = True
        self._pending.clear()
        for worker in self._workers.values():
            self._send(worker, STOP)

    def _give_up(self) -> None:
        """Leave workers that do not end their chunk; they are killed, and the next run fences what they leave open."""
        for worker in list(self._workers.values()):
            log.warning("slot %d did not end its chunk within %.0f s and is given up", worker.slot, STOP_SECONDS)
            self._settle(SlotEnd(slot=worker.slot, receipts=tuple(worker.receipts), stopped=True))


@contextmanager
def _without_main() -> Iterator[None]:
    """Start processes without the program's main module, which `spawn` would execute there once more.

    They need nothing of it, and some programs, such as a task of Airflow, must not be executed twice.
    """
    main = sys.modules["__main__"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


@contextmanager
def _blocked_signals() -> Iterator[None]:
    """Have processes that are started meanwhile hold signals back until they can handle them."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
